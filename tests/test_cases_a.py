"""Faults that users of such systems reported, part A: MCP clients and the tools' schemas.

9 and 12 stand with the tools over MCP, 10 with the protocol, 5 and 7 with the envelope, too.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from api.tool import Shape
from api.tools import TOOLS
from tests.conftest import Agent, note
from tests.doors import inhalt_for, now
from tests.mcp import ERAS, Mcp

INSERT = "insert_brain_longterm_memory"
COMBINATORS = {"anyOf", "oneOf", "allOf", "not", "if", "$ref", "$defs"}


def _listed(agent: Agent) -> Iterator[dict[str, Any]]:
    for path in ("/mcp", "/mcp?schema=portable"):
        yield from Mcp(agent, path=path).ask("tools/list")["tools"]


def _inserted(agent: Agent, entry: Any, era: str = "modern") -> dict[str, Any]:
    arguments = {"inhalt": {"nutzer": "anna", "agent": "planer", "memories": [entry]}}
    row: dict[str, Any] = Mcp(agent, era).call(INSERT, arguments)["structuredContent"]["daten"][0]
    return row


def test_case_1_a_portable_list_names_one_type_and_the_call_takes_what_the_contract_does(anna: Agent) -> None:
    (insert,) = [
        tool for tool in Mcp(anna, path="/mcp?schema=portable").ask("tools/list")["tools"] if tool["name"] == INSERT
    ]
    entry = insert["inputSchema"]["properties"]["inhalt"]["properties"]["memories"]["items"]
    assert entry["properties"]["embedding"]["type"] == "array"
    assert entry["properties"]["embedding"]["items"] == {"type": "number"}
    arguments = {"inhalt": {"nutzer": "anna", "agent": "planer", "memories": [note(embedding=None)]}}
    assert Mcp(anna, path="/mcp?schema=portable").call(INSERT, arguments)["isError"] is False


@pytest.mark.parametrize("era", ERAS)
def test_case_2_an_identifier_as_number_or_text_is_stored_the_same(anna: Agent, era: str) -> None:
    stored = [now(anna, _inserted(anna, note(scope=scope, scope_vk=scope), era)["ID"]) for scope in (7, "7", 7.0)]
    assert {(row["scope"], row["scope_vk"]) for row in stored} == {("7", "7")}


def test_case_3_what_is_not_told_in_a_portable_list_is_enforced_all_the_same(anna: Agent) -> None:
    arguments = {"inhalt": {"nutzer": "anna", "agent": "planer", "memories": [note(extra=1)]}}
    result = Mcp(anna, path="/mcp?schema=portable").call(INSERT, arguments)
    assert result["isError"] is True
    assert result["structuredContent"]["daten"][0]["fehler"]["code"] == "unbekanntes_feld"


def test_case_4_no_schema_combines_others_and_every_root_is_an_object_with_properties(anna: Agent) -> None:
    for tool in _listed(anna):
        schema = tool["inputSchema"]
        assert schema["type"] == "object"
        assert schema["properties"]
        for combinator in COMBINATORS:
            assert f'"{combinator}"' not in json.dumps(schema), tool["name"]


def test_what_clients_ask_of_names_and_lists_holds_for_every_tool(anna: Agent) -> None:
    def check(schema: Any) -> None:
        for key, child in schema.get("properties", {}).items():
            assert key.replace("_", "").isascii()
            assert key.replace("_", "").isalnum()
            check(child)
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        assert ("array" in types) == ("items" in schema)
        if "items" in schema:
            check(schema["items"])

    for tool in _listed(anna):
        assert len(f"mcp__brain__{tool['name']}") <= 60
        assert len(tool["description"]) <= 2048
        check(tool["inputSchema"])


@pytest.mark.parametrize("era", ERAS)
def test_case_5_objects_and_lists_that_arrive_as_texts_are_decoded_once(anna: Agent, era: str) -> None:
    text = '{"a": [1]}'
    entry = note(memory=text, tags='["a", "b"]')
    inhalt = json.dumps({"nutzer": "anna", "agent": "planer", "memories": json.dumps([entry])})
    result = Mcp(anna, era).call(INSERT, {"inhalt": inhalt, "referenzfelder": '{"ticket": "T-17"}'})
    assert result["structuredContent"]["referenzfelder"] == {"ticket": "T-17"}
    row = now(anna, result["structuredContent"]["daten"][0]["ID"])
    assert (row["memory"], row["tags"]) == (text, ["a", "b"])
    arguments = {"inhalt": {**inhalt_for("insert_brain_memory"), "inhalt_json": '["x"]'}}
    stored = Mcp(anna, era).call("insert_brain_memory", arguments)["structuredContent"]["daten"][0]
    assert now(anna, stored["ID"])["inhalt_json"] == '["x"]'


def test_case_7_a_wrong_name_is_told_with_the_missing_and_the_allowed_ones(anna: Agent) -> None:
    entry = note()
    entry["text"] = entry.pop("memory")
    fault = _inserted(anna, entry)["fehler"]
    assert {(each["code"], each["feld"]) for each in fault["details"]} == {
        ("unbekanntes_feld", "text"),
        ("pflichtfeld", "memory"),
    }
    assert "kurzbeschreibung" in json.dumps(fault)


def test_case_7_a_name_in_other_letters_is_told_the_right_one(anna: Agent) -> None:
    for name, wrong, right in (
        ("delete_brain_longterm_memory", {"ids": ["longterm_1"]}, "IDs"),
        ("select_brain_longterm_memory", {"NUTZER_FILTER": "anna"}, "nutzer_filter"),
        ("select_brain_history", {"id": "longterm_1"}, "ID"),
    ):
        fault = anna.post(name, {"inhalt": {"nutzer": "anna", "agent": "planer", **wrong}}).json()["fehler"]
        assert fault["code"] == "unbekanntes_feld"
        assert f"Ist {right} gemeint?" in fault["meldung"]


@pytest.mark.parametrize("text", ["a, b", '["a", "b"', '{"a": 1}', "[1e999]", '"[]"', "null"])
def test_case_5_a_text_that_holds_no_such_json_is_told_that_it_holds_none(anna: Agent, text: str) -> None:
    fault = _inserted(anna, note(tags=text))["fehler"]
    assert (fault["code"], fault["feld"]) == ("ungueltig", "tags")
    assert "dieser enthält keines" in fault["meldung"]
    assert "enthält" not in _inserted(anna, note(tags=7))["fehler"]["meldung"]


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.shape is not Shape.IDS], ids=lambda tool: tool.name)
def test_case_8_what_the_schema_requires_is_required_and_nothing_else_is(anna: Agent, tool: Any) -> None:
    inhalt = tool.input_schema["properties"]["inhalt"]
    entry = inhalt["properties"]["memories"]["items"] if tool.shape is Shape.MEMORIES else inhalt
    whole = inhalt_for(tool.name)
    fields = whole["memories"][0] if tool.shape is Shape.MEMORIES else whole
    for name in entry["properties"]:
        left = {field: value for field, value in fields.items() if field != name}
        arguments = {"inhalt": {**whole, "memories": [left]} if tool.shape is Shape.MEMORIES else left}
        told = json.dumps(Mcp(anna).call(tool.name, arguments)["structuredContent"])
        assert ('"pflichtfeld"' in told) is (name in entry["required"]), (name, told)
