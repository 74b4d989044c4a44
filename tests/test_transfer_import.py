"""What goes out comes in again, exactly and once; what is wrong is told row by row, and the rest is stored."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.utils import timezone

from memories.errors import Unavailable
from memories.kinds import BRAIN, LONGTERM, SHORTTERM
from memories.merging import Merge, merge, undo_merge
from memories.models import ImportedMemory, Installation, LongtermMemory, LongtermVersion, OpenReference, Tag
from memories.models.access import principal_of
from memories.principal import SYSTEM, Action, Origin, Principal, Reach
from memories.services import Change, delete, promote, restore, update
from memories.transfer.importing import Verdict, take
from memories.transfer.rows import rows
from memories.values import embedding
from tests.admincast import store
from tests.transferring import (
    assert_sound,
    become_another_installation,
    export,
    file_of,
    lines_of,
    run_import,
    versions,
)
from tests.trouble import at_commit, database_away, lose_the_answer

pytestmark = pytest.mark.django_db


def origin(**values: Any) -> Origin:
    """An agent's change."""
    return Origin(SYSTEM, nutzer="ben", agent="planer", tuer="mcp", tool="test", **values)


def fill() -> None:
    """Memories of all kinds with every sort of change behind them."""
    vector = embedding([0.1, -1.25, 3.4e38], "embedding")
    first = store(embedding=vector, embedding_profil_hash="p", tag_namen=["Äpfel", "Birnen"])
    update(LONGTERM, [Change(first, {"memory": "neu\r\nund 'anders'", "tag_namen": ["äpfel"]})], origin(grund="Irrtum"))
    restore(LONGTERM, first, 1, origin())
    gone = store()
    delete(LONGTERM, [gone], origin())
    back = store()
    delete(LONGTERM, [back], origin())
    restore(LONGTERM, back, 1, origin())
    promote([store(SHORTTERM, gueltig_bis=None)], origin(referenzfelder={"ö": [1e23, -0.0, None]}))
    store(SHORTTERM, gueltig_bis=None)
    own = {"memory_typ": "arbeit", "titel": "T", "inhalt_json": '{"a":  1}', "scope_typ": "agent", "scope_id": "7"}
    brain = store(BRAIN, **own)
    update(BRAIN, [Change(brain, {"relevanz": 90, "scope_typ": "global"})], origin())
    one, two = store(memory="eins"), store(memory="zwei")
    merge(LONGTERM, Merge(survivor=two, seen={one: 1, two: 1}), origin())


def test_a_round_trip_gives_the_same_bytes(tmp_path: Path) -> None:
    fill()
    text = export()
    become_another_installation()
    counts, told = run_import(file_of(tmp_path, text))
    assert counts == {"neu": 9, "geaendert": 0, "gleich": 0, "fehlerhaft": 0}, told
    assert export() == text
    assert_sound()


def test_the_second_run_changes_nothing(tmp_path: Path) -> None:
    fill()
    path = file_of(tmp_path, export())
    become_another_installation()
    run_import(path)
    before, told = versions(), export()
    counts, _told = run_import(path)
    assert counts == {"neu": 0, "geaendert": 0, "gleich": 9, "fehlerhaft": 0}
    assert (versions(), export()) == (before, told)


def test_where_it_came_from_nothing_changes(tmp_path: Path) -> None:
    fill()
    before = versions()
    counts, told = run_import(file_of(tmp_path, export()))
    assert counts["gleich"] == 9, told
    assert versions() == before
    assert_sound()


def test_a_dry_run_stores_nothing(tmp_path: Path) -> None:
    fill()
    path = file_of(tmp_path, export())
    become_another_installation()
    counts, _told = run_import(path, "--dry-run")
    assert counts["neu"] == 9
    assert not LongtermVersion.objects.exists()
    assert not Tag.objects.exists()


def test_an_imported_version_says_who_imported_it_and_what_it_was(tmp_path: Path) -> None:
    key = store()
    told = lines_of(export())[0]["versionen"][0]
    become_another_installation()
    anna = User.objects.create_user("anna", is_superuser=True)
    by = Origin(principal_of(anna), nutzer="anna", agent="", tuer="import", tool="import_memories")
    list(take(rows([json.dumps(line).encode() for line in _line(told, key)], timezone.now()), by))
    version = LongtermVersion.objects.get()
    assert (version.tuer, version.tool, version.benutzer) == ("import", "import_memories", "anna")
    assert (version.durch_nutzer, version.durch_agent) == ("anna", "planer")
    assert version.urspruenglich["tuer"] == "rest"
    assert version.referenzfelder == {"ticket": "T-17"}


def _line(version: dict[str, Any], key: int) -> list[dict[str, Any]]:
    herkunft = {"instanz": "x", "ID": f"longterm_{key}"}
    return [{"typ": "longterm", "herkunft": herkunft, **version["stand"], "versionen": [version]}]


def test_later_versions_are_added_to_the_history(tmp_path: Path) -> None:
    key = store()
    early = export()
    update(LONGTERM, [Change(key, {"memory": "neu", "tag_namen": []})], origin())
    delete(LONGTERM, [key], origin())
    middle = export()
    restore(LONGTERM, key, 2, origin())
    late = export()
    become_another_installation()
    for text in (early, middle, late):
        counts, told = run_import(file_of(tmp_path, text))
        assert counts["neu"] + counts["geaendert"] == 1, told
        assert export() == text
        assert_sound()
    assert run_import(file_of(tmp_path, early))[0]["gleich"] == 1
    assert export() == late


def test_what_was_changed_in_the_file_is_a_change_by_the_import(tmp_path: Path) -> None:
    store(embedding=embedding([1, 2], "embedding"), embedding_profil_hash="p")
    text = export()
    become_another_installation()
    edited = lines_of(text)[0] | {"memory": "von Hand"}
    for path in (file_of(tmp_path, edited), file_of(tmp_path, text), file_of(tmp_path, edited | {"tags": ["x"]})):
        run_import(path)
    first, second, third = LongtermVersion.objects.order_by("version")
    assert (first.memory[:3], second.memory, third.tag_namen) == ("Die", "von Hand", ["x"])
    assert (first.tuer, second.tuer, second.durch_nutzer) == ("import", "import", "system")
    assert second.embedding_veraltet
    assert second.urspruenglich is None
    assert_sound()


def test_a_change_here_and_one_there_makes_a_version_and_loses_none(tmp_path: Path) -> None:
    key = store()
    early = export()
    update(LONGTERM, [Change(key, {"memory": "dort"})], origin())
    late = file_of(tmp_path, export())
    become_another_installation()
    run_import(file_of(tmp_path, early))
    here = LongtermMemory.objects.get().pk
    update(LONGTERM, [Change(here, {"memory": "hier"})], origin())
    assert run_import(late)[0]["geaendert"] == 1
    texts = [version.memory for version in LongtermVersion.objects.order_by("version")]
    assert texts[1:] == ["hier", "dort"]
    update(LONGTERM, [Change(here, {"memory": "wieder hier"})], origin())
    assert run_import(late)[0]["gleich"] == 1
    assert LongtermMemory.objects.get().memory == "wieder hier"
    assert_sound()


def test_what_was_deleted_here_does_not_come_back(tmp_path: Path) -> None:
    key = store()
    text = export()
    become_another_installation()
    run_import(file_of(tmp_path, text))
    delete(LONGTERM, [LongtermMemory.objects.get().pk], origin())
    assert run_import(file_of(tmp_path, text))[0]["gleich"] == 1
    counts, told = run_import(file_of(tmp_path, lines_of(text)[0] | {"memory": "neu"}))
    assert counts["fehlerhaft"] == 1
    assert "gelöscht" in told
    assert key


def test_bad_rows_are_told_by_line_and_leave_the_others_stored(tmp_path: Path) -> None:
    store()
    good = lines_of(export())[0]
    become_another_installation()

    def other(name: str, **values: Any) -> dict[str, Any]:
        return good | {"herkunft": {"instanz": "x", "ID": name}} | values

    gap = [good["versionen"][0] | {"version": 2}]
    future = [good["versionen"][0] | {"zeitpunkt": "2999-01-01T00:00:00Z"}]
    path = file_of(
        tmp_path,
        "{",
        "[]",
        other("a", typ="tool"),
        other("b", memory="", tags=["a\u0000"]),
        other("c", versionen=gap),
        other("d", versionen=future),
        other("e", geloescht=True),
        other("f", versionen="x"),
        other("g", embedding="####"),
        other("h", relevanz=50),
        "",
        other("h"),
        other("i"),
    )
    counts, told = run_import(path)
    assert counts == {"neu": 2, "geaendert": 0, "gleich": 0, "fehlerhaft": 10}, told
    for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12):
        assert f"Zeile {number}: " in told
    assert "memory" in told.splitlines()[3]
    assert "tags[0]" in told.splitlines()[3]
    assert "relevanz" in told
    assert LongtermMemory.objects.count() == 2
    assert_sound()


def test_hostile_lines_are_faulty_and_nothing_worse(tmp_path: Path) -> None:
    store()
    good = json.dumps(lines_of(export())[0] | {"herkunft": {"instanz": "x", "ID": "1"}})
    become_another_installation()
    deep = [good[:-1] + f', "tief": {"[" * depth}{"]" * depth}}}' for depth in (60, 700, 900, 990, 100_000)]
    names = [good.replace('"ID": "1"', f'"ID": "{n}"')[:-1] + more for n, more in enumerate(_ODD)]
    path = file_of(tmp_path, *deep, *names, '{"typ": ["longterm"]}', '{"typ": "longterm", "versionen": [[]]}')
    counts, told = run_import(path)
    assert counts["fehlerhaft"] >= 6, told
    assert "Zeile 12: " in told
    assert_sound()


_ODD = [
    ', "\\ud800": 1}',
    ', "\\u0000": 1}',
    ', "typ": "brain"}',
    ', "referenzfelder": {"\\ud800": 1}}',
    ', "hinweise": {"\\ud800": 1}}',
    f', "zahl": {"9" * 10_000}}}',
    ', "zahl": 1e999}',
]


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    counts, told = run_import(file_of(tmp_path, {"brain_export": 2}))
    assert counts == {}
    assert "2" in told


def test_a_person_imports_into_what_he_may_change() -> None:
    store()
    line = lines_of(export())[0]
    become_another_installation()
    versions_of_anna = line["versionen"]
    foreign = [versions_of_anna[0] | {"stand": versions_of_anna[0]["stand"] | {"nutzer": "carla"}}]
    ben = Principal(reaches=(Reach(nutzer=frozenset({"anna"})),), user_name="ben")
    reader = Principal(reaches=(Reach(actions=frozenset({Action.READ})),))

    def verdicts(principal: Principal, *told: Any) -> list[str]:
        by = Origin(principal, nutzer="ben", agent="", tuer="import", tool="import_memories")
        return [result.verdict for result in take(rows([json.dumps(one).encode() for one in told], timezone.now()), by)]

    assert verdicts(ben, line | {"nutzer": "carla"}) == [Verdict.FAULTY]
    assert verdicts(ben, line | {"versionen": foreign}) == [Verdict.FAULTY]
    assert verdicts(reader, line) == [Verdict.FAULTY]
    assert not LongtermVersion.objects.exists()
    assert verdicts(ben, line) == [Verdict.NEW]
    only_carla = Principal(reaches=(Reach(nutzer=frozenset({"carla"})),))
    assert verdicts(only_carla, line) == [Verdict.FAULTY]


def test_lines_without_history_or_origin_are_new_memories_once(tmp_path: Path) -> None:
    line = {
        "typ": "longterm",
        "kurzbeschreibung": "K",
        "memory": "M",
        "scope": "s",
        "nutzer": "anna",
        "agent": 7,
        "x": 1,
    }
    counts, told = run_import(file_of(tmp_path, line))
    assert counts["neu"] == 1, told
    assert "x" in told
    assert run_import(file_of(tmp_path, line))[0]["gleich"] == 1
    version = LongtermVersion.objects.get()
    assert (version.agent, version.tuer, version.urspruenglich) == ("7", "import", None)
    named = line | {"herkunft": {"instanz": "alt", "ID": "1"}}
    run_import(file_of(tmp_path, named))
    assert run_import(file_of(tmp_path, named | {"memory": "N"}))[0]["geaendert"] == 1
    assert LongtermVersion.objects.filter(version=2, memory="N").count() == 1
    assert_sound()


def test_tags_are_spelled_as_they_are_here(tmp_path: Path) -> None:
    store(tag_namen=["FRIST", "Büro"])
    text = export()
    become_another_installation()
    store(tag_namen=["Frist"])
    run_import(file_of(tmp_path, text))
    assert LongtermMemory.objects.latest("pk").tag_namen == ["Frist", "Büro"]
    assert run_import(file_of(tmp_path, text))[0]["gleich"] == 1
    assert_sound()


def test_references_follow_their_memories(tmp_path: Path) -> None:
    for _ in range(3):
        store()
    promote([store(SHORTTERM, gueltig_bis=None)], origin())
    one, two = store(memory="eins"), store(memory="zwei")
    merge(LONGTERM, Merge(survivor=one, seen={one: 1, two: 1}), origin())
    lines = lines_of(export())[3:]
    become_another_installation()
    run_import(file_of(tmp_path, *lines))
    assert not OpenReference.objects.exists()
    promoted, survivor, gone = (ImportedMemory.objects.get(kennung=line["herkunft"]["ID"]) for line in lines[:3])
    shortterm = ImportedMemory.objects.get(typ="shortterm")
    assert LongtermVersion.objects.get(memory_id=promoted.memory_id).verweis == str(shortterm)
    assert LongtermVersion.objects.get(memory_id=survivor.memory_id, version=2).verweis == str(gone)
    assert LongtermVersion.objects.get(memory_id=gone.memory_id, version=2).verweis == str(survivor)


def test_an_imported_merge_can_be_undone(tmp_path: Path) -> None:
    one, two = store(memory="eins"), store(memory="zwei")
    merge(LONGTERM, Merge(survivor=one, seen={one: 1, two: 1}), origin())
    text = export()
    become_another_installation()
    run_import(file_of(tmp_path, text))
    survivor = LongtermMemory.objects.get()
    merged = LongtermVersion.objects.get(memory_id=survivor.pk, version=2)
    undo_merge(LONGTERM, merged.aufruf, origin())
    assert LongtermMemory.objects.count() == 2
    assert_sound()


def test_another_memory_of_the_same_id_is_left_alone(tmp_path: Path) -> None:
    key = store()
    line = lines_of(export())[0]
    line["versionen"][0]["grund"] = "eine andere"
    counts, _told = run_import(file_of(tmp_path, line))
    assert counts["fehlerhaft"] == 1
    assert LongtermVersion.objects.filter(memory_id=key).count() == 1


def taken(line: dict[str, Any]) -> list[str]:
    """The verdicts of an import of this line."""
    by = Origin(SYSTEM, nutzer="system", agent="", tuer="import", tool="import_memories")
    return [result.verdict for result in take(rows([json.dumps(line).encode()], timezone.now()), by)]


@pytest.mark.django_db(transaction=True)
def test_a_lost_answer_to_a_commit_is_no_second_memory() -> None:
    store()
    line = lines_of(export())[0]
    become_another_installation()
    Installation.own()
    with at_commit(after=lose_the_answer):
        assert taken(line) == [Verdict.NEW]
    assert taken(line) == [Verdict.SAME]
    assert LongtermMemory.objects.count() == 1
    assert_sound()


@pytest.mark.django_db(transaction=True)
def test_a_database_that_goes_away_spoils_no_row() -> None:
    store()
    line = lines_of(export())[0]
    become_another_installation()
    Installation.own()
    with database_away(), pytest.raises((Unavailable, OperationalError)):
        taken(line)
    assert taken(line) == [Verdict.NEW]
    assert_sound()
