"""Faults that users of such systems reported, part C: update and history. 20, 21, 29, 33, 34 stand with the tools."""

import pytest

from tests.conftest import Agent, note
from tests.doors import BRAIN, change, history, now, restore, steps


@pytest.mark.parametrize("short", ["ok", ".", "x" * 100])
def test_case_22_a_body_that_was_replaced_by_mistake_is_in_the_history_and_one_call_away(
    anna: Agent, short: str
) -> None:
    body = "Absatz mit Umlauten äöü.\r\n" * 800
    kennung = anna.store(memory=body, tags=["a"])
    change(anna, kennung, memory=short)
    newest, first = history(anna, kennung)
    assert first["stand"]["memory"] == body
    assert steps(newest)["memory"] == (body, short)
    assert restore(anna, kennung, 1)["erfolg"] is True
    assert now(anna, kennung)["memory"] == body


@pytest.mark.parametrize("kind", ["longterm", "shortterm"])
def test_case_28_tags_that_were_removed_are_in_the_history_and_come_back(anna: Agent, kind: str) -> None:
    entry = note(memory="m", tags=["a", "b"])
    kennung = anna.call(f"insert_brain_{kind}_memory", memories=[entry])["daten"][0]["ID"]
    change(anna, kennung, tags=[])
    newest, first = history(anna, kennung)
    assert (first["stand"]["tags"], newest["stand"]["tags"]) == (["a", "b"], [])
    assert steps(newest) == {"tags": (["a", "b"], [])}
    restore(anna, kennung, 1)
    assert now(anna, kennung)["tags"] == ["a", "b"]
    assert [row["ID"] for row in anna.call(f"select_brain_{kind}_memory", tags=["a", "b"])["daten"]] == [kennung]


@pytest.mark.parametrize("kind", ["longterm", "shortterm", "brain"])
def test_case_31_a_deletion_has_its_time_its_actor_and_its_reason(anna: Agent, ben: Agent, kind: str) -> None:
    tool = "memory" if kind == "brain" else f"{kind}_memory"
    fields = BRAIN if kind == "brain" else {"memories": [note()]}
    kennung = anna.call(f"insert_brain_{tool}", **fields)["daten"][0]["ID"]
    state = history(anna, kennung)[0]["stand"]
    ben.call(f"delete_brain_{tool}", IDs=[kennung], grund="überholt", referenzfelder={"ticket": "T-17"})
    last = history(anna, kennung)[0]
    assert (last["aktion"], last["version"], last["nutzer"], last["grund"]) == ("geloescht", 2, "ben", "überholt")
    assert last["referenzfelder"] == {"ticket": "T-17"}
    assert last["zeitpunkt"]
    assert last["stand"] == state
    assert last["aenderungen"] == []


def test_case_32_a_memory_can_be_changed_as_often_as_one_likes(anna: Agent) -> None:
    text = "x" * 20_000
    kennung = anna.store(memory=text)
    for round_ in range(3):
        entries = [{"ID": kennung, "kurzbeschreibung": f"{round_} {n}", "memory": text, "tags": []} for n in range(100)]
        assert anna.call("update_brain_longterm_memory", memories=entries)["erfolg"] is True
    assert now(anna, kennung)["version"] == 301
    answer = anna.call("select_brain_history", ID=kennung)
    assert [row["version"] for row in answer["daten"]] == list(range(301, 281, -1))
    assert answer["weiter"]
    seen = [row["version"] for row in history(anna, kennung)]
    assert seen == list(range(301, 201, -1))
