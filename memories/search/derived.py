"""Derived vectors: which texts still need one of a profile, and putting those that were made into the index.

Whoever makes them, the server, a command or somebody outside, goes the same way: `pending`, make, `store`.
"""

import heapq
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from memories.kinds import KINDS, Kind
from memories.models import EmbeddingProfile, Memory, PastEntry, SearchEntry, VectorBlock
from memories.paging import after
from memories.search import index
from memories.search.embedder import Embedder, EmbedderFault, TextRefused, serving
from memories.search.index import DERIVED
from memories.search.vectors import Floats, unit

log = logging.getLogger(__name__)

_KEYS_AT_ONCE = 500
_TEXTS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Pending:
    """A text that needs a vector, with the checksum that tells whether it still is the same later on."""

    kind: Kind
    key: int
    text: str
    pruefsumme: str

    @property
    def kennung(self) -> str:
        """The memory's ID on the wire."""
        return f"{self.kind.typ}_{self.key}"


@dataclass(frozen=True, slots=True)
class Made:
    """A vector for the text of a memory that had this checksum."""

    kind: Kind
    key: int
    pruefsumme: str
    vector: Floats


@dataclass(frozen=True, slots=True)
class Filled:
    """What became of the texts: vectors stored, texts that moved on meanwhile, texts the embedder would not take."""

    stored: int = 0
    moved_on: int = 0
    refused: int = 0

    @property
    def seen(self) -> int:
        """How many texts there were."""
        return self.stored + self.moved_on + self.refused

    def __add__(self, other: "Filled") -> "Filled":
        return Filled(self.stored + other.stored, self.moved_on + other.moved_on, self.refused + other.refused)


def text_of(memory: Memory) -> str:
    """The text that a derived vector stands for."""
    return "\n".join(memory.texts)


def checksum(text: str) -> str:
    """A short text that another text has not."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def profile_of(embedder: Embedder) -> EmbeddingProfile:
    """The embedder's profile, which is made when it is not there. EmbedderFault when its vectors' length changed."""
    profile: EmbeddingProfile
    profile, _made = EmbeddingProfile.objects.get_or_create(
        profil_hash=embedder.profil_hash, defaults={"dimension": embedder.dimension, "name": embedder.name}
    )
    if profile.dimension != embedder.dimension:
        raise EmbedderFault(
            f"{embedder.name} now makes vectors of {embedder.dimension} numbers, no longer {profile.dimension}: "
            "another model under the same name. `manage.py embeddings --forget` the profile first."
        )
    return profile


def lacking(kind: Kind, profile: EmbeddingProfile) -> Any:
    """The memories that can be found and have no fresh vector of the profile, neither their own nor a derived one."""
    entry = SearchEntry.objects.filter(typ=kind.typ, memory_id=OuterRef("pk"), teil=DERIVED + profile.pk)
    own = Q(embedding_profil_hash=profile.profil_hash, embedding_dimension=profile.dimension, embedding_veraltet=False)
    rows = kind.memories.objects.filter(vorgeschlagen=False).current(timezone.now())
    return rows.filter(~Exists(entry), ~own)


def pending(profile: EmbeddingProfile, since: datetime | None = None) -> Iterator[Pending]:
    """The texts that need a vector of the profile, last changed first; `since` leaves out those changed before.

    Reads a few at a time, so others may write meanwhile, and texts of any number need little memory.
    """
    keys = [_keys(kind, profile, since) for kind in KINDS]
    newest_first = heapq.merge(*keys, key=lambda found: found[0], reverse=True)
    while part := list(islice(newest_first, _TEXTS_AT_ONCE)):
        yield from _texts([(kind, key) for _at, kind, key in part])


def _keys(kind: Kind, profile: EmbeddingProfile, since: datetime | None) -> Iterator[tuple[datetime, Kind, int]]:
    rows = lacking(kind, profile).order_by("-aktualisiert_am", "-pk").values_list("aktualisiert_am", "pk")
    if since is not None:
        rows = rows.filter(aktualisiert_am__gte=since)
    part = list(rows[:_KEYS_AT_ONCE])
    while part:
        yield from ((at, kind, key) for at, key in part)
        part = list(rows.filter(after("aktualisiert_am", *part[-1], descending=True))[:_KEYS_AT_ONCE])


def _texts(wanted: Sequence[tuple[Kind, int]]) -> Iterator[Pending]:
    found: dict[tuple[str, int], Memory] = {}
    for kind in KINDS:
        keys = [key for each, key in wanted if each is kind]
        rows = kind.memories.objects.filter(pk__in=keys).only(*kind.memories.TEXTS) if keys else ()
        found |= {(kind.typ, row.pk): row for row in rows}
    for kind, key in wanted:
        if (kind.typ, key) in found:
            text = text_of(found[kind.typ, key])
            yield Pending(kind, key, text, checksum(text))


def store(profile: EmbeddingProfile, vectors: Sequence[Made]) -> int:
    """Put vectors into the index, in one transaction; returns how many. A text that moved on keeps what it has.

    Storing the same twice changes nothing. Of a profile that was forgotten meanwhile nothing is stored.
    """
    with transaction.atomic():
        if not EmbeddingProfile.objects.select_for_update().filter(pk=profile.pk).first():
            return 0
        entries = [entry for kind in KINDS for entry in _entries(kind, profile, vectors)]
        index.store(entries)
    return len(entries)


def _entries(kind: Kind, profile: EmbeddingProfile, vectors: Iterable[Made]) -> Iterator[SearchEntry]:
    made: Mapping[int, Made] = {each.key: each for each in vectors if each.kind is kind}
    rows = kind.memories.objects.filter(pk__in=made, vorgeschlagen=False).order_by("pk").select_for_update()
    for memory in rows if made else ():
        if checksum(text_of(memory)) == made[memory.pk].pruefsumme:
            yield index.derived_entry(kind, memory, profile, unit(made[memory.pk].vector).tobytes())


def fill(
    embedder: Embedder,
    profile: EmbeddingProfile,
    *,
    since: datetime | None = None,
    limit: int | None = None,
    progress: Callable[[Filled], None] = lambda _filled: None,
) -> Filled:
    """Embed what is pending and store it, a few at a time, each time committed. Raises EmbedderFault."""
    total = Filled()
    texts = islice(pending(profile, since), limit)
    while part := list(islice(texts, embedder.at_once)):
        total += _fill(embedder, profile, part)
        progress(total)
    return total


def _fill(embedder: Embedder, profile: EmbeddingProfile, part: Sequence[Pending]) -> Filled:
    try:
        vectors = embedder.embed_texts([each.text for each in part])
    except TextRefused as fault:
        if len(part) == 1:
            log.warning("%s: %s", part[0].kennung, fault)
            return Filled(refused=1)
        half = len(part) // 2
        return _fill(embedder, profile, part[:half]) + _fill(embedder, profile, part[half:])
    if vectors.shape != (len(part), profile.dimension):
        raise EmbedderFault(f"{embedder.name}: vectors of {profile.dimension} numbers were expected.")
    made = [Made(each.kind, each.key, each.pruefsumme, vector) for each, vector in zip(part, vectors, strict=True)]
    stored = store(profile, made)
    return Filled(stored=stored, moved_on=len(part) - stored)


def waiting(memories: Iterable[Memory]) -> set[str]:
    """The IDs of those memories that the serving embedder has not come to yet. One statement; none without it."""
    embedder = serving()
    if embedder is None:
        return set()
    profil_hash = embedder.profil_hash
    lack = [memory for memory in memories if not _has_own(memory, profil_hash)]
    if not lack:
        return set()
    of_these = Q(pk=0)
    for kind in KINDS:
        of_these |= Q(typ=kind.typ, memory_id__in=[memory.pk for memory in lack if memory.typ == kind.typ])
    held = SearchEntry.objects.filter(of_these, teil__gte=DERIVED, profil_hash=profil_hash)
    return {memory.kennung for memory in lack} - {f"{typ}_{key}" for typ, key in held.values_list("typ", "memory_id")}


def _has_own(memory: Memory, profil_hash: str) -> bool:
    """Whether a caller gave the memory a vector of the profile, and it still stands for the text."""
    of_profile = memory.embedding_profil_hash == profil_hash and memory.embedding_dimension is not None
    return of_profile and not memory.embedding_veraltet


def forget(profile: EmbeddingProfile) -> int:
    """Drop a profile and its derived vectors, those of what was as well; returns how many live ones there were."""
    EmbeddingProfile.objects.filter(pk=profile.pk).delete()
    dropped = _drop(SearchEntry, profile)
    _drop(PastEntry, profile)
    of_profile = {"profil_hash": profile.profil_hash, "dimension": profile.dimension}
    if not SearchEntry.objects.filter(**of_profile).exists():
        VectorBlock.objects.filter(**of_profile).delete()
    return dropped


def _drop(model: Any, profile: EmbeddingProfile) -> int:
    """In steps, so that others can write meanwhile."""
    entries = model.objects.filter(teil=DERIVED + profile.pk).order_by("pk")
    last = dropped = 0
    while keys := list(entries.filter(pk__gt=last).values_list("pk", flat=True)[:_KEYS_AT_ONCE]):
        model.objects.filter(pk__in=keys).delete()
        last = keys[-1]
        dropped += len(keys)
    return dropped
