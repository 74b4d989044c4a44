"""The knowledge graph of the official MCP memory server: JSON lines of entities and relations.

Format as `saveGraph` and its schemas have it in
https://github.com/modelcontextprotocol/servers/blob/main/src/memory/index.ts: {"type": "entity", "name", "entityType",
"observations"} and {"type": "relation", "from", "to", "relationType"}. An entity becomes a memory: its name, its type
as a tag, an observation a line, then its relations.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from django.utils.translation import gettext as _

from memories.transfer.told import faulty, line, told_fields

_INSTANZ = "mcp-memory"
_TEXTS = {"entity": ("name", "entityType"), "relation": ("from", "to", "relationType")}


def read(files: Iterable[tuple[str, BinaryIO]]) -> Iterator[bytes]:
    """A line for each entity, and one for each line that is neither an entity nor a relation of one."""
    entities: dict[str, Mapping[str, Any]] = {}
    relations: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for number, told in _objects(files):
        if told is None or (told["type"] == "entity" and told["name"] in entities):
            yield faulty(_("Line %(number)d is no entity or relation, or is there twice.") % {"number": number})
        elif told["type"] == "entity":
            entities[told["name"]] = told
        else:
            relations[told["from"]].append(told)
    for name, entity in entities.items():
        yield _line(entity, relations.pop(name, []))
    for left in relations.values():
        for each in left:
            where = {"name": each["from"], "relation": each["relationType"], "to": each["to"]}
            yield faulty(_("The relation %(name)s – %(relation)s – %(to)s has no entity to begin at.") % where)


def _objects(files: Iterable[tuple[str, BinaryIO]]) -> Iterator[tuple[int, dict[str, Any] | None]]:
    for _name, file in files:
        yield from ((number, _object(text)) for number, text in enumerate(file, 1) if text.strip())


def _object(text: bytes) -> dict[str, Any] | None:
    """The entity or relation; None for anything else."""
    try:
        told = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    names = _TEXTS.get(str(told.get("type")))
    observations = told.get("observations", [])
    if names is None or not isinstance(observations, list):
        return None
    texts = [*(told.get(name) for name in names), *observations]
    return told if all(isinstance(each, str) for each in texts) else None


def _line(entity: Mapping[str, Any], relations: Iterable[Mapping[str, Any]]) -> bytes:
    observations = entity.get("observations", [])
    related = [f"{each['relationType']}: {each['to']}" for each in relations]
    parts = ["\n".join(each) for each in (observations, related) if each]
    row = {
        "typ": "longterm",
        "herkunft": {"instanz": _INSTANZ, "ID": entity["name"]},
        "kurzbeschreibung": entity["name"],
        "memory": "\n\n".join(parts) or entity["name"],
        "tags": [entity["entityType"]] if entity["entityType"].strip() else [],
    }
    hints = told_fields(entity, {"type", "name", "entityType", "observations"})
    for each in relations:
        hints += told_fields(each, {"type", "from", "to", "relationType"})
    return line(row, hints)
