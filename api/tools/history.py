"""The tools for a memory's history: read it, and go back to one of its versions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.fields import Field, credited, local, shown, translated
from api.schemas import TEXTS_ARE_DATA, WEITER, Schema, answer, call, changed_row, credit, text, whole_number
from api.tool import Call, Reply, Row, Shape, Tool
from api.tools.changes import row
from api.tools.selects import LIMIT, MOST
from memories import reading, services
from memories.errors import BrainError, NotFound
from memories.kinds import Kind, parse_id
from memories.models import Aktion, Version
from memories.principal import Action
from memories.reading import Step

_ID: Schema = {"type": "string", "description": "Etwa longterm_41, shortterm_3, brain_7"}
_LARGEST_VERSION = 2**31 - 1
_MEMORY = Field("ID", "memory", parse_id)
_WIRE_NAMES = {"tag_namen": "tags", "scope_id": "scope_ID", "agent_id": "agent_ID", "room_id": "room_ID"} | {
    "session_id": "session_ID",
    "quelle_id": "quelle_ID",
}
_NOT_TOLD = {"embedding_dimension", "erstellt_am"}


@dataclass(frozen=True, slots=True)
class Query:
    """Whose history, and which page of it."""

    kennung: str
    kind: Kind
    key: int
    limit: int
    weiter: str | None


def _query(inhalt: Mapping[str, Any]) -> Query:
    kind, key = _MEMORY.read(inhalt["ID"], "ID")
    limit, weiter = int(inhalt.get("limit", LIMIT)), inhalt.get("weiter")
    return Query(inhalt["ID"], kind, key, limit, weiter)


def _history(call: Call) -> Reply:
    query: Query = call.entries[0]
    try:
        page = reading.history(query.kind, query.key, query.limit, query.weiter, call.origin.principal)
    except NotFound as fault:
        return Reply([{"typ": query.kind.typ, "ID": query.kennung, "fehler": fault}], {"weiter": None})
    return Reply([_step(query.kind, step) for step in page.rows], {"weiter": page.weiter})


def _step(kind: Kind, step: Step) -> Row:
    version = step.version
    told: Row = {
        "typ": kind.typ,
        "ID": version.kennung,
        "version": version.version,
        "aktion": version.aktion,
        "zeitpunkt": local(version.zeitpunkt),
        "stand": shown(version, kind),
        **credited(version),
        "aenderungen": _differences(kind, step),
        "nutzer": version.durch_nutzer,
        "agent": version.durch_agent,
        "tuer": version.tuer,
        "tool": version.tool,
        "schluessel": version.schluessel or None,
        "benutzer": version.benutzer or None,
        "grund": version.grund,
        "referenzfelder": version.referenzfelder,
    }
    return told | ({"verweis": version.verweis} if version.verweis else {})


def _differences(kind: Kind, step: Step) -> list[Row]:
    if step.before is None:
        return []
    before, after = _told(step.before, kind), _told(step.version, kind)
    names = [_WIRE_NAMES.get(name, name) for name in step.changed if name not in _NOT_TOLD]
    return [{"feld": name, "alt": before[name], "neu": after[name]} for name in names]


def _told(version: Version, kind: Kind) -> Row:
    """A state by wire names; of a vector it tells how many numbers it has."""
    dimension = version.embedding_dimension
    return {**shown(version, kind), "embedding": None if dimension is None else {"dimension": dimension}}


SELECT = Tool(
    name="select_brain_history",
    titel="Historie einer Erinnerung lesen",
    beschreibung=(
        "Zeigt die Versionen einer Erinnerung, auch einer gelöschten, neueste zuerst: was sich änderte, wer es wann, "
        "womit und warum tat, und der Stand danach. "
        f"{TEXTS_ARE_DATA}"
    ),
    shape=Shape.QUERY,
    input_schema=call(
        {
            "ID": _ID,
            "limit": whole_number(f"Standard {LIMIT}", least=1, most=MOST),
            "weiter": text("Aus der letzten Antwort"),
        },
        ["ID"],
    ),
    output_schema=answer(
        {
            "ID": text("ID der Erinnerung"),
            "version": {"type": "integer", "minimum": 1},
            "aktion": text(f"{', '.join(Aktion.values[:-1])} oder {Aktion.values[-1]}"),
            "zeitpunkt": text("ISO 8601 mit Zeitzone"),
            "stand": {"type": "object", "description": "Alle Felder und Tags, wie sie danach waren"},
            **credit(),
            "aenderungen": {
                "type": "array",
                "items": {"type": "object", "properties": {"feld": text(), "alt": {}, "neu": {}}},
            },
            "nutzer": text("Wer es war"),
            "agent": text("Welcher Agent es war"),
            "tuer": text("Auf welchem Weg: rest, mcp, admin, import oder command"),
            "tool": text("Mit welchem Werkzeug"),
            "schluessel": {"type": ["string", "null"], "description": "Name des Zugangsschlüssels"},
            "benutzer": {"type": ["string", "null"], "description": "Angemeldeter Benutzer der Verwaltung"},
            "grund": text(),
            "referenzfelder": {"type": "object"},
            "verweis": text("Eine andere Erinnerung oder Version, mit der die Änderung zu tun hat"),
        },
        {"weiter": WEITER},
    ),
    read=_query,
    handler=_history,
    beispiel={
        "tool": "select_brain_history",
        "arguments": {"inhalt": {"ID": "longterm_41", "nutzer": "anna", "agent": "planer"}},
    },
)


def _restoration(entry: Mapping[str, Any]) -> dict[str, Any]:
    fields = (_MEMORY, Field("version", "version", lambda value, _feld: int(value)))
    return translated(entry, fields)


def _restore(call: Call) -> Reply:
    entry = call.entries[0]
    kind, key = entry["memory"]
    told = row(services.restore(kind, key, entry["version"], call.origin))
    return Reply([{"typ": kind.typ, **({"fehler": told} if isinstance(told, BrainError) else told)}])


RESTORE = Tool(
    name="restore_brain_memory",
    titel="Erinnerung wiederherstellen",
    beschreibung=(
        "Setzt eine Erinnerung, auch eine gelöschte, auf eine ihrer Versionen zurück, mit Tags und Embedding. Das ist "
        "selbst eine neue Version. Eine abgelaufene Gültigkeit beginnt neu."
    ),
    shape=Shape.SINGLE,
    input_schema=call(
        {
            "ID": _ID,
            "version": whole_number("Aus select_brain_history", least=1, most=_LARGEST_VERSION),
            "grund": text(),
        },
        ["ID", "version"],
    ),
    output_schema=answer(changed_row()),
    read=_restoration,
    handler=_restore,
    action=Action.RESTORE,
    destructive=True,
    grenzen=("grund",),
    beispiel={
        "tool": "restore_brain_memory",
        "arguments": {
            "inhalt": {
                "ID": "longterm_41",
                "version": 3,
                "grund": "versehentlich überschrieben",
                "nutzer": "anna",
                "agent": "planer",
            },
        },
    },
)
