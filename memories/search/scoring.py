"""What a text scores: BM25 over concepts (Robertson & Zaragoza 2009; tf, df summed)."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memories.search.expansion import Concept

SATURATION = 0.9  # k1
_LENGTH = 0.5  # b


@dataclass(frozen=True, slots=True)
class Document:
    """An entry's row, how many words it has, how often each concept (by its place), and which terms stand for them."""

    row: Any
    length: int
    counts: Mapping[int, float]
    held: tuple[str, ...]


def documents(rows: Sequence[Any], concepts: Sequence[Concept]) -> Iterator[Document]:
    """What these entries (id, typ, memory_id, version, stamm, …) hold of the concepts."""
    shares: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for place, concept in enumerate(concepts):
        for term, share in concept.weights.items():
            shares[term].append((place, share))
    for row in rows:
        words = row[4].split(" ")
        held = list(filter(shares.__contains__, words))
        counts: dict[int, float] = defaultdict(float)
        for term in held:
            for place, share in shares[term]:
                counts[place] += share
        yield Document(row, len(words), counts, tuple(dict.fromkeys(held)))


def occurring(documents: Sequence[Document], concepts: int) -> list[int]:
    """In how many of the documents each of so many concepts occurs."""
    counted = Counter(place for document in documents for place in document.counts)
    return [counted[place] for place in range(concepts)]


def idf(dfs: Sequence[int], size: int) -> list[float]:
    """The weight of words that occur in so many of `size` entries."""
    return [math.log1p((size - min(df, size) + 0.5) / (df + 0.5)) for df in dfs]


def scores(documents: Sequence[Document], dfs: Sequence[int], size: int) -> Iterator[float]:
    """Each document's score, 1 when every concept that occurs at all counts as much as it can."""
    mean = sum(document.length for document in documents) / max(len(documents), 1)
    weights = idf(dfs, size)
    # Nothing occurs in what others changed between finding and reading it.
    whole = sum(weight for weight, df in zip(weights, dfs, strict=True) if df) or 1.0
    for document in documents:
        length = SATURATION * (1 - _LENGTH + _LENGTH * document.length / mean)
        yield sum([weights[place] * tf / (tf + length) for place, tf in document.counts.items()]) / whole
