"""Ranking by text: candidates from the database, then BM25 over concepts (Robertson & Zaragoza 2009; tf, df summed).

A word's 4-grams count beside it (`likeness`), which orders what stems alone cannot tell apart.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from memories.kinds import Kind
from memories.search import engine
from memories.search.engine import Groups, Keys, Match
from memories.search.expansion import Concept, concepts
from memories.search.likeness import likeness
from memories.search.query import TextQuery
from memories.search.reach import ONE_OF_SEVERAL, Bounds

_K1 = 0.9
_B = 0.5
_LIKENESS = 0.7  # of what all words together can give
_ALIKE = 100  # the best, which are told apart by it; what comes after them stays there
_TOO_COMMON = 0.06  # of all entries; such words rank, but do not choose
_KEPT = 3
_THIN = 8  # of so many that promise most at least one must be in reach, or reach chooses, too
_READABLE = 700  # entries of a word for each candidate that is wanted; of words with more, the rarest alone chooses

Points = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TextHit:
    """An entry with its score: above 0, and 1 for one that holds all words as often as could count."""

    typ: str
    memory_id: int
    version: int
    score: float
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    """What chooses candidates: concepts, the forms of each (its place, a weight, the terms), and who may be one."""

    match: Match
    chosen: Sequence[Concept]
    forms: Sequence[tuple[int, float, list[str]]]
    size: int
    bounds: Bounds
    most: int

    @property
    def few(self) -> int:
        """So many are read rather than told apart before."""
        return 2 * self.most

    def candidates(self, *, past: bool) -> tuple[Keys, bool]:
        """The keys of the best candidates, and whether there are no more."""
        if self.bounds.wide and len(self.match.terms) == 1 and not self.match.excluded:
            found = self._looked_at(past=past)
            if found is not None:
                return found
        keys, holding = self._matching(self.match, self.bounds, past=past)
        if len(keys) <= self.few:
            return keys, True
        return _best(keys, self._promise(keys, holding), self.most), False

    def _looked_at(self, *, past: bool) -> tuple[Keys, bool] | None:
        """The candidates among what all have, looked at in their order; None when few of them are in reach."""
        keys, holding = self._matching(replace(self.match, reach=()), Bounds(), past=past)
        points, size = self._promise(keys, holding), self.few
        while True:
            among = keys if size >= len(keys) else _best(keys, points, size)
            rows = engine.scopes(among.tolist(), self.bounds.where, self.bounds.parameters, past=past)
            inside = np.array([key for key, geltung in rows if self.bounds.has(geltung)], dtype=np.int64)
            enough = len(inside) >= self.most
            if size >= len(keys) or enough:
                break
            if len(inside) * _THIN < size:
                return None
            size = size * self.few // len(inside)
        if size >= len(keys) and len(inside) <= self.few:
            return inside, True
        held = np.isin(keys, inside)
        return _best(keys[held], points[held], self.most), False

    def _matching(self, match: Match, bounds: Bounds, *, past: bool) -> tuple[Keys, list[Keys]]:
        groups = [terms for *_rest, terms in self.forms]
        return engine.matching(match, groups, self.few, bounds.where, bounds.parameters, past=past)

    def _promise(self, keys: Keys, holding: Sequence[Keys]) -> Points:
        held = [(*form[:2], each) for form, each in zip(self.forms, holding, strict=True)]
        return _promise(keys, held, self.chosen, self.size)


def hits(query: TextQuery, bounds: Bounds, most: int) -> tuple[list[TextHit], bool]:
    """The best entries for the words of the query, one a memory, best first, and whether there are no more."""
    found, size = concepts(query.words, bounds.reach, then=bounds.then)
    if not found:
        return [], True
    chosen = _choosing(found, size, most)
    terms = list(dict.fromkeys(term for concept in chosen for term in concept.weights))
    match = Match(bounds.reach, [terms, *([phrase] for phrase in query.phrases)], query.excluded)
    forms = [(place, share, form) for place, concept in enumerate(chosen) for share, form in _forms(concept)]
    choice = _Choice(match, chosen, forms, size, bounds, most)
    rows: list[Any] = []
    whole = len(chosen) >= min(len(found), _KEPT)
    for past in (False, True) if bounds.then else (False,):
        keys, complete = choice.candidates(past=past)
        whole = whole and complete
        gone = _excluded(match, past=past)
        part = engine.entries(keys.tolist(), past=past)
        rows.extend(row for row in part if (row[1], row[2], row[3]) not in gone)
    return _ranked(rows, found, query.words, size), whole


def _promise(keys: Keys, holding: Sequence[tuple[int, float, Keys]], chosen: Sequence[Concept], size: int) -> Points:
    """For each of these keys (sorted) what its entry would score, if it held each form of a word once.

    How often it does, and how long it is, would have to be read. `holding` tells which entries have a form of which
    concept, and the form's weight.
    """
    shares = np.zeros((len(chosen), len(keys)), dtype=np.float32)
    for place, share, held in holding:
        at = np.minimum(np.searchsorted(keys, held), len(keys) - 1)
        shares[place, at[keys[at] == held]] += share
    points: Points = np.array(_idf(chosen, size), dtype=np.float32) @ (shares / (shares + np.float32(_K1)))
    return points


def _best(keys: Keys, points: Points, most: int) -> Keys:
    """Of more keys (sorted) the best by these points; among equals the newest."""
    least = np.partition(points, -most)[-most]
    sure, equal = keys[points > least], keys[points == least]
    return np.concatenate([sure, equal[len(sure) - most :]])


def _forms(concept: Concept) -> Iterator[tuple[float, list[str]]]:
    """The terms of a concept by their weight."""
    for share in sorted(set(concept.weights.values())):
        yield share, [term for term, weight in concept.weights.items() if weight == share]


def _excluded(match: Match, *, past: bool) -> set[tuple[str, int, int]]:
    """The versions of long texts of which another part holds what is excluded."""
    if not match.excluded:
        return set()
    return engine.versions(Match([*match.reach, [ONE_OF_SEVERAL]], [match.excluded]), past=past)


def holding(kind: Kind, query: TextQuery, reach: Groups) -> Any:
    """For `pk__in`: the memories that hold every word of the query, in any form of it that a search would find."""
    found, _size = concepts(query.words, reach)
    if not query.words or len(found) < len(query.words):
        return []
    terms = [*(list(concept.weights) for concept in found), *([phrase] for phrase in query.phrases)]
    return engine.memories_that(Match(reach, terms, query.excluded), kind.typ, [[ONE_OF_SEVERAL]])


def _choosing(found: Sequence[Concept], size: int, most: int) -> list[Concept]:
    """The concepts that choose the candidates: words that nearly every memory has would choose them all.

    Fewer than _KEPT, when there are more, only where the others have so many entries that they choose but for more.
    """
    first, *others = sorted(found, key=lambda concept: concept.df)
    others = [concept for concept in others if concept.df <= _READABLE * most]
    return [first, *others[: _KEPT - 1], *(c for c in others[_KEPT - 1 :] if c.df <= _TOO_COMMON * size)]


def _ranked(rows: Sequence[Any], found: Sequence[Concept], words: Iterable[str], size: int) -> list[TextHit]:
    best: dict[tuple[str, int], tuple[float, Any, tuple[str, ...]]] = {}
    for row, (score, held) in zip(rows, _scores([row[4] for row in rows], found, size), strict=True):
        _id, typ, memory_id, _version, _stems = row
        if score and ((typ, memory_id) not in best or best[typ, memory_id][0] < score):
            best[typ, memory_id] = score, row, held
    first = nlargest(_ALIKE, best.values(), key=itemgetter(0))
    alike = likeness(words, [row[4] for _score, row, _held in first])
    by_entry = {row[0]: like for (_score, row, _held), like in zip(first, alike, strict=True)}
    hits = [
        TextHit(typ, memory_id, version, (score + _LIKENESS * by_entry.get(entry, 0.0)) / (1 + _LIKENESS), held)
        for score, (entry, typ, memory_id, version, _stems), held in best.values()
    ]
    return sorted(hits, key=lambda hit: (-hit.score, hit.typ, hit.memory_id))


def _idf(found: Sequence[Concept], size: int) -> list[float]:
    return [math.log1p((size - min(c.df, size) + 0.5) / (c.df + 0.5)) for c in found]


def _scores(documents: Sequence[str], found: Sequence[Concept], size: int) -> Iterator[tuple[float, tuple[str, ...]]]:
    """Each document's BM25, 1 when every concept counts as much as it can, and the terms that it holds."""
    split = [document.split(" ") for document in documents]
    mean = sum(map(len, split)) / max(len(split), 1)
    idf = _idf(found, size)
    whole = sum(idf)
    shares: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for place, concept in enumerate(found):
        for term, share in concept.weights.items():
            shares[term].append((place, share))
    for words in split:
        length = _K1 * (1 - _B + _B * len(words) / mean)
        held = list(filter(shares.__contains__, words))
        counts: dict[int, float] = defaultdict(float)
        for term in held:
            for place, share in shares[term]:
                counts[place] += share
        yield sum([idf[place] * tf / (tf + length) for place, tf in counts.items()]) / whole, tuple(dict.fromkeys(held))
