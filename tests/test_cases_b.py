"""Faults that users of such systems reported, part B: batches. 16, safe repeats, is in test_repeats.py too."""

import json
from contextlib import suppress
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.conftest import Agent, note
from tests.doors import fault_of, one_fault, raw
from tests.embedders import endpoint
from tests.mcp import Mcp, answer_of, meta
from tests.trouble import together

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


def test_case_14_a_text_that_the_embedder_refuses_is_stored_answered_and_found(anna: Agent, settings: Any) -> None:
    texts = ["Der Hund schläft.", "Die Frist läuft ab.", "Das Auto steht."]
    with endpoint() as there:
        settings.BRAIN_EMBEDDER, settings.BRAIN_EMBEDDER_URL = "http", there.url
        settings.BRAIN_EMBEDDER_MODEL, there.refuses = "tiny", "Frist läuft"
        answer = anna.call(INSERT, memories=[note(memory=text, tags=[]) for text in texts])
        assert [(row["index"], row["erfolg"]) for row in answer["daten"]] == [(0, True), (1, True), (2, True)]
        ids = [row["ID"] for row in answer["daten"]]
        with suppress(CommandError):
            call_command("embed_pending", stdout=StringIO(), stderr=StringIO())
        waiting = {row["ID"]: row["embedding_ausstehend"] for row in anna.call(SELECT, IDs=ids)["daten"]}
        assert waiting == {ids[0]: False, ids[1]: True, ids[2]: False}
        assert [row["ID"] for row in anna.call(SELECT, suche="läuft")["daten"]] == [ids[1]]
        there.refuses = ""
        call_command("embed_pending", stdout=StringIO())
        assert not any(row["embedding_ausstehend"] for row in anna.call(SELECT, IDs=ids)["daten"])


def over_mcp(agent: Agent, key: str, arguments: Any) -> Any:
    """The answer to an insert under this idempotency key, over MCP."""
    params = {"name": INSERT, "arguments": arguments, "_meta": {**meta(), "idempotencyKey": key}}
    return answer_of(Mcp(agent).send("tools/call", params))["result"]["structuredContent"]


@pytest.mark.django_db(transaction=True)
def test_case_16_the_same_call_at_once_over_both_doors_stores_once(anna: Agent) -> None:
    arguments = {"inhalt": {"nutzer": "anna", "agent": "planer", "memories": [note(), note(memory=""), note()]}}
    doors = [
        lambda: anna.post(INSERT, arguments, **{"Idempotency-Key": "k"}).json(),
        lambda: over_mcp(anna, "k", arguments),
    ]
    answers = together(doors * 2)
    assert all(answer == answers[0] for answer in answers), answers
    assert answers[0]["anzahl"] == {"gesamt": 3, "erfolgreich": 2, "fehlgeschlagen": 1}
    assert len(anna.call(SELECT)["daten"]) == 2
    other = {"inhalt": {"nutzer": "anna", "agent": "planer", "memories": [note(memory="anders")]}}
    assert over_mcp(anna, "k", other)["fehler"]["code"] == "schluessel_wiederverwendet"
    assert anna.post(INSERT, other, **{"Idempotency-Key": "k"}).status_code == 409
    assert len(anna.call(SELECT)["daten"]) == 2


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


@pytest.mark.parametrize("path", ["/api/tools/", f"/api/tools/{INSERT}/", "/mcp"])
@pytest.mark.parametrize("body", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000])
def test_case_19_deep_nesting_is_a_fault_of_the_call_at_every_door(anna: Agent, path: str, body: str) -> None:
    response = raw(anna, body, path)
    assert response.status_code == 400
    assert response["Content-Type"] == "application/json"
    told = response.json()
    assert told["error"]["code"] < 0 if path == "/mcp" else told["fehler"]["code"]
    assert anna.http.get("/api/tools/").status_code == 200
