"""Tables for spreadsheets: CSV in UTF-8 with its mark, row by row, in which no text is taken for a formula."""

import csv
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.utils import timezone

from memories.kinds import Kind
from memories.principal import Principal
from memories.transfer.exporting import parts
from memories.transfer.lines import wire_name

_FORMULA = tuple("=+-@＝＋－＠\t\r\n")  # some programs read the wide ones as the others


class _Echo:
    """A file that gives back what is written into it."""

    def write(self, text: str) -> str:
        """The text."""
        return text


def table(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    """The lines of a table."""
    writer = csv.writer(_Echo())
    yield "\ufeff" + writer.writerow(names)
    for row in rows:
        yield writer.writerow([cell(value) for value in row])


def memory_table(kind: Kind, keys: Iterable[int], principal: Principal) -> Iterator[str]:
    """What these live memories hold now, but for their vectors."""
    columns = [column.name for column in kind.memories._meta.concrete_fields]  # noqa: SLF001
    columns = [name for name in columns if name not in ("id", "embedding")]
    rows = (
        [row.kennung, *(getattr(row, name) for name in columns)]
        for part in parts(keys)
        for row in kind.memories.objects.visible_to(principal, among=part).order_by("pk").defer("embedding")
    )
    return table(["ID", *map(wire_name, columns)], rows)


def cell(value: Any) -> Any:
    """A value for a spreadsheet: moments in the server's time zone, names of a list together, and no formula."""
    if isinstance(value, datetime):
        return timezone.localtime(value, timezone.get_default_timezone()).isoformat()
    text = ", ".join(value) if isinstance(value, list) else value
    return f"'{text}" if isinstance(text, str) and text.startswith(_FORMULA) else text
