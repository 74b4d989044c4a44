"""Fields of the wire and the columns they become. Wire spelling, aliases and ID texts end here."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from api.checking import faulty_together
from memories import values
from memories.errors import BrainError, Invalid
from memories.kinds import Kind, parse_id
from memories.limits import limits
from memories.models import Memory, Version
from memories.suspicion import is_suspicious
from memories.trust import trust_in
from memories.values import numbers_of

Reader = Callable[[Any, str], Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the wire: the column it fills, and how its value is brought into canonical form, or refused."""

    wire: str
    column: str
    read: Reader


def filled(name: str) -> Field:
    """A text that may not be blank, limited by the setting of the same name."""
    return Field(name, name, lambda value, feld: values.filled_text(value, feld, getattr(limits(), name)))


def identifier(name: str, *, may_be_empty: bool = False) -> Field:
    """An identifier."""
    return Field(name, name, lambda value, feld: values.identifier(value, feld, may_be_empty=may_be_empty))


TAGS = Field("tags", "tag_namen", values.tag_names)
EMBEDDING = Field(
    "embedding", "embedding", lambda value, feld: None if value is None else values.embedding(value, feld)
)


def memory_id(kind: Kind) -> Field:
    """The ID of a memory of this kind."""
    return Field("ID", "key", lambda value, feld: parse_id(value, feld, only=kind)[1])


def _profile_hash(value: str | None, feld: str) -> str | None:
    return None if value is None else values.filled_text(value, feld, limits().kennung)


def end_of_validity(value: str | None, feld: str) -> datetime | None:
    """The last moment of validity; None leaves it to the default."""
    return None if value is None else values.moment(value, feld)


def start_of_day(value: str, feld: str) -> datetime:
    """The moment; a date alone is the beginning of that day."""
    return values.moment(value, feld, day=time.min)


PROFILE = Field("embedding_profil_hash", "embedding_profil_hash", _profile_hash)
ALIAS = "ebedding_profil_haash"


def search_text(value: str, feld: str) -> str:
    """A text to search for, of at most as many characters as a short description."""
    return values.asked_text(value, feld, limits().kurzbeschreibung)


def translated(entry: Mapping[str, Any], fields: Sequence[Field]) -> dict[str, Any]:
    """The columns that the given fields fill. Raises one fault that carries all of them."""
    columns: dict[str, Any] = {}
    faults: list[BrainError] = []
    for field in fields:
        for name in (field.wire, ALIAS) if field is PROFILE else (field.wire,):
            if name not in entry:
                continue
            try:
                value = field.read(entry[name], name)
                if columns.setdefault(field.column, value) != value:
                    raise Invalid(
                        _("%(alias)s and %(name)s name the same column, but have different values.")
                        % {"alias": ALIAS, "name": field.wire},
                        ALIAS,
                    )
            except BrainError as fault:
                faults.extend(fault.faults)
    if faults:
        raise faulty_together(faults)
    return columns


def local(moment: datetime | None) -> str | None:
    """The moment as ISO 8601 in the server's time zone."""
    return None if moment is None else moment.astimezone(timezone.get_default_timezone()).isoformat()


def shown(row: Memory | Version, kind: Kind) -> dict[str, Any]:
    """The content of a memory or a version as the wire tells it, tags and the embedding's state too."""
    return {
        **{wire: _told(getattr(row, wire.lower())) for wire in OWN_FIELDS[kind.typ]},
        "nutzer": row.nutzer,
        "agent": row.agent,
        "tags": row.tag_namen,
        "erstellt_am": local(row.erstellt_am),
        "hat_embedding": row.embedding_dimension is not None,
        "embedding_profil_hash": row.embedding_profil_hash,
        "embedding_veraltet": row.embedding_veraltet,
    }


def credited(row: Any) -> dict[str, Any]:
    """On whose word the texts of a row stand, and whether they read like instructions; a memory comes with its door."""
    return {"vertrauen": trust_in(row.tuer), "verdaechtig": is_suspicious(row)}


def _told(value: Any) -> Any:
    if isinstance(value, datetime):
        return local(value)
    return str(value) if isinstance(value, int) else value


def shown_memory(memory: Memory, kind: Kind, waiting: Set[str], *, with_embedding: bool) -> dict[str, Any]:
    """A row of select; `waiting` are the IDs of memories that the embedder has not come to yet."""
    kennung = memory.kennung
    row = {
        "ID": kennung,
        **shown(memory, kind),
        **credited(memory),
        "embedding_ausstehend": kennung in waiting,
        "version": memory.version,
        "aktualisiert_am": local(memory.aktualisiert_am),
    }
    if with_embedding:
        row["embedding"] = None if memory.embedding is None else numbers_of(bytes(memory.embedding))
    return row


_NOTE = ("kurzbeschreibung", "memory", "scope", "scope_vk")
OWN_FIELDS: Mapping[str, Sequence[str]] = {
    "longterm": _NOTE,
    "shortterm": (*_NOTE, "gueltig_bis"),
    "brain": (
        "memory_typ",
        "titel",
        "inhalt",
        "inhalt_json",
        "scope_typ",
        "scope_modul",
        "scope_ID",
        "agent_ID",
        "room_ID",
        "session_ID",
        "quelle_typ",
        "quelle_ID",
        "relevanz",
        "gueltig_bis",
    ),
}
