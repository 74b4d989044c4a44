"""Which entries come into question for words: the best by what they hold, before any text is read.

How common a word is counts as far as the principal may see: points must not tell what others remember.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from memories.search import engine
from memories.search.engine import Keys, Match
from memories.search.expansion import Concept
from memories.search.query import TextQuery
from memories.search.reach import Bounds
from memories.search.scoring import SATURATION, idf

_TOO_COMMON = 0.06  # of all entries; such words rank, but do not choose
_COMMON_FROM = 2_000  # entries
_KEPT = 3
_READABLE = 700  # entries of a word for each candidate that is wanted; of words with more, the rarest alone chooses
_THIN = 8  # of so many, and of so many that promise most, at least one must be in reach, or reach chooses, too
_SAMPLE = 32  # entries
_COUNTED = 1_000  # entries in reach

Numbers = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Their rows, whether there are no more, and in how many entries each word occurs: None where these are all."""

    rows: Sequence[Any]
    complete: bool
    dfs: Sequence[int] | None = None


def choosing(found: Sequence[Concept], size: int, most: int) -> tuple[list[Concept], bool]:
    """The concepts that choose the candidates, and whether they leave nothing out that should be found.

    Words that nearly every memory has would choose them all. Fewer than _KEPT, when there are more, only where the
    others have so many entries that they choose but for more. What nobody has takes no other's place.
    """
    absent = [concept for concept in found if not concept.df]
    there = sorted((concept for concept in found if concept.df), key=lambda concept: concept.df)
    others = [concept for concept in there[1:] if concept.df <= _READABLE * most]
    common = max(_TOO_COMMON * size, _COMMON_FROM)
    chosen = [*there[:1], *others[: _KEPT - 1], *(concept for concept in others[_KEPT - 1 :] if concept.df <= common)]
    return [*chosen, *absent], len(chosen) >= min(len(there), _KEPT)


class Choice:
    """Chooses the candidates of one question: by these concepts, within these bounds, so many of so many memories."""

    def __init__(self, query: TextQuery, chosen: Sequence[Concept], size: int, bounds: Bounds, most: int) -> None:
        """Put the words of the question together."""
        self.chosen, self._size, self.bounds, self._most = chosen, size, bounds, most
        self._few = 2 * most  # are read rather than told apart before
        self._forms = [(place, *form) for place, concept in enumerate(chosen) for form in _forms(concept)]
        terms = list(dict.fromkeys(term for concept in chosen for term in concept.weights))
        self.match = Match(bounds.reach, [terms, *([phrase] for phrase in query.phrases)], query.excluded)

    def candidates(self, *, past: bool) -> Candidates:
        """The best, of those that are or of those that were."""
        return self._looked_at(past=past) or self._asked_for(past=past)

    def _asked_for(self, *, past: bool) -> Candidates:
        """The best of those that the index knows to be in reach."""
        keys, holding = self._matching(self.match, self.bounds, past=past)
        dfs = None
        if complete := len(keys) <= self._few:
            best = keys
        else:
            shares = self._shares(keys, holding)
            dfs = np.count_nonzero(shares, axis=1).tolist()
            best = _best(keys, self._promise(shares, dfs), self._most)
        return Candidates(engine.entries(best.tolist(), past=past), complete, dfs)

    def _looked_at(self, *, past: bool) -> Candidates | None:
        """The best of all, looked at in their order until there are enough in reach; None when few of them are."""
        bounds = self.bounds
        if not (bounds.are_wide and engine.reads_reach_whole()) or len(self.match.terms) > 1 or self.match.excluded:
            return None
        sample = engine.sample(_SAMPLE, bounds.where, bounds.parameters, past=past)
        if sum(bounds.has(row[-1]) for row in sample) * _THIN < _SAMPLE:
            return None
        keys, holding = self._matching(replace(self.match, reach=()), Bounds(), past=past)
        shares = self._shares(keys, holding)
        points, size = self._promise(shares, [concept.df for concept in self.chosen]), self._most
        while True:
            among = keys if size >= len(keys) else _best(keys, points, size)
            rows = self._inside(among.tolist(), past=past)
            if size >= len(keys) or len(rows) >= self._most:
                break
            if len(rows) * _THIN < size:
                return None
            size = size * self._few // len(rows)  # twice as many as would do if it went on like this
        if size >= len(keys) and len(rows) <= self._most:
            return Candidates(rows, complete=True)
        held = np.isin(keys, [row[0] for row in rows])
        best = set(_best(keys[held], points[held], self._most).tolist())
        dfs = self._occurring(shares[:, held], past=past)
        return Candidates([row for row in rows if row[0] in best], complete=False, dfs=dfs)

    def _inside(self, keys: Sequence[int], *, past: bool) -> list[Any]:
        """Those of these entries that are within the bounds."""
        found = engine.entries(keys, self.bounds.where, self.bounds.parameters, past=past)
        return [row for row in found if self.bounds.has(row[-1])]

    def _matching(self, match: Match, bounds: Bounds, *, past: bool) -> tuple[Keys, list[Keys]]:
        groups = [terms for *_rest, terms in self._forms]
        return engine.matching(match, groups, self._few, bounds.where, bounds.parameters, past=past)

    def _occurring(self, shares: Numbers, *, past: bool) -> list[int]:
        """In how many entries each concept occurs: in all where one in reach has it, else in those in reach."""
        there: list[bool] = np.any(shares, axis=1).tolist()
        absent = [concept for concept, is_there in zip(self.chosen, there, strict=True) if not is_there]
        matches = [Match(self.bounds.reach, [list(concept.weights)]) for concept in absent]
        counted = iter(engine.counts(matches, _COUNTED, past=past) if matches else ())
        return [concept.df if is_there else next(counted) for concept, is_there in zip(self.chosen, there, strict=True)]

    def _shares(self, keys: Keys, holding: Sequence[Keys]) -> Numbers:
        """For each concept, and each of these keys (sorted), the weights of the forms that its entry holds."""
        shares = np.zeros((len(self.chosen), len(keys)), dtype=np.float32)
        for (place, share, _terms), held in zip(self._forms, holding, strict=True):
            if len(keys):
                at = np.minimum(np.searchsorted(keys, held), len(keys) - 1)
                shares[place, at[keys[at] == held]] += share
        return shares

    def _promise(self, shares: Numbers, dfs: Sequence[int]) -> Numbers:
        """What each entry would score, if it held each form of a word once.

        How often it does, and how long it is, would have to be read.
        """
        points: Numbers = np.array(idf(dfs, self._size), dtype=np.float32) @ (
            shares / (shares + np.float32(SATURATION))
        )
        return points


def _forms(concept: Concept) -> Iterator[tuple[float, list[str]]]:
    """The terms of a concept by their weight."""
    for share in sorted(set(concept.weights.values())):
        yield share, [term for term, weight in concept.weights.items() if weight == share]


def _best(keys: Keys, points: Numbers, most: int) -> Keys:
    """Of more keys (sorted) the best by these points; among equals the newest."""
    if len(keys) <= most:
        return keys
    least = np.partition(points, -most)[-most]
    sure, equal = keys[points > least], keys[points == least]
    return np.concatenate([sure, equal[len(sure) - most :]])
