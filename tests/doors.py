"""What the tests of the doors share: raw bodies, a valid call of every tool, and the shape every answer has."""

import json
from typing import Any

from api.tool import Shape, Tool
from api.tools import TOOLS
from tests.conftest import Agent, note

ENVELOPE = {"tool", "erfolg", "anzahl", "daten", "fehler", "referenzfelder"}
NAMES = [tool.name for tool in TOOLS]
BRAIN = {"memory_typ": "arbeit", "titel": "Abnahme"}
TYPES = ("longterm", "shortterm")


def tool_of(name: str) -> Tool:
    """The tool of this name."""
    return next(tool for tool in TOOLS if tool.name == name)


def entry_for(name: str) -> Any:
    """A valid entry for this tool; the memories it names do not exist. Of a question it is the question."""
    if name == "search_brain":
        return {"suche": "Frist", "limit": 5}
    verb, _brain, kind = name.split("_")[:3]
    kennung = f"{kind.replace('memory', 'brain')}_999999"
    match verb:
        case "insert":
            return dict(BRAIN) if name == "insert_brain_memory" else note()
        case "update" if name == "update_brain_memory":
            return {"ID": kennung, "titel": "Neu"}
        case "update":
            return {"ID": kennung, "kurzbeschreibung": "k", "memory": "m", "tags": []}
        case "delete" | "promote":
            return kennung
        case "restore":
            return {"ID": "longterm_999999", "version": 1}
        case _:
            return {"ID": "longterm_999999"} if name == "select_brain_history" else {"limit": 5}


def entry_schema(name: str) -> dict[str, Any]:
    """The schema that holds the tool's parameters: of an entry in `memories`, or of `inhalt`."""
    inhalt: dict[str, Any] = tool_of(name).input_schema["properties"]["inhalt"]
    return inhalt["properties"]["memories"]["items"] if tool_of(name).shape is Shape.MEMORIES else inhalt


def inhalt_for(name: str, **more: Any) -> dict[str, Any]:
    """A valid `inhalt` for this tool."""
    tool, entry = tool_of(name), entry_for(name)
    within = {tool.shape.value: [entry]} if tool.shape in {Shape.MEMORIES, Shape.IDS} else entry
    return {"nutzer": "anna", "agent": "planer", **within, **more}


def raw(agent: Agent, body: bytes | str, path: str = "/api/tools/", **headers: str) -> Any:
    """The response to a body as it is."""
    kind = headers.pop("content_type", "application/json")
    data = body if isinstance(body, bytes) else body.encode()
    return agent.http.generic("POST", path, data, content_type=kind, headers=headers)


def fault_of(response: Any, status: int) -> dict[str, Any]:
    """The fault of a call that was refused with this status, after a look at the shape of the answer."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/json"
    answer = json.loads(response.content)
    assert answer.keys() == ENVELOPE
    assert answer["erfolg"] is False
    assert answer["daten"] == []
    assert answer["anzahl"] == {"gesamt": 0, "erfolgreich": 0, "fehlgeschlagen": 0}
    fault: dict[str, Any] = answer["fehler"]
    assert fault["meldung"]
    return fault


def faults(fault: dict[str, Any]) -> set[tuple[str, str | None]]:
    """All faults that this one stands for, as code and field."""
    return {(each["code"], each["feld"]) for each in fault.get("details", [fault])}


def one_fault(answer: dict[str, Any], place: int = 0) -> tuple[str, str | None]:
    """Code and field of the only fault of this row."""
    fault = answer["daten"][place]["fehler"]
    assert "details" not in fault, fault
    return fault["code"], fault["feld"]


def history(agent: Agent, kennung: str, **inhalt: Any) -> list[dict[str, Any]]:
    """The versions of a memory, newest first."""
    answer = agent.call("select_brain_history", ID=kennung, **{"limit": 100, **inhalt})
    assert answer["erfolg"], answer
    rows: list[dict[str, Any]] = answer["daten"]
    return rows


def change(agent: Agent, kennung: str, *, referenzfelder: Any = None, **fields: Any) -> dict[str, Any]:
    """The row of an update that is complete with what is not named."""
    entry = {"ID": kennung, "kurzbeschreibung": "Frist", "memory": "m", "tags": ["a"]} | fields
    tool = f"update_brain_{kennung.split('_', maxsplit=1)[0]}_memory"
    row: dict[str, Any] = agent.call(tool, memories=[entry], referenzfelder=referenzfelder)["daten"][0]
    return row


def restore(agent: Agent, kennung: str, version: int, **more: Any) -> dict[str, Any]:
    """The answer to a restore."""
    return agent.call("restore_brain_memory", ID=kennung, version=version, **more)


def now(agent: Agent, kennung: str) -> dict[str, Any]:
    """The memory as select shows it, with its vector."""
    kind, _line, _number = kennung.partition("_")
    tool = "select_brain_memory" if kind == "brain" else f"select_brain_{kind}_memory"
    row: dict[str, Any] = agent.call(tool, IDs=[kennung], mit_embedding=1)["daten"][0]
    return row


def steps(row: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What changed, by field: before and after."""
    return {each["feld"]: (each["alt"], each["neu"]) for each in row["aenderungen"]}
