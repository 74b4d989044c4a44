"""Memories as resources, prompts, and completion: what a key may not see is not there."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Agent, note
from tests.doors import BRAIN, change, now
from tests.mcp import ERAS, INVALID_PARAMS, Mcp, answer_of

Make = Callable[..., Agent]

PROMPTS = ["recall_before_answering", "store_decision", "tidy_topic"]
NOT_FOUND = {"modern": INVALID_PARAMS, "legacy": -32002}
TEMPLATE = "brain://{typ}/{nummer}"


def _address(kennung: str) -> str:
    typ, _line, number = kennung.partition("_")
    return f"brain://{typ}/{number}"


@pytest.fixture
def stored(anna: Agent) -> list[str]:
    """The ID of a memory of each kind."""
    return [
        anna.store(memory="Grüße aus Köln 🙂", tags=["Reise"]),
        anna.call("insert_brain_shortterm_memory", memories=[note()])["daten"][0]["ID"],
        anna.call("insert_brain_memory", **BRAIN)["daten"][0]["ID"],
    ]


# Resources


@pytest.mark.parametrize("era", ERAS)
def test_a_memory_of_each_kind_is_read_as_select_shows_it(anna: Agent, stored: list[str], era: str) -> None:
    for kennung in stored:
        (content,) = Mcp(anna, era).ask("resources/read", uri=_address(kennung))["contents"]
        assert (content["uri"], content["mimeType"]) == (_address(kennung), "application/json")
        shown = now(anna, kennung)
        left_out = {"index", "typ", "erfolg", "embedding"}
        assert json.loads(content["text"]) == {name: shown[name] for name in shown if name not in left_out}


@pytest.mark.parametrize("era", ERAS)
def test_the_latest_memories_are_listed_and_can_be_read(anna: Agent, stored: list[str], era: str) -> None:
    listed = Mcp(anna, era).ask("resources/list")["resources"]
    assert [each["name"] for each in listed] == stored
    for each in listed:
        assert each["title"]
        assert Mcp(anna, era).ask("resources/read", uri=each["uri"])["contents"]


def test_of_many_memories_the_latest_are_listed_on_one_page(anna: Agent) -> None:
    anna.call("insert_brain_longterm_memory", memories=[note() for _ in range(25)])
    result = Mcp(anna).ask("resources/list")
    assert "nextCursor" not in result
    numbers = [int(each["name"].partition("_")[2]) for each in result["resources"]]
    assert numbers == sorted(numbers, reverse=True)
    assert len(numbers) == 20


@pytest.mark.parametrize("era", ERAS)
def test_the_template_tells_how_an_address_is_made(anna: Agent, era: str) -> None:
    (template,) = Mcp(anna, era).ask("resources/templates/list")["resourceTemplates"]
    assert (template["uriTemplate"], template["mimeType"]) == (TEMPLATE, "application/json")
    assert template["description"]


@pytest.mark.parametrize("era", ERAS)
def test_foreign_missing_deleted_and_expired_memories_read_the_same(anna: Agent, carla: Agent, era: str) -> None:
    foreign, deleted = anna.store(), carla.store()
    carla.call("delete_brain_longterm_memory", IDs=[deleted])
    row = carla.call("insert_brain_shortterm_memory", memories=[note(nutzer="carla", gueltig_bis="2020-01-01")])
    expired = row["daten"][0]["ID"]
    told = []
    for kennung in (foreign, deleted, expired, "longterm_999999", "brain_1", f"longterm_{2**63}", f"brain_{9**30}"):
        error = Mcp(carla, era).fails("resources/read", uri=_address(kennung))
        assert error["data"].pop("uri") == _address(kennung)
        told.append(error)
    assert all(each == told[0] for each in told)
    assert told[0]["code"] == NOT_FOUND[era]
    assert Mcp(carla, era).ask("resources/list")["resources"] == []


@pytest.mark.parametrize(
    "uri",
    [
        None,
        5,
        {},
        "",
        "longterm_1",
        "brain://longterm/",
        "brain://longterm/01",
        "brain://longterm/-1",
        "brain://longterm/1\n",
        "brain://longterm/١",
        "brain://LONGTERM/1",
        "brain://tag/1",
        "brain://longterm/1/2",
        "brain://longterm/1?x",
        "file:///etc/passwd",
        "brain://\ud800/1",
        "brain://longterm/" + "9" * 10_000,
    ],
)
def test_an_address_of_another_form_is_not_found(anna: Agent, uri: Any) -> None:
    anna.store()
    error = Mcp(anna, "legacy").fails("resources/read", uri=uri)
    assert error["code"] == NOT_FOUND["legacy"]
    assert len(error["data"]["uri"]) <= 200


def test_a_key_without_a_kinds_select_tool_sees_none_of_its_memories(agent_with: Make, stored: list[str]) -> None:
    agent = agent_with("anna", tools=["select_brain_memory", "insert_brain_longterm_memory"])
    assert [each["name"] for each in Mcp(agent).ask("resources/list")["resources"]] == stored[2:]
    for kennung in stored[:2]:
        assert Mcp(agent).fails("resources/read", uri=_address(kennung))["code"] == INVALID_PARAMS
    assert Mcp(agent).ask("resources/read", uri=_address(stored[2]))["contents"]
    nobody = Mcp(agent_with("anna", tools=[]))
    assert nobody.ask("resources/list")["resources"] == []
    assert nobody.ask("prompts/list")["prompts"]


def test_a_memory_whose_time_has_run_out_is_gone(anna: Agent) -> None:
    kennung = anna.call("insert_brain_shortterm_memory", memories=[note(gueltig_bis="2999-01-01")])["daten"][0]["ID"]
    assert Mcp(anna).ask("resources/read", uri=_address(kennung))["contents"]
    change(anna, kennung, gueltig_bis="2020-01-01")
    assert Mcp(anna).fails("resources/read", uri=_address(kennung))["code"] == INVALID_PARAMS


# Prompts


@pytest.mark.parametrize("era", ERAS)
def test_prompts_are_listed_with_what_they_ask_for(anna: Agent, era: str) -> None:
    listed = Mcp(anna, era).ask("prompts/list")["prompts"]
    assert [each["name"] for each in listed] == PROMPTS
    for each in listed:
        assert each["title"]
        assert each["description"]
        assert [argument["name"] for argument in each["arguments"] if argument["required"]] in (["topic"], ["decision"])
        assert all(argument["description"] for argument in each["arguments"])


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_says_what_it_was_given_in_german_and_in_english(anna: Agent, name: str) -> None:
    first = "decision" if name == "store_decision" else "topic"
    params = {"name": name, "arguments": {first: "100 % Übung %(value)s {x}", "tag": "Reise", "scope": " "}}
    told = {}
    for language in ("de", "en", "fr"):
        response = Mcp(anna).send("prompts/get", params, {"Accept-Language": language})
        result = answer_of(response)["result"]
        (said,) = result["messages"]
        assert said["role"] == "user"
        told[language] = said["content"]["text"]
        assert "100 % Übung %(value)s {x}" in told[language]
        assert "Reise" in told[language]
        assert "search_brain" in told[language]
        assert result["description"]
    assert told["de"] == told["fr"] != told["en"]
    assert "scope" not in told["en"].lower()


@pytest.mark.parametrize(
    ("era", "name"),
    [*((era, name) for era in ERAS for name in ("nothing", "", "x" * 9999)), ("legacy", None), ("legacy", 5)],
)
def test_a_prompt_that_does_not_exist_is_a_fault_with_those_that_do(anna: Agent, era: str, name: Any) -> None:
    error = Mcp(anna, era).fails("prompts/get", name=name, arguments={})
    assert (error["code"], error["data"]) == (INVALID_PARAMS, {"prompts": PROMPTS})
    assert len(error["message"]) < 200


@pytest.mark.parametrize(
    ("arguments", "missing", "unknown"),
    [
        ({}, ["topic"], []),
        (None, ["topic"], []),
        ({"topic": " "}, ["topic"], []),
        ({"topic": "x", "Thema": "x", "y": ""}, [], ["Thema", "y"]),
        ({"thema": "x"}, ["topic"], ["thema"]),
    ],
)
def test_arguments_that_miss_or_do_not_exist_are_named(
    anna: Agent, arguments: Any, missing: list[str], unknown: list[str]
) -> None:
    error = Mcp(anna).fails("prompts/get", name="tidy_topic", arguments=arguments)
    assert error["code"] == INVALID_PARAMS
    assert error["data"] == {"missing": missing, "unknown": unknown, "arguments": ["topic", "scope", "tag"]}


@pytest.mark.parametrize("arguments", [[], "x", 5, {"topic": 5}, {"topic": None}, {"topic": ["x"]}])
def test_arguments_that_are_no_texts_are_refused(anna: Agent, arguments: Any) -> None:
    assert Mcp(anna).fails("prompts/get", name="tidy_topic", arguments=arguments)["code"] == INVALID_PARAMS


def test_half_a_surrogate_pair_in_a_prompt_harms_nothing(anna: Agent) -> None:
    result = Mcp(anna).ask("prompts/get", name="tidy_topic", arguments={"topic": "a\ud800b"})
    assert "a\ud800b" in result["messages"][0]["content"]["text"]


# Completion


def _completed(agent: Agent, name: str, value: str, era: str = "modern") -> list[str]:
    reference = {"type": "ref/prompt", "name": "tidy_topic"}
    result = Mcp(agent, era).ask("completion/complete", ref=reference, argument={"name": name, "value": value})
    values: list[str] = result["completion"]["values"]
    return values


@pytest.mark.parametrize("era", ERAS)
def test_tags_and_scopes_are_completed_of_what_the_key_may_see(anna: Agent, carla: Agent, era: str) -> None:
    anna.store(tags=["Frist", "Freitag", "Vertrag"], scope="modul")
    carla.store(tags=["Frisör"], scope="monat")
    anna.call("insert_brain_memory", **BRAIN, scope_typ="room")
    assert _completed(anna, "tag", "fr", era) == ["Freitag", "Frist"]
    assert _completed(anna, "tag", "", era) == ["Freitag", "Frist", "Vertrag"]
    assert _completed(anna, "scope", "", era) == ["modul", "room"]
    assert _completed(anna, "scope", "mo", era) == ["modul"]
    assert _completed(carla, "tag", "fr", era) == ["Frisör"]
    assert _completed(carla, "scope", "", era) == ["monat"]
    for name in ("topic", "nothing"):
        assert _completed(anna, name, "", era) == []


def test_a_key_without_the_tools_completes_nothing(agent_with: Make, anna: Agent) -> None:
    anna.store(tags=["Frist"], scope="modul")
    agent = agent_with("anna", tools=["insert_brain_longterm_memory"])
    assert _completed(agent, "tag", "") == _completed(agent, "scope", "") == []


def test_at_most_a_hundred_are_completed_and_the_rest_is_told(anna: Agent) -> None:
    anna.store(tags=[f"a{number}" for number in range(100)])
    reference = {"type": "ref/prompt", "name": "tidy_topic"}
    wish = {"ref": reference, "argument": {"name": "tag", "value": "a"}}
    assert Mcp(anna).ask("completion/complete", **wish)["completion"]["hasMore"] is False
    anna.store(tags=["a100"])
    completion = Mcp(anna).ask("completion/complete", **wish)["completion"]
    assert (len(completion["values"]), completion["hasMore"]) == (100, True)


def test_the_kinds_of_the_template_are_completed(anna: Agent, agent_with: Make) -> None:
    def kinds(agent: Agent, name: str, value: str) -> Any:
        wish = {"ref": {"type": "ref/resource", "uri": TEMPLATE}, "argument": {"name": name, "value": value}}
        return Mcp(agent).ask("completion/complete", **wish)["completion"]["values"]

    assert kinds(anna, "typ", "") == ["longterm", "shortterm", "brain"]
    assert kinds(anna, "typ", "b") == ["brain"]
    assert kinds(anna, "nummer", "") == []
    assert kinds(agent_with("anna", tools=["select_brain_memory"]), "typ", "") == ["brain"]


@pytest.mark.parametrize("value", ["%", "_", "\\", "'", "*", "🙂", "ß", " ", "A" * 255, "\u0301"])
def test_any_beginning_is_looked_up_by_the_letter(anna: Agent, value: str) -> None:
    anna.store(tags=["Frist"], scope="modul")
    assert _completed(anna, "scope", value) == []
    assert _completed(anna, "tag", value) in ([], ["Frist"] if not value.strip() else [])


@pytest.mark.parametrize("name", ["tag", "scope"])
@pytest.mark.parametrize("value", ["a\0b", "\ud800", "x" * 100_000])
def test_a_beginning_that_nothing_can_have_is_refused(anna: Agent, name: str, value: str) -> None:
    wish = {"ref": {"type": "ref/prompt", "name": "tidy_topic"}, "argument": {"name": name, "value": value}}
    error = Mcp(anna).fails("completion/complete", **wish)
    assert (error["code"], error["data"]["feld"]) == (INVALID_PARAMS, "argument.value")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"ref": None, "argument": None},
        {"ref": {}, "argument": {}},
        {"ref": {"type": "ref/prompt", "name": "nothing"}, "argument": {"name": "tag", "value": ""}},
        {"ref": {"type": "ref/prompt", "name": ["x"]}, "argument": {"name": "tag", "value": ""}},
        {"ref": {"type": "ref/resource", "uri": "brain://x"}, "argument": {"name": "typ", "value": ""}},
        {"ref": {"type": "ref/prompt", "name": "tidy_topic"}, "argument": {"name": "tag"}},
        {"ref": {"type": "ref/prompt", "name": "tidy_topic"}, "argument": {"name": "tag", "value": 5}},
    ],
)
def test_a_wish_that_cannot_be_completed_is_refused(anna: Agent, era: str, wish: Any) -> None:
    assert Mcp(anna, era).fails("completion/complete", **wish)["code"] == INVALID_PARAMS


def test_an_argument_may_have_any_name(anna: Agent) -> None:
    for name in (None, 5, [], {"a": 1}, ""):
        wish = {"ref": {"type": "ref/prompt", "name": "tidy_topic"}, "argument": {"name": name, "value": ""}}
        assert Mcp(anna).ask("completion/complete", **wish)["completion"] == {"values": [], "hasMore": False}
