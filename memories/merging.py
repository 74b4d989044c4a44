"""Merging: of several memories one lives on with what was chosen, the others go and point to it; and taking it back."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import Max
from django.utils.translation import gettext as _

from memories.errors import BrainError, Conflict, Invalid, NotAllowed, NotFound, TooLarge
from memories.history import Stamp, content_of, copied_fields
from memories.kinds import Kind
from memories.models import Aktion, Memory, Version
from memories.principal import Action, Origin, Principal
from memories.steps import Done, Outcome, add, landed, locked, moment, no_memory, put, remove, revise
from memories.values import tag_key
from memories.writing import write_in_groups

FEWEST_MERGED = 2
MOST_MERGED = 20
MOST_TAGS = 100  # as the tools' schemas have it
_NOT_CHOSEN = {"tag_namen", "vorgeschlagen", "erstellt_am"}  # a memory keeps its place in the lists
_MERGED = (Aktion.ZUSAMMENGEFUEHRT, Aktion.AUFGEGANGEN)


@dataclass(frozen=True, slots=True)
class Merge:
    """Which memories become one, by key: `survivor` lives on. `seen` has the version of each that was looked at.

    `chosen` says, by field name, whose value lives on; what is not named stays the survivor's own. `tags_of` says whose
    tags; without it those of all are united, the survivor's first.
    """

    survivor: int
    seen: Mapping[int, int]
    chosen: Mapping[str, int] = field(default_factory=dict)
    tags_of: int | None = None


def choosable(kind: Kind) -> list[str]:
    """The names of the fields whose value can be that of another memory than the survivor."""
    names = copied_fields(kind)
    return [name for name in names if name not in _NOT_CHOSEN and not name.startswith("embedding")]


def merged_tags(rows: Iterable[Memory]) -> list[str]:
    """The tags of all these memories, each once."""
    found: dict[str, str] = {}
    for row in rows:
        for name in row.tag_namen:
            found.setdefault(tag_key(name), name)
    return list(found.values())


def merged_values(wish: Merge, rows: Mapping[int, Memory]) -> dict[str, Any]:
    """What the survivor will hold, by field name, as far as it was chosen."""
    values = {name: getattr(rows[key], name) for name, key in wish.chosen.items()}
    in_order = [rows[wish.survivor], *(row for key, row in sorted(rows.items()) if key != wish.survivor)]
    values["tag_namen"] = merged_tags(in_order) if wish.tags_of is None else rows[wish.tags_of].tag_namen
    return values


def merge(kind: Kind, wish: Merge, origin: Origin) -> Outcome:
    """Make one of several memories. Everything is done, or nothing: a Conflict when one is no longer as it was seen."""
    fault = _senseless(kind, wish)
    if fault:
        return fault

    def write(_part: Sequence[Merge]) -> list[Outcome]:
        rows = locked(kind, list(wish.seen), origin.principal, Action.READ)
        fault = _refusal(wish, rows, origin.principal)
        if fault:
            return [fault]
        at = moment(rows.values(), origin)
        now = rows.pop(wish.survivor)
        values = merged_values(wish, {**rows, wish.survivor: now})
        if len(values["tag_namen"]) > MOST_TAGS:
            return [TooLarge(_("At most %(limit)d tags are allowed.") % {"limit": MOST_TAGS}, "tags")]
        others = ", ".join(row.kennung for row in rows.values())
        stamp = Stamp(origin, Aktion.ZUSAMMENGEFUEHRT, at, verweise={now.pk: others}, always=True)
        outcome = revise(kind, [(now, put(copy.copy(now), values, at))], stamp, Action.WRITE)[now.pk]
        if isinstance(outcome, Done):
            into = dict.fromkeys(rows, now.kennung)
            remove(kind, list(rows), Stamp(origin, Aktion.AUFGEGANGEN, at, verweise=into))
        return [outcome]

    return write_in_groups([wish], write, landed(origin), once=origin.repeat)[0]


def _senseless(kind: Kind, wish: Merge) -> BrainError | None:
    if not FEWEST_MERGED <= len(wish.seen) <= MOST_MERGED:
        return TooLarge(_("From 2 to %(limit)d memories can be merged at once.") % {"limit": MOST_MERGED})
    named = {wish.survivor, *wish.chosen.values()} | ({wish.tags_of} - {None})
    if not named <= wish.seen.keys() or not wish.chosen.keys() <= set(choosable(kind)):
        return Invalid(_("The choice names something that is not among the memories to merge."))
    return None


def _refusal(wish: Merge, rows: Mapping[int, Memory], principal: Principal) -> BrainError | None:
    """Why these memories are not merged: one is gone, out of reach, proposed, or no longer as it was seen."""
    if len(rows) < len(wish.seen):
        return no_memory()
    for key, row in rows.items():
        if not row.allows(principal, Action.WRITE if key == wish.survivor else Action.DELETE):
            return NotAllowed(_("You may not change or delete %(id)s.") % {"id": row.kennung}, "ID")
        if row.vorgeschlagen:
            return Invalid(_("%(id)s is proposed: approve or reject it first.") % {"id": row.kennung}, "ID")
        if row.version != wish.seen[key]:
            told = _("%(id)s was changed in the meantime; it is at version %(number)d now. Nothing was merged.")
            return Conflict(told % {"id": row.kennung, "number": row.version}, "ID", version=row.version)
    return None


def undo_merge(kind: Kind, aufruf: UUID, origin: Origin) -> Outcome:
    """Take back the merge that a call made: all its memories are as they were before. That is a change with history.

    NotFound without such a merge in reach; a Conflict when one of the memories was changed or restored since. The
    outcome is that of the memory that lived on.
    """

    def write(_part: Sequence[UUID]) -> list[Outcome]:
        done = versions_of(kind, aufruf, origin.principal)
        rows = _locked_with_histories(kind, done, origin.principal)
        fault = _no_way_back(kind, done, rows)
        if fault:
            return [fault]
        merged = next(version for version in done if version.aktion == Aktion.ZUSAMMENGEFUEHRT)
        now = rows[merged.memory_id]
        gone = [version for version in done if version is not merged]
        at = max(moment(rows.values(), origin), *(version.zeitpunkt for version in done))
        before = kind.versions.objects.get(memory_id=now.pk, version=merged.version - 1)
        _bring_back(kind, gone, Stamp(origin, Aktion.WIEDERHERGESTELLT, at, verweise=_verweise(gone)))
        stamp = Stamp(origin, Aktion.WIEDERHERGESTELLT, at, verweise=_verweise([before]), always=True)
        wanted = put(copy.copy(now), content_of(before, kind), at)
        return [revise(kind, [(now, wanted)], stamp, Action.RESTORE)[now.pk]]

    return write_in_groups([aufruf], write, landed(origin), once=origin.repeat)[0]


def versions_of(kind: Kind, aufruf: UUID, principal: Principal) -> list[Version]:
    """The versions that the merge wrote, as far as this may be taken back by him."""
    versions = kind.versions.objects.visible_to(principal, Action.RESTORE)
    return list(versions.filter(aufruf=aufruf, aktion__in=_MERGED).order_by("memory_id"))


def _locked_with_histories(kind: Kind, done: Sequence[Version], principal: Principal) -> dict[int, Memory]:
    """The live rows of these memories; nobody adds a version to one of them meanwhile, be it there or not.

    As in a restore: a memory without a row is locked at its oldest version, which comes before the row.
    """
    keys = [version.memory_id for version in done]
    oldest = kind.versions.objects.filter(memory_id__in=keys, version=1)
    list(oldest.order_by("memory_id").select_for_update().values_list("pk"))
    return locked(kind, keys, principal, Action.RESTORE, also_expired=True)


def _no_way_back(kind: Kind, done: Sequence[Version], rows: Mapping[int, Memory]) -> BrainError | None:
    """Why the merge stays: it is not there or partly out of reach, or a memory of it has a later version."""
    whole = kind.versions.objects.filter(aufruf__in={version.aufruf for version in done}, aktion__in=_MERGED).count()
    survivors = sum(version.aktion == Aktion.ZUSAMMENGEFUEHRT for version in done)
    if survivors != 1 or whole != len(done):
        return NotFound(_("There is no such merge, or you may not restore all of its memories."))
    keys = [version.memory_id for version in done]
    numbers = kind.versions.objects.filter(memory_id__in=keys).order_by("memory_id").values_list("memory_id")
    newest = dict(numbers.annotate(newest=Max("version")))
    for version in done:
        if newest[version.memory_id] != version.version:
            told = _("%(id)s was changed since the merge, so it cannot be undone. Its history can restore versions.")
            return Conflict(told % {"id": version.kennung}, "ID", version=newest[version.memory_id])
        if version.aktion == Aktion.ZUSAMMENGEFUEHRT and version.memory_id not in rows:
            return NotAllowed(_("You may not change or delete %(id)s.") % {"id": version.kennung}, "ID")
    return None


def _verweise(versions: Iterable[Version]) -> dict[int, str]:
    return {version.memory_id: str(version) for version in versions}


def _bring_back(kind: Kind, gone: Sequence[Version], stamp: Stamp) -> None:
    """Give memories that were merged into another their rows again, as they were."""
    back = []
    for version in gone:
        row = kind.memories(id=version.memory_id, version=version.version + 1, aktualisiert_am=stamp.at)
        back.append(put(row, content_of(version, kind), stamp.at))
    add(kind, back, stamp)
