"""`check_history` finds each way in which history, live rows and tags can disagree; `clean_up` leaves none behind."""

from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from memories import services
from memories.drift import Flaw, deviations
from memories.kinds import BRAIN, KINDS, LONGTERM, SHORTTERM, Kind
from memories.models import LongtermTag, LongtermVersion, ShorttermMemory, ShorttermVersion, Tag
from memories.principal import SYSTEM, Origin
from memories.services import Change
from tests.conftest import Agent, note
from tests.trouble import after_statement, together


@pytest.fixture
def memories(anna: Agent) -> None:
    """Memories of all kinds with every sort of change behind them: longterm_1 to 3 live, 4 deleted."""
    with connection.cursor() as cursor:  # the IDs in this file are written out
        for kind in KINDS:
            table = f"memories_{kind.typ}memory"
            if connection.vendor == "postgresql":
                cursor.execute(f"ALTER SEQUENCE {table}_id_seq RESTART WITH 1")
            else:
                cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [table])
    vector = [0.5, -1.25, 3.0]
    anna.call(
        "insert_brain_longterm_memory",
        memories=[
            note(tags=["Äpfel", "Birnen"], embedding=vector, embedding_profil_hash="p"),
            note(tags=["äpfel"]),
            note(tags=[]),
            note(),
        ],
    )
    anna.call(
        "update_brain_longterm_memory",
        memories=[{"ID": "longterm_2", "kurzbeschreibung": "neu", "memory": "neu 🙂", "tags": ["ÄPFEL", "Quitten"]}],
    )
    anna.call("delete_brain_longterm_memory", IDs=["longterm_4"])
    anna.call("insert_brain_shortterm_memory", memories=[note(), note(), note()])
    anna.call("promote_brain_shortterm_memory", IDs=["shortterm_1"])
    anna.call("delete_brain_shortterm_memory", IDs=["shortterm_2"])
    anna.call("restore_brain_memory", ID="shortterm_2", version=1)
    anna.call("insert_brain_memory", memory_typ="arbeit", titel="Umzug", inhalt="Kisten", relevanz="40")
    assert anna.call("update_brain_memory", ID="brain_1", relevanz="90")["erfolg"]


def found() -> list[tuple[str, Flaw]]:
    """What the check finds in all kinds."""
    return [(deviation.kennung, deviation.flaw) for kind in KINDS for deviation in deviations(kind)]


def raw(statement: str, *parameters: object) -> Callable[[], object]:
    """A change that goes around the services."""

    def run() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)

    return run


def changed(rows: Any, **values: Any) -> Callable[[], object]:
    """A change of these rows that goes around the services."""
    return lambda: rows.update(**values)


def live(kind: Kind, key: int) -> Any:
    """The live row of this key."""
    return kind.memories.objects.filter(pk=key)


def version(kind: Kind, key: int, number: int) -> Any:
    """One version."""
    return kind.versions.objects.filter(memory_id=key, version=number)


DIFFERENT = [("longterm_1", Flaw.DIFFERENT)]


@pytest.mark.usefixtures("memories")
def test_a_database_that_only_services_wrote_has_no_deviation() -> None:
    assert found() == []
    out = StringIO()
    call_command("check_history", stdout=out)
    numbers = [[word for word in line.split() if word.isdigit()] for line in out.getvalue().splitlines()]
    assert [line.partition(":")[0] for line in out.getvalue().splitlines()] == ["longterm", "shortterm", "brain"]
    assert numbers == [["4", "7", "0"], ["2", "6", "0"], ["1", "2", "0"]]


@pytest.mark.usefixtures("memories")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(changed(live(LONGTERM, 1), memory="anders"), DIFFERENT, id="text"),
        pytest.param(changed(live(LONGTERM, 1), scope_vk=""), DIFFERENT, id="scope record"),
        pytest.param(changed(live(LONGTERM, 1), embedding_profil_hash=None), DIFFERENT, id="null for a value"),
        pytest.param(changed(live(LONGTERM, 1), embedding=b"\0" * 12), DIFFERENT, id="vector"),
        pytest.param(changed(live(LONGTERM, 1), embedding_veraltet=True), DIFFERENT, id="staleness"),
        pytest.param(changed(live(LONGTERM, 1), nutzer="carla"), DIFFERENT, id="owner"),
        pytest.param(changed(live(LONGTERM, 1), aktualisiert_am=timezone.now()), DIFFERENT, id="moment of change"),
        pytest.param(changed(live(LONGTERM, 1), version=2), DIFFERENT, id="number ahead"),
        pytest.param(changed(live(LONGTERM, 2), version=1), [("longterm_2", Flaw.DIFFERENT)], id="number behind"),
        pytest.param(
            changed(live(SHORTTERM, 3), gueltig_bis=timezone.now()), [("shortterm_3", Flaw.DIFFERENT)], id="validity"
        ),
        pytest.param(changed(live(BRAIN, 1), relevanz=50), [("brain_1", Flaw.DIFFERENT)], id="relevance"),
        pytest.param(changed(version(LONGTERM, 1, 1), memory="anders"), DIFFERENT, id="version rewritten"),
        pytest.param(
            changed(live(LONGTERM, 1), tag_namen=["Birnen", "Äpfel"]),
            DIFFERENT,
            id="order of tags, which the links do not hold",
        ),
        pytest.param(
            lambda: version(LONGTERM, 2, 1).delete(), [("longterm_2", Flaw.GAP)], id="first version is missing"
        ),
        pytest.param(
            lambda: version(SHORTTERM, 2, 2).delete(), [("shortterm_2", Flaw.GAP)], id="version in between is missing"
        ),
        pytest.param(lambda: version(LONGTERM, 1, 1).delete(), DIFFERENT, id="no version at all"),
        pytest.param(
            lambda: version(BRAIN, 1, 2).delete(), [("brain_1", Flaw.DIFFERENT)], id="newest version is missing"
        ),
        pytest.param(
            lambda: version(LONGTERM, 4, 2).delete(), [("longterm_4", Flaw.VANISHED)], id="deletion is missing"
        ),
        pytest.param(
            changed(version(SHORTTERM, 1, 2), aktion="geaendert"), [("shortterm_1", Flaw.VANISHED)], id="promotion"
        ),
        pytest.param(
            lambda: live(LONGTERM, 5).delete(),
            [("longterm_5", Flaw.VANISHED)],
            id="promoted memory vanished: promotion ends a short-term memory only",
        ),
        pytest.param(
            changed(version(SHORTTERM, 2, 3), aktion="geloescht"), [("shortterm_2", Flaw.REVIVED)], id="deleted, alive"
        ),
        pytest.param(
            changed(version(SHORTTERM, 2, 3), aktion="befoerdert"),
            [("shortterm_2", Flaw.REVIVED)],
            id="promoted, alive",
        ),
        pytest.param(
            lambda: LongtermTag.objects.filter(memory_id=1, tag__name="Birnen").delete(),
            [("longterm_1", Flaw.TAGS)],
            id="link is missing",
        ),
        pytest.param(
            lambda: LongtermTag.objects.create(memory_id=3, tag=Tag.objects.get(name="Quitten")),
            [("longterm_3", Flaw.TAGS)],
            id="link too many",
        ),
        pytest.param(
            lambda: LongtermTag.objects.filter(memory_id=1, tag__name="Birnen").update(
                tag=Tag.objects.get(name="Quitten")
            ),
            [("longterm_1", Flaw.TAGS)],
            id="link to another tag",
        ),
        pytest.param(
            changed(Tag.objects.filter(name="Birnen"), name="birnen"), [("longterm_1", Flaw.TAGS)], id="tag respelled"
        ),
        pytest.param(
            changed(Tag.objects.filter(name="Birnen"), schluessel="Birnen"), [("longterm_1", Flaw.TAGS)], id="tag's key"
        ),
        pytest.param(
            lambda: (
                changed(live(LONGTERM, 3), tag_namen=["Äpfel"])(),
                changed(version(LONGTERM, 3, 1), tag_namen=["Äpfel"])(),
            ),
            [("longterm_3", Flaw.TAGS)],
            id="tags in row and version, without a link",
        ),
    ],
)
def test_each_deviation_is_found(change: Callable[[], object], expected: list[tuple[str, Flaw]]) -> None:
    change()
    assert found() == expected


@pytest.mark.usefixtures("memories")
def test_deviations_are_told_by_their_ids_alone_and_end_in_code_1() -> None:
    live(LONGTERM, 2).update(memory="Geheimnis")
    version(SHORTTERM, 2, 2).delete()
    out = StringIO()
    with pytest.raises(CommandError) as failed:
        call_command("check_history", stdout=out)
    assert failed.value.returncode == 1
    assert [line.split(":")[0] for line in out.getvalue().splitlines()] == [
        *("longterm", "shortterm", "brain"),
        *("longterm_2", "shortterm_2"),
    ]
    assert "Geheimnis" not in out.getvalue()
    assert "neu 🙂" not in out.getvalue()


def test_at_most_20_deviations_are_listed_but_all_are_counted(anna: Agent) -> None:
    anna.call("insert_brain_longterm_memory", memories=[note() for _ in range(25)])
    LONGTERM.memories.objects.update(memory="anders")
    out = StringIO()
    with pytest.raises(CommandError, match="25"):
        call_command("check_history", stdout=out)
    assert sum(line.startswith("longterm_") for line in out.getvalue().splitlines()) == 20
    assert "5" in out.getvalue().splitlines()[-1]


def test_the_number_of_statements_does_not_grow(anna: Agent, django_assert_num_queries: Any) -> None:
    for _ in range(3):
        anna.call("insert_brain_longterm_memory", memories=[note(tags=["a", "b"]) for _ in range(100)])
        with django_assert_num_queries(5):
            assert list(deviations(LONGTERM)) == []


def test_clean_up_deletes_what_is_no_longer_valid_and_nothing_else(anna: Agent) -> None:
    anna.call("insert_brain_shortterm_memory", memories=[note(kurzbeschreibung="alt") for _ in range(100)])
    anna.call("insert_brain_shortterm_memory", memories=[note(kurzbeschreibung="alt") for _ in range(30)])
    kept = anna.call("insert_brain_shortterm_memory", memories=[note(), note(gueltig_bis="2099-12-31")])
    expired = ShorttermMemory.objects.filter(kurzbeschreibung="alt")
    past = timezone.now() - timedelta(days=1)
    expired.update(gueltig_bis=past)
    ShorttermVersion.objects.filter(kurzbeschreibung="alt").update(gueltig_bis=past)

    out = StringIO()
    call_command("clean_up", stdout=out)

    assert [line.split()[0] for line in out.getvalue().splitlines()[:2]] == ["100", "130"]
    assert out.getvalue().splitlines()[2].split()[-1] == "130"
    assert sorted(f"shortterm_{key}" for key in ShorttermMemory.objects.values_list("pk", flat=True)) == sorted(
        row["ID"] for row in kept["daten"]
    )
    last = ShorttermVersion.objects.filter(version=2)
    assert last.count() == 130
    assert set(last.values_list("aktion", "durch_nutzer", "tuer", "tool", "kurzbeschreibung")) == {
        ("geloescht", "system", "command", "clean_up", "alt")
    }
    assert found() == []


@pytest.mark.django_db(transaction=True)
def test_clean_up_spares_a_memory_whose_validity_was_extended_meanwhile(anna: Agent) -> None:
    anna.call("insert_brain_shortterm_memory", memories=[note()])
    (key,) = ShorttermMemory.objects.values_list("pk", flat=True)
    origin = Origin(SYSTEM, nutzer="anna", agent="", tuer="admin", tool="change")
    now = timezone.now()
    services.update(SHORTTERM, [Change(key, {"gueltig_bis": now - timedelta(days=1)})], origin)

    def extend() -> None:
        change = Change(key, {"gueltig_bis": now + timedelta(days=1)})
        together([lambda: services.update(SHORTTERM, [change], origin)])

    out = StringIO()
    with after_statement('SELECT "memories_shorttermmemory"."id"', extend):
        call_command("clean_up", stdout=out)
    assert out.getvalue().split()[-1] == "0"
    assert ShorttermMemory.objects.get().version == 3
    assert found() == []


def test_clean_up_again_deletes_nothing(db: None) -> None:
    out = StringIO()
    call_command("clean_up", stdout=out)
    assert {line.split()[-1] for line in out.getvalue().splitlines()} == {"0"}


def test_the_history_of_a_cleaned_up_memory_can_bring_it_back_to_life(anna: Agent) -> None:
    kennung = anna.call("insert_brain_shortterm_memory", memories=[note()])["daten"][0]["ID"]
    past = timezone.now() - timedelta(days=1)
    ShorttermMemory.objects.update(gueltig_bis=past)
    ShorttermVersion.objects.update(gueltig_bis=past)
    call_command("clean_up", stdout=StringIO())
    assert anna.call("restore_brain_memory", ID=kennung, version=1)["erfolg"]
    assert ShorttermMemory.objects.get().gueltig_bis > timezone.now()
    assert found() == []
    assert not LongtermVersion.objects.exists()
