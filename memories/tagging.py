"""Tags as a whole: rename, merge, remove. Each memory that changes gets its version; others may write meanwhile.

Memories are changed in batches, each committed, so a call that was broken off is completed by making it again. A tag
goes only when, with its row locked, no memory carries it: whoever stores a memory with it holds that row
(`tags.known_tags`).
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from memories.errors import BrainError, Conflict, NotAllowed, NotFound
from memories.history import Stamp
from memories.kinds import KINDS, Kind
from memories.models import Aktion, Tag
from memories.principal import Action, Origin, Principal
from memories.steps import Done, Outcome, landed, locked, moment, no_memory, put, revise
from memories.values import tag_key, tag_name
from memories.writing import write_in_groups

_AT_ONCE = 100  # memories
_TAGS_AT_ONCE = 500
_ROUNDS = 5  # others may give a tag to more memories meanwhile

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Retagged:
    """What became of a tag: its name now, and how many memories changed.

    `left` says that the old tag is still there, on memories that this principal may not change.
    """

    name: str
    changed: int
    left: bool = False


def rename(key: int, name: str, origin: Origin, progress: Progress = lambda _changed: None) -> Retagged:
    """Give a tag another spelling or another name. `progress` hears how many memories have changed.

    Another name goes to the memories that the principal may change; others keep the old tag. A spelling is one for all,
    so NotAllowed when some carrier is out of reach. Conflict when there is a tag of that name: those can be merged.
    """
    tag = _tag(key)
    name = tag_name(name, "name")
    if tag_key(name) == tag.schluessel:
        return _respell(tag, name, origin, progress)
    if Tag.objects.filter(schluessel=tag_key(name)).exists():
        raise Conflict(_("There is a tag %(name)s already; the two can be merged.") % {"name": name}, "name")
    return _move([tag], name, origin, progress)


def merge(keys: Sequence[int], into: int, origin: Origin, progress: Progress = lambda _changed: None) -> Retagged:
    """Replace tags by another one, in the memories that the principal may change; others keep theirs."""
    target = _tag(into)
    return _move([_tag(key) for key in keys if key != into], target.name, origin, progress)


def unused() -> QuerySet[Tag]:
    """The tags that no memory carries."""
    found = Tag.objects.all()
    for kind in KINDS:
        found = found.exclude(Exists(kind.links.objects.filter(tag_id=OuterRef("pk"))))
    return found


def remove_unused() -> int:
    """Remove the tags that no memory carries; returns how many."""
    removed = 0
    last = ""
    tags = unused().order_by("schluessel")
    while part := list(tags.filter(schluessel__gt=last)[:_TAGS_AT_ONCE]):
        last = part[-1].schluessel
        removed += _remove(part)
    return removed


def drop_unused(keys: Iterable[str]) -> None:
    """Remove those of the tags of these keys that no memory carries, within the caller's transaction."""
    wanted = sorted(keys)
    for start in range(0, len(wanted), _TAGS_AT_ONCE):
        _drop_unused(Tag.objects.filter(schluessel__in=wanted[start : start + _TAGS_AT_ONCE]))


def out_of_reach(tag: Tag, principal: Principal) -> bool:
    """Whether some memory carries the tag that the principal may not change."""
    return any(_links(kind, tag).exclude(Exists(_changeable(kind, principal))).exists() for kind in KINDS)


def carriers(kind: Kind, tag: Tag, principal: Principal) -> QuerySet[Any]:
    """The links of the tag to memories that the principal may change."""
    return _links(kind, tag).filter(Exists(_changeable(kind, principal)))


def _links(kind: Kind, tag: Tag) -> QuerySet[Any]:
    links: QuerySet[Any] = kind.links.objects.filter(tag_id=tag.pk)
    return links


def _changeable(kind: Kind, principal: Principal) -> QuerySet[Any]:
    rows: QuerySet[Any] = kind.memories.objects.visible_to(principal, Action.WRITE, also_expired=True)
    return rows.filter(pk=OuterRef("memory_id"))


def _tag(key: int) -> Tag:
    tag = Tag.objects.filter(pk=key).first()
    if tag is None:
        raise NotFound(_("There is no such tag."), "ID")
    return tag


def _respell(tag: Tag, name: str, origin: Origin, progress: Progress) -> Retagged:
    """The name first: whoever looks the tag up from now on gets the new one. Then the memories follow."""
    if out_of_reach(tag, origin.principal):
        told = _("Memories that you may not change carry this tag, too, and its spelling is one for all.")
        raise NotAllowed(told, "name")

    def write(_part: Sequence[Tag]) -> list[int]:
        list(Tag.objects.select_for_update().filter(pk=tag.pk))
        return [Tag.objects.filter(pk=tag.pk).update(name=name)]

    _done(write_in_groups([tag], write, lambda _told: Tag.objects.filter(pk=tag.pk, name=name).exists())[0])
    return Retagged(name, _told(_retagged(tag, name, origin), progress))


def _move(tags: Sequence[Tag], name: str, origin: Origin, progress: Progress) -> Retagged:
    changed, left = 0, False
    for tag in tags:
        for _round in range(_ROUNDS):
            changed = _told(_retagged(tag, name, origin), progress, changed)
            if _remove([tag]):
                break
        else:
            left = True
    return Retagged(name, changed, left)


def _told(changes: Iterator[int], progress: Progress, changed: int = 0) -> int:
    for number in changes:
        changed += number
        progress(changed)
    return changed


def _retagged(tag: Tag, name: str, origin: Origin) -> Iterator[int]:
    """Put the name in the place of the tag, a batch at a time; how many memories changed in each."""
    for kind in KINDS:
        last = 0
        found = carriers(kind, tag, origin.principal).order_by("memory_id").values_list("memory_id", flat=True)
        while keys := list(found.filter(memory_id__gt=last)[:_AT_ONCE]):
            last = keys[-1]
            outcomes = _retag(kind, keys, tag, name, origin)
            yield sum(isinstance(outcome, Done) and outcome.changed for outcome in outcomes)


def _retag(kind: Kind, keys: Sequence[int], tag: Tag, name: str, origin: Origin) -> list[Outcome]:
    def write(part: Sequence[int]) -> list[Outcome]:
        rows = locked(kind, part, origin.principal, Action.WRITE, also_expired=True)
        at = moment(rows.values(), origin)
        wanted = {key: _replaced(row.tag_namen, tag.schluessel, name) for key, row in rows.items()}
        pairs = [(row, put(copy.copy(row), {"tag_namen": wanted[key]}, at)) for key, row in rows.items()]
        outcomes = revise(kind, pairs, Stamp(origin, Aktion.GEAENDERT, at), Action.WRITE)
        return [outcomes.get(key) or no_memory() for key in part]

    return write_in_groups(keys, write, landed(origin))


def _replaced(names: Sequence[str], old: str, name: str) -> list[str]:
    """The names with this one for the tag of the key `old`, each tag once, where it stood first."""
    found: dict[str, str] = {}
    for each in names:
        now = name if tag_key(each) == old else each
        found.setdefault(tag_key(now), now)
    return list(found.values())


def _remove(tags: Sequence[Tag]) -> int:
    """Remove those of these tags that no memory carries; those who just store one with such a tag come first."""
    keys = [tag.pk for tag in tags]

    def write(_part: Sequence[object]) -> list[int]:
        return [_drop_unused(Tag.objects.filter(pk__in=keys))]

    return _done(write_in_groups([keys], write, lambda _told: not Tag.objects.filter(pk__in=keys).exists())[0])


def _drop_unused(tags: QuerySet[Tag]) -> int:
    keys = [tag.pk for tag in tags.select_for_update().order_by("schluessel")]
    gone = list(unused().filter(pk__in=keys).values_list("pk", flat=True))
    Tag.objects.filter(pk__in=gone).delete()
    return len(gone)


def _done(outcome: int | BrainError) -> int:
    if isinstance(outcome, BrainError):
        raise outcome
    return outcome
