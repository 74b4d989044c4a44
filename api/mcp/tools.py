"""The tools as MCP tells and calls them; what a tool is stands in api.tools alone."""

import logging
from typing import Any

import msgspec
from django.utils.translation import gettext as _

from api import envelope, jsonbody
from api.envelope import Via
from api.faults import as_fault
from api.mcp.protocol import INVALID_PARAMS, ProtocolError, Request
from api.schemas import Schema
from api.tool import Tool
from memories.errors import InternalFault, TooMany
from memories.principal import Principal

log = logging.getLogger(__name__)

_REFUSED_BY_SOME_CLIENTS = frozenset({"additionalProperties"})


def listed(request: Request) -> dict[str, Any]:
    """`tools/list`: those that the key may call, in one page, since many clients read no other."""
    return {"tools": [_told(tool, portable=request.portable) for tool in envelope.callable_by(request.principal)]}


def called(request: Request) -> dict[str, Any]:
    """`tools/call`: the envelope's answer, as JSON and once more as the text of that JSON. Raises TooMany."""
    tool = _found(request.params.get("name"), request.principal)
    arguments = request.params.get("arguments")
    arguments = {} if arguments is None else arguments
    via = Via("mcp", idempotency_key=_idempotency_key(request), size=request.size)
    try:
        answer = envelope.handle(tool, arguments, request.principal, via)
    except TooMany:
        raise
    except Exception as error:
        fault = as_fault(error)
        if fault is None:
            log.exception("A tool failed")
            fault = InternalFault(_("Something went wrong inside; the server's log has the details."))
        answer = envelope.refusal(tool.name, fault, envelope.references_of(arguments))
    written = jsonbody.write(answer)
    return {
        "content": [{"type": "text", "text": written.decode()}],
        "structuredContent": msgspec.Raw(written),
        "isError": envelope.is_failure(answer),
    }


def _idempotency_key(request: Request) -> str | None:
    given = request.params.get("_meta", {}).get("idempotencyKey")
    if given is not None and not isinstance(given, str):
        raise ProtocolError(INVALID_PARAMS, _("idempotencyKey is a text."))
    return given


def _found(name: Any, principal: Principal) -> Tool:
    """The tool of this name; one that the key may not call is as unknown as one that does not exist."""
    allowed = {tool.name: tool for tool in envelope.callable_by(principal)}
    if not isinstance(name, str) or name not in allowed:
        raise ProtocolError(
            INVALID_PARAMS,
            _("There is no tool %(name)s, or this key may not call it.") % {"name": str(name)[:80]},
            {"tools": list(allowed)},
        )
    return allowed[name]


def _told(tool: Tool, *, portable: bool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.titel,
        "description": tool.beschreibung,
        "inputSchema": in_single_types(tool.input_schema) if portable else tool.input_schema,
        "annotations": _annotations(tool),
    }


def _annotations(tool: Tool) -> dict[str, bool]:
    """What differs from the protocol's assumptions: writing, destructive, not to be repeated, of the open world."""
    if not tool.writes:
        return {"readOnlyHint": True, "openWorldHint": False}
    return {"openWorldHint": False} | ({} if tool.destructive else {"destructiveHint": False})


def in_single_types(schema: Schema) -> Schema:
    """The schema for clients that refuse a list of types for a whole session: the first type of each property.

    The check of a call is always that of the given schema, so nothing that it takes is refused.
    """
    told = {name: value for name, value in schema.items() if name not in _REFUSED_BY_SOME_CLIENTS}
    if isinstance(told.get("type"), list):
        told["type"] = told["type"][0]
    if "properties" in told:
        told["properties"] = {name: in_single_types(child) for name, child in told["properties"].items()}
    if "items" in told:
        told["items"] = in_single_types(told["items"])
    return told
