"""Memories going out: a stream of lines, so that a million of them take no more memory than a hundred."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from memories.kinds import KINDS, Kind
from memories.models import ImportedMemory, Installation, Version
from memories.principal import Action, Principal
from memories.transfer.lines import REFERENCE, Herkunft, header, memory_line

_KEYS_AT_ONCE = 2_000
_MEMORIES_AT_ONCE = 100
_VERSIONS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Selection:
    """Which memories of which kinds: of the lists, an empty one is all."""

    kinds: Sequence[Kind] = KINDS
    nutzer: Sequence[str] = ()
    agent: Sequence[str] = ()
    scope: Sequence[str] = ()
    scope_vk: Sequence[str] = ()
    with_deleted: bool = False

    def keys(self, kind: Kind, principal: Principal) -> Iterator[int]:
        """The keys of the kind's memories, in order. A deleted memory is judged by its last version."""
        if self.with_deleted:
            later = kind.versions.objects.filter(memory_id=OuterRef("memory_id"), version__gt=OuterRef("version"))
            found = kind.versions.objects.visible_to(principal).filter(~Exists(later)).order_by("memory_id")
            yield from self._narrowed(kind, found).values_list("memory_id", flat=True).iterator(_KEYS_AT_ONCE)
        else:
            yield from keys_of(self._narrowed(kind, kind.memories.objects.visible_to(principal)))

    def _narrowed(self, kind: Kind, rows: QuerySet[Any]) -> QuerySet[Any]:
        columns = {
            "nutzer": self.nutzer,
            "agent": self.agent,
            kind.memories.SCOPE: self.scope,
            kind.memories.RECORD: self.scope_vk,
        }
        return rows.filter(**{f"{column}__in": list(values) for column, values in columns.items() if values})


def keys_of(memories: QuerySet[Any]) -> Iterator[int]:
    """The keys of these live memories, in order."""
    return memories.order_by("pk").values_list("pk", flat=True).iterator(_KEYS_AT_ONCE)


def lines(selection: Selection, principal: Principal) -> Iterator[str]:
    """The JSON lines of a selection, each with its line break."""
    yield f"{header(settings.VERSION)}\n"
    for kind in selection.kinds:
        yield from memory_lines(kind, selection.keys(kind, principal), principal)


def memory_lines(kind: Kind, keys: Iterable[int], principal: Principal) -> Iterator[str]:
    """A line for each of these memories. One whose history the principal may see in part alone goes without it."""
    instanz = Installation.own()
    for part in parts(keys):
        known = _herkunft(kind, part)
        for key, versions in _histories(kind, part):
            herkunft = known.get(key, {"instanz": instanz, "ID": f"{kind.typ}_{key}"})
            seen = [version for version in versions if version.allows(principal, Action.READ)]
            if seen and seen[-1] is versions[-1]:
                told = versions if len(seen) == len(versions) else []
                yield f"{memory_line(kind, versions[-1], told, herkunft, other)}\n"


def _histories(kind: Kind, keys: Sequence[int]) -> Iterator[tuple[int, list[Version]]]:
    """All versions of each of these memories, oldest first; one statement, so each memory is as at one moment."""
    rows = kind.versions.objects.filter(memory_id__in=keys).order_by("memory_id", "version")
    for key, versions in groupby(rows.iterator(_VERSIONS_AT_ONCE), lambda version: version.memory_id):
        yield key, list(versions)


def _herkunft(kind: Kind, keys: Sequence[int]) -> dict[int, Herkunft]:
    """Where those of these memories that were imported came from."""
    rows = ImportedMemory.objects.filter(typ=kind.typ, memory_id__in=keys)
    return {row.memory_id: {"instanz": row.instanz, "ID": row.kennung} for row in rows}


def other(verweis: str, herkunft: Herkunft) -> str:
    """References to memories of this installation, by the IDs that they have at the memory's origin."""
    return REFERENCE.sub(lambda found: _told_elsewhere(found, herkunft), verweis)


def _told_elsewhere(found: re.Match[str], herkunft: Herkunft) -> str:
    typ, key = found["typ"], int(found["key"])
    row = ImportedMemory.objects.filter(typ=typ, memory_id=key).first()
    instanz, kennung = (row.instanz, row.kennung) if row else (Installation.own(), f"{typ}_{key}")
    return kennung if instanz == herkunft["instanz"] else f"{instanz}/{kennung}"


def parts(keys: Iterable[int]) -> Iterator[list[int]]:
    """The keys, as many at a time as are looked up together."""
    left = iter(keys)
    while part := list(islice(left, _MEMORIES_AT_ONCE)):
        yield part
