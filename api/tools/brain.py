"""The tools for brain memories: one entry a call, directly in `inhalt`, all values texts. Insert is given."""

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from api.fields import Field, end_of_validity, filled, identifier, memory_id, translated
from api.jsonbody import parse_text
from api.schemas import GIVEN, Schema, answer, call, changed_row, optional_text, text
from api.tool import Shape, Tool
from api.tools.changes import deleting, help_example, inserting, updating
from api.tools.selects import selecting
from memories import values
from memories.errors import Invalid, TooLarge
from memories.kinds import BRAIN
from memories.limits import limits
from memories.models import MemoryTyp, ScopeTyp
from memories.principal import Action

_LIMITS = ("titel", "memory")
_MOST_RELEVANT = 100


def _one_of(choices: type[MemoryTyp] | type[ScopeTyp]) -> Callable[[str, str], str]:
    def read(value: str, feld: str) -> str:
        if value not in choices.values:
            raise Invalid(_("Allowed are: %(values)s.") % {"values": ", ".join(choices.values)}, feld)
        return value

    return read


def _relevance(value: str, feld: str) -> int:
    if not (value.isascii() and value.isdigit()) or int(value[:4]) > _MOST_RELEVANT or len(value) > len("100"):
        raise Invalid(_("The relevance is a whole number from 0 to 100, in digits."), feld)
    return int(value)


def _json_text(value: str, feld: str) -> str:
    values.limited_text(value, feld, limits().memory)
    try:
        parsed = parse_text(value)
    except TooLarge as fault:
        raise TooLarge(fault.meldung, feld) from fault
    except ValueError as error:
        raise Invalid(_("This is not valid JSON: %(reason)s.") % {"reason": error}, feld) from error
    return values.unescaped(value, parsed, feld)


def _free_text(value: str, feld: str) -> str:
    return values.limited_text(value, feld, limits().memory)


def _named(wire: str) -> Field:
    return Field(wire, wire.lower(), values.identifier)


_REQUIRED = (Field("memory_typ", "memory_typ", _one_of(MemoryTyp)), filled("titel"))
_OPTIONAL = (
    Field("scope_typ", "scope_typ", _one_of(ScopeTyp)),
    *map(_named, ("scope_modul", "scope_ID", "agent_ID", "room_ID", "session_ID", "quelle_typ", "quelle_ID")),
    Field("relevanz", "relevanz", _relevance),
    Field("gueltig_bis", "gueltig_bis", end_of_validity),
    Field("inhalt", "inhalt", _free_text),
    Field("inhalt_json", "inhalt_json", _json_text),
)
_DEFAULTS = {field.column: BRAIN.memories._meta.get_field(field.column).get_default() for field in _OPTIONAL}  # noqa: SLF001
_OWNERS = (identifier("nutzer"), identifier("agent"))


def _draft(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"tag_namen": [], **_DEFAULTS, **translated(entry, (*_REQUIRED, *_OPTIONAL, *_OWNERS))}


def _change(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of an update; null sets an optional field back to its default."""
    cleared = {field.column: _DEFAULTS[field.column] for field in _OPTIONAL if entry.get(field.wire, "") is None}
    kept = {name: value for name, value in entry.items() if value is not None}
    return translated(kept, (memory_id(BRAIN), *_REQUIRED, *_OPTIONAL)) | cleared


_DESCRIPTIONS = {
    "scope_typ": "Scope (global|modul|benutzer|agent|room|element|session)",
    "scope_modul": "Scope-Modul",
    "scope_ID": "Scope-ID",
    "agent_ID": "Agent-ID",
    "room_ID": "Room-ID",
    "session_ID": "Session-ID",
    "quelle_typ": "Quelle",
    "quelle_ID": "Quell-ID",
    "relevanz": "Relevanz 0-100",
    "gueltig_bis": "Gültig bis",
    "inhalt": "Freitext / Zusammenfassung",
    "inhalt_json": "Strukturierte Felder als JSON",
    "memory_typ": "Memory-Typ (arbeit|entscheidung|erfahrung|agent)",
    "titel": "Titel",
}


_CHANGED_DESCRIPTIONS = {
    "scope_typ": "|".join(ScopeTyp.values),
    "relevanz": f"0-{_MOST_RELEVANT}",
    "gueltig_bis": "ISO 8601 oder TT.MM.JJJJ, ein Datum bis Tagesende",
    "inhalt_json": "Gültiges JSON",
    "memory_typ": "|".join(MemoryTyp.values),
}


def _fields() -> dict[str, Schema]:
    return {name: text(description) for name, description in _DESCRIPTIONS.items()}


def _changed_fields() -> dict[str, Schema]:
    required = {field.wire for field in _REQUIRED}
    return {
        name: (text if name in required else optional_text)(_CHANGED_DESCRIPTIONS.get(name)) for name in _DESCRIPTIONS
    }


INSERT = Tool(
    name="insert_brain_memory",
    titel="Brain-Erinnerung anlegen",
    beschreibung=(
        "Legt eine strukturierte Erinnerung an: Arbeit, Entscheidung, Erfahrung oder Wissen über einen "
        "Agenten. Alle Werte sind Texte; leere optionale Felder gelten als nicht angegeben. gueltig_bis nimmt "
        "2026-12-31, 31.12.2026 oder einen ISO-8601-Zeitpunkt; ein Datum meint das Ende des Tages. "
        "inhalt_json muss gültiges JSON sein."
    ),
    shape=Shape.SINGLE,
    input_schema=call(_fields(), ["memory_typ", "titel"], GIVEN),
    output_schema=answer(changed_row()),
    read=_draft,
    handler=inserting(BRAIN),
    action=Action.INSERT,
    typ=BRAIN.typ,
    grenzen=_LIMITS,
    beispiel=help_example("insert_brain_memory"),
)

UPDATE = Tool(
    name="update_brain_memory",
    titel="Brain-Erinnerung ändern",
    beschreibung=(
        "Ändert von einer Brain-Erinnerung nur die gesendeten Felder. Leere Texte gelten als nicht gesendet, null "
        "setzt auf den Standard zurück. Der Stand davor bleibt in der Historie."
    ),
    shape=Shape.SINGLE,
    input_schema=call(
        {
            "ID": {"type": "string", "pattern": "^brain_[1-9][0-9]*$"},
            **_changed_fields(),
        },
        ["ID"],
    ),
    output_schema=answer(changed_row()),
    read=_change,
    handler=updating(BRAIN),
    action=Action.WRITE,
    destructive=True,
    versioned=True,
    typ=BRAIN.typ,
    grenzen=_LIMITS,
    beispiel={
        "tool": "update_brain_memory",
        "arguments": {"inhalt": {"ID": "brain_7", "relevanz": "80", "nutzer": "anna", "agent": "planer"}},
    },
)

SELECT = selecting(BRAIN, name="select_brain_memory", titel="Brain-Erinnerungen lesen", was="Brain-Erinnerungen")

DELETE = deleting(BRAIN, name="delete_brain_memory", titel="Brain-Erinnerungen löschen", was="Brain-Erinnerungen")
