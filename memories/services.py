"""The verbs: insert, update, delete, restore, promote, approve, reject, merge, clean up.

Each change of a memory is one version.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from memories.embeddings import ProfileGuard
from memories.errors import NotFound
from memories.history import Stamp, content_of, record
from memories.kinds import LONGTERM, SHORTTERM, Kind
from memories.merging import Merge, merge, undo_merge
from memories.models import Aktion, Memory, Version
from memories.principal import Action, Origin, Principal
from memories.proposals import approve, reject
from memories.search import index
from memories.steps import (
    Done,
    Outcome,
    add,
    changed_meanwhile,
    landed,
    locked,
    moment,
    no_memory,
    out_of_reach,
    put,
    remove,
    revise,
)
from memories.tags import known_tags, link
from memories.writing import write_in_groups

__all__ = [
    "Change",
    "Done",
    "Merge",
    "Outcome",
    "approve",
    "clean_up",
    "delete",
    "insert",
    "merge",
    "promote",
    "reject",
    "restore",
    "undo_merge",
    "update",
]

_CLEANED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Change:
    """New values for some fields of one memory, by field name; `tag_namen` replaces all its tags.

    With `erwartete_version` the change holds for that version alone, and is a Conflict for any other.
    """

    key: int
    values: Mapping[str, Any]
    erwartete_version: int | None = None


def insert(kind: Kind, drafts: Sequence[Mapping[str, Any]], origin: Origin) -> list[Outcome]:
    """Store new memories. A draft has the kind's content by field name, in canonical form.

    What a principal that proposes stores is proposed, and waits for approval.
    """

    def write(part: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        at = origin.clock()
        given = {"erstellt_am": at, "aktualisiert_am": at, "vorgeschlagen": origin.principal.proposes}
        fresh = [put(kind.memories(**given), draft, at) for draft in part]
        guard = ProfileGuard(kind, fresh, origin.principal, apart_from=[])
        faults = [out_of_reach(kind, memory, origin, Action.INSERT) or guard.fault(memory) for memory in fresh]
        good = [memory for memory, fault in zip(fresh, faults, strict=True) if not fault]
        add(kind, good, Stamp(origin, Aktion.ANGELEGT, at))
        return [
            fault or Done(kind, memory.pk, memory.version, vorgeschlagen=memory.vorgeschlagen)
            for memory, fault in zip(fresh, faults, strict=True)
        ]

    return write_in_groups(drafts, write, landed(origin), once=origin.repeat)


def update(kind: Kind, changes: Sequence[Change], origin: Origin) -> list[Outcome]:
    """Change memories. What is not named stays; a memory named twice is changed twice, in order."""

    def write(part: Sequence[Change]) -> list[Outcome]:
        rows = locked(kind, [change.key for change in part], origin.principal, Action.WRITE)
        at = moment(rows.values(), origin)
        found = [change for change in part if change.key in rows]
        fresh = [c for c in found if c.erwartete_version in {None, rows[c.key].version}]
        pairs = [(rows[c.key], put(copy.copy(rows[c.key]), c.values, at)) for c in fresh]
        outcomes = revise(kind, pairs, Stamp(origin, Aktion.GEAENDERT, at), Action.WRITE)
        return [outcomes.get(c.key) or (changed_meanwhile(rows[c.key]) if c.key in rows else no_memory()) for c in part]

    return write_in_groups(changes, write, landed(origin), apart=lambda change: change.key, once=origin.repeat)


def delete(kind: Kind, keys: Sequence[int], origin: Origin) -> list[Outcome]:
    """Delete memories; the history keeps their last state."""
    return _delete(kind, keys, origin, only=lambda _row: True)


def _delete(kind: Kind, keys: Sequence[int], origin: Origin, *, only: Callable[[Memory], bool]) -> list[Outcome]:
    """Delete memories that are, once they are locked, still as they should be."""

    def write(part: Sequence[int]) -> list[Outcome]:
        rows = {key: row for key, row in locked(kind, part, origin.principal, Action.DELETE).items() if only(row)}
        remove(kind, list(rows), Stamp(origin, Aktion.GELOESCHT, moment(rows.values(), origin)))
        return [Done(kind, key, rows[key].version + 1) if key in rows else no_memory() for key in part]

    return write_in_groups(keys, write, landed(origin), apart=lambda key: key, once=origin.repeat)


def promote(keys: Sequence[int], origin: Origin) -> list[Outcome]:
    """Turn short-term memories into long-term ones: a new ID, everything else carried over, each naming the other."""

    def write(part: Sequence[int]) -> list[Outcome]:
        rows = locked(SHORTTERM, part, origin.principal, Action.WRITE)
        at = moment(rows.values(), origin)
        moved = {key: _as_longterm(row, at) for key, row in rows.items()}
        faults = {key: out_of_reach(LONGTERM, memory, origin, Action.WRITE) for key, memory in moved.items()}
        fresh = {key: memory for key, memory in moved.items() if not faults[key]}
        known = known_tags(name for memory in fresh.values() for name in memory.tag_namen)
        LONGTERM.memories.objects.bulk_create(fresh.values())
        link(LONGTERM, fresh.values(), known)
        index.put(LONGTERM, list(fresh.values()))
        old = {new.pk: rows[key].kennung for key, new in fresh.items()}
        record(LONGTERM, list(old), Stamp(origin, Aktion.BEFOERDERT, at, verweise=old))
        new = {key: memory.kennung for key, memory in fresh.items()}
        remove(SHORTTERM, list(fresh), Stamp(origin, Aktion.BEFOERDERT, at, verweise=new))
        done = {key: Done(LONGTERM, memory.pk, 1, verweis=rows[key].kennung) for key, memory in fresh.items()}
        return [done.get(key) or faults.get(key) or no_memory() for key in part]

    return write_in_groups(keys, write, landed(origin), apart=lambda key: key, once=origin.repeat)


def restore(kind: Kind, key: int, number: int, origin: Origin) -> Outcome:
    """Set a memory, also a deleted one, back to one of its versions. A validity that is over begins anew.

    Whether it is proposed is no matter of the version: a rejected one is proposed again, an approved one stays so.
    """

    def write(_part: Sequence[int]) -> list[Outcome]:
        rows, newest = _locked_with_newest(kind, key, origin.principal)
        history = kind.versions.objects.visible_to(origin.principal, Action.RESTORE).filter(memory_id=key)
        # Of an unknown memory it is asked, too: nothing tells it from one that is out of sight.
        in_sight = history.filter(pk=newest.pk if newest else 0).exists()
        if newest is None or not in_sight:
            return [no_memory()]
        version = history.filter(version=number).first()
        if version is None:
            return [NotFound(_("The memory has no version of this number."), "version")]
        at = max(moment(rows.values(), origin), newest.zeitpunkt)
        content = _valid_again(version, kind, at) | {"vorgeschlagen": newest.vorgeschlagen}
        stamp = Stamp(origin, Aktion.WIEDERHERGESTELLT, at, verweise={key: str(version)})
        if key in rows:
            wanted = put(copy.copy(rows[key]), content, at)
            return [revise(kind, [(rows[key], wanted)], stamp, Action.RESTORE)[key]]
        back = kind.memories(id=key, version=newest.version + 1, aktualisiert_am=at)
        add(kind, [put(back, content, at)], stamp)
        return [Done(kind, key, back.version)]

    return write_in_groups([key], write, landed(origin), once=origin.repeat)[0]


def clean_up(origin: Origin, progress: Callable[[int], None]) -> int:
    """Delete the short-term memories whose validity is over; returns how many. `progress` hears of each step."""
    now = timezone.now()
    expired = SHORTTERM.memories.objects.filter(gueltig_bis__lt=now).order_by("pk")
    deleted = 0
    last = 0
    while keys := list(expired.filter(pk__gt=last).values_list("pk", flat=True)[:_CLEANED_AT_ONCE]):
        last = keys[-1]
        outcomes = _delete(SHORTTERM, keys, origin, only=lambda row: row.gueltig_bis < now)  # type: ignore[attr-defined]
        deleted += sum(isinstance(outcome, Done) for outcome in outcomes)
        progress(deleted)
    return deleted


def _locked_with_newest(kind: Kind, key: int, principal: Principal) -> tuple[dict[int, Memory], Version | None]:
    """The memory's row, when it has one that may be restored, and its newest version; nobody adds another meanwhile.

    A deleted memory has no row to lock, so restores wait for each other at its oldest version. The newest one is read
    under both locks: whoever held the row before may have written it, even have removed the row.
    """
    versions = kind.versions.objects.filter(memory_id=key)
    versions.order_by("version").select_for_update().first()
    rows = locked(kind, [key], principal, Action.RESTORE, also_expired=True)
    newest: Version | None = versions.order_by("-version").first()
    return rows, newest


def _as_longterm(row: Memory, at: datetime) -> Memory:
    content = content_of(row, SHORTTERM)
    del content["gueltig_bis"]
    fresh: Memory = LONGTERM.memories(aktualisiert_am=at, **content)
    return fresh


def _valid_again(version: Version, kind: Kind, at: datetime) -> dict[str, Any]:
    """The version's content; a validity that is over becomes the default one."""
    content = content_of(version, kind)
    if kind.memories.EXPIRES and content["gueltig_bis"] is not None and content["gueltig_bis"] < at:
        content["gueltig_bis"] = None
    return content
