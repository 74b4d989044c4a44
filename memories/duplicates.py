"""Finding near-duplicates: memories with the same text, case and accents aside, or with close vectors of one profile.

No memory is compared with all others. What is new or changed since it was last compared is looked up: its text's digest
by an index, its vector's neighbours by the search. So a run costs what changed, and one that was broken off goes on.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models import Count, Exists, OuterRef

from memories.kinds import KINDS, Kind
from memories.models import ComparedText, DuplicatePair, Likeness, Memory, SearchEntry
from memories.search.analyser import folded
from memories.search.reach import Bounds
from memories.search.vectors import Profile, VectorQuery, hits

_AT_ONCE = 500  # memories
_VECTORS_AT_ONCE = 100
_NEIGHBOURS = 3  # memories of the same text on either side: of very many, not every one is paired with each
_NEAREST = 8

Progress = Callable[[int], None]


def find(vectors: int, progress: Progress = lambda _compared: None) -> int:
    """Compare what is new or changed, vectors of at most so many memories; returns how many texts were compared.

    `progress` hears of each step. Pairs that are outdated go, but for those that somebody called no duplicate.
    """
    DuplicatePair.objects.outdated().filter(abgelehnt=False).delete()
    compared = 0
    for kind in KINDS:
        gone = ~Exists(kind.memories.objects.filter(pk=OuterRef("memory_id")))
        ComparedText.objects.filter(gone, typ=kind.typ).delete()
        for part in _changed(kind):
            _compare_texts(kind, part)
            compared += len(part)
            progress(compared)
    for kind in KINDS:
        vectors -= _compare_vectors(kind, vectors)
    return compared


def digest(memory: Memory) -> str:
    """The same for texts that differ only in case, accents, the spelling of umlauts, and blanks."""
    text = "\n".join(" ".join(folded(text).split()) for text in memory.texts)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def dismiss(keys: Iterable[int], pairs: Any, who: str) -> int:
    """Note of these pairs that they are no duplicates, for good; returns how many."""
    changed: int = pairs.filter(pk__in=list(keys)).update(abgelehnt=True, abgelehnt_von=who)
    return changed


def bring_back(keys: Iterable[int], pairs: Any) -> int:
    """Take that back; returns of how many."""
    changed: int = pairs.filter(pk__in=list(keys)).update(abgelehnt=False, abgelehnt_von="")
    return changed


def _changed(kind: Kind) -> Iterator[list[Memory]]:
    """The memories that were not compared as they are now, in parts. What is proposed is none of them."""
    same = ComparedText.objects.filter(typ=kind.typ, memory_id=OuterRef("pk"), version=OuterRef("version"))
    rows = (
        kind.memories.objects.filter(~Exists(same), vorgeschlagen=False)
        .only("version", *kind.memories.TEXTS)
        .order_by("pk")
    )
    last = 0
    while part := list(rows.filter(pk__gt=last)[:_AT_ONCE]):
        last = part[-1].pk
        yield part


def _compare_texts(kind: Kind, part: Sequence[Memory]) -> None:
    texts = [
        ComparedText(typ=kind.typ, memory_id=memory.pk, version=memory.version, digest=digest(memory))
        for memory in part
    ]
    ComparedText.objects.bulk_create(
        texts,
        update_conflicts=True,
        unique_fields=["typ", "memory_id"],
        update_fields=["version", "digest", "vektor"],
    )
    same = ComparedText.objects.filter(typ=kind.typ)
    several = (
        same.filter(digest__in={text.digest for text in texts}).values("digest").annotate(n=Count("pk")).filter(n__gt=1)
    )
    repeated = set(several.values_list("digest", flat=True))
    found: dict[tuple[int, int], DuplicatePair] = {}
    for text in (text for text in texts if text.digest in repeated):
        alike = same.filter(digest=text.digest)
        before = alike.filter(memory_id__lt=text.memory_id).order_by("-memory_id")[:_NEIGHBOURS]
        after = alike.filter(memory_id__gt=text.memory_id).order_by("memory_id")[:_NEIGHBOURS]
        found |= {_place(pair): pair for pair in (_pair(text, other, 1.0) for other in (*before, *after))}
    DuplicatePair.objects.bulk_create(
        found.values(),
        update_conflicts=True,
        unique_fields=["typ", "first_id", "second_id"],
        update_fields=["first_version", "second_version", "art", "cosinus"],
    )


def _pair(one: ComparedText, other: ComparedText, cosine: float) -> DuplicatePair:
    first, second = sorted((one, other), key=lambda each: each.memory_id)
    return DuplicatePair(
        typ=one.typ,
        first_id=first.memory_id,
        first_version=first.version,
        second_id=second.memory_id,
        second_version=second.version,
        art=Likeness.TEXT if one.digest == other.digest else Likeness.VEKTOR,
        cosinus=cosine,
    )


def _place(pair: DuplicatePair) -> tuple[int, int]:
    return pair.first_id, pair.second_id


def _compare_vectors(kind: Kind, most: int) -> int:
    """Look for the neighbours of at most so many memories whose vector was not compared, the newest first."""
    entry = SearchEntry.objects.filter(
        typ=kind.typ, vektor__isnull=False, veraltet=False, profil_hash__isnull=False, dimension__isnull=False
    )
    there = Exists(entry.filter(memory_id=OuterRef("memory_id"), version=OuterRef("version")))
    waiting = ComparedText.objects.filter(there, typ=kind.typ, vektor=False).order_by("-memory_id")
    texts = iter(list(waiting[: max(most, 0)]))
    seen = 0
    while part := {text.memory_id: text for text in islice(texts, _VECTORS_AT_ONCE)}:
        own = {each.memory_id: each for each in entry.filter(memory_id__in=part).order_by("-teil")}
        near = {key: dict(_near(own[key])) for key in part.keys() & own.keys()}
        keys = {key for found in near.values() for key in found}
        others = {text.memory_id: text for text in ComparedText.objects.filter(typ=kind.typ, memory_id__in=keys)}
        pairs = [
            _pair(part[key], others[other], cosine)
            for key, found in near.items()
            for other, cosine in found.items()
            if other in others
        ]
        # A pair of the same text is there already, and one that was dismissed stays so.
        DuplicatePair.objects.bulk_create({_place(pair): pair for pair in pairs}.values(), ignore_conflicts=True)
        ComparedText.objects.filter(pk__in=[text.pk for text in part.values()]).update(vektor=True)
        seen += len(part)
    return seen


def _near(entry: SearchEntry) -> Iterator[tuple[int, float]]:
    """The memories of the kind whose vectors are close to this one, with their cosines."""
    least = settings.BRAIN_DUPLICATE_PERCENT / 100
    numbers = np.frombuffer(bytes(entry.vektor or b""), dtype="<f4")
    query = VectorQuery(numbers, Profile(str(entry.profil_hash), len(numbers)))
    for hit in hits(query, Bounds(), _NEAREST):
        if hit.typ == entry.typ and hit.memory_id != entry.memory_id and hit.cosine >= least:
            yield hit.memory_id, min(hit.cosine, 1.0)
