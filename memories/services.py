"""The verbs: insert, update, delete, restore, promote, clean up. Each change of a memory is one version of it."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from memories.embeddings import ProfileGuard, put_embedding
from memories.errors import BrainError, Conflict, NotAllowed, NotFound
from memories.history import Stamp, content_of, record
from memories.kinds import LONGTERM, SHORTTERM, Kind
from memories.models import Aktion, Memory, Tag, Version
from memories.principal import Action, Origin, Principal
from memories.search import index
from memories.tags import known_tags, link, spell, unlink
from memories.writing import write_in_groups

_CLEANED_AT_ONCE = 100
_WIRE = {("brain", "scope"): "scope_typ", ("brain", "scope_vk"): "scope_ID"}


@dataclass(frozen=True, slots=True)
class Change:
    """New values for some fields of one memory, by field name; `tag_namen` replaces all its tags.

    With `erwartete_version` the change holds for that version alone, and is a Conflict for any other.
    """

    key: int
    values: Mapping[str, Any]
    erwartete_version: int | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """A memory after a change. `changed` is False when it already was as wanted, and no version was written."""

    kind: Kind
    key: int
    version: int
    changed: bool = True
    verweis: str = ""

    @property
    def kennung(self) -> str:
        """The ID on the wire."""
        return f"{self.kind.typ}_{self.key}"


Outcome = Done | BrainError


def insert(kind: Kind, drafts: Sequence[Mapping[str, Any]], origin: Origin) -> list[Outcome]:
    """Store new memories. A draft has the kind's content by field name, in canonical form."""

    def write(part: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        at = origin.clock()
        known = known_tags(name for draft in part for name in draft["tag_namen"])
        fresh = [_put(kind.memories(erstellt_am=at, aktualisiert_am=at), draft, known, at) for draft in part]
        guard = ProfileGuard(kind, fresh, origin.principal, apart_from=[])
        faults = [_out_of_reach(kind, memory, origin, Action.WRITE) or guard.fault(memory) for memory in fresh]
        good = [memory for memory, fault in zip(fresh, faults, strict=True) if not fault]
        _add(kind, good, known, Stamp(origin, Aktion.ANGELEGT, at))
        return [fault or Done(kind, memory.pk, memory.version) for memory, fault in zip(fresh, faults, strict=True)]

    return write_in_groups(drafts, write, _landed(origin), once=origin.repeat)


def update(kind: Kind, changes: Sequence[Change], origin: Origin) -> list[Outcome]:
    """Change memories. What is not named stays; a memory named twice is changed twice, in order."""

    def write(part: Sequence[Change]) -> list[Outcome]:
        rows = _locked(kind, [change.key for change in part], origin.principal, Action.WRITE)
        at = _moment(rows.values(), origin)
        known = known_tags(name for change in part for name in change.values.get("tag_namen", ()))
        found = [change for change in part if change.key in rows]
        fresh = [c for c in found if c.erwartete_version in {None, rows[c.key].version}]
        pairs = [(rows[c.key], _put(copy.copy(rows[c.key]), c.values, known, at)) for c in fresh]
        outcomes = _revise(kind, pairs, known, Stamp(origin, Aktion.GEAENDERT, at), Action.WRITE)
        return [
            outcomes.get(c.key) or (_changed_meanwhile(rows[c.key]) if c.key in rows else _no_memory()) for c in part
        ]

    return write_in_groups(changes, write, _landed(origin), apart=lambda change: change.key, once=origin.repeat)


def delete(kind: Kind, keys: Sequence[int], origin: Origin) -> list[Outcome]:
    """Delete memories; the history keeps their last state."""
    return _delete(kind, keys, origin, only=lambda _row: True)


def _delete(kind: Kind, keys: Sequence[int], origin: Origin, *, only: Callable[[Memory], bool]) -> list[Outcome]:
    """Delete memories that are, once they are locked, still as they should be."""

    def write(part: Sequence[int]) -> list[Outcome]:
        rows = {key: row for key, row in _locked(kind, part, origin.principal, Action.DELETE).items() if only(row)}
        _remove(kind, list(rows), Stamp(origin, Aktion.GELOESCHT, _moment(rows.values(), origin)))
        return [Done(kind, key, rows[key].version + 1) if key in rows else _no_memory() for key in part]

    return write_in_groups(keys, write, _landed(origin), apart=lambda key: key, once=origin.repeat)


def promote(keys: Sequence[int], origin: Origin) -> list[Outcome]:
    """Turn short-term memories into long-term ones: a new ID, everything else carried over, each naming the other."""

    def write(part: Sequence[int]) -> list[Outcome]:
        rows = _locked(SHORTTERM, part, origin.principal, Action.WRITE)
        at = _moment(rows.values(), origin)
        moved = {key: _as_longterm(row, at) for key, row in rows.items()}
        faults = {key: _out_of_reach(LONGTERM, memory, origin, Action.WRITE) for key, memory in moved.items()}
        fresh = {key: memory for key, memory in moved.items() if not faults[key]}
        known = known_tags(name for memory in fresh.values() for name in memory.tag_namen)
        LONGTERM.memories.objects.bulk_create(fresh.values())
        link(LONGTERM, fresh.values(), known)
        index.put(LONGTERM, list(fresh.values()))
        old = {new.pk: rows[key].kennung for key, new in fresh.items()}
        record(LONGTERM, list(old), Stamp(origin, Aktion.BEFOERDERT, at, verweise=old))
        new = {key: memory.kennung for key, memory in fresh.items()}
        _remove(SHORTTERM, list(fresh), Stamp(origin, Aktion.BEFOERDERT, at, verweise=new))
        done = {key: Done(LONGTERM, memory.pk, 1, verweis=rows[key].kennung) for key, memory in fresh.items()}
        return [done.get(key) or faults.get(key) or _no_memory() for key in part]

    return write_in_groups(keys, write, _landed(origin), apart=lambda key: key, once=origin.repeat)


def restore(kind: Kind, key: int, number: int, origin: Origin) -> Outcome:
    """Set a memory, also a deleted one, back to one of its versions. A validity that is over begins anew."""

    def write(_part: Sequence[int]) -> list[Outcome]:
        rows, newest = _locked_with_newest(kind, key, origin.principal)
        history = kind.versions.objects.visible_to(origin.principal, Action.RESTORE).filter(memory_id=key)
        if newest is None or not history.filter(pk=newest.pk).exists():
            return [_no_memory()]
        version = history.filter(version=number).first()
        if version is None:
            return [NotFound(_("The memory has no version of this number."), "version")]
        at = max(_moment(rows.values(), origin), newest.zeitpunkt)
        known = known_tags(version.tag_namen)
        stamp = Stamp(origin, Aktion.WIEDERHERGESTELLT, at, verweise={key: str(version)})
        if key in rows:
            wanted = _put(copy.copy(rows[key]), _valid_again(version, kind, at), known, at)
            return [_revise(kind, [(rows[key], wanted)], known, stamp, Action.RESTORE)[key]]
        back = kind.memories(id=key, version=newest.version + 1, aktualisiert_am=at)
        _add(kind, [_put(back, _valid_again(version, kind, at), known, at)], known, stamp)
        return [Done(kind, key, back.version)]

    return write_in_groups([key], write, _landed(origin), once=origin.repeat)[0]


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


def _locked(
    kind: Kind, keys: Sequence[int], principal: Principal, action: Action, *, also_expired: bool = False
) -> dict[int, Memory]:
    """The rows with which this may be done, locked in the order of their keys, by key."""
    rows = kind.memories.objects.visible_to(principal, action, also_expired=also_expired)
    return {row.pk: row for row in rows.filter(pk__in=keys).order_by("pk").select_for_update()}


def _locked_with_newest(kind: Kind, key: int, principal: Principal) -> tuple[dict[int, Memory], Version | None]:
    """The memory's row, when it has one that may be restored, and its newest version; nobody adds another meanwhile.

    A deleted memory has no row to lock, so restores wait for each other at its oldest version. The newest one is read
    under both locks: whoever held the row before may have written it, even have removed the row.
    """
    versions = kind.versions.objects.filter(memory_id=key)
    versions.order_by("version").select_for_update().first()
    rows = _locked(kind, [key], principal, Action.RESTORE, also_expired=True)
    newest: Version | None = versions.order_by("-version").first()
    return rows, newest


def _moment(rows: Iterable[Memory], origin: Origin) -> datetime:
    """The moment of a change, never before the last change of any of the rows: clocks may differ, histories not."""
    return max([origin.clock(), *(row.aktualisiert_am for row in rows)])


def _put(memory: Any, values: Mapping[str, Any], known: Mapping[str, Tag], at: datetime) -> Any:
    """The memory with these values in it, its tags as they are spelled, its vector stale when its text moved on."""
    texts = memory.texts
    for name, value in values.items():
        setattr(memory, name, value)
    if "tag_namen" in values:
        memory.tag_namen = spell(values["tag_namen"], known)
    if memory.EXPIRES and memory.gueltig_bis is None:
        memory.gueltig_bis = memory.default_expiry(at)
    if "embedding_veraltet" in values:
        return memory
    if "embedding" in values:
        put_embedding(memory, values["embedding"])
    elif memory.embedding is not None and memory.texts != texts:
        memory.embedding_veraltet = True
    return memory


def _out_of_reach(kind: Kind, memory: Memory, origin: Origin, action: Action) -> NotAllowed | None:
    """Why the principal may not have such a memory stored: its owner, agent, scope or record is not one of his."""
    reaches = origin.principal.reaching(action, kind.typ)
    if not reaches:
        return NotAllowed(_("You may not store memories of this kind."))
    outside = min((reach.outside(**memory.place()) for reach in reaches), key=len)
    if not outside:
        return None
    feld = _WIRE.get((kind.typ, outside[0]), outside[0])
    return NotAllowed(_("This key may not store memories with this %(feld)s.") % {"feld": feld}, feld)


def _add(kind: Kind, memories: Sequence[Memory], known: Mapping[str, Tag], stamp: Stamp) -> None:
    """Store rows that are not there yet, with their tags and their version."""
    kind.memories.objects.bulk_create(memories)
    link(kind, memories, known)
    index.put(kind, memories)
    record(kind, [memory.pk for memory in memories], stamp)


def _revise(
    kind: Kind, pairs: Sequence[tuple[Memory, Memory]], known: Mapping[str, Tag], stamp: Stamp, action: Action
) -> dict[int, Outcome]:
    """Store what differs between the present row and the wanted one of each pair, as its next version."""
    outcomes: dict[int, Outcome] = {now.pk: Done(kind, now.pk, now.version, changed=False) for now, _wanted in pairs}
    moved = [wanted for now, wanted in pairs if _profile(wanted) != _profile(now)]
    guard = ProfileGuard(kind, moved, stamp.origin.principal, apart_from=[memory.pk for memory in moved])
    changed: list[Memory] = []
    retagged: list[Memory] = []
    for now, wanted in pairs:
        if content_of(now, kind) == content_of(wanted, kind):
            continue
        fault = _out_of_reach(kind, wanted, stamp.origin, action) or (guard.fault(wanted) if wanted in moved else None)
        outcomes[now.pk] = fault or Done(kind, now.pk, now.version + 1)
        if not fault:
            wanted.version, wanted.aktualisiert_am = now.version + 1, stamp.at
            changed.append(wanted)
            if wanted.tag_namen != now.tag_namen:
                retagged.append(wanted)
    _store(kind, changed)
    unlink(kind, [memory.pk for memory in retagged])
    link(kind, retagged, known)
    index.put(kind, changed, replaced=[now for now, _wanted in pairs])
    record(kind, [memory.pk for memory in changed], stamp)
    return outcomes


def _profile(memory: Memory) -> tuple[str | None, int | None]:
    return memory.embedding_profil_hash, memory.embedding_dimension


def _store(kind: Kind, changed: Sequence[Memory]) -> None:
    """Overwrite whole rows under their lock. One upsert; bulk_update's CASE costs three to five times as much."""
    names = [column.name for column in kind.memories._meta.concrete_fields if not column.primary_key]  # noqa: SLF001
    kind.memories.objects.bulk_create(changed, update_conflicts=True, unique_fields=["id"], update_fields=names)


def _remove(kind: Kind, keys: Sequence[int], stamp: Stamp) -> None:
    """Take live rows away, after their last version was written; their tag links go with them."""
    record(kind, keys, stamp, leaving=True)
    index.retire(kind, keys, stamp.at)
    kind.memories.objects.filter(pk__in=keys).delete()


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


def _changed_meanwhile(row: Memory) -> Conflict:
    told = _("The memory was changed by somebody else in the meantime; it is at version %(number)d now.")
    return Conflict(told % {"number": row.version}, "erwartete_version", version=row.version)


def _no_memory() -> NotFound:
    return NotFound(_("There is no memory of this ID."), "ID")


def _landed(origin: Origin) -> Callable[[Sequence[Outcome]], bool]:
    """Whether a group is in the database: its transaction wrote all its versions or none, so one of them tells."""

    def check(outcomes: Sequence[Outcome]) -> bool:
        for outcome in outcomes:
            if isinstance(outcome, Done) and outcome.changed:
                versions = outcome.kind.versions.objects.filter(memory_id=outcome.key, version=outcome.version)
                return bool(versions.filter(aufruf=origin.aufruf).exists())
        return True

    return check
