"""Memories of mem0, as its API and its library return all of them: a JSON list, or an object with one in `results`.

Fields as in https://docs.mem0.ai/api-reference/memory/get-memory and …/v1-get-memories, and the library's `MemoryItem`
(mem0/configs/base.py): id, memory, user_id, agent_id, categories, created_at, expiration_date; the others are told.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from memories import values
from memories.errors import TooLarge
from memories.transfer.told import faulty, line, shortened, told_fields

_INSTANZ = "mem0"
_READ = {"id", "memory", "user_id", "agent_id", "categories", "created_at", "expiration_date"}
_DERIVED = {"hash", "score"}  # from the text, and from a question


def read(files: Iterable[tuple[str, BinaryIO]]) -> Iterator[bytes]:
    """A line for each memory."""
    for name, file in files:
        try:
            told = values.strict_json(values.utf8_text(file.read()), finite=False)
        except (ValueError, TooLarge) as error:
            yield faulty(_("%(file)s is not valid JSON: %(reason)s") % {"file": name, "reason": error})
            continue
        found = told.get("results") if isinstance(told, dict) else told
        if not isinstance(found, list):
            yield faulty(_("%(file)s holds no list of memories.") % {"file": name})
            continue
        yield from map(_line, found)


def _line(told: Any) -> bytes:
    if not isinstance(told, Mapping) or not isinstance(told.get("memory"), str):
        return faulty(_("This is no memory of mem0: it has no text in `memory`."))
    row: dict[str, Any] = {
        "typ": "shortterm" if told.get("expiration_date") else "longterm",
        "kurzbeschreibung": shortened(told["memory"]),
        "memory": told["memory"],
        "tags": told.get("categories") or [],
        "nutzer": told.get("user_id"),
        "agent": told.get("agent_id"),
        "erstellt_am": told.get("created_at"),
        "gueltig_bis": told.get("expiration_date"),
    }
    if told.get("id"):
        row["herkunft"] = {"instanz": _INSTANZ, "ID": str(told["id"])}
    return line(row, told_fields(told, _READ | _DERIVED))
