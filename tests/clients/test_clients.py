"""The clients that people use reach everything that is offered, in both eras, over HTTP and over a pipe."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from api.tools import TOOLS
from tests.clients.conftest import WAYS, Client, Failed, Way
from tests.conftest import note

TEXT = "Grüße aus Köln – 𠮷野家, Ελληνικά, 👩‍👩‍👧‍👦\n\ttab  "
INSERT = "insert_brain_longterm_memory"
UPDATE = "update_brain_longterm_memory"
PATIENCE = 10  # seconds

Start = Callable[[str], Client]
Reach = Callable[[Way, str], dict[str, Any]]


@pytest.fixture
def stored(client: Client) -> str:
    """The ID of a memory that the client has just stored."""
    answer = client.answer(INSERT, memories=[note(memory=TEXT, tags=["Übung 🙂", "𠮷"])])
    return str(answer["daten"][0]["ID"])


def test_it_lists_every_tool_with_its_schema(client: Client) -> None:
    told = {tool["name"]: tool for tool in client.ask("tools")["tools"]}
    assert list(told) == [tool.name for tool in TOOLS]
    assert told[INSERT]["inputSchema"] == next(tool.input_schema for tool in TOOLS if tool.name == INSERT)
    assert told["search_brain"]["annotations"]["readOnlyHint"] is True


def test_texts_of_every_script_come_back_as_they_were(client: Client, stored: str) -> None:
    (row,) = client.answer("select_brain_longterm_memory", IDs=[stored])["daten"]
    assert (row["memory"], row["tags"]) == (TEXT, ["Übung 🙂", "𠮷"])


def test_one_bad_entry_leaves_the_other_stored(client: Client) -> None:
    bad = {name: value for name, value in note().items() if name != "memory"}
    answer = client.answer(INSERT, memories=[note(), bad])
    assert [row["erfolg"] for row in answer["daten"]] == [True, False]
    assert answer["daten"][1]["fehler"]["feld"] == "memory"


def test_a_call_whose_entries_all_fail_is_an_error_that_the_model_sees(client: Client) -> None:
    result = client.call(INSERT, memories=[{"kurzbeschreibung": "Ohne Text"}])
    assert result["isError"] is True
    assert result["structuredContent"]["daten"][0]["fehler"]["details"]


def test_a_search_finds_what_was_changed(client: Client, stored: str, way: Way) -> None:
    word = f"wort{str(way).replace('-', '')}"
    memories = [{"ID": stored, "kurzbeschreibung": "Geändert 🙂", "memory": f"Ein {word} für später.", "tags": ["Neu"]}]
    assert client.answer(UPDATE, memories=memories)["erfolg"] is True
    found = client.answer("search_brain", suche=word)["daten"]
    assert [(row["ID"], row["tags"]) for row in found] == [(stored, ["Neu"])]


def test_help_tells_what_a_tool_wants(client: Client) -> None:
    result = client.ask("call", name=INSERT, arguments={"inhalt": {}, "help": 1, "referenzfelder": {}})
    (definition,) = result["structuredContent"]["daten"]
    assert definition["name"] == INSERT


def test_a_memory_is_a_resource(client: Client, stored: str) -> None:
    address = f"brain://longterm/{stored.removeprefix('longterm_')}"
    assert address in [resource["uri"] for resource in client.ask("resources")["resources"]]
    (content,) = client.ask("read", uri=address)["contents"]
    assert json.loads(content["text"])["memory"] == TEXT


def test_a_memory_that_is_not_there_is_an_error(client: Client) -> None:
    with pytest.raises(Failed) as failed:
        client.ask("read", uri="brain://longterm/999999")
    assert failed.value.code in {-32602, -32002}  # some clients tell both eras' codes as that of the modern one


def test_a_prompt_takes_its_arguments(client: Client) -> None:
    told = client.ask("prompt", name="recall_before_answering", arguments={"topic": "Kündigungsfristen 🙂"})
    assert "Kündigungsfristen 🙂" in told["messages"][0]["content"]["text"]


@pytest.mark.usefixtures("stored")
def test_tags_are_completed(client: Client) -> None:
    told = client.ask("complete", prompt="recall_before_answering", argument="tag", value="üb")
    assert told["completion"]["values"] == ["Übung 🙂"]


def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(client: Client) -> None:
    with pytest.raises(Failed) as failed:
        client.call("drop_brain")
    assert failed.value.code == -32602


def connected_with(key: str, way: Way, started: Start, reach: Reach) -> Client:
    """The client, connected anew with another key; its own connection is not used any more."""
    client = started(way.client)
    client.ask("connect", **reach(way, key))
    client.ask("tools")  # a client that is bound to an era asks nothing when it connects
    return client


# Over a pipe each key is a process of its own, so that one era says enough.
KEYS_ON = [way for way in WAYS if way.transport == "http" or way.era == "legacy"]


@pytest.mark.parametrize("way", KEYS_ON, ids=str, indirect=True)
def test_a_key_that_may_read_sees_no_tool_that_writes(way: Way, started: Start, reach: Reach, reading_key: str) -> None:
    client = connected_with(reading_key, way, started, reach)
    assert [tool["name"] for tool in client.ask("tools")["tools"]] == [tool.name for tool in TOOLS if not tool.writes]
    with pytest.raises(Failed) as failed:
        client.call(INSERT, memories=[note()])
    assert failed.value.code == -32602


@pytest.mark.parametrize("way", KEYS_ON, ids=str, indirect=True)
def test_a_wrong_key_is_refused_at_once(way: Way, started: Start, reach: Reach) -> None:
    since = time.monotonic()
    with pytest.raises(Failed, match="401|Zugangsschlüssel" if way.transport == "http" else "(?i)connection closed"):
        connected_with("brk_wrong.key", way, started, reach)
    assert time.monotonic() - since < PATIENCE
