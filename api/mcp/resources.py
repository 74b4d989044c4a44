"""Memories as resources: `brain://longterm/41` is the memory longterm_41, as select tells it."""

import re
from typing import Any

from django.utils.translation import gettext as _

from api import jsonbody
from api.fields import credited, shown_memory
from api.mcp.protocol import INVALID_PARAMS, ProtocolError, Request
from api.tools import brain, longterm, shortterm
from memories import reading
from memories.filters import Filter
from memories.kinds import KINDS, Kind, parse_id
from memories.models import Memory
from memories.principal import Principal
from memories.search import derived

TEMPLATE = "brain://{typ}/{nummer}"
_NOT_FOUND_FOR_LEGACY = -32002
_ADDRESS = re.compile(r"brain://(longterm|shortterm|brain)/([1-9][0-9]*)")
_MIME = "application/json"
_LATEST = 20
_SELECT = {tool.typ: tool for tool in (longterm.SELECT, shortterm.SELECT, brain.SELECT)}


def readable(principal: Principal) -> list[Kind]:
    """The kinds that the principal may read: those whose select it may call."""
    return [kind for kind in KINDS if principal.may_call(_SELECT[kind.typ].name)]


def listed(request: Request) -> dict[str, Any]:
    """`resources/list`: the latest memories of each kind; the template reaches all others.

    Titles are texts of memories, so each says on whose word it stands.
    """
    return {"resources": [_told(memory) for kind in readable(request.principal) for memory in _latest(kind, request)]}


def templates(request: Request) -> dict[str, Any]:
    """`resources/templates/list`: how the address of any memory is made."""
    del request
    told = {
        "uriTemplate": TEMPLATE,
        "name": "memory",
        "title": _("Memory"),
        "description": _(
            "A memory by kind (longterm, shortterm, brain) and number: the ID longterm_41 is brain://longterm/41."
        ),
        "mimeType": _MIME,
    }
    return {"resourceTemplates": [told]}


def read(request: Request) -> dict[str, Any]:
    """`resources/read`: one memory with text, tags and origin."""
    address = request.params.get("uri")
    found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if found:
        kind, key = parse_id("_".join(found.groups()), "uri")
        memory = (
            reading.by_keys(kind, [key], request.principal).get(key) if kind in readable(request.principal) else None
        )
        if memory is not None:
            row = shown_memory(memory, kind, derived.waiting([memory]), with_embedding=False)
            return {"contents": [{"uri": address, "mimeType": _MIME, "text": jsonbody.write(row).decode()}]}
    code = INVALID_PARAMS if request.modern else _NOT_FOUND_FOR_LEGACY
    raise ProtocolError(code, _("There is no memory at this address."), {"uri": str(address)[:200]})


def _latest(kind: Kind, request: Request) -> list[Memory]:
    return list(reading.listed(kind, Filter(), "neueste", _LATEST, None, request.principal).rows)


def _told(memory: Memory) -> dict[str, Any]:
    typ, _underscore, number = memory.kennung.partition("_")
    return {
        "uri": f"brain://{typ}/{number}",
        "name": memory.kennung,
        "title": str(memory),
        "mimeType": _MIME,
        "_meta": credited(memory),
    }
