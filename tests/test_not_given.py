"""Clients often send every parameter: what counts as not given, in every optional parameter of every tool."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.tool import Shape, Tool
from api.tools import TOOLS
from tests.conftest import Agent, note
from tests.doors import BRAIN, NAMES, entry_schema, fault_of, inhalt_for, now, one_fault, tool_of

Place = tuple[str, str]  # a tool and one of its parameters
MOVING = {"index", "ID", "erstellt_am", "aktualisiert_am", "gueltig_bis"}


def nothing(name: str, schema: dict[str, Any]) -> list[Any]:
    """The values that count as not given in a property of this name and schema."""
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    values: list[Any] = [] if name == "scope_vk" else [""]
    if "null" not in types:
        values.append(None)
    if "string" not in types or "null" in types or "enum" in schema:
        values.append("null")
    return values


OPTIONAL = [
    (name, field)
    for name in NAMES
    for field in entry_schema(name)["properties"]
    if field not in entry_schema(name)["required"]
]
REQUIRED = [(name, field) for name in NAMES for field in entry_schema(name)["required"]]


@pytest.fixture
def stored(anna: Agent) -> dict[str, str]:
    """The ID of a memory of each kind, with all there is."""
    vector = {"embedding": [1.0, 2.0], "embedding_profil_hash": "modell-1"}
    entry = note(**vector)
    short = anna.call("insert_brain_shortterm_memory", memories=[entry | {"gueltig_bis": "2999-01-01"}])
    brain = anna.call("insert_brain_memory", **BRAIN, relevanz="70", scope_typ="modul", inhalt="Frist")
    return {
        "longterm": anna.store(**vector),
        "shortterm": short["daten"][0]["ID"],
        "brain": brain["daten"][0]["ID"],
    }


def inhalt_with(name: str, stored: dict[str, str], **fields: Any) -> dict[str, Any]:
    """A valid `inhalt` with these parameters; an update names a memory that exists, and changes nothing."""
    inhalt = inhalt_for(name)
    entry = inhalt["memories"][0] if tool_of(name).shape is Shape.MEMORIES else inhalt
    if name == "update_brain_memory":
        entry.update(ID=stored["brain"], titel=BRAIN["titel"])
    elif name.startswith("update"):
        same = note()
        kept = {field: same[field] for field in ("kurzbeschreibung", "memory", "tags")}
        entry.update(kept, ID=stored[name.split("_")[2]])
    entry.update(fields)
    return inhalt


def outcome(agent: Agent, name: str, inhalt: dict[str, Any]) -> Any:
    """What came of a call: the status and the answer; of an insert, what is stored now."""
    response = agent.post(name, {"inhalt": inhalt})
    answer = response.json()
    if name.startswith("insert"):
        row = now(agent, answer["daten"][0]["ID"])
        return {field: value for field, value in row.items() if field not in MOVING} | {
            "limited": row.get("gueltig_bis") is not None
        }
    return response.status_code, answer


@pytest.mark.parametrize(("name", "field"), OPTIONAL)
def test_an_optional_parameter_without_a_value_counts_as_not_given(
    anna: Agent, stored: dict[str, str], name: str, field: str
) -> None:
    without = inhalt_with(name, stored)
    (without["memories"][0] if tool_of(name).shape is Shape.MEMORIES else without).pop(field, None)
    expected = outcome(anna, name, without)
    for value in nothing(field, entry_schema(name)["properties"][field]):
        assert outcome(anna, name, inhalt_with(name, stored, **{field: value})) == expected, value


@pytest.mark.parametrize(("name", "field"), REQUIRED)
def test_a_required_parameter_is_never_dropped(anna: Agent, stored: dict[str, str], name: str, field: str) -> None:
    answer = anna.post(name, {"inhalt": inhalt_with(name, stored, **{field: None})}).json()
    fault = answer["fehler"] or answer["daten"][0]["fehler"]
    assert (fault["code"], fault["feld"].rpartition(".")[2]) == ("ungueltig", field)


def test_the_word_null_is_a_word_where_a_text_is_wanted(anna: Agent) -> None:
    kennung = anna.store(memory="Der Zeiger ist null.", scope="null", agent="null")
    anna.store()
    for only in ({"suche": "null"}, {"scope": "null"}, {"agent_filter": "null"}):
        rows = anna.call("select_brain_longterm_memory", **only)["daten"]
        assert [row["ID"] for row in rows] == [kennung], only
    assert [row["ID"] for row in anna.call("search_brain", suche="null")["daten"]] == [kennung]
    brain = anna.call("insert_brain_memory", **BRAIN, session_ID="null", inhalt="null", inhalt_json="null")
    row = now(anna, brain["daten"][0]["ID"])
    assert (row["session_ID"], row["inhalt"], row["inhalt_json"]) == ("null", "null", "null")
    assert one_fault(anna.call("insert_brain_memory", **BRAIN, gueltig_bis="null")) == ("ungueltig", "gueltig_bis")


def test_null_itself_still_removes_a_value(anna: Agent, stored: dict[str, str]) -> None:
    change = inhalt_with("update_brain_longterm_memory", stored, embedding=None, embedding_profil_hash=None)
    anna.post("update_brain_longterm_memory", {"inhalt": change})
    row = now(anna, stored["longterm"])
    assert (row["hat_embedding"], row["embedding_profil_hash"]) == (False, None)


def test_the_empty_record_of_a_scope_is_a_value(anna: Agent) -> None:
    kennung = anna.store(scope_vk="")
    anna.store(scope_vk="12")
    rows = anna.call("select_brain_longterm_memory", scope_vk="")["daten"]
    assert [row["ID"] for row in rows] == [kennung]


def test_an_unknown_parameter_is_a_fault_without_a_value_too(anna: Agent) -> None:
    for value in (None, "", "null"):
        fault = fault_of(anna.post("select_brain_tags", {"inhalt": inhalt_for("select_brain_tags", x=value)}), 400)
        assert (fault["code"], fault["feld"]) == ("unbekanntes_feld", "inhalt.x")


SENT: list[Any] = ["", "null", None, "{}", "[]", '{"a": "{}"}', '["null"]', '"[]"', '[""]', "null ", 7, "7", True]
NESTED = [{"a": None, "b": "", "c": "[]"}, ["", "null", None, "{}"], {"memory": "null"}]
VALUES = st.text(max_size=5) | st.sampled_from([*SENT, *NESTED])


def arguments_of(name: str) -> st.SearchStrategy[Any]:
    """Arguments with some parameters of this tool, and any values."""
    inhalt = tool_of(name).input_schema["properties"]["inhalt"]["properties"]
    entry = st.dictionaries(st.sampled_from([*entry_schema(name)["properties"], "x"]), VALUES, max_size=4)
    entries = st.lists(entry | entry.map(json.dumps) | VALUES, max_size=2)
    content = st.dictionaries(st.sampled_from([*inhalt, "x"]), entries | entries.map(json.dumps) | VALUES, max_size=4)
    return st.fixed_dictionaries(
        {}, optional={"inhalt": content | content.map(json.dumps), "help": VALUES, "referenzfelder": VALUES}
    )


CALLS = st.one_of([st.tuples(st.just(tool), arguments_of(tool.name)) for tool in TOOLS])


@given(CALLS)
def test_reading_a_call_as_it_was_meant_twice_is_the_same_as_once(drawn: tuple[Tool, dict[str, Any]]) -> None:
    tool, arguments = drawn
    once = tool.frame.decoded(arguments)
    assert tool.frame.decoded(once) == once
    if isinstance(arguments.get("referenzfelder"), dict):
        assert once["referenzfelder"] == arguments["referenzfelder"]


TEXTS = [
    (name, field) for name in NAMES for field in ("memory", "inhalt_json") if field in entry_schema(name)["properties"]
]


@given(st.sampled_from(TEXTS), VALUES.filter(lambda value: isinstance(value, str)))
def test_a_text_is_never_read_as_something_else(place: Place, value: str) -> None:
    name, field = place
    checker = tool_of(name).entry
    read = checker.decoded({field: value, "x": value})
    assert checker.decoded(read) == read
    assert read.get(field, value) == value
    if field == "memory" or value not in {"", "null"}:
        assert field in read
