"""Faults that users of such systems reported, part B: batches. 16 (idempotency) is not built yet."""

import json
from typing import Any

import pytest

from tests.conftest import Agent, note
from tests.doors import fault_of, one_fault, raw

INSERT = "insert_brain_longterm_memory"
SELECT = "select_brain_longterm_memory"


def _without(field: str) -> dict[str, Any]:
    entry = note()
    del entry[field]
    return entry


BAD = {
    "a missing field": _without("tags"),
    "an unknown field": note(text="m"),
    "a wrong type": note(memory=7),
    "a blank text": note(kurzbeschreibung=" "),
    "NUL": note(memory="a\0b"),
    "half a pair": note(memory="\ud800"),
    "an identifier that is none": note(scope=1.5),
    "a foreign owner": note(nutzer="carla"),
    "a tag that is none": note(tags=[""]),
    "a vector that is none": note(embedding=[0, 0]),
    "a limit passed": note(kurzbeschreibung="x" * 1_001),
    "no object": "nothing",
    "nothing": None,
}


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_case_13_one_bad_entry_does_not_abort_the_batch(anna: Agent, bad: Any, place: int) -> None:
    entries = [note(memory=f"{n}") for n in range(5)]
    entries[place] = bad
    response = anna.post(INSERT, {"inhalt": {"nutzer": "anna", "agent": "planer", "memories": entries}})
    assert response.status_code == 200
    rows = response.json()["daten"]
    assert [row["index"] for row in rows] == [0, 1, 2, 3, 4]
    assert [row["erfolg"] for row in rows] == [n != place for n in range(5)]
    assert rows[place]["fehler"]["code"]
    stored = anna.call(SELECT, sortierung="aelteste")["daten"]
    assert [row["memory"] for row in stored] == [f"{n}" for n in range(5) if n != place]
    assert [row["ID"] for row in stored] == [row["ID"] for row in rows if row["erfolg"]]


def test_case_13_every_kind_of_bad_entry_at_once(anna: Agent) -> None:
    entries = [entry for bad in BAD.values() for entry in (note(), bad)]
    answer = anna.call(INSERT, memories=entries)
    assert [row["erfolg"] for row in answer["daten"]] == [True, False] * len(BAD)
    assert answer["anzahl"] == {"gesamt": 2 * len(BAD), "erfolgreich": len(BAD), "fehlgeschlagen": len(BAD)}


def test_case_15_one_failed_entry_among_a_hundred_cannot_be_overlooked(anna: Agent) -> None:
    entries = [note() for _n in range(100)]
    entries[57] = note(memory="")
    answer = anna.call(INSERT, memories=entries)
    assert answer["erfolg"] is False
    assert answer["anzahl"] == {"gesamt": 100, "erfolgreich": 99, "fehlgeschlagen": 1}
    assert [row["index"] for row in answer["daten"] if not row["erfolg"]] == [57]
    assert one_fault(answer, 57) == ("ungueltig", "memory")
    again = anna.call(INSERT, memories=[note()])
    assert again["erfolg"] is True
    assert len({row["ID"] for row in [*answer["daten"], *again["daten"]] if row["erfolg"]}) == 100


@pytest.mark.parametrize("dimension", [1_536, 3_072])
def test_case_18_a_hundred_entries_with_long_vectors_are_accepted(anna: Agent, dimension: int) -> None:
    vector = [round(0.123456789012345 + n / 7, 15) for n in range(dimension)]
    body = json.dumps({"inhalt": {"nutzer": "anna", "agent": "a", "memories": [note(embedding=vector)] * 100}})
    assert len(body) > 2_621_440
    response = raw(anna, body, f"/api/tools/{INSERT}/")
    assert response.status_code == 200
    assert response.json()["anzahl"]["erfolgreich"] == 100


def test_case_18_a_body_above_the_limit_of_32_mib_is_413_with_the_limit(anna: Agent) -> None:
    limit = 32 * 1024 * 1024
    body = b'{"tool": "' + b"x" * limit + b'", "arguments": {}}'
    fault = fault_of(raw(anna, body), 413)
    assert fault["code"] == "zu_gross"
    assert str(limit) in fault["meldung"]
    assert anna.http.get("/api/tools/").status_code == 200
