"""The tools for short-term memories, and the one that promotes them to long-term ones."""

from api.fields import Field, end_of_validity, memory_id, translated
from api.schemas import (
    answer,
    call,
    changed_row,
    embedding_fields,
    ids,
    memories,
    names,
    note_fields,
    optional_text,
    text,
)
from api.tool import Call, Reply, Shape, Tool
from api.tools import longterm
from api.tools.changes import deleting, inserting, rows, updating
from api.tools.selects import selecting
from memories import services
from memories.kinds import LONGTERM, SHORTTERM
from memories.principal import Action

_EXPIRY = Field("gueltig_bis", "gueltig_bis", end_of_validity)
_EXPIRY_SCHEMA = optional_text("ISO 8601 oder TT.MM.JJJJ, ein Datum bis Tagesende; null: Voreinstellung (7 Tage)")
_KEY = memory_id(SHORTTERM)
_ENTRY = {
    "kurzbeschreibung": "Rückruf Brightwell",
    "memory": "Brightwell ruft am Freitag wegen der Lieferung zurück.",
    "tags": ["Rückruf", "Lieferant"],
    "scope": "modul",
    "scope_vk": "12",
    "agent": "planer",
    "nutzer": "anna",
}


INSERT = Tool(
    name="insert_brain_shortterm_memory",
    titel="Kurzzeit-Erinnerungen anlegen",
    beschreibung=(
        "Legt 1 bis 100 Kurzzeit-Erinnerungen an, Eintrag für Eintrag. Nach gueltig_bis (ohne Angabe: 7 Tage) findet "
        "sie keine Suche mehr, später werden sie gelöscht; promote_brain_shortterm_memory bewahrt wichtige."
    ),
    shape=Shape.MEMORIES,
    input_schema=call(memories({**note_fields(), "gueltig_bis": _EXPIRY_SCHEMA}, longterm.REQUIRED), ["memories"]),
    output_schema=answer(changed_row()),
    read=lambda entry: translated(entry, (*longterm.STORED, _EXPIRY)),
    handler=inserting(SHORTTERM),
    action=Action.INSERT,
    typ=SHORTTERM.typ,
    grenzen=longterm.LIMITS,
    spalten=longterm.COLUMNS,
    beispiel={
        "tool": "insert_brain_shortterm_memory",
        "arguments": {
            "inhalt": {
                "memories": [{**_ENTRY, "gueltig_bis": "2026-12-31"}],
                "nutzer": "anna",
                "agent": "planer",
            },
            "referenzfelder": {"ticket": "T-17"},
        },
    },
)

UPDATE = Tool(
    name="update_brain_shortterm_memory",
    titel="Kurzzeit-Erinnerungen ändern",
    beschreibung=(
        "Ändert 1 bis 100 Kurzzeit-Erinnerungen, Eintrag für Eintrag. kurzbeschreibung, memory und tags "
        "werden ganz ersetzt; was fehlt, bleibt. Der Stand davor bleibt in der Historie."
    ),
    shape=Shape.MEMORIES,
    input_schema=call(
        memories(
            {
                "ID": {"type": "string", "pattern": "^shortterm_[1-9][0-9]*$"},
                "kurzbeschreibung": text(),
                "memory": text(),
                "tags": names(),
                **embedding_fields(),
                "gueltig_bis": _EXPIRY_SCHEMA,
            },
            ["ID", "kurzbeschreibung", "memory", "tags"],
        ),
        ["memories"],
    ),
    output_schema=answer(changed_row()),
    read=lambda entry: translated(entry, (_KEY, *longterm.CHANGED, _EXPIRY)),
    handler=updating(SHORTTERM),
    action=Action.WRITE,
    destructive=True,
    versioned=True,
    typ=SHORTTERM.typ,
    grenzen=longterm.LIMITS,
    spalten=longterm.COLUMNS,
    beispiel={
        "tool": "update_brain_shortterm_memory",
        "arguments": {
            "inhalt": {
                "memories": [
                    {
                        "ID": "shortterm_3",
                        "kurzbeschreibung": "Rückruf Brightwell",
                        "memory": "Brightwell ruft erst am Montag zurück.",
                        "tags": ["Rückruf"],
                    }
                ],
                "nutzer": "anna",
                "agent": "planer",
            },
        },
    },
)

SELECT = selecting(
    SHORTTERM,
    name="select_brain_shortterm_memory",
    titel="Kurzzeit-Erinnerungen lesen",
    was="gültige Kurzzeit-Erinnerungen",
)

DELETE = deleting(
    SHORTTERM,
    name="delete_brain_shortterm_memory",
    titel="Kurzzeit-Erinnerungen löschen",
    was="Kurzzeit-Erinnerungen",
)


def _promote(call: Call) -> Reply:
    return rows(services.promote(call.entries, call.origin))


PROMOTE = Tool(
    name="promote_brain_shortterm_memory",
    titel="Kurzzeit- zu Langzeit-Erinnerungen befördern",
    beschreibung=(
        "Macht aus 1 bis 100 Kurzzeit-Erinnerungen Langzeit-Erinnerungen mit neuer ID; Tags, Embedding und Herkunft "
        "bleiben. verweis nennt die alte ID."
    ),
    shape=Shape.IDS,
    input_schema=call(ids() | {"grund": text()}, ["IDs"]),
    output_schema=answer({**changed_row(), "verweis": text("Die alte ID")}),
    read=lambda entry: _KEY.read(entry, "ID"),
    handler=_promote,
    action=Action.WRITE,
    destructive=True,
    typ=LONGTERM.typ,
    grenzen=("grund",),
    beispiel={
        "tool": "promote_brain_shortterm_memory",
        "arguments": {"inhalt": {"IDs": ["shortterm_3"], "nutzer": "anna", "agent": "planer"}},
    },
)
