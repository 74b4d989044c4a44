"""Ranking by text: candidates from the database, then BM25 over concepts (Robertson & Zaragoza 2009; tf, df summed)."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memories.kinds import Kind
from memories.search import engine
from memories.search.engine import Groups, Match
from memories.search.expansion import Concept, concepts
from memories.search.query import TextQuery
from memories.search.reach import ONE_OF_SEVERAL

_K1 = 0.9
_B = 0.5
_TOO_COMMON = 0.05  # of all entries; such words rank, but do not choose
_KEPT = 2


@dataclass(frozen=True, slots=True)
class TextHit:
    """An entry with its score: at least 0, and 1 for one that holds all words as often as could count."""

    typ: str
    memory_id: int
    version: int
    score: float
    words: tuple[str, ...]


def hits(
    query: TextQuery, reach: Groups, most: int, where: str = "", parameters: Sequence[Any] = (), *, then: bool = False
) -> tuple[list[TextHit], bool]:
    """The best entries for the words of the query, one a memory, best first, and whether there are no more.

    With `then` past entries are looked through as well.
    """
    found = concepts(query.words, reach, then=then)
    if not found:
        return [], True
    chosen = _choosing(found, engine.size())
    terms = list(dict.fromkeys(term for concept in chosen for term in concept.weights))
    match = Match(reach, [terms, *([phrase] for phrase in query.phrases)], query.excluded)
    rows: list[Any] = []
    whole = True
    for past in (False, True) if then else (False,):
        part = engine.candidates(match, most, where=where, parameters=parameters, past=past)
        gone = _excluded(match, past=past)
        rows.extend(row for row in part if (row[1], row[2], row[3]) not in gone)
        whole = whole and len(part) < most
    return _ranked(rows, found), whole


def _excluded(match: Match, *, past: bool) -> set[tuple[str, int, int]]:
    """The versions of long texts of which another part holds what is excluded."""
    if not match.excluded:
        return set()
    return engine.versions(Match([*match.reach, [ONE_OF_SEVERAL]], [match.excluded]), past=past)


def holding(kind: Kind, query: TextQuery, reach: Groups) -> Any:
    """For `pk__in`: the memories that hold every word of the query, in any form of it that a search would find."""
    found = concepts(query.words, reach)
    if not query.words or len(found) < len(query.words):
        return []
    terms = [*(list(concept.weights) for concept in found), *([phrase] for phrase in query.phrases)]
    return engine.memories_that(Match(reach, terms, query.excluded), kind.typ, [[ONE_OF_SEVERAL]])


def _choosing(found: Sequence[Concept], size: int) -> list[Concept]:
    """The concepts that choose the candidates: words that nearly every memory has would choose them all."""
    rare = sorted(found, key=lambda concept: concept.df)
    return rare[:_KEPT] + [concept for concept in rare[_KEPT:] if concept.df <= _TOO_COMMON * size]


def _ranked(rows: Sequence[Any], found: Sequence[Concept]) -> list[TextHit]:
    documents = [(row, row[4].split(" ")) for row in rows]
    mean = sum(len(words) for _row, words in documents) / max(len(documents), 1)
    size = engine.size()
    idf = [math.log1p((size - min(c.df, size) + 0.5) / (c.df + 0.5)) for c in found]
    whole = sum(idf) * (_K1 + 1)
    wanted = {term for concept in found for term in concept.weights}
    best: dict[tuple[str, int], TextHit] = {}
    for (_id, typ, memory_id, version, _stems), words in documents:
        counts = Counter(filter(wanted.__contains__, words))
        score = 0.0
        held: list[str] = []
        for weight, concept in zip(idf, found, strict=True):
            present = [term for term in concept.weights if term in counts]
            if present:
                tf = sum([concept.weights[term] * counts[term] for term in present])
                score += weight * tf * (_K1 + 1) / (tf + _K1 * (1 - _B + _B * len(words) / mean))
                held += present
        hit = TextHit(typ, memory_id, version, score / whole, tuple(held))
        if score and ((typ, memory_id) not in best or best[typ, memory_id].score < hit.score):
            best[typ, memory_id] = hit
    return sorted(best.values(), key=lambda hit: (-hit.score, hit.typ, hit.memory_id))
