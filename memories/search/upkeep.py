"""Upkeep of the search index: is it as the memories say, make it anew, and put loose vectors into blocks."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from memories.history import removing
from memories.kinds import KINDS, Kind
from memories.models import EmbeddingProfile, Memory, PastEntry, SearchEntry, VectorBlock
from memories.search import engine, index, pgvector, vectors
from memories.search.index import DERIVED
from memories.search.vectors import Profile

_AT_ONCE = 200  # memories

Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Deviation:
    """A memory, or a table, whose entries are not what they should be."""

    where: str
    what: str


def is_missing() -> bool:
    """Whether there are memories but no entries at all: an installation from before there was a search."""
    return not SearchEntry.objects.exists() and any(
        kind.memories.objects.filter(vorgeschlagen=False).exists() for kind in KINDS
    )


def check(progress: Progress) -> Iterator[Deviation]:
    """What of the index is not as the memories and versions say; each chunk is read in one snapshot."""
    for kind in KINDS:
        seen = 0
        for keys in _chunks(kind):
            with transaction.atomic():
                yield from _deviations(kind, keys)
            seen += len(keys)
            progress(kind.typ, seen)
    for model in (SearchEntry, PastEntry):
        for typ, key in sorted(set(_of_nobody(model).values_list("typ", "memory_id"))):
            yield Deviation(f"{typ}_{key}", "is found, but never was")
    yield from (Deviation(table, "does not agree with the entries") for table in engine.broken())


def _of_nobody(model: type[SearchEntry] | type[PastEntry]) -> QuerySet[Any]:
    """The entries of memories that never were."""
    known = Q()
    for kind in KINDS:
        known |= Q(Exists(kind.versions.objects.filter(memory_id=OuterRef("memory_id"))), typ=kind.typ)
    found: QuerySet[Any] = model.objects.exclude(known)
    return found


def _deviations(kind: Kind, keys: Sequence[int]) -> Iterator[Deviation]:
    rows = list(kind.memories.objects.filter(pk__in=keys).order_by("pk").select_for_update())
    live = [entry for memory in rows for entry in index.entries_of(kind, memory)]
    past = past_of(kind, keys)
    derived = list(index.derived_of(kind, keys))
    checked = (
        (live, SearchEntry.objects.filter(typ=kind.typ, memory_id__in=keys, teil__lt=DERIVED), "as it is"),
        (past, PastEntry.objects.filter(typ=kind.typ, memory_id__in=keys, teil__lt=DERIVED), "as it was"),
        (_derived(kind, rows, derived), derived, "by the vector derived from its text"),
    )
    for wanted, held, what in checked:
        right, there = Counter(map(_told, wanted)), Counter(map(_told, held))
        for key in sorted({told[0] for told in (right - there) + (there - right)}):
            yield Deviation(f"{kind.typ}_{key}", f"is not found {what}")


def _derived(kind: Kind, memories: Sequence[Memory], held: Sequence[SearchEntry]) -> Iterator[SearchEntry]:
    """The entries that these derived vectors should have: of memories and profiles that there are."""
    there = {memory.pk: memory for memory in memories if not memory.vorgeschlagen}
    profiles = {profile.pk: profile for profile in EmbeddingProfile.objects.all()} if held else {}
    for entry in held:
        memory, profile = there.get(entry.memory_id), profiles.get(entry.teil - DERIVED)
        vektor = bytes(entry.vektor or b"")
        if memory is not None and profile is not None and len(vektor) == 4 * profile.dimension:
            yield index.derived_entry(kind, memory, profile, vektor)


def _told(entry: Any) -> tuple[Any, ...]:
    vector = None if entry.vektor is None else bytes(entry.vektor)
    times = (entry.seit, entry.erstellt_am, entry.gueltig_bis, getattr(entry, "bis", None))
    profile = (entry.profil_hash, entry.dimension, entry.veraltet, vector)
    return (entry.memory_id, entry.version, entry.teil, *times, *profile, entry.stamm, entry.geltung)


def rebuild(progress: Progress) -> None:
    """Make all entries anew, in chunks that each are a transaction: nothing is missing to a search meanwhile."""
    if engine.broken():
        engine.renew()
    for model in (SearchEntry, PastEntry):
        _of_nobody(model).delete()
    for kind in KINDS:
        seen = 0
        for keys in _chunks(kind):
            with transaction.atomic():
                rows = kind.memories.objects.filter(pk__in=keys).order_by("pk").select_for_update()
                memories = list(rows)
                SearchEntry.objects.filter(typ=kind.typ, memory_id__in=keys, teil__lt=DERIVED).delete()
                PastEntry.objects.filter(typ=kind.typ, memory_id__in=keys, teil__lt=DERIVED).delete()
                index.put(kind, memories)
                _mend_derived(kind, keys, memories)
                PastEntry.objects.bulk_create(past_of(kind, keys))
            seen += len(keys)
            progress(kind.typ, seen)
    engine.renew()
    pack(progress)


def _mend_derived(kind: Kind, keys: Sequence[int], memories: Sequence[Memory]) -> None:
    """Have derived vectors say what their memories say; those that belong to nothing go. None is made anew."""
    held = list(index.derived_of(kind, keys))
    right = list(_derived(kind, memories, held))
    kept = {(entry.memory_id, entry.teil) for entry in right}
    SearchEntry.objects.filter(pk__in=[row.pk for row in held if (row.memory_id, row.teil) not in kept]).delete()
    wrong = {*map(_told, right)} - {*map(_told, held)}
    index.store([entry for entry in right if _told(entry) in wrong])


def past_of(kind: Kind, keys: Sequence[int]) -> list[PastEntry]:
    """The past entries that these memories should have: of all versions that something came after."""
    versions = list(kind.versions.objects.filter(memory_id__in=keys).order_by("memory_id", "version"))
    return [
        entry
        for version, after in itertools.pairwise(versions)
        if version.memory_id == after.memory_id and version.aktion not in removing(kind)
        for entry in index.past_entries_of(kind, version, after.zeitpunkt)
    ]


def pack(progress: Progress) -> None:
    """Put the pieces of the full-text index together, and loose vectors into blocks.

    Blocks of which fewer than half of the vectors live are taken apart. Where the database compares vectors itself, the
    large profiles get a graph instead.
    """
    engine.merge()
    if pgvector.is_there():
        pgvector.build(progress)
    for block in VectorBlock.objects.only("skalen").iterator():
        with transaction.atomic():
            living = SearchEntry.objects.filter(block=block.pk)
            if living.count() * 2 < block.size:
                living.update(block=None)
                block.delete()
    loose = SearchEntry.objects.filter(vektor__isnull=False, block__isnull=True, profil_hash__isnull=False)
    for profil_hash, dimension in loose.order_by().values_list("profil_hash", "dimension").distinct():
        made = 0
        while vectors.pack(Profile(profil_hash, dimension), 1):
            made += 1
            progress(profil_hash, made * vectors.BLOCK)


def _chunks(kind: Kind) -> Iterator[list[int]]:
    """The keys of all memories that ever were, in chunks."""
    last = 0
    versions = kind.versions.objects.filter(version=1).order_by("memory_id").values_list("memory_id", flat=True)
    while keys := list(versions.filter(memory_id__gt=last)[:_AT_ONCE]):
        last = keys[-1]
        yield keys
