"""Filters of select and search, by the columns of each kind."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memories.kinds import Kind
from memories.models.queries import MemoryQuerySet


@dataclass(frozen=True, slots=True)
class Filter:
    """Which memories: None and empty mean any. `von` and `bis` are moments on `zeitfeld`, both included.

    `suche` is a text of which a memory must hold every word; `memories.reading` sees to that one.
    """

    scope: str | None = None
    scope_vk: str | None = None
    agent: str | None = None
    nutzer: str | None = None
    tags: tuple[str, ...] = ()
    tags_eines: tuple[str, ...] = ()
    von: datetime | None = None
    bis: datetime | None = None
    zeitfeld: str = "aktualisiert_am"
    suche: str = ""

    def apply(self, kind: Kind, rows: MemoryQuerySet[Any]) -> MemoryQuerySet[Any]:
        """The rows of this kind that pass."""
        wanted = {
            kind.memories.SCOPE: self.scope,
            kind.memories.RECORD: self.scope_vk,
            "agent": self.agent,
            "nutzer": self.nutzer,
            f"{self.zeitfeld}__gte": self.von,
            f"{self.zeitfeld}__lte": self.bis,
        }
        rows = rows.filter(**{column: value for column, value in wanted.items() if value is not None})
        rows = rows.with_all_tags(self.tags)
        return rows.with_any_tag(self.tags_eines) if self.tags_eines else rows
