"""A search finds what is so now: every change at once, from every process, and nothing of what was rolled back."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DataError, OperationalError, connection
from django.utils import timezone

from memories.models import PastEntry, SearchEntry
from memories.search.index import PART
from tests.conftest import Agent, note
from tests.doors import BRAIN, change, now, restore
from tests.searching import PROFILE, deviations, found, listed, search
from tests.trouble import assert_no_drift, at_commit, beside, database_url, postgresql_only

INSERT = "insert_brain_longterm_memory"
UPDATE = "update_brain_longterm_memory"
DELETE = "delete_brain_longterm_memory"
VECTOR = {"embedding": [1, 0], **PROFILE}


def test_an_insert_is_found_by_the_very_next_search(anna: Agent) -> None:
    assert (found(anna, "Quarzit"), found(anna, **VECTOR)) == ([], [])
    kennung = anna.store(memory="Quarzit", **VECTOR)
    assert (found(anna, "Quarzit"), found(anna, **VECTOR), listed(anna, "Quarzit")) == ([kennung],) * 3


def test_an_update_is_found_as_it_is_and_no_longer_as_it_was(anna: Agent) -> None:
    kennung = anna.store(kurzbeschreibung="k", memory="Quarzit", tags=["eins"], **VECTOR)
    change(anna, kennung, kurzbeschreibung="k", memory="Granit", tags=["zwei"], embedding=[0, 1])
    for gone in ("Quarzit", "eins"):
        assert found(anna, gone) == listed(anna, gone) == []
    for there in ("Granit", "zwei"):
        assert found(anna, there) == listed(anna, there) == [kennung]
    assert search(anna, embedding=[0, 1], **PROFILE)["daten"][0]["punkte"] == 1
    assert search(anna, **VECTOR)["daten"][0]["punkte"] == 0


def test_a_change_of_tags_alone_is_found_by_filter_and_by_text(anna: Agent) -> None:
    kennung = anna.store(kurzbeschreibung="k", memory="Quarzit", tags=["Eins"])
    for before, after in (("Eins", "Zwei"), ("Zwei", "Drei"), ("Drei", "Eins")):
        change(anna, kennung, kurzbeschreibung="k", memory="Quarzit", tags=[after])
        assert found(anna, "Quarzit", tags=[after]) == found(anna, after) == [kennung]
        assert found(anna, "Quarzit", tags=[before]) == found(anna, before) == []
    change(anna, kennung, kurzbeschreibung="k", memory="Quarzit", tags=[])
    assert found(anna, "Quarzit", tags=["Eins"]) == found(anna, "Eins") == []
    assert found(anna, "Quarzit") == [kennung]


@pytest.mark.parametrize("kind", ["longterm", "shortterm", "brain"])
def test_case_36_what_was_deleted_is_found_by_no_search(anna: Agent, kind: str) -> None:
    tool = "memory" if kind == "brain" else f"{kind}_memory"
    entry = note(memory="Quarzit im Sand", tags=["selten"], **VECTOR)
    inhalt = {**BRAIN, "inhalt": "Quarzit im Sand"} if kind == "brain" else {"memories": [entry]}
    (gone,) = (row["ID"] for row in anna.call(f"insert_brain_{tool}", **inhalt)["daten"])
    asked: list[dict[str, Any]] = [
        {"suche": "Quarzit im Sand"},
        {"suche": '"Quarzit im Sand"'},
        {"suche": "Quarzitt"},
        {"suche": "Quarzit", "stand": (timezone.now() + timedelta(days=1)).isoformat()},
        *([] if kind == "brain" else [{"suche": "selten"}, VECTOR, {"suche": "Sand", **VECTOR, "tags": ["selten"]}]),
    ]
    assert [found(anna, **inhalt) for inhalt in asked] == [[gone]] * len(asked)
    assert anna.call(f"delete_brain_{tool}", IDs=[gone])["erfolg"] is True
    for inhalt in asked:
        answer = search(anna, **inhalt)
        assert answer["daten"] == []
        assert answer["durchsucht"]["in_reichweite"] == 0
        assert set(answer["durchsucht"]["ausgelassen"].values()) == {0}
    assert anna.call(f"select_brain_{tool}", suche="Quarzit")["daten"] == []


def test_a_restored_memory_is_found_as_it_is_again(anna: Agent) -> None:
    kennung = anna.store(memory="Quarzit", **VECTOR)
    change(anna, kennung, memory="Granit")
    restore(anna, kennung, 1)
    assert (found(anna, "Quarzit"), found(anna, "Granit")) == ([kennung], [])
    anna.call(DELETE, IDs=[kennung])
    assert found(anna, "Quarzit", **VECTOR) == []
    restore(anna, kennung, 2)
    assert (found(anna, "Quarzit"), found(anna, "Granit")) == ([], [kennung])
    assert found(anna, **VECTOR) == []  # as stale as it was
    assert found(anna, **VECTOR, mit_veralteten=1) == [kennung]


def test_a_promoted_memory_is_found_as_a_long_term_one(anna: Agent) -> None:
    entry = note(memory="Quarzit", tags=["eins"], **VECTOR)
    short = anna.call("insert_brain_shortterm_memory", memories=[entry])["daten"][0]["ID"]
    assert found(anna, "Quarzit") == [short]
    long = anna.call("promote_brain_shortterm_memory", IDs=[short])["daten"][0]["ID"]
    for inhalt in ({"suche": "Quarzit"}, VECTOR, {"suche": "eins"}, {"suche": "Quarzit", "tags": ["eins"]}):
        assert found(anna, **inhalt) == [long]


def test_an_id_named_twice_is_found_as_it_was_left(anna: Agent) -> None:
    kennung = anna.store(memory="Anfang")
    entries = [
        {"ID": kennung, "kurzbeschreibung": "k", "memory": f"{word} " * times, "tags": [word]}
        for word, times in (("Quarzit", 20_000), ("Granit", 1), ("Violine", 30_000), ("Lampion", 2))
    ]
    assert anna.call(UPDATE, memories=entries)["erfolg"] is True
    assert [found(anna, word) for word in ("Anfang", "Quarzit", "Granit", "Violine")] == [[]] * 4
    assert found(anna, "Lampion") == [kennung]
    assert now(anna, kennung)["version"] == 5
    assert deviations() == []


def test_words_that_nothing_holds_any_more_hide_nothing(anna: Agent) -> None:
    """A typing error that was made and corrected is one again, and a word that was everywhere is rare again."""
    wrong = [note(kurzbeschreibung="k", memory="Buchaltung", tags=[]) for _n in range(60)]
    gone = [row["ID"] for row in anna.call(INSERT, memories=wrong)["daten"]]
    kennung = anna.store(kurzbeschreibung="k", memory="Buchhaltung", tags=[])
    anna.call(DELETE, IDs=gone)
    assert found(anna, "Buchaltung") == listed(anna, "Buchaltung") == [kennung]
    again = anna.store(kurzbeschreibung="k", memory="Buchaltung", tags=[])
    assert found(anna, "Buchaltung")[0] == again


@postgresql_only
@pytest.mark.parametrize("size", [-1, 0, 3])
def test_old_statistics_of_the_database_hide_nothing(anna: Agent, size: int) -> None:
    """What the planner knows of the most common words may be older than what it knows of the table's size."""
    many = [note(kurzbeschreibung="k", memory="Quarzit", tags=[]) for _n in range(100)]
    gone = [row["ID"] for row in anna.call(INSERT, memories=many)["daten"]]
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories_searchentry")
        anna.call(DELETE, IDs=gone)
        cursor.execute("UPDATE pg_class SET reltuples = %s WHERE relname = 'memories_searchentry'", [size])
    kennung = anna.store(kurzbeschreibung="k", memory="Quarzit und Granit", tags=[])
    assert found(anna, "Quarzit") == found(anna, "Quarzit Granit") == [kennung]


# What was not stored


def test_of_a_batch_with_refused_entries_the_stored_ones_are_found(anna: Agent) -> None:
    entries = [note(memory=f"Quarzit {n}", tags=[f"t{n}"]) for n in range(6)]
    entries[2] |= {"embedding": [0]}
    entries[4] |= {"nutzer": "carla"}
    rows = anna.call(INSERT, memories=entries)["daten"]
    assert [row["erfolg"] for row in rows] == [True, True, False, True, False, True]
    assert set(found(anna, "Quarzit")) == {row["ID"] for row in rows if row["erfolg"]}
    assert found(anna, "t2") == found(anna, "t4") == []
    assert deviations() == []


@pytest.mark.django_db(transaction=True)
def test_a_row_that_the_database_refuses_leaves_no_entry(anna: Agent) -> None:
    kept = anna.store(kurzbeschreibung="k", memory="Quarzit", tags=[])

    def refuse() -> None:
        raise DataError

    for tool, entry in (
        (INSERT, note(memory="Granit", tags=["neu"], **VECTOR)),
        (UPDATE, {"ID": kept, "kurzbeschreibung": "k", "memory": "Granit " * 20_000, "tags": ["neu"]}),
    ):
        with at_commit(before=refuse):
            answer = anna.call(tool, memories=[entry])
        assert answer["daten"][0]["fehler"]["code"] == "abgelehnt"
    with at_commit(before=refuse):
        assert anna.call(DELETE, IDs=[kept])["erfolg"] is False
    assert found(anna, "Granit") == found(anna, "neu") == found(anna, **VECTOR) == []
    assert found(anna, "Quarzit") == [kept]
    assert not PastEntry.objects.exists()
    assert deviations() == []


@pytest.mark.django_db(transaction=True)
def test_a_batch_that_is_repeated_is_found_once(anna: Agent) -> None:
    def lose() -> None:
        raise OperationalError

    with at_commit(before=lose):
        rows = anna.call(INSERT, memories=[note(memory="Quarzit", **VECTOR) for _n in range(5)])["daten"]
    assert all(row["erfolg"] for row in rows)
    assert set(found(anna, "Quarzit", **VECTOR)) == {row["ID"] for row in rows}
    assert SearchEntry.objects.count() == 5
    assert deviations() == []


# Long texts


def text_of(length: int, word: str) -> str:
    """A text of this many characters that ends in the word."""
    return ("Sand und Lehm " * (length // 14 + 1))[: length - len(word) - 1] + f" {word}"


def parts(kennung: str) -> list[int]:
    """The parts that the index has of a memory, in order."""
    key = int(kennung.partition("_")[2])
    return sorted(SearchEntry.objects.filter(typ="longterm", memory_id=key).values_list("teil", flat=True))


def test_a_long_text_is_found_by_its_end_while_it_grows_and_shrinks(anna: Agent) -> None:
    kennung = anna.store(memory="Anfang", **VECTOR)
    words = ("Quarzit", "Granit", "Violine", "Lampion", "Karaffe")
    for length, word in zip((60_000, 1_000_000, 200_000, 40, 120_000), words, strict=True):
        change(anna, kennung, kurzbeschreibung="k", memory=text_of(length, word), tags=["a"])
        assert [found(anna, other) for other in words] == [[kennung] if other == word else [] for other in words]
        assert parts(kennung) == list(range(len(parts(kennung))))
        assert length / PART <= len(parts(kennung)) <= 2 * length / PART + 1
        assert search(anna, suche=word)["durchsucht"]["in_reichweite"] == 1
        assert listed(anna, f"{word} Lehm") == [kennung]
    assert deviations() == []
    anna.call(DELETE, IDs=[kennung])
    assert [found(anna, word) for word in words] == [[]] * 5
    assert parts(kennung) == []
    assert deviations() == []


@pytest.mark.parametrize("between", ["\n", ", ", ";"])
def test_a_long_text_is_cut_between_words_and_no_phrase_is_torn(anna: Agent, between: str) -> None:
    words = [f"w{n:05}" for n in range(20_000)]
    kennung = anna.store(kurzbeschreibung="k", memory=between.join(words), tags=[])
    stems = SearchEntry.objects.order_by("teil").values_list("stamm", flat=True)
    assert len(stems) > 2
    assert {stem for part in stems for stem in part.split()} == {"k", *words}
    for part in stems[: len(stems) - 1]:
        last = words.index(part.split()[-1])
        for first in (last - 9, last - 8, last - 4, last, last + 1):
            assert found(anna, f'"{" ".join(words[first : first + 10])}"') == [kennung]


def test_the_words_of_a_long_text_count_together_wherever_they_stand(anna: Agent) -> None:
    text = "Quarzit " + text_of(120_000, "Violine") + " " + text_of(60_000, "Lampion im Garten")
    long = anna.store(kurzbeschreibung="k", memory=text, tags=[])
    short = anna.store(kurzbeschreibung="k", memory="Quarzit Violine", tags=[])
    assert listed(anna, "Quarzit Violine") == [long, short]
    assert listed(anna, "Quarzit Violine Lampion") == [long]
    assert listed(anna, 'Quarzit "Lampion im Garten"') == [long]
    assert listed(anna, "Quarzit Violine Bergwerk") == []
    assert listed(anna, "Quarzit -Violine") == listed(anna, "Violine -Quarzit") == []
    assert listed(anna, "Quarzit -Lampion") == listed(anna, "Violine -Lampion") == [short]
    assert found(anna, "Quarzit -Lampion") == [short]
    assert found(anna, "Lampion -Quarzit") == []
    assert found(anna, 'Quarzit -"Lampion im Garten"') == [short]
    assert set(found(anna, 'Quarzit -"Garten im Lampion"')) == {long, short}
    assert found(anna, "Quarzit -Lampion", stand="2999-01-01") == [short]


def test_a_hundred_long_texts_go_in_at_once(anna: Agent) -> None:
    entries = [note(kurzbeschreibung="k", memory=text_of(60_000, f"wort{n}x"), tags=[]) for n in range(100)]
    rows = anna.call(INSERT, memories=entries)["daten"]
    assert all(row["erfolg"] for row in rows)
    for n in (0, 50, 99):
        assert found(anna, f"wort{n}x")[0] == rows[n]["ID"]
    assert SearchEntry.objects.count() >= 200


# Other processes


@contextmanager
def another_process(key: str) -> Iterator[Callable[..., dict[str, Any]]]:
    """An agent in a process of its own; yields what makes it call a tool and gives the answer."""
    environment = os.environ | {
        "DATABASE_URL": database_url(),
        "DJANGO_SETTINGS_MODULE": "brain.settings",
        "BRAIN_ALLOWED_HOSTS": "testserver",
    }
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "tests.another_agent", key],
        cwd=Path(__file__).parent.parent,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def call(tool: str, **inhalt: Any) -> dict[str, Any]:
            stdin.write(json.dumps([tool, inhalt]) + "\n")
            stdin.flush()
            answer: dict[str, Any] = json.loads(stdout.readline())
            return answer

        yield call
        stdin.close()
        assert process.wait(timeout=30) == 0


@pytest.mark.django_db(transaction=True)
def test_each_of_two_processes_finds_at_once_what_the_other_wrote(anna: Agent) -> None:
    with another_process(anna.key) as other:
        sides = (anna.call, other)
        kennung = anna.store(memory="Runde", tags=["r"], **VECTOR)
        for number in range(50):
            write, ask = sides[number % 2], sides[1 - number % 2]
            word = f"wort{chr(97 + number % 26)}{chr(97 + number // 26)}q"
            entry = {"ID": kennung, "kurzbeschreibung": "k", "memory": word, "tags": [word], "embedding": [1, number]}
            assert write(UPDATE, memories=[entry])["erfolg"] is True
            for inhalt in ({"suche": f'"{word}"'}, {"embedding": [1, number], **PROFILE, "tags": [word]}):
                (row,) = ask("search_brain", **inhalt)["daten"]
                assert (row["ID"], row["version"], row["memory"]) == (kennung, 2 * number + 2 - number, word)
                assert row["punkte"] > 0
            (fresh,) = write(INSERT, memories=[note(memory=f"neu {word}", tags=[])])["daten"]
            hits = {row["ID"] for row in ask("search_brain", suche=f'"neu {word}"')["daten"]}
            assert hits == {fresh["ID"]}
            assert write(DELETE, IDs=[fresh["ID"]])["erfolg"] is True
            assert ask("search_brain", suche=f'"neu {word}"')["daten"] == []
    assert deviations() == []
    assert_no_drift()


@pytest.mark.django_db(transaction=True)
def test_a_memory_is_never_missed_nor_found_twice_while_it_is_changed(anna: Agent) -> None:
    still = anna.store(kurzbeschreibung="k", memory="Quarzit", tags=[], **VECTOR)
    moving = anna.store(kurzbeschreibung="k", memory="Quarzit", tags=[], **VECTOR)

    def move() -> int:
        for number in range(40):
            change(
                anna, moving, memory=f"Quarzit {number} " * (9_000 if number % 10 == 5 else 1), embedding=[1, number]
            )
        return 40

    asked: list[dict[str, Any]] = [
        {"suche": "Quarzit"},
        VECTOR,
        {"suche": "Quarzit", **VECTOR},
        {"suche": "Quarzit", "stand": "2999-01-01"},
        {**VECTOR, "stand": "2999-01-01"},
    ]
    with beside(move) as moved:
        rounds = 0
        while not moved.done():
            for inhalt in asked:
                assert sorted(found(anna, **inhalt)) == sorted([still, moving])
            rounds += 1
        assert moved.result() == 40
    assert rounds > 2
    assert deviations() == []
