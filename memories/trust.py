"""Who vouches for a memory as it is now: whoever its newest version came from, a person, an import or an agent."""

from enum import StrEnum
from typing import Any

from django.db.models.expressions import RawSQL

from memories.kinds import Kind
from memories.models.queries import MemoryQuerySet


class Trust(StrEnum):
    """On whose word a state holds. An agent is an access key, or a command that acts for many."""

    PERSON = "person"
    IMPORT = "import"
    AGENT = "agent"


_BY_DOOR = {"admin": Trust.PERSON, "import": Trust.IMPORT}


def with_door(kind: Kind, rows: MemoryQuerySet[Any]) -> MemoryQuerySet[Any]:
    """These live memories, each with the door (`tuer`) through which its newest version came."""
    live, versions = kind.memories._meta.db_table, kind.versions._meta.db_table  # noqa: SLF001
    # Written out: to make the same of a Subquery takes Django longer than it takes the database to answer.
    newest = f"(SELECT v.tuer FROM {versions} v WHERE v.memory_id = {live}.id AND v.version = {live}.version)"  # noqa: S608
    found: MemoryQuerySet[Any] = rows.annotate(tuer=RawSQL(newest, []))  # noqa: S611 - names of tables alone
    return found


def trust_in(tuer: str | None) -> Trust:
    """Who vouches for what came through this door."""
    return _BY_DOOR.get(tuer or "", Trust.AGENT)
