"""What every change is made of: rows locked, values put in, stored, each with its version, and what came of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from memories.embeddings import ProfileGuard, put_embedding
from memories.errors import BrainError, Conflict, NotAllowed, NotFound
from memories.history import Stamp, content_of, record
from memories.kinds import Kind
from memories.models import Memory, Tag
from memories.principal import Action, Origin, Principal
from memories.search import index
from memories.tags import known_tags, link, spell, unlink

_WIRE = {("brain", "scope"): "scope_typ", ("brain", "scope_vk"): "scope_ID"}


@dataclass(frozen=True, slots=True)
class Done:
    """A memory after a change. `changed` is False when it already was as wanted, and no version was written.

    `vorgeschlagen` says of a new one that it waits for approval.
    """

    kind: Kind
    key: int
    version: int
    changed: bool = True
    verweis: str = ""
    vorgeschlagen: bool = False

    @property
    def kennung(self) -> str:
        """The ID on the wire."""
        return f"{self.kind.typ}_{self.key}"


Outcome = Done | BrainError


def locked(
    kind: Kind, keys: Sequence[int], principal: Principal, action: Action, *, also_expired: bool = False
) -> dict[int, Memory]:
    """The rows with which this may be done, locked in the order of their keys, by key."""
    rows = kind.memories.objects.visible_to(principal, action, among=keys, also_expired=also_expired)
    return {row.pk: row for row in rows.order_by("pk").select_for_update()}


def moment(rows: Iterable[Memory], origin: Origin) -> datetime:
    """The moment of a change, never before the last change of any of the rows: clocks may differ, histories not."""
    return max([origin.clock(), *(row.aktualisiert_am for row in rows)])


def put(memory: Any, values: Mapping[str, Any], at: datetime) -> Any:
    """The memory with these values in it, its vector stale when its text moved on."""
    texts = memory.texts
    for name, value in values.items():
        setattr(memory, name, value)
    if memory.EXPIRES and memory.gueltig_bis is None:
        memory.gueltig_bis = memory.default_expiry(at)
    if "embedding_veraltet" in values:
        return memory
    if "embedding" in values:
        put_embedding(memory, values["embedding"])
    elif memory.embedding is not None and memory.texts != texts:
        memory.embedding_veraltet = True
    return memory


def out_of_reach(kind: Kind, memory: Memory, origin: Origin, action: Action) -> NotAllowed | None:
    """Why the principal may not have such a memory stored: its owner, agent, scope or record is not one of his."""
    reaches = origin.principal.reaching(action, kind.typ)
    if not reaches:
        return NotAllowed(_("You may not store memories of this kind."))
    outside = min((reach.outside(**memory.place()) for reach in reaches), key=len)
    if not outside:
        return None
    feld = _WIRE.get((kind.typ, outside[0]), outside[0])
    return NotAllowed(_("You may not store memories with this %(feld)s.") % {"feld": feld}, feld)


def _spell(memories: Sequence[Memory]) -> dict[str, Tag]:
    """Spell the tags of these memories as they were written first; the tags by key, new ones made.

    Only for what will be stored: an entry that is refused gives no tag its spelling.
    """
    known = known_tags(name for memory in memories for name in memory.tag_namen)
    for memory in memories:
        memory.tag_namen = spell(memory.tag_namen, known)
    return known


def add(kind: Kind, memories: Sequence[Memory], stamp: Stamp) -> None:
    """Store rows that are not there yet, with their tags and their version."""
    known = _spell(memories)
    kind.memories.objects.bulk_create(memories)
    link(kind, memories, known)
    index.put(kind, memories)
    record(kind, [memory.pk for memory in memories], stamp)


def revise(kind: Kind, pairs: Sequence[tuple[Memory, Memory]], stamp: Stamp, action: Action) -> dict[int, Outcome]:
    """Store what differs between the present row and the wanted one of each pair, as its next version.

    Where nothing differs there is no version, but when the stamp wants one always.
    """
    moved = [wanted for now, wanted in pairs if _profile(wanted) != _profile(now)]
    guard = ProfileGuard(kind, moved, stamp.origin.principal, apart_from=[memory.pk for memory in moved])
    outcomes: dict[int, Outcome] = {}
    for now, wanted in pairs:
        fault = out_of_reach(kind, wanted, stamp.origin, action) or (guard.fault(wanted) if wanted in moved else None)
        outcomes[now.pk] = fault or Done(kind, now.pk, now.version, changed=False)
    good = [(now, wanted) for now, wanted in pairs if isinstance(outcomes[now.pk], Done)]
    known = _spell([wanted for now, wanted in good if wanted.tag_namen != now.tag_namen])
    good = [pair for pair in good if stamp.always or content_of(pair[0], kind) != content_of(pair[1], kind)]
    for now, wanted in good:
        wanted.version, wanted.aktualisiert_am = now.version + 1, stamp.at
        outcomes[now.pk] = Done(kind, now.pk, wanted.version)
    changed = [wanted for _now, wanted in good]
    retagged = [wanted for now, wanted in good if wanted.tag_namen != now.tag_namen]
    _store(kind, changed)
    unlink(kind, [memory.pk for memory in retagged])
    link(kind, retagged, known)
    index.put(kind, changed, replaced=[now for now, _wanted in pairs])
    record(kind, [memory.pk for memory in changed], stamp)
    return outcomes


def _profile(memory: Memory) -> tuple[str | None, int | None, bool]:
    """Its profile, and whether that counts for others."""
    return memory.embedding_profil_hash, memory.embedding_dimension, memory.vorgeschlagen


def _store(kind: Kind, changed: Sequence[Memory]) -> None:
    """Overwrite whole rows under their lock. One upsert; bulk_update's CASE costs three to five times as much."""
    names = [column.name for column in kind.memories._meta.concrete_fields if not column.primary_key]  # noqa: SLF001
    kind.memories.objects.bulk_create(changed, update_conflicts=True, unique_fields=["id"], update_fields=names)


def remove(kind: Kind, keys: Sequence[int], stamp: Stamp) -> None:
    """Take live rows away, after their last version was written; their tag links go with them."""
    record(kind, keys, stamp, leaving=True)
    index.retire(kind, keys, stamp.at)
    kind.memories.objects.filter(pk__in=keys).delete()


def changed_meanwhile(row: Memory) -> Conflict:
    """Somebody else's change came first."""
    told = _("The memory was changed by somebody else in the meantime; it is at version %(number)d now.")
    return Conflict(told % {"number": row.version}, "erwartete_version", version=row.version)


def no_memory() -> NotFound:
    """There is none, or none in reach."""
    return NotFound(_("There is no memory of this ID."), "ID")


def landed(origin: Origin) -> Callable[[Sequence[Outcome]], bool]:
    """Whether a group is in the database: its transaction wrote all its versions or none, so one of them tells."""

    def check(outcomes: Sequence[Outcome]) -> bool:
        for outcome in outcomes:
            if isinstance(outcome, Done) and outcome.changed:
                versions = outcome.kind.versions.objects.filter(memory_id=outcome.key, version=outcome.version)
                return bool(versions.filter(aufruf=origin.aufruf).exists())
        return True

    return check
