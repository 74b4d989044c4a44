"""`search_index` finds each way in which the search index can be wrong, mends it, and packs vectors."""

import math
import operator
import struct
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from memories.models import PastEntry, SearchEntry, VectorBlock, Word
from memories.search import engine
from memories.search.vectors import BLOCK
from tests.conftest import Agent, note
from tests.doors import BRAIN, change
from tests.searching import PROFILE, deviations, entries, found
from tests.trouble import assert_no_drift, sqlite_only


@pytest.fixture
def lived(anna: Agent) -> dict[str, str]:
    """Memories of all kinds, a long one among them, with every sort of change behind them."""
    made = {
        "plain": anna.store(memory="Quarzit", tags=["eins"], embedding=[1, 2], **PROFILE),
        "long": anna.store(memory="Violine " * 7_500),
        "gone": anna.store(memory="Bergwerk"),
        "back": anna.store(memory="Lampion"),
    }
    change(anna, made["plain"], memory="Quarzit, geändert", tags=["zwei"])
    change(anna, made["long"], memory="Violine " * 13_000)
    anna.call("delete_brain_longterm_memory", IDs=[made["gone"], made["back"]])
    anna.call("restore_brain_memory", ID=made["back"], version=1)
    rows = anna.call("insert_brain_shortterm_memory", memories=[note(memory="Karaffe"), note(memory="Zikade")])["daten"]
    anna.call("promote_brain_shortterm_memory", IDs=[rows[0]["ID"]])
    made["short"] = rows[1]["ID"]
    made["brain"] = anna.call("insert_brain_memory", **BRAIN, inhalt="Oboe", scope_typ="modul")["daten"][0]["ID"]
    anna.call("update_brain_memory", ID=made["brain"], scope_typ="global", gueltig_bis="2999-12-31")
    return made


def check() -> int:
    """How `search_index --check` ends."""
    try:
        call_command("search_index", "--check", stdout=StringIO())
    except CommandError as failed:
        return failed.returncode
    return 0


def rebuild() -> None:
    """`search_index --rebuild`."""
    call_command("search_index", "--rebuild", stdout=StringIO())


def entry(kennung: str, model: Any = SearchEntry) -> Any:
    """The entries of this memory."""
    typ, _line, key = kennung.partition("_")
    return model.objects.filter(typ=typ, memory_id=int(key))


@pytest.mark.usefixtures("lived")
def test_what_was_written_through_the_tools_has_no_deviation() -> None:
    assert deviations() == []
    assert check() == 0
    assert_no_drift()


def test_a_rebuild_gives_the_very_same_entries_as_the_changes_did(lived: dict[str, str]) -> None:
    before = entries()
    assert sum(row[0] == "PastEntry" for row in before) == 7
    words = dict(Word.objects.values_list("stamm", "df"))
    rebuild()
    assert entries() == before
    assert dict(Word.objects.values_list("stamm", "df")) == words
    assert check() == 0
    assert_no_drift()


def _foreign(**fields: Any) -> Callable[[dict[str, str]], object]:
    """An entry of a memory that never was."""
    now = timezone.now()
    row = {"typ": "longterm", "memory_id": 999_999, "version": 1, "seit": now, "erstellt_am": now} | fields
    return lambda _lived: SearchEntry.objects.create(**({"stamm": "quarzit", "geltung": "z1"} | row))


def _past_of_nobody(_lived: dict[str, str]) -> None:
    now = timezone.now()
    row = {"typ": "longterm", "memory_id": 999_999, "version": 1, "seit": now, "erstellt_am": now, "bis": now}
    PastEntry.objects.create(**row, stamm="quarzit", geltung="z1")


def _twice(lived: dict[str, str]) -> None:
    again = entry(lived["plain"], PastEntry).get()
    again.pk = None
    again.save()


def _bytes(number: float) -> bytes:
    return struct.pack("<2f", number, number)


DAY = timedelta(days=1)
TAMPERED: dict[str, Callable[[dict[str, str]], object]] = {
    "an entry is missing": lambda lived: entry(lived["plain"]).delete(),
    "one part of a long text is missing": lambda lived: entry(lived["long"]).filter(teil=2).delete(),
    "one part too many": lambda lived: entry(lived["long"]).filter(teil=2).update(teil=9),
    "another text": lambda lived: entry(lived["plain"]).update(stamm="violin"),
    "no text": lambda lived: entry(lived["short"]).update(stamm=""),
    "another reach": lambda lived: entry(lived["plain"]).update(geltung="z1"),
    "another version": lambda lived: entry(lived["brain"]).update(version=1),
    "another change": lambda lived: entry(lived["plain"]).update(seit=timezone.now() - DAY),
    "another creation": lambda lived: entry(lived["plain"]).update(erstellt_am=timezone.now() - DAY),
    "another validity": lambda lived: entry(lived["brain"]).update(gueltig_bis=timezone.now() + DAY),
    "no validity": lambda lived: entry(lived["short"]).update(gueltig_bis=None),
    "an end": lambda lived: entry(lived["plain"]).update(bis=timezone.now()),
    "another vector": lambda lived: entry(lived["plain"]).update(vektor=_bytes(0.7)),
    "no vector": lambda lived: entry(lived["plain"]).update(vektor=None),
    "a vector too many": lambda lived: entry(lived["back"]).update(vektor=_bytes(0.7)),
    "another profile": lambda lived: entry(lived["plain"]).update(profil_hash="q"),
    "another length": lambda lived: entry(lived["plain"]).update(dimension=3),
    "fresh, not stale": lambda lived: entry(lived["plain"]).update(veraltet=False),
    "another kind": lambda lived: entry(lived["plain"]).update(typ="shortterm"),
    "a kind that is none": lambda lived: entry(lived["plain"]).update(typ="tag"),
    "an entry of nobody": _foreign(),
    "an entry of a deleted memory": lambda lived: _foreign(memory_id=int(lived["gone"].partition("_")[2]))(lived),
    "a past entry is missing": lambda lived: entry(lived["gone"], PastEntry).delete(),
    "another past text": lambda lived: entry(lived["gone"], PastEntry).update(stamm="quarzit"),
    "another end": lambda lived: entry(lived["gone"], PastEntry).update(bis=timezone.now() + DAY),
    "another past beginning": lambda lived: entry(lived["brain"], PastEntry).update(seit=timezone.now() - DAY),
    "a past entry of nobody": _past_of_nobody,
    "a past entry twice": _twice,
    "a word is missing": lambda _lived: Word.objects.filter(stamm="zikad").delete(),
    "a word of the past is missing": lambda _lived: Word.objects.filter(stamm="bergwerk").delete(),
}


@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED)
def test_each_deviation_is_found_and_mended(
    anna: Agent, lived: dict[str, str], tamper: Callable[[dict[str, str]], object]
) -> None:
    before = entries()
    words = dict(Word.objects.values_list("stamm", "df"))
    tamper(lived)
    assert (entries(), dict(Word.objects.values_list("stamm", "df"))) != (before, words)
    assert check() == 1
    rebuild()
    assert entries() == before
    assert dict(Word.objects.values_list("stamm", "df")) == words
    assert check() == 0
    assert set(found(anna, "Quarzit Lampion")) == {lived["plain"], lived["back"]}


@sqlite_only
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memories_word SET df = 0 WHERE stamm = 'quarzit'",
        "UPDATE memories_word SET df = df + 1",
        "INSERT INTO memories_word(stamm, df) VALUES ('nirgends', 3)",
        "INSERT INTO memories_fulltext(memories_fulltext) VALUES ('delete-all')",
        "INSERT INTO memories_pastfulltext(memories_pastfulltext) VALUES ('delete-all')",
        "INSERT INTO memories_wordtrigram(memories_wordtrigram) VALUES ('delete-all')",
        "INSERT INTO memories_fulltext(rowid, stamm, geltung) VALUES (999999, 'quarzit', 'z1')",
        """INSERT INTO memories_fulltext(memories_fulltext, rowid, stamm, geltung)
           SELECT 'delete', id, stamm, geltung FROM memories_searchentry WHERE stamm LIKE '%lampion%'""",
    ],
)
def test_a_full_text_table_or_a_vocabulary_out_of_step_is_found_and_mended(
    anna: Agent, lived: dict[str, str], statement: str
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
    assert check() == 1
    rebuild()
    assert check() == 0
    assert found(anna, "Quarzit") == [lived["plain"]]
    assert found(anna, "Lampoin") == [lived["back"]]


def test_deviations_are_told_by_their_ids_alone(lived: dict[str, str]) -> None:
    entry(lived["plain"]).update(stamm="geheimnis")
    entry(lived["gone"], PastEntry).delete()
    out = StringIO()
    with pytest.raises(CommandError, match="2"):
        call_command("search_index", "--check", stdout=out)
    told = [line.partition(":")[0] for line in out.getvalue().splitlines()]
    assert {lived["plain"], lived["gone"]} <= set(told)
    assert "geheim" not in out.getvalue()
    assert "Bergwerk" not in out.getvalue()


def test_hundreds_of_deviations_are_counted_and_twenty_shown(anna: Agent) -> None:
    anna.call("insert_brain_longterm_memory", memories=[note() for _n in range(25)])
    SearchEntry.objects.all().delete()
    out = StringIO()
    with pytest.raises(CommandError, match="25"):
        call_command("search_index", "--check", stdout=out)
    assert sum(line.startswith("longterm_") for line in out.getvalue().splitlines()) == 20


def test_a_rebuild_makes_the_index_of_an_installation_that_had_none(anna: Agent, lived: dict[str, str]) -> None:
    before = entries()
    for model in (SearchEntry, PastEntry, Word):
        model.objects.all().delete()
    assert found(anna, "Quarzit") == []
    assert check() == 1
    rebuild()
    assert entries() == before
    assert found(anna, "Quarzit") == [lived["plain"]]
    assert found(anna, "Bergwerk", stand="2999-01-01") == []


def test_a_search_goes_on_after_a_rebuild_as_before(anna: Agent, lived: dict[str, str]) -> None:
    rebuild()
    change(anna, lived["plain"], memory="Granit")
    anna.call("delete_brain_longterm_memory", IDs=[lived["back"]])
    assert found(anna, "Granit") == [lived["plain"]]
    assert found(anna, "Lampion") == []
    assert check() == 0


@sqlite_only
@pytest.mark.parametrize("command", [["clean_up"], ["search_index", "--pack"]])
@pytest.mark.django_db(transaction=True)
def test_the_pieces_of_the_full_text_index_are_put_together(anna: Agent, command: list[str]) -> None:
    for number in range(12):
        anna.store(memory=f"Quarzit {number}")
    pieces = "SELECT count(DISTINCT segid) FROM memories_fulltext_idx"
    assert engine.rows(pieces)[0][0] > 1
    call_command(*command, stdout=StringIO())
    assert engine.rows(pieces)[0][0] == 1
    assert len(found(anna, "Quarzit")) == 12
    assert check() == 0


def test_vectors_are_packed_into_blocks_and_found_as_before(anna: Agent) -> None:
    made: dict[str, list[float]] = {}
    for number in range(11):
        vectors = [[number + 1.0, place + 1.0, 1.0] for place in range(100)]
        memories = [note(embedding=vector, **PROFILE) for vector in vectors]
        rows = anna.call("insert_brain_longterm_memory", memories=memories)["daten"]
        made |= {row["ID"]: vector for row, vector in zip(rows, vectors, strict=True)}
    call_command("search_index", "--pack", stdout=StringIO())
    assert VectorBlock.objects.count() == 1
    assert SearchEntry.objects.filter(block__isnull=False).count() == BLOCK

    def cosine(vector: list[float]) -> float:
        return sum(map(operator.mul, vector, [3, 2, 1])) / math.hypot(*vector)

    hits = found(anna, embedding=[3, 2, 1], **PROFILE)
    nearest = sorted(made, key=lambda kennung: -cosine(made[kennung]))[:100]
    assert [round(cosine(made[kennung]), 5) for kennung in hits] == [round(cosine(made[k]), 5) for k in nearest]
    assert check() == 0
    call_command("search_index", "--pack", stdout=StringIO())
    assert VectorBlock.objects.count() == 1


@pytest.mark.usefixtures("anna")
def test_of_the_ways_to_keep_the_index_one_must_be_named() -> None:
    for arguments in ([], ["--check", "--rebuild"]):
        with pytest.raises(CommandError):
            call_command("search_index", *arguments, stdout=StringIO())


def test_the_example_is_loaded_with_a_clean_index(anna: Agent) -> None:
    call_command("load_example", stdout=StringIO())
    assert check() == 0
    assert_no_drift()
    before = entries()
    assert len(before) > 300
    rebuild()
    assert entries() == before
    assert found(anna, "Frist") != [] or found(anna, "Vertrag") != []
