"""Proposals: what keys under review have stored waits here for a person, who approves or rejects it."""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from itertools import islice
from typing import Any

from django.utils.translation import gettext as _

from memories.errors import BrainError, Conflict
from memories.history import Stamp
from memories.kinds import KINDS, Kind
from memories.models import Aktion, Memory, Version
from memories.models.queries import MemoryQuerySet
from memories.paging import Page, after, cursor, place_of
from memories.principal import Action, Origin, Principal
from memories.similar import Similar, similar
from memories.steps import Done, Outcome, changed_meanwhile, landed, locked, moment, no_memory, put, remove, revise
from memories.suspicion import is_suspicious, passages_of
from memories.writing import write_in_groups

NEAREST = 3
LOOKED_THROUGH = 5_000  # proposals for a page of those that read like instructions
_AT_ONCE = 200
_QUERY = "proposals"

# The memories of one kind to decide on, each with the version that was looked at; None is whichever it has.
Seen = Mapping[int, int | None]


class Suspicious(Conflict):
    """A proposal reads like instructions to a model, and whoever approves it has not said that he knows."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed memory, the version that stored it, and the approved memories that are nearest to it."""

    kind: Kind
    memory: Memory
    first: Version | None
    nearest: Sequence[Similar]


def waiting(kind: Kind, principal: Principal) -> MemoryQuerySet[Any]:
    """The proposed memories of a kind that the principal may see."""
    rows: MemoryQuerySet[Any] = kind.memories.objects.visible_to(principal)
    return rows.filter(vorgeschlagen=True)


def queue(limit: int, weiter: str | None, principal: Principal, *, suspicious: bool = False) -> Page[Proposal]:
    """A page of the proposals of all kinds, newest first; or of those alone that read like instructions to a model.

    For those at most LOOKED_THROUGH proposals are looked through, and the page can be short although there are more.
    """
    query = (_QUERY, "suspicious") if suspicious else _QUERY
    place = place_of(weiter, query) if weiter else None
    if not suspicious:
        found = _newest(limit + 1, place, principal)
        last = found[limit - 1] if len(found) > limit else None
        return Page(told(found[:limit], principal), cursor(query, _order(last)) if last else None)
    walked = list(islice(_walk(place, principal), LOOKED_THROUGH + 1))
    found = list(islice(filter(is_suspicious, walked[:LOOKED_THROUGH]), limit + 1))
    last = found[limit - 1] if len(found) > limit else walked[-2] if len(walked) > LOOKED_THROUGH else None
    return Page(told(found[:limit], principal), cursor(query, _order(last)) if last else None)


def _walk(place: Sequence[Any] | None, principal: Principal) -> Iterator[Memory]:
    """All proposals from this place of the queue on, newest first."""
    while part := _newest(_AT_ONCE, place, principal):
        yield from part
        place = _order(part[-1])


def _newest(limit: int, place: Sequence[Any] | None, principal: Principal) -> list[Memory]:
    """The first proposals from this place of the queue on."""
    found: list[Memory] = []
    for kind in KINDS:
        rows = waiting(kind, principal)
        if place:
            rows = rows.filter(_after(kind, *place))
        found.extend(rows.order_by("-erstellt_am", "-pk")[:limit])
    return nlargest(limit, found, key=_order)


def told(memories: Iterable[Memory], principal: Principal) -> list[Proposal]:
    """These proposed memories, with what helps to decide on them."""
    shown = list(memories)
    firsts = _firsts(shown, principal)
    return [
        Proposal(
            kind := _kind(memory),
            memory,
            firsts.get((memory.typ, memory.pk)),
            similar(kind, memory, principal, NEAREST),
        )
        for memory in shown
    ]


def _order(memory: Memory) -> tuple[datetime, int, int]:
    """What the queue is sorted by: the moment, then the kind, then the key."""
    return memory.erstellt_am, KINDS.index(_kind(memory)), memory.pk


def _after(kind: Kind, at: str | datetime, number: int, key: int) -> Any:
    """What of the kind comes after this place of the queue."""
    own = KINDS.index(kind)
    # A kind that comes before, or after, at the same moment: as if the place were above, or below, all of its keys.
    return after("erstellt_am", at, key if own == number else 0 if own > number else 2**63 - 1, descending=True)


def _kind(memory: Memory) -> Kind:
    return next(kind for kind in KINDS if kind.typ == memory.typ)


def _firsts(memories: Sequence[Memory], principal: Principal) -> dict[tuple[str, int], Version]:
    """The versions with which these memories began: they tell who proposed them. A statement a kind."""
    found: dict[tuple[str, int], Version] = {}
    for kind in KINDS:
        keys = [memory.pk for memory in memories if memory.typ == kind.typ]
        rows = kind.versions.objects.visible_to(principal, among=keys).filter(version=1).defer("embedding")
        found |= {(kind.typ, row.memory_id): row for row in rows} if keys else {}
    return found


def approve(kind: Kind, seen: Seen, origin: Origin, *, knowing: bool = False) -> list[Outcome]:
    """Make proposed memories ordinary ones, which agents see and searches find.

    Those that read like instructions to a model only by somebody who says that he approves them `knowing` it.
    """

    def write(part: Sequence[tuple[int, int | None]]) -> list[Outcome]:
        rows, faults = _to_decide(kind, dict(part), origin.principal)
        if not knowing:
            faults |= {key: _suspicious(row) for key, row in rows.items() if is_suspicious(row)}
            rows = {key: row for key, row in rows.items() if key not in faults}
        at = moment(rows.values(), origin)
        pairs = [(row, put(copy.copy(row), {"vorgeschlagen": False}, at)) for row in rows.values()]
        outcomes = revise(kind, pairs, Stamp(origin, Aktion.FREIGEGEBEN, at), Action.WRITE)
        return [faults.get(key) or outcomes[key] for key, _version in part]

    return write_in_groups(list(seen.items()), write, landed(origin))


def reject(kind: Kind, seen: Seen, origin: Origin) -> list[Outcome]:
    """Delete proposed memories; from the trash they come back as proposals.

    Whoever may change them may do so: nothing that held is lost.
    """

    def write(part: Sequence[tuple[int, int | None]]) -> list[Outcome]:
        rows, faults = _to_decide(kind, dict(part), origin.principal)
        remove(kind, list(rows), Stamp(origin, Aktion.GELOESCHT, moment(rows.values(), origin)))
        return [faults.get(key) or Done(kind, key, rows[key].version + 1) for key, _version in part]

    return write_in_groups(list(seen.items()), write, landed(origin))


def _to_decide(kind: Kind, seen: Seen, principal: Principal) -> tuple[dict[int, Memory], dict[int, BrainError]]:
    """The proposals, locked, by key; and why there is nothing to decide of the others."""
    rows = locked(kind, list(seen), principal, Action.WRITE)
    faults = {key: fault for key, version in seen.items() if (fault := _undecidable(rows.get(key), version))}
    return {key: row for key, row in rows.items() if key not in faults}, faults


def _suspicious(row: Memory) -> Suspicious:
    told = _("It reads like instructions to a model: it %(signs)s. Look at it in the queue and approve it there.")
    signs = ", ".join(str(passage.sign.label) for passage in passages_of(row))
    return Suspicious(told % {"signs": signs}, version=row.version)


def _undecidable(row: Memory | None, version: int | None) -> BrainError | None:
    """It is gone, it is no proposal any more, or it is no longer as it was seen."""
    if row is None:
        return no_memory()
    if not row.vorgeschlagen:
        return Conflict(_("It does not wait for approval, or no longer."), version=row.version)
    return None if version in {None, row.version} else changed_meanwhile(row)
