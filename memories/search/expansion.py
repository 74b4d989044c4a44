"""From the words of a query to concepts: inflections, compounds and near spellings that the vocabulary really holds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

from rapidfuzz.distance import OSA

from memories.search import vocabulary
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


def concepts(words: Iterable[str], reach: Groups = (), *, then: bool = False) -> tuple[list[Concept], int]:
    """The concepts of these words, and how many memories there are, more or less.

    A word that nothing in the vocabulary stands for has no concept. Within a reach it has one all the same: the
    vocabulary is that of all, and nobody should learn from an answer, or from how long it takes, what others hold. A
    word that nothing in reach holds is misspelt, whatever others hold. With `then` past entries count as well.
    """
    wanted = list(words)
    weights, size = _weights(wanted, reach, then=then)
    terms = {term for each in weights.values() for term in each}
    counts = vocabulary.frequencies(terms)
    if then:
        counts = {term: max(counts.get(term, 0), 1) for term in vocabulary.known(terms)}
    found = []
    for word in wanted:
        there = {term: weight for term, weight in weights[word].items() if counts.get(term)}
        if there or reach:
            found.append(Concept(there or {word: 1.0}, sum(counts[term] for term in there)))
    return found, size


def _weights(words: Sequence[str], reach: Groups, *, then: bool) -> tuple[dict[str, dict[str, float]], int]:
    """What counts for each word, by weight, nothing more for short ones; and how many memories there are."""
    long = [word for word in words if len(word) >= _SHORTEST_PREFIX]
    plain = {word: len(word) >= _SHORTEST_INSIDE for word in long if word.isalpha()}
    pieces = {word: _pieces(word) for word in plain}
    among = {piece for each in pieces.values() for piece in each}
    in_reach = [Match(reach, [[word]]) for word in long] if reach or then else []
    compounds, known, there, size = vocabulary.look_up(plain, among, in_reach, _MOST, then=then)
    held = set(compress(long, there)) if in_reach else _held(long)
    found = {word: {word: 1.0} for word in words}
    for word, holding in zip(plain, compounds, strict=True):
        found[word] |= dict.fromkeys(known.intersection(pieces[word]), _PART) | dict.fromkeys(holding, _COMPOUND)
    for word in long:
        for near in _near(word, then=then) if word not in held else ():
            found[word][near] = max(found[word].get(near, 0.0), _NEAR)
    return found, size


def _held(words: Sequence[str]) -> set[str]:
    """Those of these words that a live entry holds as they are, wherever it is."""
    return {word for word, df in vocabulary.frequencies(words).items() if df}


def _near(word: str, *, then: bool) -> Iterator[str]:
    """The stems that a misspelt word may stand for, by optimal string alignment: a letter more, less or another, or two
    neighbours swapped, count as a fault each (Damerau 1964).
    """
    faults = _allowed(word)
    for near in vocabulary.words_like(word, faults, then=then):
        if OSA.distance(word, near, score_cutoff=faults) <= faults:
            yield near


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
