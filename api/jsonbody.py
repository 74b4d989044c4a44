"""JSON in and out: strict (RFC 8259, no duplicate keys, bounded nesting), exact for integers of any size."""

import json
import re
from typing import Any

import msgspec
from django.utils.translation import gettext as _

from memories.errors import NotJson
from memories.limits import limits
from memories.values import nested_too_deeply, strict_json

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_CONTAINERS = frozenset({dict, list})


def parse(body: bytes) -> Any:
    """The value that a body holds. Raises NotJson, or TooLarge for nesting beyond the limit.

    The fast parser accepts duplicate keys, of which it keeps the last: a body that has more colons than its value has
    members is read again by the strict one, which names the fault. So is a body that the fast one refuses: half a
    surrogate pair, or a number that is not finite, is the fault of the entry it stands in, not of the call.
    """
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return _read_strictly(body)
    if _bounded(value) != _STRING.sub(b"", body).count(b":"):
        return _read_strictly(body)
    return value


def _read_strictly(body: bytes) -> Any:
    try:
        value = strict_json(body.decode("utf-8"), finite=False)
    except UnicodeDecodeError as error:
        raise NotJson(_("The body is not UTF-8 (byte %(place)d).") % {"place": error.start}) from error
    except ValueError as error:
        raise NotJson(_("The body is not valid JSON: %(reason)s.") % {"reason": error}) from error
    _bounded(value)
    return value


def parse_text(text: str) -> Any:
    """The value that a text inside a call holds, under the same rules. Raises ValueError, or TooLarge for nesting."""
    value = strict_json(text)
    _bounded(value)
    return value


def _bounded(value: Any) -> int:
    """How many members all objects of the value have together. Raises TooLarge when it is nested too deeply."""
    members = 0
    level = [value] if type(value) in _CONTAINERS else []
    for _depth in range(limits().nesting):
        deeper: list[Any] = []
        for node in level:
            values = node
            if type(node) is dict:
                members += len(node)
                values = node.values()
            if not _CONTAINERS.isdisjoint(map(type, values)):
                deeper.extend(child for child in values if type(child) in _CONTAINERS)
        if not deeper:
            return members
        level = deeper
    raise nested_too_deeply()


def write(value: Any) -> bytes:
    """The value as JSON in UTF-8, letters as they are; half a surrogate pair, which a refusal may quote, is escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, default=_written).encode("ascii")


def canonical(value: Any) -> bytes:
    """The same bytes for the same value, however it was spelled; as MessagePack, which writes no digits of numbers."""
    try:
        return msgspec.msgpack.encode(value, order="deterministic")
    except (UnicodeEncodeError, OverflowError):  # half a surrogate pair, a number beyond 64 bits
        return json.dumps(value, sort_keys=True).encode("ascii")


def _written(value: msgspec.Raw) -> Any:
    """What a part that was written before says."""
    return json.loads(bytes(value))
