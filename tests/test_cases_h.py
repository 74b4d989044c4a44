"""Faults that users of such systems reported, part H: storage and text. 83, 85, 86, 87 stand with values and tags."""

import pytest

from tests.conftest import Agent, note
from tests.doors import now

PAIRS = [
    ("Rechnung 4711: 120 Euro offen", "Rechnung 4712: 120 Euro offen"),
    ("gleich", "gleich"),
    ("gleich", "Gleich"),
    ("gleich", "gleich "),
    ("Zürich", "Zu\u0308rich"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_case_97_memories_alike_are_both_stored(anna: Agent, one: str, other: str) -> None:
    answer = anna.call("insert_brain_longterm_memory", memories=[note(memory=one), note(memory=other)])
    assert answer["erfolg"] is True
    assert [now(anna, row["ID"])["memory"] for row in answer["daten"]] == [one, other]


@pytest.mark.parametrize("kind", ["longterm", "shortterm"])
def test_case_82_writes_of_two_agents_to_one_memory_are_both_in_its_history(anna: Agent, ben: Agent, kind: str) -> None:
    kennung = anna.call(f"insert_brain_{kind}_memory", memories=[note(memory="0")])["daten"][0]["ID"]
    for number in range(1, 21):
        agent = (anna, ben)[number % 2]
        entry = {"ID": kennung, "kurzbeschreibung": "k", "memory": f"{number}", "tags": []}
        assert agent.call(f"update_brain_{kind}_memory", memories=[entry])["erfolg"] is True
    rows = anna.call("select_brain_history", ID=kennung, limit=100)["daten"]
    assert [row["stand"]["memory"] for row in rows] == [f"{number}" for number in range(20, -1, -1)]
    assert {row["schluessel"] for row in rows} == {"anna", "ben"}
