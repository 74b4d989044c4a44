"""The OpenAPI document and its page."""

import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from api.tools import TOOLS
from tests.conftest import Agent, note
from tests.doors import NAMES, inhalt_for

# The rules of the OpenAPI 3.1 specification for the parts that this document uses.
OPENAPI: dict[str, Any] = {
    "type": "object",
    "required": ["openapi", "info", "paths"],
    "properties": {
        "openapi": {"pattern": r"^3\.1\.\d+$"},
        "info": {"type": "object", "required": ["title", "version"]},
        "paths": {
            "type": "object",
            "patternProperties": {
                "^/": {
                    "type": "object",
                    "propertyNames": {"enum": ["get", "post", "parameters", "summary", "description"]},
                    "additionalProperties": {"$ref": "#/$defs/operation"},
                }
            },
            "additionalProperties": False,
        },
        "components": {
            "type": "object",
            "properties": {
                "securitySchemes": {
                    "type": "object",
                    "propertyNames": {"pattern": r"^[a-zA-Z0-9._-]+$"},
                    "additionalProperties": {"required": ["type"]},
                },
                "schemas": {"type": "object", "propertyNames": {"pattern": r"^[a-zA-Z0-9._-]+$"}},
            },
        },
    },
    "$defs": {
        "content": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {
                "properties": {"schema": {"$ref": "https://json-schema.org/draft/2020-12/schema"}},
                "required": ["schema"],
            },
        },
        "operation": {
            "type": "object",
            "required": ["operationId", "responses"],
            "properties": {
                "operationId": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "security": {"type": "array", "items": {"additionalProperties": {"type": "array"}}},
                "requestBody": {"required": ["content"], "properties": {"content": {"$ref": "#/$defs/content"}}},
                "responses": {
                    "type": "object",
                    "minProperties": 1,
                    "propertyNames": {"pattern": "^([1-5][0-9][0-9]|default)$"},
                    "additionalProperties": {
                        "required": ["description"],
                        "properties": {"content": {"$ref": "#/$defs/content"}},
                    },
                },
            },
        },
    },
}


# Fields whose name says it all; definitions have to be short.
SAYING = {
    *("ID", "IDs", "memories", "grund", "titel", "inhalt", "praefix", "weiter"),
    *("scope", "scope_vk", "agent_filter", "nutzer_filter", "tags_eines"),
    *("scope_modul", "scope_ID", "agent_ID", "room_ID", "session_ID", "quelle_typ", "quelle_ID"),
}


@pytest.fixture
def document(db: None) -> dict[str, Any]:
    """The document, as anybody gets it, without a key."""
    response = Client().get("/api/schema/")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("application/json")
    document: dict[str, Any] = response.json()
    return document


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for child in value.values():
            yield from _references(child)
    elif isinstance(value, list):
        for child in value:
            yield from _references(child)


def test_the_document_is_valid_openapi(document: dict[str, Any]) -> None:
    found = [f"{error.instance_path}: {error.message[:200]}" for error in jsonschema_rs.iter_errors(OPENAPI, document)]
    assert found == []
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    for operation in operations:
        for requirement in operation.get("security", []):
            assert requirement.keys() <= document["components"]["securitySchemes"].keys()


def test_every_reference_of_the_document_leads_somewhere(document: dict[str, Any]) -> None:
    references = set(_references(document))
    assert references
    for reference in references:
        assert reference.startswith("#/components/schemas/"), reference
        assert reference.rpartition("/")[2] in document["components"]["schemas"]


def test_every_tool_is_an_operation_of_its_own_and_nothing_else_is_there(document: dict[str, Any]) -> None:
    addresses = {"/api/tools/", *(f"/api/tools/{name}/" for name in NAMES)}
    assert document["paths"].keys() == addresses
    for path in document["paths"].values():
        assert path.keys() == {"get", "post"}
        for operation in path.values():
            assert {"200", "400", "401", "403", "404", "413", "503"} <= operation["responses"].keys()


def test_the_envelope_is_described_as_it_is_checked(document: dict[str, Any]) -> None:
    operation = document["paths"]["/api/tools/"]["post"]
    assert operation["operationId"] == "call_tool"
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    assert schema.keys() == {"type", "properties", "required", "additionalProperties"}
    assert schema["properties"].keys() == set(schema["required"]) == {"tool", "arguments"}
    assert schema["additionalProperties"] is False


def _answers(agent: Agent) -> Iterator[tuple[str, Any]]:
    """Answers of every tool: a good one, one with a failed entry where there can be one, and a definition."""
    old = agent.store(embedding=[1, 2])
    brief = agent.call("insert_brain_shortterm_memory", memories=[note()])["daten"][0]["ID"]
    brain = agent.call("insert_brain_memory", memory_typ="arbeit", titel="t", relevanz="7")["daten"][0]["ID"]
    for name in NAMES:
        yield name, agent.post(name, {"inhalt": inhalt_for(name)}).json()
        yield name, agent.post(name, {"help": 1}).json()
    for name, inhalt in {
        "update_brain_longterm_memory": {
            "memories": [{"ID": old, "kurzbeschreibung": "k", "memory": "m", "tags": []}, {"ID": old}, {"x": 1}]
        },
        "select_brain_longterm_memory": {"IDs": [old, "longterm_999"], "mit_embedding": 1},
        "select_brain_shortterm_memory": {"IDs": [brief, "x"], "mit_embedding": 1},
        "select_brain_memory": {"IDs": [brain], "mit_embedding": 1},
        "select_brain_history": {"ID": old},
        "select_brain_tags": {},
        "promote_brain_shortterm_memory": {"IDs": [brief, brief]},
        "delete_brain_memory": {"IDs": [brain, brain]},
        "restore_brain_memory": {"ID": brain, "version": 1},
    }.items():
        yield name, agent.call(name, **inhalt)


def test_what_the_tools_answer_is_valid_by_their_output_schemas(anna: Agent) -> None:
    validators = {tool.name: jsonschema_rs.Draft202012Validator(tool.output_schema) for tool in TOOLS}
    for name, answer in _answers(anna):
        assert [f"{name} {e.instance_path}: {e.message[:200]}" for e in validators[name].iter_errors(answer)] == []


def test_a_refusal_is_valid_by_the_schema_of_refusals(anna: Agent, document: dict[str, Any]) -> None:
    schema = document["components"]["schemas"]["Ablehnung"]
    for response in (anna.post("nothing", {}), anna.post(NAMES[0], {}), Client().get("/api/tools/")):
        assert response.status_code in {400, 401, 404}
        assert jsonschema_rs.is_valid(schema, response.json())


def test_every_input_schema_accepts_its_own_example(anna: Agent) -> None:
    for tool in TOOLS:
        if tool.beispiel is None or tool.beispiel["arguments"].get("help") == 1:
            continue
        assert jsonschema_rs.is_valid(tool.input_schema, tool.beispiel["arguments"]), tool.name


def test_every_field_of_inhalt_is_described_or_has_a_name_that_says_it() -> None:
    for tool in TOOLS:
        assert tool.beschreibung
        assert tool.titel
        fields = tool.input_schema["properties"]["inhalt"]["properties"]
        silent = {name for name, field in fields.items() if not field.get("description")}
        assert silent <= SAYING, tool.name


def test_the_page_needs_no_other_server(db: None) -> None:
    page = Client().get("/api/docs/")
    assert page.status_code == 200
    html = page.content.decode()
    assert re.findall(r"""(?:src|href|action)=["'](?:https?:)?//""", html) == []
    assert "http:" not in html
    assert "https:" not in html
    linked = re.findall(r"""(?:src|href)=["']([^"']+)""", html)
    assert linked
    for address in linked:
        if address.startswith("/static/"):
            assert finders.find(address.removeprefix("/static/")), address
        else:
            script = Client().get(address)
            assert script.status_code == 200
            assert re.findall(r"https?://[^\s\"']+", script.content.decode()) == []


def test_the_page_finds_the_document(db: None) -> None:
    script = Client().get("/api/docs/", {"script": ""}).content.decode()
    assert "/api/schema/" in script
