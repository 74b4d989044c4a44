"""Case A 8: an agent that repeats a failing call is told so the third time; a schema asks for what its tool needs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jsonschema_rs
import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from api.tool import Shape
from api.tools import TOOLS
from memories import failures
from memories.models import AccessKey
from memories.principal import SYSTEM
from tests.conftest import Agent
from tests.doors import NAMES, entry_schema, fault_of, inhalt_for, tool_of

SELECT = "select_brain_longterm_memory"
BAD_CALL: dict[str, Any] = {"inhalt": {"nutzer": "anna", "agent": "planer", "limit": 0}}
BAD_ENTRIES: dict[str, Any] = {"inhalt": {"nutzer": "anna", "agent": "planer", "IDs": ["longterm_7", "longterm_8"]}}
SAID = "3. Mal in Folge"


def over_rest(agent: Agent, tool: str, arguments: Any) -> dict[str, Any]:
    """The answer over REST."""
    answer: dict[str, Any] = agent.post(tool, arguments).json()
    return answer


def over_mcp(agent: Agent, tool: str, arguments: Any) -> dict[str, Any]:
    """The answer over MCP."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    result = agent.http.post("/mcp", message, content_type="application/json").json()["result"]
    answer: dict[str, Any] = result["structuredContent"]
    return answer


def told(answer: dict[str, Any]) -> dict[str, Any]:
    """The fault of a call, or of its first entry."""
    fault: dict[str, Any] = answer["fehler"] or answer["daten"][0]["fehler"]
    return fault


@pytest.mark.parametrize("door", [over_rest, over_mcp])
@pytest.mark.parametrize("arguments", [BAD_CALL, BAD_ENTRIES], ids=["call", "entries"])
def test_case_8_the_third_identical_failing_call_in_a_row_says_so(anna: Agent, door: Any, arguments: Any) -> None:
    faults = [told(door(anna, SELECT, arguments)) for _ in range(4)]
    first, second, third, fourth = faults
    assert first == second
    assert "Folge" not in first["meldung"]
    assert third["meldung"].startswith(first["meldung"])
    assert SAID in third["meldung"]
    assert "4. Mal in Folge" in fourth["meldung"]
    assert third["beispiel"] == tool_of(SELECT).beispiel
    assert {name: third[name] for name in ("code", "feld")} == {name: first[name] for name in ("code", "feld")}


def test_the_doors_count_together(anna: Agent) -> None:
    over_rest(anna, SELECT, BAD_CALL)
    over_mcp(anna, SELECT, BAD_CALL)
    assert SAID in told(over_rest(anna, SELECT, BAD_CALL))["meldung"]


def test_only_the_first_entry_tells_of_the_repetition(anna: Agent) -> None:
    answer = [over_rest(anna, SELECT, BAD_ENTRIES) for _ in range(3)][-1]
    assert ["beispiel" in row["fehler"] for row in answer["daten"]] == [True, False]


def test_the_order_of_members_makes_no_other_call(anna: Agent) -> None:
    turned = {"inhalt": dict(reversed(BAD_CALL["inhalt"].items()))}
    for arguments in (BAD_CALL, turned):
        over_rest(anna, SELECT, arguments)
    assert SAID in told(over_rest(anna, SELECT, BAD_CALL))["meldung"]


@pytest.mark.parametrize(
    ("tool", "between"),
    [
        (SELECT, {"inhalt": BAD_CALL["inhalt"] | {"limit": 101}}),
        ("select_brain_shortterm_memory", BAD_CALL),
        (SELECT, {"inhalt": inhalt_for(SELECT)}),
        (SELECT, {"help": 1}),
    ],
    ids=["another fault", "another tool", "a call that succeeds", "help"],
)
def test_another_call_between_begins_the_count_anew(anna: Agent, tool: str, between: Any) -> None:
    for _ in range(2):
        over_rest(anna, SELECT, BAD_CALL)
    over_rest(anna, tool, between)
    for _ in range(2):
        assert "Folge" not in told(over_rest(anna, SELECT, BAD_CALL))["meldung"]
    assert SAID in told(over_rest(anna, SELECT, BAD_CALL))["meldung"]


def test_a_call_of_which_an_entry_succeeds_is_no_failure(anna: Agent) -> None:
    arguments = {"inhalt": BAD_ENTRIES["inhalt"] | {"IDs": [anna.store(), "longterm_999999"]}}
    for _ in range(4):
        assert "Folge" not in over_rest(anna, SELECT, arguments)["daten"][1]["fehler"]["meldung"]


def test_each_key_has_its_own_count(anna: Agent, ben: Agent) -> None:
    for agent in (anna, ben, anna, ben):
        assert "Folge" not in told(over_rest(agent, SELECT, BAD_CALL))["meldung"]
    assert SAID in told(over_rest(ben, SELECT, BAD_CALL))["meldung"]


def test_it_is_said_in_the_callers_language(anna: Agent) -> None:
    for _ in range(2):
        over_rest(anna, SELECT, BAD_CALL)
    response = anna.post(SELECT, BAD_CALL, **{"Accept-Language": "en"})
    assert "failed 3 times in a row" in fault_of(response, 400)["meldung"]


def test_half_a_surrogate_pair_can_be_counted_too(anna: Agent) -> None:
    arguments = {"inhalt": BAD_CALL["inhalt"] | {"suche": "\ud800"}}
    faults = [told(over_rest(anna, SELECT, arguments)) for _ in range(3)]
    assert SAID in faults[-1]["meldung"]


def test_the_answer_with_an_example_is_as_the_output_schema_says(anna: Agent) -> None:
    for arguments in (BAD_CALL, BAD_ENTRIES):
        answer = [over_rest(anna, SELECT, arguments) for _ in range(3)][-1]
        assert "beispiel" in told(answer)
        assert jsonschema_rs.is_valid(tool_of(SELECT).output_schema, answer)


def test_whoever_has_no_key_is_not_counted(db: None) -> None:
    assert [failures.note_failure(SYSTEM, "the same call") for _ in range(4)] == [1, 1, 1, 1]


@contextmanager
def keys_away() -> Iterator[None]:
    """The database fails when a key is to be changed."""

    def refuse(execute: Any, sql: str, params: Any, many: Any, context: Any) -> Any:
        if sql.startswith("UPDATE") and "failed_times" in sql:
            raise OperationalError
        return execute(sql, params, many, context)

    with connection.execute_wrapper(refuse):
        yield


@pytest.mark.django_db(transaction=True)
def test_when_the_database_is_away_the_answer_comes_without_a_note(anna: Agent) -> None:
    for _ in range(2):
        over_rest(anna, SELECT, BAD_CALL)
    with keys_away():
        assert "Folge" not in told(over_rest(anna, SELECT, BAD_CALL))["meldung"]
        assert over_rest(anna, SELECT, {"inhalt": inhalt_for(SELECT)})["erfolg"] is True
    assert SAID in told(over_rest(anna, SELECT, BAD_CALL))["meldung"]


@pytest.mark.django_db(transaction=True)
def test_what_may_succeed_later_is_not_counted(anna: Agent) -> None:
    def away(execute: Any, sql: str, params: Any, many: Any, context: Any) -> Any:
        if "memories_longtermmemory" in sql:
            raise OperationalError
        return execute(sql, params, many, context)

    for _ in range(2):
        over_rest(anna, SELECT, BAD_CALL)
    with connection.execute_wrapper(away):
        for _ in range(4):
            fault = fault_of(anna.post(SELECT, {"inhalt": inhalt_for(SELECT)}), 503)
            assert "Folge" not in fault["meldung"]
    assert SAID in told(over_rest(anna, SELECT, BAD_CALL))["meldung"]


def test_success_costs_a_statement_more_only_after_a_failure(anna: Agent) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as context:
            over_rest(anna, SELECT, {"inhalt": inhalt_for(SELECT)})
        return len(context)

    cost()  # notes the key's use
    usual = cost()
    over_rest(anna, SELECT, BAD_CALL)
    assert [cost(), cost()] == [usual + 1, usual]
    assert list(AccessKey.objects.values_list("failed_call", "failed_times")) == [("", 0)]


# What a schema requires is what its tool needs


@pytest.mark.parametrize("name", NAMES)
def test_case_8_a_call_with_nothing_but_what_is_required_lacks_nothing(anna: Agent, name: str) -> None:
    tool, inhalt = tool_of(name), inhalt_for(name)
    required = tool.input_schema["properties"]["inhalt"]["required"]
    least = {field: inhalt[field] for field in required}
    if tool.shape is Shape.MEMORIES:
        wanted = tool.entry.schema["required"]
        least["memories"] = [{field: entry[field] for field in wanted} for entry in inhalt["memories"]]
    answer = over_rest(anna, name, {"inhalt": least})
    faults = [fault for fault in (answer["fehler"], *(row.get("fehler") for row in answer["daten"])) if fault]
    if name == "search_brain":  # a text or a vector: no schema says so without what some clients refuse
        assert [(fault["code"], fault["feld"]) for fault in faults] == [("ungueltig", "inhalt.suche")]
    else:
        assert {fault["code"] for fault in faults} <= {"nicht_gefunden"}


REQUIRED = [(tool.name, field) for tool in TOOLS for field in entry_schema(tool.name)["required"]]


@pytest.mark.parametrize(("name", "field"), REQUIRED)
def test_case_8_each_required_field_is_missed(anna: Agent, name: str, field: str) -> None:
    inhalt = inhalt_for(name)
    del (inhalt["memories"][0] if tool_of(name).shape is Shape.MEMORIES else inhalt)[field]
    fault = told(over_rest(anna, name, {"inhalt": inhalt}))
    assert (fault["code"], fault["feld"].rpartition(".")[2]) == ("pflichtfeld", field)
