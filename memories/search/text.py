"""Ranking by text: candidates from the database, scored by the words they hold and by how alike they are in letters.

A word's 4-grams count beside it (`likeness`), which orders what stems alone cannot tell apart.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter
from typing import Any

from memories.kinds import Kind
from memories.search import engine
from memories.search.candidates import Choice, choosing
from memories.search.engine import Groups, Match
from memories.search.expansion import Concept, concepts
from memories.search.likeness import likeness
from memories.search.query import TextQuery
from memories.search.reach import ONE_OF_SEVERAL, Bounds
from memories.search.scoring import Document, documents, occurring, scores

_LIKENESS = 0.7  # of what all words together can give
_ALIKE = 100  # the best, which are told apart by it; what comes after them stays there


@dataclass(frozen=True, slots=True)
class TextHit:
    """An entry with its score: above 0, and 1 for one that holds all words as often as could count."""

    typ: str
    memory_id: int
    version: int
    score: float
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Read:
    """The documents that were read, in how many entries each concept occurs, and whether there are no more."""

    documents: Sequence[Document]
    dfs: Sequence[int]
    complete: bool


def hits(query: TextQuery, bounds: Bounds, most: int) -> tuple[list[TextHit], bool]:
    """The best entries for the words of the query, one a memory, best first, and whether there are no more."""
    found, size = concepts(query.words, bounds.reach, then=bounds.then)
    if not found:
        return [], True
    chosen, whole = choosing(found, size, most)
    size = bounds.few or size
    read = _read(Choice(query, chosen, size, bounds, most), found)
    if not read.documents and len(chosen) < len(found):  # the rare words are those of others
        read = _read(Choice(query, found, size, bounds, most), found)
    return _ranked(read.documents, scores(read.documents, read.dfs, size), query.words), whole and read.complete


def _read(choice: Choice, found: Sequence[Concept]) -> _Read:
    """The candidates; concepts are told in the order of the choice, and after them those that do not choose."""
    others = [concept for concept in found if concept not in choice.chosen]
    read: list[Document] = []
    dfs, complete = [0] * len(choice.chosen), True
    for past in (False, True) if choice.bounds.then else (False,):
        candidates = choice.candidates(past=past)
        complete = complete and candidates.complete
        rows = _without_excluded(candidates.rows, choice.match, past=past)
        part = list(documents(rows, [*choice.chosen, *others]))
        here = occurring(part, len(dfs)) if candidates.dfs is None else candidates.dfs
        dfs = [one + other for one, other in zip(dfs, here, strict=True)]
        read += part
    return _Read(read, [*dfs, *(concept.df for concept in others)], complete)


def _without_excluded(rows: Sequence[Any], match: Match, *, past: bool) -> list[Any]:
    """The entries without those of long texts of which another part holds what is excluded."""
    if not match.excluded:
        return list(rows)
    gone = engine.versions(Match([*match.reach, [ONE_OF_SEVERAL]], [match.excluded]), past=past)
    return [row for row in rows if (row[1], row[2], row[3]) not in gone]


def holding(kind: Kind, query: TextQuery, reach: Groups) -> Any:
    """For `pk__in`: the memories that hold every word of the query, in any form of it that a search would find."""
    found, _size = concepts(query.words, reach)
    if not query.words or len(found) < len(query.words):
        return []
    terms = [*(list(concept.weights) for concept in found), *([phrase] for phrase in query.phrases)]
    return engine.memories_that(Match(reach, terms, query.excluded), kind.typ, [[ONE_OF_SEVERAL]])


def _ranked(read: Sequence[Document], scored: Iterable[float], words: Iterable[str]) -> list[TextHit]:
    """Each memory's best entry, those with the most points first."""
    best: dict[tuple[str, int], tuple[float, Document]] = {}
    for document, score in zip(read, scored, strict=True):
        _id, typ, memory_id, *_rest = document.row
        if score and ((typ, memory_id) not in best or best[typ, memory_id][0] < score):
            best[typ, memory_id] = score, document
    first = nlargest(_ALIKE, best.values(), key=itemgetter(0))
    alike = likeness(words, [document.row[4] for _score, document in first])
    by_entry = {document.row[0]: like for (_score, document), like in zip(first, alike, strict=True)}
    hits = []
    for score, document in best.values():
        entry, typ, memory_id, version, *_rest = document.row
        points = (score + _LIKENESS * by_entry.get(entry, 0.0)) / (1 + _LIKENESS)
        hits.append(TextHit(typ, memory_id, version, points, document.held))
    return sorted(hits, key=lambda hit: (-hit.score, hit.typ, hit.memory_id))
