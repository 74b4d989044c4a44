"""Completion: the tags, scopes and kinds that begin with what was typed, of those that the key may see."""

from typing import Any

from django.utils.translation import gettext as _

from api.mcp import prompts, resources
from api.mcp.protocol import INVALID_PARAMS, ProtocolError, Request
from api.tools import tags
from memories import reading, values
from memories.limits import limits
from memories.principal import Principal

_MOST = 100


def completed(request: Request) -> dict[str, Any]:
    """`completion/complete`, for the arguments of the prompts and the variables of the resource template."""
    reference, argument = request.params.get("ref"), request.params.get("argument")
    if not isinstance(reference, dict) or not isinstance(argument, dict) or not isinstance(argument.get("value"), str):
        raise ProtocolError(INVALID_PARAMS, _("ref and argument are objects; argument has a name and a value."))
    values.asked_text(argument["value"], "argument.value", limits().kennung)
    match reference:
        case {"type": "ref/prompt", "name": str(name)} if name in prompts.PROMPTS:
            found = _words(argument.get("name"), argument["value"], request.principal)
        case {"type": "ref/resource", "uri": resources.TEMPLATE}:
            found = _kinds(argument.get("name"), argument["value"], request.principal)
        case _:
            raise ProtocolError(INVALID_PARAMS, _("There is nothing of this kind to complete."))
    return {"completion": {"values": found[:_MOST], "hasMore": len(found) > _MOST}}


def _words(name: Any, beginning: str, principal: Principal) -> list[str]:
    if name == "tag" and principal.may_call(tags.SELECT.name):
        return [counted.tag.name for counted in reading.tag_counts(beginning, _MOST + 1, None, principal).rows]
    if name == "scope":
        return reading.scopes(resources.readable(principal), beginning, _MOST + 1, principal)
    return []


def _kinds(name: Any, beginning: str, principal: Principal) -> list[str]:
    return [kind.typ for kind in resources.readable(principal) if name == "typ" and kind.typ.startswith(beginning)]
