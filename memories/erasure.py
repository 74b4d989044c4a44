"""Erasing a person: all memories that are or were hers, with their histories and traces. What stays is the proof.

Hers is every memory of which some version names her as its owner (`nutzer`): live, in the trash, proposed, expired or
merged into another. Each step is one transaction, others write meanwhile, and an erasure that was broken off goes on
where it ended. Nobody else removes versions.

What becomes of each table:

- gone with a memory: its row, versions, tag links, entries and past entries of the search index (with their vectors,
  the derived ones, too), words of the vocabulary that no other entry holds, tags that nobody carries then, compared
  texts and near-duplicates, recalls, open references, rows of Django's log, and views that filter by such a tag;
- gone at the end (`memories.traces`): what she searched, stored answers of repeats, rows of imports, saved views that
  name her, where her memories were imported from, and the codes of her vectors in the blocks;
- stays, since it is others' history: versions of other people's memories that she changed (`durch_nutzer`), with the
  reason she gave, and IDs of hers in their `verweis`, which lead to nothing; what others quoted from her, or took over
  by merging;
- stays, since it has no text: records of calls and what keys have used, the digest of the last failing call of a key,
  embedding profiles (models, not vectors), the name of this installation;
- stays, since it is about accounts: people, groups, grants, keys, which may name her, sign-in attempts, second factors,
  sessions, OAuth clients and connections. Each has its own page.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Count, Max, Model, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from memories import traces
from memories.errors import BrainError, Invalid, Missing, NotAllowed
from memories.kinds import KINDS, Kind
from memories.models import (
    ComparedText,
    DuplicatePair,
    ErasedMemory,
    Erasure,
    OpenReference,
    PastEntry,
    Recall,
    SearchEntry,
    Tag,
)
from memories.models.erasure import hash_of
from memories.principal import SYSTEM, Action, Origin, Principal
from memories.search import vocabulary
from memories.tagging import drop_unused
from memories.transfer.exporting import memory_lines
from memories.values import says, tag_key
from memories.writing import turn, write_in_groups

_AT_ONCE = 100  # memories


@dataclass(frozen=True, slots=True)
class Found:
    """What there is of a person: memories and versions by kind, and an erasure that was begun and has not ended."""

    anzahl: dict[str, tuple[int, int]]
    begun: Erasure | None

    @property
    def memories(self) -> int:
        """How many memories of all kinds."""
        return sum(memories for memories, _versions in self.anzahl.values())


def find(nutzer: str, principal: Principal) -> Found:
    """What there is of the person. NotAllowed when that is nothing, or not all within reach: both read the same."""
    if not reaches(nutzer, principal) or any(_outside(kind, _hers(kind, nutzer), principal) for kind in KINDS):
        raise out_of_reach()
    found = Found({kind.typ: _numbers(kind, nutzer) for kind in KINDS}, _open(nutzer))
    if not found.memories and found.begun is None:
        raise out_of_reach()
    return found


def out_of_reach() -> NotAllowed:
    """There is nobody of this name, or not all is in reach."""
    return NotAllowed(_("There is nobody of this name all of whose memories you may erase."), "nutzer")


def may_erase_somebody(principal: Principal) -> bool:
    """Whether the principal reaches somebody wholly, whoever that is."""
    return all(_whole(principal, kind) for kind in KINDS)


def _whole(principal: Principal, kind: Kind) -> list[frozenset[str] | None]:
    """Whose memories of the kind it may delete, wherever they lie; None for everybody's."""
    reaches = principal.reaching(Action.DELETE, kind.typ)
    return [reach.nutzer for reach in reaches if reach.limits().keys() <= {"nutzer"} and reach.nutzer != frozenset()]


def reaches(nutzer: str, principal: Principal) -> bool:
    """Whether the principal may delete memories of this person wherever they lie."""
    return all(any(only is None or nutzer in only for only in _whole(principal, kind)) for kind in KINDS)


def _hers(kind: Kind, nutzer: str) -> Q:
    """The versions, also under other owners, of memories that are or were hers."""
    return Q(memory_id__in=kind.versions.objects.filter(nutzer=nutzer).values("memory_id"))


def _outside(kind: Kind, versions: Q, principal: Principal) -> bool:
    """Whether some of these versions are somebody's whose memories the principal may not delete."""
    if any(not reach.limits() for reach in principal.reaching(Action.DELETE, kind.typ)):
        return False
    found = kind.versions.objects.filter(versions)
    within = found.visible_to(principal, Action.DELETE)
    return bool(found.exclude(pk__in=within.values("pk")).exists())


def _numbers(kind: Kind, nutzer: str) -> tuple[int, int]:
    counted = kind.versions.objects.filter(_hers(kind, nutzer)).aggregate(
        memories=Count("memory_id", distinct=True), versions=Count("pk")
    )
    return counted["memories"], counted["versions"]


def _open(nutzer: str) -> Erasure | None:
    begun: Erasure | None = Erasure.objects.of(nutzer).filter(beendet_am__isnull=True).first()
    return begun


def begin(nutzer: str, origin: Origin) -> Erasure:
    """Begin to erase the person, or go on with what was broken off. NotAllowed as above, Missing without a reason.

    Invalid when the reason names the person.
    """
    found = find(nutzer, origin.principal)
    if found.begun:
        return found.begun
    if not origin.grund.strip():
        raise Missing(_("Say why: the proof keeps the reason."), "grund")
    if says(origin.grund, nutzer):
        raise Invalid(_("This names the person, and the proof would keep it: say it without the name."), "grund")
    begun: Erasure
    begun, _made = Erasure.objects.get_or_create(
        identitaet=hash_of(nutzer),
        beendet_am=None,
        defaults={
            "tuer": origin.tuer,
            "benutzer_id": origin.principal.user_id,
            "benutzer": origin.principal.user_name,
            "grund": origin.grund,
            "gefunden": found.memories,
            "anzahl": {kind.typ: {"erinnerungen": 0, "versionen": 0, "eintraege": 0} for kind in KINDS},
        },
    )
    return begun


def step(begun: Erasure, nutzer: str, principal: Principal) -> bool:
    """Erase some more; whether it has ended. NotAllowed when not all is within reach any more.

    What is stored for her after the last memory was found is there when it has ended, and takes another erasure.
    """
    begun.refresh_from_db()
    if begun.beendet_am:
        return True
    if not reaches(nutzer, principal) or begun.identitaet != hash_of(nutzer):
        raise out_of_reach()
    batch = _next(begun, nutzer)
    if batch:
        _erase(begun, *batch, principal)
    elif begun.spuren < len(traces.TRACES):
        traces.TRACES[begun.spuren](begun, nutzer)
        Erasure.objects.filter(pk=begun.pk).update(spuren=begun.spuren + 1)
    else:
        _end(begun)
        return True
    return False


def _next(begun: Erasure, nutzer: str) -> tuple[Kind, list[int]] | None:
    """The next of her memories, all of one kind. The last look begins anew: some were stored meanwhile."""
    reached = dict(begun.erased.order_by().values_list("typ").annotate(last=Max("memory_id")))
    place = max((number for number, kind in enumerate(KINDS) if kind.typ in reached), default=0)
    onwards = [(kind, reached.get(kind.typ, 0)) for kind in KINDS[place:]]
    for kind, last in [*onwards, *((kind, 0) for kind in KINDS if reached)]:
        keys = _keys(kind, nutzer, last)
        if keys:
            return kind, keys
    return None


def _keys(kind: Kind, nutzer: str, last: int) -> list[int]:
    """Walks along an index, so that all steps together read the table once."""
    versions = kind.versions.objects.filter(nutzer=nutzer, memory_id__gt=last).order_by("memory_id")
    rows = kind.memories.objects.filter(nutzer=nutzer, pk__gt=last).order_by("pk")
    keys = {
        *versions.values_list("memory_id", flat=True).distinct()[:_AT_ONCE],
        *rows.values_list("pk", flat=True)[:_AT_ONCE],
    }
    return sorted(keys)[:_AT_ONCE]


def _erase(begun: Erasure, kind: Kind, keys: Sequence[int], principal: Principal) -> None:
    def write(part: Sequence[Sequence[int]]) -> list[int | BrainError]:
        Erasure.objects.select_for_update().get(pk=begun.pk)
        there = _locked(kind, part[0])
        if _outside(kind, Q(memory_id__in=there), principal):
            return [out_of_reach()]
        lines = {key: _digest(kind, key) for key in there}
        numbers = _removed(kind, there)
        ErasedMemory.objects.bulk_create(
            ErasedMemory(erasure=begun, typ=kind.typ, memory_id=key, digest=digest) for key, digest in lines.items()
        )
        _count(begun, kind, {"erinnerungen": len(there), **numbers})
        return [len(there)]

    def landed(_outcomes: object) -> bool:
        return begun.erased.filter(typ=kind.typ, memory_id__in=keys).exists()

    outcome = write_in_groups([keys], write, landed)[0]
    if isinstance(outcome, BrainError):
        raise outcome


def _locked(kind: Kind, keys: Sequence[int]) -> list[int]:
    """Those of these memories that are there; nobody adds a version to one of them meanwhile.

    As in a restore: at the oldest version, then at the live row.
    """
    versions = kind.versions.objects.filter(memory_id__in=keys, version=1).order_by("memory_id").select_for_update()
    rows = kind.memories.objects.filter(pk__in=keys).order_by("pk").select_for_update()
    return sorted({*versions.values_list("memory_id", flat=True), *rows.values_list("pk", flat=True)})


def _digest(kind: Kind, key: int) -> str:
    """The digest of the line, its line break included, that an export has of the memory."""
    return sha256("".join(memory_lines(kind, [key], SYSTEM)).encode()).hexdigest()


def _removed(kind: Kind, keys: Sequence[int]) -> dict[str, int]:
    """Take the memories away, and what hangs on each; how many versions and entries there were."""
    of_these = {"typ": kind.typ, "memory_id__in": keys}
    versions = kind.versions.objects.filter(memory_id__in=keys)
    names = {name for some in versions.values_list("tag_namen", flat=True) for name in some}
    words: set[str] = set()
    eintraege = 0
    for model in (SearchEntry, PastEntry):
        entries = model.objects.filter(**of_these)
        words.update(*(stamm.split() for stamm in entries.values_list("stamm", flat=True)))
        eintraege += entries.delete()[0]
    for hanging in (ComparedText, OpenReference, Recall):
        hanging.objects.filter(**of_these).delete()
    either = Q(first_id__in=keys) | Q(second_id__in=keys)
    DuplicatePair.objects.filter(either, typ=kind.typ).delete()
    _unlog(kind.versions, versions.values_list("pk", flat=True))
    _unlog(kind.memories, keys)
    kind.memories.objects.filter(pk__in=keys).delete()
    versionen = versions.delete()[0]
    _forget_tags(names)
    vocabulary.forget(words)
    return {"versionen": versionen, "eintraege": eintraege}


def _forget_tags(names: Iterable[str]) -> None:
    """Remove the tags that nobody carries any more, and what speaks of those of these names that are no tags now."""
    by_key = {tag_key(name): name for name in names}
    drop_unused(by_key)
    gone = by_key.keys() - {*Tag.objects.filter(schluessel__in=by_key).values_list("schluessel", flat=True)}
    traces.forget_views(tags=gone)
    _logged(Tag).filter(object_repr__in=[name for name in names if tag_key(name) in gone]).delete()


def _unlog(model: type[Model], keys: Iterable[int]) -> None:
    """Take these rows out of Django's log, which would have a text of theirs."""
    if _logged(model).exists():
        _logged(model).filter(object_id__in=[str(key) for key in keys]).delete()


def _logged(model: type[Model]) -> QuerySet[LogEntry]:
    return LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(model))


def _count(begun: Erasure, kind: Kind, numbers: dict[str, int]) -> None:
    now = Erasure.objects.get(pk=begun.pk)
    held = now.anzahl[kind.typ]
    now.anzahl[kind.typ] = {what: held[what] + number for what, number in numbers.items()}
    now.spuren = 0  # what was stored meanwhile may have left traces, too
    now.save(update_fields=["anzahl", "spuren"])


def _end(begun: Erasure) -> None:
    """The digest is that of the lines' digests as `sha256sum` writes and `sort` orders them, one a line."""
    with turn(), transaction.atomic():
        lines = sha256()
        for digest in begun.erased.order_by("digest").values_list("digest", flat=True).iterator():
            lines.update(f"{digest}\n".encode())
        begun.erased.all().delete()
        ended = {"beendet_am": timezone.now(), "digest": lines.hexdigest()}
        Erasure.objects.filter(pk=begun.pk, beendet_am__isnull=True).update(**ended)
    begun.refresh_from_db()
