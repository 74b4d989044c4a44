"""How alike a query and an entry are letter by letter: the share of the query's 4-grams that the entry's words hold."""

import math
from collections import Counter
from collections.abc import Iterable

_LETTERS = 4
_MOST = 2_000  # characters of an entry; a long text holds nearly every gram somewhere, which says nothing


def likeness(words: Iterable[str], documents: Iterable[str]) -> list[float]:
    """For each document (its stems, blanks between them) from 0 to 1; what few of the documents hold counts for more.

    It sees what stems do not: words of one family, parts of compounds that nobody looked for, and it counts long words
    for more than short ones.
    """
    grams = {gram for word in words for gram in _grams(f"_{word}_")}
    held = []
    for document in documents:
        bounded = f"_{document[:_MOST].replace(' ', '_')}_"
        held.append([gram for gram in grams if gram in bounded])
    counts = Counter(gram for each in held for gram in each)
    weights = {gram: math.log1p((len(held) - counts[gram] + 0.5) / (counts[gram] + 0.5)) for gram in grams}
    whole = sum(weights.values()) or 1.0
    return [sum([weights[gram] for gram in each]) / whole for each in held]


def _grams(word: str) -> Iterable[str]:
    return (word[place : place + _LETTERS] for place in range(max(len(word) - _LETTERS + 1, 1)))
