"""Many write at once, from several processes and from threads of one: nothing is lost, nothing is refused for it."""

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from memories.models import LongtermMemory, LongtermVersion, ShorttermVersion, Tag
from tests.conftest import Agent, note
from tests.many_writers import Writer
from tests.trouble import (
    assert_no_drift,
    at_commit,
    beside,
    database_url,
    postgresql_only,
    together,
    wait_until_somebody_waits,
)

pytestmark = pytest.mark.django_db(transaction=True)

PROCESSES = 6
THREADS = 6


def shared_memories(anna: Agent, number: int) -> list[str]:
    """The IDs of memories that all writers change."""
    answer = anna.call("insert_brain_longterm_memory", memories=[note(memory="Anfang") for _ in range(number)])
    return [row["ID"] for row in answer["daten"]]


def in_processes(key: str, shared: list[str]) -> list[dict[str, Any]]:
    """What six processes were answered that wrote at the same time."""
    environment = os.environ | {
        "DATABASE_URL": database_url(),
        "DJANGO_SETTINGS_MODULE": "brain.settings",
        "BRAIN_ALLOWED_HOSTS": "testserver",
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.many_writers", key, json.dumps(shared), f"{seed}"],
            cwd=Path(__file__).parent.parent,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(PROCESSES)
    ]
    ended = [process.communicate(timeout=100) for process in processes]
    for process, (_out, errors) in zip(processes, ended, strict=True):
        assert process.returncode == 0, errors
        assert "locked" not in errors
    return [json.loads(out) for out, _errors in ended]


def assert_all_is_there(answers: list[dict[str, Any]], shared: list[str]) -> None:
    """Check that what was acknowledged is in the database, and nothing else."""
    assert {status for answer in answers for status in answer["status"]} == {"200"}
    assert {fault for answer in answers for fault in answer["faults"]} <= {"nicht_gefunden"}, "deleted just then"
    versions = sum((Counter(answer["versions"]) for answer in answers), Counter(shared))
    rows = LongtermVersion.objects.values_list("memory_id", "memory", "aktion")
    assert Counter(f"longterm_{key}" for key, _text, _aktion in rows) == versions
    acknowledged = Counter(tuple(pair) for answer in answers for pair in answer["texts"])
    changes = Counter((f"longterm_{k}", text) for k, text, aktion in rows if aktion in {"angelegt", "geaendert"})
    assert acknowledged == changes - Counter((kennung, "Anfang") for kennung in shared)
    assert len(acknowledged) > 200
    assert_one_tag_per_key()
    assert_no_drift()


def assert_one_tag_per_key() -> None:
    """Check that spellings that differ in case alone were made one tag."""
    folded = [name.casefold() for name in Tag.objects.values_list("name", flat=True)]
    assert len(folded) == len(set(folded))
    assert {"äpfel", "strasse"} <= set(folded)


def test_six_processes_write_at_once(anna: Agent) -> None:
    shared = shared_memories(anna, 12)
    assert_all_is_there(in_processes(anna.key, shared), shared)


def test_six_threads_of_one_process_write_at_once(anna: Agent) -> None:
    shared = shared_memories(anna, 12)
    answers = together([Writer(anna.key, shared, seed).run for seed in range(THREADS)])
    assert_all_is_there(answers, shared)


def outcomes(answers: list[dict[str, Any]]) -> list[str]:
    """`ja`, `unveraendert` or the fault's code of each answer's only row."""
    rows = [answer["daten"][0] for answer in answers]
    return sorted(
        row["fehler"]["code"] if not row["erfolg"] else "unveraendert" if row.get("unveraendert") else "ja"
        for row in rows
    )


@pytest.mark.parametrize("attempt", range(5))
def test_two_restore_the_same_deleted_memory_at_once(anna: Agent, attempt: int) -> None:
    kennung = anna.store()
    anna.call("delete_brain_longterm_memory", IDs=[kennung])
    answers = together([lambda: anna.call("restore_brain_memory", ID=kennung, version=1)] * 4)
    assert outcomes(answers) == ["ja", "unveraendert", "unveraendert", "unveraendert"]
    assert LongtermMemory.objects.get().version == 3
    assert_no_drift()


@pytest.mark.parametrize("attempt", range(5))
def test_two_promote_the_same_memory_at_once(anna: Agent, attempt: int) -> None:
    ids = [row["ID"] for row in anna.call("insert_brain_shortterm_memory", memories=[note(), note()])["daten"]]
    answers = together([lambda: anna.call("promote_brain_shortterm_memory", IDs=ids[:1])] * 4)
    assert outcomes(answers) == ["ja", "nicht_gefunden", "nicht_gefunden", "nicht_gefunden"]
    assert LongtermMemory.objects.count() == 1
    assert list(ShorttermVersion.objects.filter(aktion="befoerdert").values_list("version", flat=True)) == [2]
    assert_no_drift()


@pytest.mark.parametrize("attempt", range(8))
def test_a_restore_and_a_deletion_at_once_leave_one_history(anna: Agent, attempt: int) -> None:
    kennung = anna.store()
    change = {"ID": kennung, "kurzbeschreibung": "k", "memory": "m", "tags": ["äpfel"]}
    anna.call("update_brain_longterm_memory", memories=[change])
    answers = together(
        [
            lambda: anna.call("restore_brain_memory", ID=kennung, version=1),
            lambda: anna.call("delete_brain_longterm_memory", IDs=[kennung]),
            lambda: anna.call("restore_brain_memory", ID=kennung, version=1),
            lambda: anna.call("delete_brain_longterm_memory", IDs=[kennung]),
        ]
    )
    assert set(outcomes(answers)) <= {"ja", "unveraendert", "nicht_gefunden"}
    assert_no_drift()


@postgresql_only
@pytest.mark.parametrize("verb", ["delete", "promote"])
def test_a_restore_that_waited_for_a_removal_goes_on_from_it(anna: Agent, verb: str) -> None:
    (row,) = anna.call("insert_brain_shortterm_memory", memories=[note()])["daten"]
    with ExitStack() as stack:
        waiting: list[Future[Any]] = []

        def begin_to_restore() -> None:
            restore = beside(lambda: anna.call("restore_brain_memory", ID=row["ID"], version=1))
            waiting.append(stack.enter_context(restore))
            wait_until_somebody_waits()

        with at_commit(before=begin_to_restore):
            assert anna.call(f"{verb}_brain_shortterm_memory", IDs=[row["ID"]])["erfolg"]
        answer = waiting[0].result()
    assert outcomes([answer]) == ["ja"]
    assert list(ShorttermVersion.objects.order_by("version").values_list("aktion", flat=True)) == [
        *("angelegt", "geloescht" if verb == "delete" else "befoerdert", "wiederhergestellt")
    ]
    assert_no_drift()


@pytest.mark.parametrize("attempt", range(3))
def test_the_same_new_tags_are_made_by_many_at_once(anna: Agent, attempt: int) -> None:
    names = [f"Übung {place}" for place in range(50)]
    spelled = [names, [name.upper() for name in names][::-1], [name.lower() for name in names]]
    keys = ["eins", "zwei", "drei", "vier"]
    works = [
        lambda key=key, tags=spelled[place % 3]: anna.call(
            "insert_brain_longterm_memory", memories=[note(memory=key, tags=tags)]
        )
        for place, key in enumerate(keys)
    ]
    assert outcomes(together(works)) == ["ja"] * 4
    assert Tag.objects.count() == 50
    assert_no_drift()


@postgresql_only
def test_two_that_change_the_same_memories_in_opposite_order_do_not_block_each_other(anna: Agent) -> None:
    shared = shared_memories(anna, 40)

    def change(order: list[str], text: str) -> dict[str, Any]:
        return anna.call(
            "update_brain_longterm_memory",
            memories=[{"ID": kennung, "kurzbeschreibung": "k", "memory": text, "tags": []} for kennung in order],
        )

    together([lambda: change(shared, "vor"), lambda: change(shared[::-1], "zurück")] * 3)
    assert len(set(LongtermMemory.objects.values_list("memory", flat=True))) == 1
    assert_no_drift()


def test_the_check_of_the_history_is_right_while_others_write(anna: Agent) -> None:
    shared = shared_memories(anna, 12)
    with ExitStack() as stack:
        writers = [stack.enter_context(beside(Writer(anna.key, shared, seed).run)) for seed in range(3)]
        checks = 0
        while not all(writer.done() for writer in writers):
            assert_no_drift()
            checks += 1
        assert checks > 3
        assert all(writer.result()["texts"] for writer in writers)
    assert_no_drift()
