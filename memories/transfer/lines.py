"""The JSON lines of an export: a header, then a memory a line with what it holds and all of its versions.

Names are those of the tools, so `tags` and `scope_ID`. Moments are ISO 8601 in UTC; an embedding is float32 numbers,
little-endian, in base64, so that not a bit is lost.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memories.history import content_of, copied_fields, removing
from memories.kinds import Kind
from memories.models import Version
from memories.transfer import FORMAT

# What an imported version keeps of its origin, in `urspruenglich`; its own columns tell of the import.
ORIGINAL = ("tuer", "tool", "schluessel", "benutzer", "verweis")

# A reference to a memory; one of another installation than the memory's own has that before it.
REFERENCE = re.compile(r"(?:(?P<instanz>[^\s,/]+)/)?(?P<typ>longterm|shortterm|brain)_(?P<key>[1-9][0-9]{0,18})\b")

Herkunft = Mapping[str, str]
Other = Callable[[str, Herkunft], str]  # how a reference to another memory is told in an export


def wire_name(column: str) -> str:
    """What the tools call a column."""
    if column == "tag_namen":
        return "tags"
    return f"{column[:-3]}_ID" if column.endswith("_id") else column


def content_columns(kind: Kind) -> list[str]:
    """The columns that make up a memory's content; the number of an embedding's numbers follows from it."""
    return [name for name in copied_fields(kind) if name != "embedding_dimension"]


def header(brain_version: str) -> str:
    """The first line."""
    return _line({"brain_export": FORMAT, "brain_version": brain_version})


def memory_line(kind: Kind, newest: Version, versions: Sequence[Version], herkunft: Herkunft, other: Other) -> str:
    """A memory as its newest version has it, with these of its versions, oldest first: all of them or none."""
    return _line(
        {
            "typ": kind.typ,
            "herkunft": dict(herkunft),
            "geloescht": newest.aktion in removing(kind),
            **told_content(kind, newest),
            "aktualisiert_am": _told(newest.zeitpunkt),
            "versionen": [told_version(kind, version, herkunft, other) for version in versions],
        }
    )


def told_content(kind: Kind, row: Any) -> dict[str, Any]:
    """What a memory or version holds, as it is written; only what is proposed says whether it is."""
    content = content_of(row, kind)
    names = [name for name in content_columns(kind) if name != "vorgeschlagen" or content[name]]
    return {wire_name(name): _told(content[name]) for name in names}


def told_version(kind: Kind, version: Version, herkunft: Herkunft, other: Other) -> dict[str, Any]:
    """A version: who, how, when, why, and what the memory held then; of an imported one, as its origin had it."""
    own = {name: getattr(version, name) for name in ORIGINAL}
    how = version.urspruenglich or own | {"verweis": other(version.verweis, herkunft)}
    return {
        "version": version.version,
        "aktion": version.aktion,
        "zeitpunkt": _told(version.zeitpunkt),
        "durch_nutzer": version.durch_nutzer,
        "durch_agent": version.durch_agent,
        **{name: how[name] for name in ORIGINAL},
        "aufruf": str(version.aufruf),
        "grund": version.grund,
        "referenzfelder": version.referenzfelder,
        "stand": told_content(kind, version),
    }


def _told(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
