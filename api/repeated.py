"""An agent that sends the same failing call again is told that this does not help, and what would."""

import json
from collections.abc import Mapping, Set
from typing import Any

from django.utils.translation import gettext as _

from api.tool import Tool
from memories import failures
from memories.errors import InternalFault, TooMany, Unavailable
from memories.principal import Principal

_TOLD_FROM = 3  # failures in a row
_PASSING = frozenset({Unavailable.code, TooMany.code, InternalFault.code})  # the same call may succeed later


def times_failed(tool: Tool, arguments: Any, principal: Principal, codes: Set[str]) -> int:
    """How often in a row this call has failed now; what may succeed later is not counted."""
    if codes & _PASSING:
        return 1
    return failures.note_failure(principal, json.dumps([tool.name, arguments], sort_keys=True))


def remarked(fault: dict[str, Any], tool: Tool, times: int) -> dict[str, Any]:
    """The fault as the wire tells it, with a remark and the tool's example when its call has failed several times."""
    if times < _TOLD_FROM:
        return fault
    remark = _(
        "The same call has failed %(times)d times in a row, and repeating it does not help: change it, please. help: 1 "
        "tells what is right."
    ) % {"times": times}
    example: Mapping[str, Any] = {"beispiel": tool.beispiel} if tool.beispiel else {}
    return {**fault, "meldung": f"{fault['meldung']} {remark}", **example}
