"""The contract's letter: the given schemas and examples, and one truth about each tool at every door."""

import json
from pathlib import Path
from typing import Any

import pytest

from api.tools import TOOLS
from memories.limits import Limits
from tests.conftest import Agent
from tests.doors import ENVELOPE, NAMES, fault_of, inhalt_for

GIVEN = Path(__file__).parent / "contract"
GIVEN_NAMES = ["insert_brain_longterm_memory", "update_brain_longterm_memory", "insert_brain_memory"]
MOST_DEFINED = 24_000  # bytes
DEFINITION = {
    "name",
    "titel",
    "beschreibung",
    "parameter",
    "inputSchema",
    "outputSchema",
    "grenzen",
    "spalten",
    "beispiel",
}
FAMILY = {
    "insert_brain_longterm_memory",
    "update_brain_longterm_memory",
    "select_brain_longterm_memory",
    "delete_brain_longterm_memory",
    "insert_brain_shortterm_memory",
    "update_brain_shortterm_memory",
    "select_brain_shortterm_memory",
    "delete_brain_shortterm_memory",
    "promote_brain_shortterm_memory",
    "insert_brain_memory",
    "update_brain_memory",
    "select_brain_memory",
    "delete_brain_memory",
    "select_brain_history",
    "restore_brain_memory",
    "select_brain_tags",
}


def _given(name: str, part: str) -> Any:
    return json.loads((GIVEN / f"{name}.{part}.json").read_text(encoding="utf-8"))


def _told(agent: Agent, name: str, arguments: Any) -> dict[str, Any]:
    response = agent.post(name, arguments)
    assert response.status_code == 200, response.content
    answer = response.json()
    assert answer.keys() == ENVELOPE
    assert answer["anzahl"] == {"gesamt": 1, "erfolgreich": 1, "fehlgeschlagen": 0}
    assert answer["erfolg"] is True
    assert answer["fehler"] is None
    definition: dict[str, Any] = answer["daten"][0]
    definition.pop("index", None)
    return definition


def test_the_family_is_complete() -> None:
    assert set(NAMES) >= FAMILY
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("name", GIVEN_NAMES)
def test_a_given_schema_is_served_to_the_letter(anna: Agent, name: str) -> None:
    given = _given(name, "schema")
    assert _told(anna, name, {"inhalt": {}, "help": 1})["inputSchema"] == given
    assert anna.http.get(f"/api/tools/{name}/").json()["inputSchema"] == given
    document = anna.http.get("/api/schema/").json()
    posted = document["paths"][f"/api/tools/{name}/"]["post"]["requestBody"]["content"]["application/json"]
    assert posted["schema"] == given


@pytest.mark.parametrize("name", GIVEN_NAMES)
def test_a_given_schema_keeps_the_order_of_its_members(anna: Agent, name: str) -> None:
    served = anna.http.get(f"/api/tools/{name}/").json()["inputSchema"]
    assert json.dumps(served) == json.dumps(_given(name, "schema"))


@pytest.mark.parametrize("name", GIVEN_NAMES)
def test_a_given_example_is_served_and_works_as_it_stands(anna: Agent, name: str) -> None:
    given = _given(name, "example")
    definition = _told(anna, given["tool"], given["arguments"])
    assert definition["beispiel"] == given
    assert definition["name"] == name


def test_all_definitions_together_are_small_enough_for_a_models_context() -> None:
    """What a client keeps in the model's context all the time: case A 12."""
    definitions = [
        {
            "name": tool.name,
            "title": tool.titel,
            "description": tool.beschreibung,
            "inputSchema": tool.input_schema,
            "annotations": {"readOnlyHint": not tool.writes, "destructiveHint": tool.destructive},
        }
        for tool in TOOLS
    ]
    size = sum(len(json.dumps(each, ensure_ascii=False, separators=(",", ":")).encode()) for each in definitions)
    assert size <= MOST_DEFINED


def test_every_tool_tells_the_same_by_help_by_get_in_the_list_and_in_openapi(anna: Agent) -> None:
    listed = anna.http.get("/api/tools/").json()["tools"]
    assert [each["name"] for each in listed] == NAMES
    paths = anna.http.get("/api/schema/").json()["paths"]
    for tool, definition in zip(TOOLS, listed, strict=True):
        assert definition.keys() == DEFINITION
        assert _told(anna, tool.name, {"inhalt": {}, "help": 1}) == definition
        assert anna.http.get(f"/api/tools/{tool.name}/").json() == definition
        operation = paths[f"/api/tools/{tool.name}/"]["post"]
        assert operation["operationId"] == tool.name
        assert operation["summary"] == definition["titel"]
        assert operation["description"] == definition["beschreibung"]
        assert operation["requestBody"]["content"]["application/json"]["schema"] == definition["inputSchema"]
        done = operation["responses"]["200"]["content"]["application/json"]["schema"]
        assert done == definition["outputSchema"]


def test_the_parameters_name_every_field_of_the_schema_with_type_and_whether_it_is_required(anna: Agent) -> None:
    rows = anna.http.get("/api/tools/update_brain_longterm_memory/").json()["parameter"]
    by_name = {row["name"]: row for row in rows}
    assert by_name["inhalt"]["pflicht"] is True
    assert by_name["help"]["pflicht"] is False
    assert by_name["help"]["beschreibung"] == "1 = Aktionsdefinitionen anzeigen"
    assert by_name["inhalt.nutzer"]["typ"] == "string | integer"
    assert by_name["inhalt.memories[].tags"]["typ"] == "array"
    assert by_name["inhalt.memories[].embedding"]["pflicht"] is False
    assert by_name["inhalt.memories[].ID"]["pflicht"] is True


@pytest.mark.parametrize("name", ["insert_brain_longterm_memory", "update_brain_shortterm_memory"])
def test_the_real_column_behind_the_profile_hash_is_told(anna: Agent, name: str) -> None:
    columns = anna.http.get(f"/api/tools/{name}/").json()["spalten"]
    assert columns == {
        "embedding_profil_hash": "embedding_profil_hash",
        "ebedding_profil_haash": "embedding_profil_hash",
    }


LIMIT_OF = {
    "kurzbeschreibung": "kurzbeschreibung",
    "suche": "kurzbeschreibung",
    "memory": "memory",
    "inhalt": "memory",
    "inhalt_json": "memory",
    "titel": "titel",
    "tags": "tag_name",
    "tags_eines": "tag_name",
    "praefix": "tag_name",
    "embedding": "embedding",
    "grund": "grund",
}


@pytest.mark.parametrize("name", NAMES)
def test_every_limit_that_a_call_can_meet_is_told(anna: Agent, name: str) -> None:
    told = anna.http.get(f"/api/tools/{name}/").json()
    paths = [row["name"] for row in told["parameter"] if "." in row["name"]]
    met = {LIMIT_OF[field] for path in paths if (field := path.rsplit(".", 1)[1]) in LIMIT_OF}
    assert told["grenzen"].keys() == met | {"kennung", "referenzfelder", "body", "nesting"}


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_says_what_it_means(anna: Agent, name: str) -> None:
    told = anna.http.get(f"/api/tools/{name}/").json()["parameter"]
    assert [row["name"] for row in told if not row["beschreibung"].strip()] == []


def test_the_limits_told_are_those_in_force(anna: Agent, settings: Any) -> None:
    settings.BRAIN_LIMITS = Limits(memory=123, body=45_678)
    limits = anna.http.get("/api/tools/insert_brain_longterm_memory/").json()["grenzen"]
    assert limits["memory"] == 123
    assert limits["body"] == 45_678
    assert limits["kurzbeschreibung"] == 1_000
    assert limits["embedding"] == 16_000
    assert limits["tag_name"] == 100
    assert limits["kennung"] == 255
    assert limits["nesting"] == 64


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "arguments",
    [
        {"inhalt": {}, "help": 1},
        {"help": 1},
        {"inhalt": {}, "help": 1.0},
        {"inhalt": {}, "help": 1, "referenzfelder": {}},
        {"inhalt": None, "help": 1, "referenzfelder": None},
        {"inhalt": {"nutzer": "nobody", "memories": "nothing"}, "help": 1},
    ],
    ids=["inhalt empty", "inhalt left out", "1.0", "as in the example", "null", "a faulty inhalt"],
)
def test_help_executes_nothing_and_asks_nothing_of_inhalt(anna: Agent, name: str, arguments: Any) -> None:
    assert _told(anna, name, arguments)["name"] == name


def test_help_gives_the_references_back(anna: Agent) -> None:
    response = anna.post(NAMES[0], {"help": 1, "referenzfelder": {"ticket": "T-17"}})
    assert response.json()["referenzfelder"] == {"ticket": "T-17"}


def test_help_stores_nothing_of_a_call_that_could_be_executed(anna: Agent) -> None:
    name = "insert_brain_longterm_memory"
    _told(anna, name, {"inhalt": inhalt_for(name), "help": 1})
    assert anna.call("select_brain_longterm_memory")["daten"] == []


@pytest.mark.parametrize("wish", [0, 2, -1, 1.5, True, False, "1", "", "null", None, [], {}, [1], "help", 10**30])
@pytest.mark.parametrize("name", ["insert_brain_longterm_memory", "insert_brain_memory", "select_brain_tags"])
def test_any_other_value_of_help_executes(anna: Agent, name: str, wish: Any) -> None:
    response = anna.post(name, {"inhalt": inhalt_for(name), "help": wish})
    assert response.status_code == 200, response.content
    rows = response.json()["daten"]
    assert not any("inputSchema" in row for row in rows)
    assert bool(rows) == (name != "select_brain_tags")


@pytest.mark.parametrize("name", NAMES)
def test_nutzer_and_agent_are_required_by_every_tool(anna: Agent, name: str) -> None:
    for missing in ("nutzer", "agent"):
        inhalt = inhalt_for(name)
        del inhalt[missing]
        fault = fault_of(anna.post(name, {"inhalt": inhalt}), 400)
        assert (fault["code"], fault["feld"]) == ("pflichtfeld", f"inhalt.{missing}")


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_answers_by_its_own_address_as_by_the_envelope(anna: Agent, name: str) -> None:
    arguments = {"inhalt": inhalt_for(name), "referenzfelder": {"n": 1}}
    by_envelope = anna.post(name, arguments)
    by_address = anna.http.post(f"/api/tools/{name}/", arguments, content_type="application/json")
    assert by_envelope.status_code == by_address.status_code == 200
    for answer in (by_envelope.json(), by_address.json()):
        assert answer["tool"] == name
        assert answer["referenzfelder"] == {"n": 1}


def test_every_example_is_one_that_the_tool_can_read(anna: Agent) -> None:
    for tool in TOOLS:
        example = anna.http.get(f"/api/tools/{tool.name}/").json()["beispiel"]
        assert example["tool"] == tool.name
        response = anna.post(tool.name, example["arguments"])
        assert response.status_code == 200, response.content
        for row in response.json()["daten"]:
            assert row.get("fehler", {"code": "nicht_gefunden"})["code"] == "nicht_gefunden", (tool.name, row)
