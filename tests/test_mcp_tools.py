"""The tools over MCP: what is offered to whom, and one truth and one effect at every door."""

import json
import re
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
from django.db import transaction

from api.tools import TOOLS
from memories import reading
from tests.conftest import Agent, note
from tests.doors import BRAIN, NAMES, inhalt_for
from tests.mcp import ERAS, INVALID_PARAMS, Mcp, answer_of, error_of, message, meta
from tests.test_contract import GIVEN, GIVEN_NAMES, MOST_DEFINED
from tests.trouble import database_away

Make = Callable[..., Agent]

READING = [tool.name for tool in TOOLS if not tool.writes]
INSERT = "insert_brain_longterm_memory"
SELECT = "select_brain_longterm_memory"


def _names(agent: Agent, era: str = "modern") -> list[str]:
    return [tool["name"] for tool in Mcp(agent, era).ask("tools/list")["tools"]]


def _schemas(schema: Any) -> Any:
    """The schema and all those inside."""
    yield schema
    for child in [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]:
        yield from _schemas(child)


# What is offered


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_are_listed_in_their_order_and_on_one_page(anna: Agent, era: str) -> None:
    for params in ({}, {"cursor": "x"}, {}):
        result = Mcp(anna, era).ask("tools/list", **params)
        assert [tool["name"] for tool in result["tools"]] == NAMES
        assert "nextCursor" not in result


def test_case_70_a_reading_key_is_offered_and_may_call_what_reads_alone(agent_with: Make, anna: Agent) -> None:
    reader = agent_with("anna", may_write=False)
    assert _names(reader) == READING
    for name in NAMES:
        params = {"name": name, "arguments": {"inhalt": inhalt_for(name)}}
        response = Mcp(reader).send("tools/call", params)
        if name in READING:
            assert response.status_code == 200
        else:
            error = error_of(response, 400)
            assert (error["code"], error["data"]) == (INVALID_PARAMS, {"tools": READING})
    assert anna.call(SELECT)["daten"] == []


@pytest.mark.parametrize("allowed", [[SELECT], [INSERT, "select_brain_tags"], []])
def test_case_75_a_key_is_offered_its_tools_alone(agent_with: Make, allowed: list[str]) -> None:
    agent = agent_with("anna", tools=allowed)
    assert _names(agent) == [name for name in NAMES if name in allowed]
    for name in NAMES:
        status = 200 if name in allowed else 400
        for arguments in ({"inhalt": inhalt_for(name)}, {"help": 1}):
            assert Mcp(agent).send("tools/call", {"name": name, "arguments": arguments}).status_code == status


def test_a_tool_out_of_reach_reads_like_one_that_does_not_exist(agent_with: Make) -> None:
    client = Mcp(agent_with("anna", tools=[SELECT]), "legacy")
    for name in (INSERT, "nothing"):
        error = client.fails("tools/call", name=name, arguments={})
        assert (error["code"], error["message"].replace(name, "X")) == (
            INVALID_PARAMS,
            "Ein Werkzeug X gibt es nicht, oder dieser Schlüssel darf es nicht aufrufen.",
        )


@pytest.mark.parametrize("name", [None, 5, [], {"a": 1}, "", "x" * 10_000, "\ud800", "INSERT_BRAIN_MEMORY"])
def test_a_name_that_no_tool_has_is_a_fault_of_the_protocol(anna: Agent, name: Any) -> None:
    error = Mcp(anna, "legacy").fails("tools/call", name=name)
    assert (error["code"], error["data"]) == (INVALID_PARAMS, {"tools": NAMES})
    assert len(error["message"]) < 200


@pytest.mark.parametrize("name", GIVEN_NAMES)
def test_a_given_schema_is_served_to_the_letter(anna: Agent, name: str) -> None:
    for client in (Mcp(anna), Mcp(anna, "legacy"), Mcp(anna, path="/mcp/?schema=exact")):
        told = {tool["name"]: tool for tool in client.ask("tools/list")["tools"]}
        given = json.loads((GIVEN / f"{name}.schema.json").read_text(encoding="utf-8"))
        assert json.dumps(told[name]["inputSchema"]) == json.dumps(given)


def test_a_portable_list_has_one_type_for_each_field_and_the_same_fields(anna: Agent) -> None:
    exact = Mcp(anna).ask("tools/list")["tools"]
    portable = Mcp(anna, path="/mcp?schema=portable").ask("tools/list")["tools"]
    for one, other in zip(exact, portable, strict=True):
        assert {**one, "inputSchema": None} == {**other, "inputSchema": None}
        for schema in _schemas(other["inputSchema"]):
            assert isinstance(schema["type"], str)
            assert "additionalProperties" not in schema
            assert not schema.keys() & {"anyOf", "oneOf", "allOf", "$ref", "$defs", "not", "if"}
        for given, shown in zip(_schemas(one["inputSchema"]), _schemas(other["inputSchema"]), strict=True):
            assert list(given.get("properties", {})) == list(shown.get("properties", {}))
            assert given.get("required") == shown.get("required")
            types = given["type"] if isinstance(given["type"], list) else [given["type"]]
            assert shown["type"] == types[0]
    assert "additionalProperties" in json.dumps(exact)


@pytest.mark.parametrize("wish", ["Portable", "", "x", "portable2"])
def test_another_wish_for_schemas_changes_nothing(anna: Agent, wish: str) -> None:
    assert Mcp(anna, path=f"/mcp?schema={wish}").ask("tools/list") == Mcp(anna).ask("tools/list")


def test_what_a_tool_does_to_memories_is_told_in_its_annotations(anna: Agent) -> None:
    for tool, told in zip(TOOLS, Mcp(anna).ask("tools/list")["tools"], strict=True):
        hints = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
        hints |= told["annotations"]
        assert hints["readOnlyHint"] is not tool.writes
        assert hints["openWorldHint"] is False
        if tool.writes:
            assert hints["destructiveHint"] is tool.destructive
    named = {told["name"]: told["annotations"] for told in Mcp(anna).ask("tools/list")["tools"]}
    assert named["insert_brain_memory"].get("destructiveHint") is False
    for name in NAMES:
        assert (named[name].get("destructiveHint", True) is True) >= name.startswith(("delete", "update"))


def test_case_12_all_definitions_are_small_enough_for_a_models_context(anna: Agent) -> None:
    for path in ("/mcp", "/mcp?schema=portable"):
        result = Mcp(anna, path=path).ask("tools/list")
        assert len(json.dumps(result["tools"], ensure_ascii=False, separators=(",", ":")).encode()) <= MOST_DEFINED
        assert len(Mcp(anna, path=path).send("tools/list").content) <= MOST_DEFINED + 500


# One truth at every door


def test_every_tool_tells_the_same_over_mcp_rest_help_and_openapi(anna: Agent) -> None:
    paths = anna.http.get("/api/schema/").json()["paths"]
    for told in Mcp(anna).ask("tools/list")["tools"]:
        name = told["name"]
        (helped,) = Mcp(anna).call(name, {"help": 1})["structuredContent"]["daten"]
        assert {key: value for key, value in helped.items() if key != "index"} == anna.http.get(
            f"/api/tools/{name}/"
        ).json()
        assert (told["title"], told["description"]) == (helped["titel"], helped["beschreibung"])
        operation = paths[f"/api/tools/{name}/"]["post"]
        posted = operation["requestBody"]["content"]["application/json"]["schema"]
        assert told["inputSchema"] == helped["inputSchema"] == posted


ID = re.compile(r"\b(longterm|shortterm|brain)_(\d+)\b")
MOVING = {"zeitpunkt", "erstellt_am", "aktualisiert_am", "gueltig_bis", "tuer", "weiter", "aufruf"}


class World:
    """The same memories anew each time, and what a call by one of the doors makes of them."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.old = agent.store(memory="Der Hund schläft.", tags=["Tier", "Haus"], embedding=[1, 2])
        self.new = agent.store(memory="Die Katze jagt.", tags=["Tier"])
        self.brief = self._inserted("insert_brain_shortterm_memory", memories=[note(gueltig_bis="2999-01-01")])
        self.brain = self._inserted("insert_brain_memory", **BRAIN)
        self.agent.call("update_brain_memory", ID=self.brain, titel="Zweite Fassung")
        self.names = {
            kennung: f"<{place}>" for place, kennung in enumerate((self.old, self.new, self.brief, self.brain))
        }

    def _inserted(self, tool: str, **inhalt: Any) -> str:
        return str(self.agent.call(tool, **inhalt)["daten"][0]["ID"])

    def inhalt(self, name: str) -> dict[str, Any]:
        """A call of this tool that succeeds, with an entry that does not where there can be one."""
        own: dict[str, dict[str, Any]] = {
            "update_brain_longterm_memory": {"memories": [self._changed(self.old), {"ID": self.new}, {"x": 1}]},
            "update_brain_shortterm_memory": {"memories": [self._changed(self.brief), self._changed(self.old)]},
            "update_brain_memory": {"ID": self.brain, "titel": "Dritte Fassung"},
            "insert_brain_longterm_memory": {"memories": [note(), note(tags=5), note(memory="zwei")]},
            "delete_brain_longterm_memory": {"IDs": [self.new, self.brief, self.new], "grund": "weg"},
            "delete_brain_shortterm_memory": {"IDs": [self.brief]},
            "delete_brain_memory": {"IDs": [self.brain, "brain_999999"]},
            "promote_brain_shortterm_memory": {"IDs": [self.brief, "shortterm_999999"]},
            "restore_brain_memory": {"ID": self.brain, "version": 1},
            "select_brain_longterm_memory": {"IDs": [self.old, "longterm_999999"], "mit_embedding": 1},
            "select_brain_history": {"ID": self.brain},
            "search_brain": {"suche": "Hund", "erklaeren": 1},
        }
        return {"nutzer": "anna", "agent": "planer", **own[name]} if name in own else inhalt_for(name)

    def _changed(self, kennung: str) -> dict[str, Any]:
        return {"ID": kennung, "kurzbeschreibung": "Neu", "memory": "Neu.", "tags": ["neu"]}

    def told(self, value: Any) -> Any:
        """What is left when IDs are numbered as they appear, and times and doors are taken out.

        Messages may name IDs as examples, which must not be taken for one that exists.
        """
        if isinstance(value, dict):
            kept = {name: child for name, child in value.items() if name not in MOVING}
            return {
                name: ID.sub("<ID>", child) if name == "meldung" else self.told(child) for name, child in kept.items()
            }
        if isinstance(value, list):
            return [self.told(child) for child in value]
        if isinstance(value, str):
            return ID.sub(lambda found: self.names.setdefault(found[0], f"<{len(self.names)}>"), value)
        return value

    def effect(self) -> list[Any]:
        """All memories and all their versions."""
        seen = []
        for kind in ("longterm_memory", "shortterm_memory", "memory"):
            seen += self.agent.call(f"select_brain_{kind}", mit_embedding=1, sortierung="aelteste")["daten"]
        known = [kennung for kennung in self.names if not kennung.endswith("_999999")]
        return [seen, [self.agent.call("select_brain_history", ID=each)["daten"] for each in known]]


def _by_rest(agent: Agent, name: str, arguments: Any) -> Any:
    return agent.http.post(f"/api/tools/{name}/", arguments, content_type="application/json").json()


def _by_mcp(agent: Agent, name: str, arguments: Any) -> Any:
    return Mcp(agent).call(name, arguments)["structuredContent"]


def _by_legacy_mcp(agent: Agent, name: str, arguments: Any) -> Any:
    return Mcp(agent, "legacy").call(name, arguments)["structuredContent"]


@pytest.mark.parametrize("name", NAMES)
def test_a_call_has_the_same_answer_and_effect_by_every_door(anna: Agent, name: str) -> None:
    outcomes = []
    for door in (_by_rest, _by_mcp, _by_legacy_mcp):
        with transaction.atomic():
            world = World(anna)
            answer = door(anna, name, {"inhalt": world.inhalt(name), "referenzfelder": {"ticket": name}})
            assert answer["anzahl"]["erfolgreich"] > 0 or name in {"select_brain_tags"}, answer
            outcomes.append(world.told([answer, world.effect()]))
            transaction.set_rollback(True)
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_the_history_tells_the_door(anna: Agent) -> None:
    arguments = {"inhalt": inhalt_for(INSERT), "referenzfelder": {"ticket": "T-17"}}
    kennung = Mcp(anna).call(INSERT, arguments)["structuredContent"]["daten"][0]["ID"]
    (row,) = anna.call("select_brain_history", ID=kennung)["daten"]
    assert (row["tuer"], row["tool"], row["referenzfelder"]) == ("mcp", INSERT, {"ticket": "T-17"})
    assert (row["nutzer"], row["agent"], row["schluessel"]) == ("anna", "planer", "anna")


# Success and failure


@pytest.mark.parametrize("era", ERAS)
def test_only_a_call_of_which_nothing_succeeded_is_an_error(anna: Agent, era: str) -> None:
    client = Mcp(anna, era)
    good, bad = note(), {"x": 1}
    for memories, failed in (([good], False), ([good, bad], False), ([bad, bad], True)):
        result = client.call(INSERT, {"inhalt": {"nutzer": "anna", "agent": "planer", "memories": memories}})
        assert result["isError"] is failed
        assert [row["erfolg"] for row in result["structuredContent"]["daten"]] == [entry is good for entry in memories]
    assert client.call(SELECT, {"inhalt": inhalt_for(SELECT, suche="nirgends")})["isError"] is False


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "pflichtfeld"),
        (None, "pflichtfeld"),
        ([], "ungueltig"),
        (5, "ungueltig"),
        ({"inhalt": {"nutzer": "anna", "agent": "planer"}}, "pflichtfeld"),
        ({"inhalt": {"nutzer": "carla", "agent": "planer", "memories": [note()]}}, "nicht_erlaubt"),
        ({"inhalt": inhalt_for(INSERT), "x": 1}, "unbekanntes_feld"),
    ],
)
def test_a_fault_of_the_call_is_an_error_in_the_envelopes_form(
    anna: Agent, era: str, arguments: Any, code: str
) -> None:
    result = Mcp(anna, era).call(INSERT, arguments)
    answer = result["structuredContent"]
    assert (result["isError"], answer["erfolg"], answer["daten"], answer["fehler"]["code"]) == (True, False, [], code)
    assert answer == anna.post(INSERT, {} if arguments is None else arguments).json()


def test_arguments_may_be_left_out_where_none_is_needed(anna: Agent) -> None:
    assert Mcp(anna, "legacy").send("tools/call", {"name": INSERT}).status_code == 200
    assert Mcp(anna).ask("tools/call", name=INSERT)["isError"] is True


@pytest.mark.parametrize(
    ("language", "told"), [("de", "Dieses Feld muss angegeben werden."), ("en", "This field is required.")]
)
def test_a_fault_is_told_in_the_language_asked_for(anna: Agent, language: str, told: str) -> None:
    response = Mcp(anna).send("tools/call", {"name": INSERT, "arguments": {}}, {"Accept-Language": language})
    assert answer_of(response)["result"]["structuredContent"]["fehler"]["meldung"] == told


@pytest.mark.parametrize("era", ERAS)
def test_a_bug_in_a_tool_is_an_error_without_its_inside_and_is_logged(
    anna: Agent, era: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_args: Any) -> Any:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(reading, "tag_counts", broken)
    arguments = {"inhalt": inhalt_for("select_brain_tags"), "referenzfelder": {"ticket": "T-17"}}
    result = Mcp(anna, era).call("select_brain_tags", arguments)
    answer = result["structuredContent"]
    assert (result["isError"], answer["tool"], answer["daten"]) == (True, "select_brain_tags", [])
    assert (answer["fehler"]["code"], answer["referenzfelder"]) == ("interner_fehler", {"ticket": "T-17"})
    assert "secret" not in json.dumps(result)
    assert "a secret of the inside" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_call_without_the_database_says_that_it_can_be_repeated(agent_with: Make) -> None:
    agent = agent_with("anna")
    agent.call(SELECT)
    with database_away():
        response = Mcp(agent).send("tools/call", {"name": INSERT, "arguments": {"inhalt": inhalt_for(INSERT)}})
        if response.status_code == 503:  # where not even the key can be looked up
            assert error_of(response, 503, id_=None)["data"]["code"] == "nicht_verfuegbar"
            assert int(response["Retry-After"]) > 0
        else:
            result = answer_of(response)["result"]
            assert result["isError"] is True
            assert "nicht_verfuegbar" in result["content"][0]["text"]
    assert agent.call(SELECT)["daten"] == []


def test_a_whole_conversation_in_one_batch_has_its_effect_in_order(anna: Agent) -> None:
    calls = [
        message("tools/call", {"name": INSERT, "arguments": {"inhalt": inhalt_for(INSERT)}}, id_=1),
        message("tools/call", {"name": SELECT, "arguments": {"inhalt": inhalt_for(SELECT)}}, id_=2),
    ]
    inserted, selected = (
        each["result"]["structuredContent"] for each in json.loads(Mcp(anna, "legacy").post(calls).content)
    )
    assert [row["ID"] for row in selected["daten"]] == [inserted["daten"][0]["ID"]]


def test_case_9_no_output_schema_is_promised_and_every_answer_would_keep_it(anna: Agent) -> None:
    world = World(anna)
    for tool, told in zip(TOOLS, Mcp(anna).ask("tools/list")["tools"], strict=True):
        assert "outputSchema" not in told
        for arguments in ({"inhalt": world.inhalt(tool.name)}, {"help": 1}):
            answer = Mcp(anna).call(tool.name, arguments)["structuredContent"]
            assert jsonschema_rs.is_valid(tool.output_schema, answer), tool.name


def test_a_modern_call_carries_who_answered(anna: Agent) -> None:
    result = Mcp(anna).call("select_brain_tags", {"help": 1})
    assert result["resultType"] == "complete"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "brain"


# Repeats


def _with_key(agent: Agent, era: str, key: Any, arguments: Any) -> Any:
    own = meta() if era == "modern" else {}
    return Mcp(agent, era).send(
        "tools/call", {"name": INSERT, "arguments": arguments, "_meta": {**own, "idempotencyKey": key}}
    )


@pytest.mark.parametrize("era", ERAS)
def test_a_call_repeated_with_its_key_is_answered_again_and_executed_once_at_either_door(anna: Agent, era: str) -> None:
    arguments = {"inhalt": inhalt_for(INSERT)}
    first = answer_of(_with_key(anna, era, "k-1", arguments))["result"]["structuredContent"]
    again = answer_of(_with_key(anna, era, "k-1", arguments))["result"]["structuredContent"]
    by_rest = anna.post(INSERT, arguments, **{"Idempotency-Key": "k-1"}).json()
    assert first["erfolg"] is True
    assert [row["ID"] for answer in (again, by_rest) for row in answer["daten"]] == [first["daten"][0]["ID"]] * 2
    assert len(anna.call(SELECT)["daten"]) == 1
    other = answer_of(_with_key(anna, era, "k-1", {"inhalt": inhalt_for(INSERT), "referenzfelder": {"n": 1}}))["result"]
    assert other["isError"] is True
    assert other["structuredContent"]["fehler"]["code"] == "schluessel_wiederverwendet"
    assert len(anna.call(SELECT)["daten"]) == 1


@pytest.mark.parametrize("key", [5, True, [], {}, 1.5])
def test_a_key_for_repeats_that_is_no_text_is_a_fault_of_the_protocol(anna: Agent, key: Any) -> None:
    error = error_of(_with_key(anna, "modern", key, {"inhalt": inhalt_for(INSERT)}), 400)
    assert (error["code"], "idempotencyKey" in error["message"]) == (INVALID_PARAMS, True)
    assert anna.call(SELECT)["daten"] == []


@pytest.mark.parametrize("key", ["", "x" * 10_000, "a\nb", "\ud800", "a\0b"])
def test_a_key_for_repeats_of_another_form_is_the_calls_fault(anna: Agent, key: str) -> None:
    result = answer_of(_with_key(anna, "modern", key, {"inhalt": inhalt_for(INSERT)}))["result"]
    assert (result["isError"], result["structuredContent"]["fehler"]["code"]) == (True, "ungueltig")
    assert anna.call(SELECT)["daten"] == []
