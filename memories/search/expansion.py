"""From the words of a query to concepts: inflections, compounds and near spellings that the vocabulary really holds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memories.search import engine
from memories.search.engine import Groups, Match

_SHORTEST_PREFIX = 4
_SHORTEST_INSIDE = 5
_MOST = 40
_TWO_FAULTS_FROM = 8  # letters
_MOST_FAULTS = 2
_COMPOUND = 0.5
_PART = 0.5
_NEAR = 0.6


@dataclass(frozen=True, slots=True)
class Concept:
    """A word of the query with all that counts for it, by weight, and in how many entries it occurs."""

    weights: Mapping[str, float]
    df: int


def concepts(words: Iterable[str], reach: Groups = (), *, then: bool = False) -> list[Concept]:
    """The concepts of these words; a word that nothing in the vocabulary stands for has none.

    A word that nothing in reach holds is misspelt, whatever others hold. With `then` past entries count as well.
    """
    wanted = list(words)
    weights = _weights(wanted, reach, then=then)
    terms = {term for each in weights.values() for term in each}
    counts = engine.frequencies(terms)
    if then:
        counts = {term: max(counts.get(term, 0), 1) for term in engine.known(terms)}
    found = []
    for word in wanted:
        there = {term: weight for term, weight in weights[word].items() if counts.get(term)}
        if there:
            found.append(Concept(there, sum(counts[term] for term in there)))
    return found


def _weights(words: Sequence[str], reach: Groups, *, then: bool) -> dict[str, dict[str, float]]:
    """What counts for each word, by weight; nothing more for short ones."""
    long = [word for word in words if len(word) >= _SHORTEST_PREFIX]
    plain = {word: len(word) >= _SHORTEST_INSIDE for word in long if word.isalpha()}
    compounds = engine.words_with(plain, _MOST, then=then)
    pieces = {word: _pieces(word) for word in plain}
    known = set(engine.known({piece for each in pieces.values() for piece in each}))
    unheld = set(long) - _held(long, reach, then=then)
    found = {}
    for word in words:
        weights = dict.fromkeys(compounds.get(word, ()), _COMPOUND)
        for part in pieces.get(word, ()):
            if part in known:
                weights.setdefault(part, _PART)
        for near in _near(word, then=then) if word in unheld else ():
            weights[near] = max(weights.get(near, 0.0), _NEAR)
        found[word] = weights | {word: 1.0}
    return found


def _near(word: str, *, then: bool) -> Iterator[str]:
    """The stems that a misspelt word may stand for."""
    letters, faults = set(word), _allowed(word)
    for near in engine.words_like(word, faults, then=then):
        # A fault takes one letter away and brings one at most, which is quicker to see than how many there are.
        if len(letters.symmetric_difference(near)) <= 2 * faults and _distance(word, near) <= faults:
            yield near


def _held(words: Sequence[str], reach: Groups, *, then: bool) -> set[str]:
    """Those of these words that an entry in reach holds as they are."""
    if not words:
        return set()
    if not reach and not then:
        return {word for word, df in engine.frequencies(words).items() if df}
    matches = [Match(reach, [[word]]) for word in words]
    counted = [engine.counts(matches, 1, past=past) for past in ((False, True) if then else (False,))]
    return {word for word, *numbers in zip(words, *counted, strict=True) if any(numbers)}


def _pieces(word: str) -> list[str]:
    """What a compound may be made of: its beginnings, its ends and, when long enough, what stands inside."""
    size = len(word)
    return [
        word[start:end]
        for start in range(size)
        for end in range(start + _SHORTEST_PREFIX, size + 1)
        if end - start < size and (start == 0 or end == size or end - start >= _SHORTEST_INSIDE)
    ]


def _allowed(word: str) -> int:
    return 1 if len(word) < _TWO_FAULTS_FROM else _MOST_FAULTS


def _distance(left: str, right: str) -> int:
    """Optimal string alignment distance: insertions, deletions, substitutions, neighbours swapped (Damerau 1964)."""
    if abs(len(left) - len(right)) > _MOST_FAULTS:
        return _MOST_FAULTS + 1
    before: list[int] = []
    last = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        row = [i]
        for j, b in enumerate(right, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > _MOST_FAULTS <= min(last):
            return _MOST_FAULTS + 1
        before, last = last, row
    return last[-1]
