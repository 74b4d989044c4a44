"""Lines of our own format that readers of other formats make."""

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AnySet
from typing import Any

_LONGEST_HINT = 300
_SHORT = 120


def line(row: Mapping[str, Any], hints: Sequence[str]) -> bytes:
    """A line; what is None is left out, for the import's defaults to fill."""
    told = {name: value for name, value in row.items() if value is not None}
    return json.dumps(told | ({"hinweise": list(hints)} if hints else {})).encode()


def faulty(meldung: str) -> bytes:
    """A line that says why it is none."""
    return json.dumps({"fehler": meldung}).encode()


def told_fields(told: Mapping[str, Any], read: AnySet[str]) -> list[str]:
    """What has no place in a memory, with its value."""
    return [
        f"{name}: {json.dumps(value, ensure_ascii=False, default=str)}"[:_LONGEST_HINT]
        for name, value in told.items()
        if name not in read and value not in (None, "", [], {})
    ]


def shortened(text: str) -> str:
    """A short description for a text that has none: its first line, or the beginning of it."""
    first = next(iter(text.strip().splitlines()), "")
    return first if len(first) <= _SHORT else f"{first[: _SHORT - 1].rstrip()}…"
