"""Memories like one memory: its vector and its telling words, asked as any other question of the search."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memories.kinds import Kind
from memories.models import Memory, SearchEntry
from memories.principal import Principal
from memories.search import Found, Question, embedder, search, vocabulary
from memories.search.analyser import stems
from memories.search.query import TextQuery
from memories.search.vectors import Profile, VectorQuery, unit

MOST = 5
_READ = 2_000  # characters of a text; what it is about is said by then
_WORDS = 10


@dataclass(frozen=True, slots=True)
class Similar:
    """A memory, and why it is here: the cosine of the vectors, the share of words in common, either if it counted."""

    kind: Kind
    memory: Any
    cosine: float | None
    words: float | None


def similar(kind: Kind, memory: Memory, principal: Principal, most: int = MOST) -> Sequence[Similar]:
    """The nearest memories of any kind that the principal may see, the nearest first; what is proposed is not found."""
    words = stems(_beginning(memory))
    question = Question(
        text=TextQuery(words=_telling(words, own=not memory.vorgeschlagen), phrases=(), excluded=()),
        words=memory.texts[0][:_READ],
        vector=_own_vector(memory) if memory.vorgeschlagen else _vector(kind, memory),
        limit=most + 1,
    )
    found = search(question, principal).found
    others = [each for each in found if (each.kind, each.memory.pk) != (kind, memory.pk)]
    return [_told(each, set(words)) for each in others[:most]]


def _beginning(memory: Any) -> str:
    return "\n".join(memory.texts)[:_READ]


def _telling(words: Sequence[str], *, own: bool) -> tuple[str, ...]:
    """The words that say most: often here and seldom elsewhere, but not nowhere else.

    `own` says that the index has this memory, too.
    """
    counts, size = Counter(words), vocabulary.size()
    elsewhere = {word: df for word, df in vocabulary.frequencies(counts).items() if df > own}
    weights = {word: counts[word] * math.log1p(size / df) for word, df in elsewhere.items()}
    return tuple(sorted(weights, key=lambda word: (-weights[word], word))[:_WORDS])


def _vector(kind: Kind, memory: Memory) -> VectorQuery | None:
    """The memory's vector by the model that serves here, which most others have, else the one that came with it."""
    rows = SearchEntry.objects.filter(typ=kind.typ, memory_id=memory.pk, vektor__isnull=False, veraltet=False)
    entries = list(rows.filter(profil_hash__isnull=False, dimension__isnull=False).order_by("teil"))
    serving = embedder.serving()
    if serving is not None:
        entries.sort(key=lambda entry: entry.profil_hash != serving.profil_hash)
    if not entries:
        return None
    numbers = np.frombuffer(bytes(entries[0].vektor), dtype="<f4")
    return VectorQuery(numbers, Profile(entries[0].profil_hash, len(numbers)))


def _own_vector(memory: Any) -> VectorQuery | None:
    """The vector that came with a memory; one that is proposed has no other."""
    if memory.embedding is None or memory.embedding_profil_hash is None or memory.embedding_veraltet:
        return None
    numbers = np.frombuffer(bytes(memory.embedding), dtype="<f4")
    return VectorQuery(unit(numbers), Profile(memory.embedding_profil_hash, len(numbers)))


def _told(found: Found, words: set[str]) -> Similar:
    held = words.intersection(stems(_beginning(found.memory)))
    share = len(held) / len(words) if found.text and words else None
    cosine = min(max(found.vector.cosine, 0.0), 1.0) if found.vector else None
    return Similar(found.kind, found.memory, cosine, share)
