"""Search: by text, by vector, or by both fused; as things are, or as they were at a moment. One public function."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone

from memories.filters import Filter
from memories.kinds import BRAIN, KINDS, Kind
from memories.models import Memory, SearchEntry, Version
from memories.principal import Principal
from memories.search import embedder, engine, neighbours, text, vectors
from memories.search.embedder import EmbedderFault
from memories.search.engine import Groups, Match
from memories.search.query import TextQuery
from memories.search.reach import DERIVED_VECTOR, FIRST_PART, ONE_OF_SEVERAL, STALE, Bounds, groups, profile_token
from memories.search.text import TextHit
from memories.search.vectors import Profile, VectorHit, VectorQuery
from memories.trust import with_door

log = logging.getLogger(__name__)

TEXT_SHARE, VECTOR_SHARE = 0.4, 0.6
COUNTED_UP_TO = 1_000
_DEPTH = 150  # candidates by text; of vectors, two thirds as many
_DEEPEST = 120_000
_DEEPER = 8
_COMPARED = 100  # a leg's best, over which its scores are spread from 0 to 1


@dataclass(frozen=True, slots=True)
class Question:
    """What to search for, where, and as of when; `text` or `vector` or both.

    `words` is the text as somebody wrote it, for the embedder that serves: it makes the vector that is not there. With
    `neighbours` the memories beside a hit in its session count too (see that module); not as of a moment.
    """

    text: TextQuery | None = None
    words: str = ""
    vector: VectorQuery | None = None
    kinds: Sequence[Kind] = KINDS
    only: Filter = field(default_factory=Filter)
    limit: int = 10
    stand: datetime | None = None
    neighbours: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A hit: the memory (its version, when searched as of a moment), its points from 0 to 1, and each leg's part.

    `lent` are the points that come from its neighbours.
    """

    kind: Kind
    memory: Memory | Version
    points: float
    text: TextHit | None
    vector: VectorHit | None
    lent: float = 0.0


@dataclass(frozen=True, slots=True)
class Searched:
    """How many memories were in reach, and how many of them were left out; `exact` is False beyond 1,000.

    `embedded` says whether the embedder made a vector of the text, None when it was not asked.
    """

    in_reach: int
    expired: int
    without_vector: int | None
    stale: int | None
    exact: bool
    embedded: bool | None


@dataclass(frozen=True, slots=True)
class Result:
    """The hits, best first, and what was searched."""

    found: Sequence[Found]
    searched: Searched


@dataclass(frozen=True, slots=True)
class _Ranked:
    typ: str
    memory_id: int
    version: int
    points: float
    text: TextHit | None
    vector: VectorHit | None
    lent: float = 0.0


def search(question: Question, principal: Principal) -> Result:
    """The best memories for a question, of those that the principal may see; each is read anew before it is shown."""
    question, embedded = _with_vector(question)
    reach = groups(principal, question.kinds, question.only)
    searched = _searched(question, reach, embedded=embedded)
    bounds = _bounds(question, reach, searched)
    depth = _DEPTH
    while True:
        ranked, exhausted = _ranked(question, bounds, depth)
        if question.neighbours:
            ranked = _beside(question, ranked, principal)
        found = _shown(question, ranked, principal)
        if len(found) >= question.limit or exhausted or depth >= _DEEPEST:
            return Result(found[: question.limit], searched)
        depth *= _DEEPER


def _with_vector(question: Question) -> tuple[Question, bool | None]:
    """The question with the embedder's vector when it brings none, and whether the embedder made one.

    What must or must not occur is a matter of the text alone, so a question that says so is not embedded.
    """
    serving, words = embedder.serving(), question.text
    if serving is None or question.vector is not None or words is None or not words.words:
        return question, None
    if words.phrases or words.excluded:
        return question, None
    try:
        numbers = serving.embed_query(question.words)
    except EmbedderFault as fault:
        log.warning("Searched by text alone: %s", fault)
        return question, False
    profile = Profile(serving.profil_hash, len(numbers))
    return replace(question, vector=VectorQuery(vectors.unit(numbers), profile)), True


@engine.well_planned()
def _ranked(question: Question, bounds: Bounds, depth: int) -> tuple[list[_Ranked], bool]:
    """Both legs' hits in their common order, and whether there are no more."""
    texts: list[TextHit] = []
    near: list[VectorHit] = []
    whole = True
    if question.text is not None and not question.text.is_empty:
        texts, whole = text.hits(question.text, bounds, depth)
    if question.vector is not None:
        near = vectors.hits(question.vector, bounds, 2 * depth // 3)
    return _fused(texts, near), whole and len(near) < 2 * depth // 3


def _fused(texts: Sequence[TextHit], near: Sequence[VectorHit]) -> list[_Ranked]:
    """Weighted sum of both legs' scores, each spread over its best 100; one leg alone keeps its own scores."""
    # Not by version, which may have moved on between the two legs.
    by_text = {(hit.typ, hit.memory_id): hit for hit in texts}
    # Of a memory's own vector and one that was derived from its text, the nearer counts.
    by_vector = {(hit.typ, hit.memory_id): hit for hit in reversed(near)}
    if texts and near:
        text_points = _spread([hit.score for hit in texts])
        vector_points = _spread([hit.cosine for hit in near])
    else:
        text_points, vector_points = _as_it_is, _as_it_is
    text_share, vector_share = (TEXT_SHARE, VECTOR_SHARE) if texts and near else (1.0, 1.0)
    ranked = []
    for key in by_text.keys() | by_vector.keys():
        one, other = by_text.get(key), by_vector.get(key)
        points, version = 0.0, 0
        if one:
            points, version = text_share * text_points(one.score), one.version
        if other:
            points += vector_share * vector_points(other.cosine)
            version = max(version, other.version)
        ranked.append(_Ranked(*key, version, min(points, 1.0), one, other))
    return sorted(ranked, key=_place)


def _beside(question: Question, ranked: Sequence[_Ranked], principal: Principal) -> list[_Ranked]:
    """The hits with what neighbours lend them, and those neighbours that are no hits; all points on one scale.

    Where the text says what must or must not occur, no memory comes in that is no hit.
    """
    best = {hit.memory_id: hit.points for hit in ranked[:_COMPARED] if hit.typ == BRAIN.typ}
    got = neighbours.lent(best, principal, question.only) if best else {}
    hits = {(hit.typ, hit.memory_id): hit for hit in ranked}
    if question.text is None or not (question.text.phrases or question.text.excluded):
        others = ((BRAIN.typ, key) for key in got)
        hits = {key: _Ranked(*key, version=0, points=0.0, text=None, vector=None) for key in others} | hits
    lifted = []
    for (typ, key), hit in hits.items():
        more = got.get(key, 0.0) if typ == BRAIN.typ else 0.0
        points, lent = (hit.points + more) / neighbours.WHOLE, more / neighbours.WHOLE
        lifted.append(replace(hit, points=points, lent=lent))
    return sorted(lifted, key=_place)


def _place(hit: _Ranked) -> tuple[float, float, str, int]:
    """What hits are sorted by; where points end, at 0, cosines go on."""
    return -hit.points, -hit.vector.cosine if hit.vector else 1.0, hit.typ, hit.memory_id


def _spread(scores: Sequence[float]) -> Callable[[float], float]:
    best, least = scores[0], scores[:_COMPARED][-1]
    return lambda score: max(0.0, (score - least) / (best - least)) if best > least else 1.0


def _as_it_is(score: float) -> float:
    return max(score, 0.0)


def _bounds(question: Question, reach: Groups, searched: Searched) -> Bounds:
    """Where to look: in reach and, what no token tells, by times and by what held and was valid at the moment."""
    where, values = _held(question)
    if question.stand is not None:
        where = f"{where} AND (c.gueltig_bis IS NULL OR c.gueltig_bis >= %s)"
        values = [*values, _moment(question.stand)]
    few = searched.in_reach if searched.exact else None
    return Bounds(reach, where, values, then=question.stand is not None, few=few)


def _held(question: Question) -> tuple[str, list[Any]]:
    """The filters of time and, as of a moment, what held then, be it valid or not."""
    only, parts, values = question.only, [], []
    column = "seit" if only.zeitfeld == "aktualisiert_am" else "erstellt_am"
    for sign, moment in ((">=", only.von), ("<=", only.bis)):
        if moment is not None:
            parts.append(f"AND c.{column} {sign} %s")
            values.append(_moment(moment))
    if question.stand is not None:
        parts.append("AND c.seit <= %s AND (c.bis IS NULL OR c.bis > %s)")
        values.extend([_moment(question.stand)] * 2)
    return " ".join(parts), values


def _moment(moment: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(moment)


def _shown(question: Question, ranked: Iterable[_Ranked], principal: Principal) -> list[Found]:
    """The hits that are really there and to be seen, read from the database, until there are enough."""
    found: list[Found] = []
    hits = list(ranked)
    for start in range(0, len(hits), question.limit):
        part = hits[start : start + question.limit]
        rows = _rows(part, principal, then=question.stand is not None)
        for hit in part:
            row = rows.get((hit.typ, hit.memory_id))
            if row is not None:
                kind = next(kind for kind in KINDS if kind.typ == hit.typ)
                found.append(Found(kind, row, hit.points, hit.text, hit.vector, hit.lent))
        if len(found) >= question.limit:
            break
    return found


def _rows(part: Sequence[_Ranked], principal: Principal, *, then: bool) -> Mapping[tuple[str, int], Any]:
    rows: dict[tuple[str, int], Any] = {}
    for kind in KINDS:
        wanted = {hit.memory_id: hit.version for hit in part if hit.typ == kind.typ}
        if wanted and then:
            versions = kind.versions.objects.visible_to(principal, among=wanted)
            versions = versions.filter(version__in=set(wanted.values()))
            rows |= {(kind.typ, row.memory_id): row for row in versions if wanted[row.memory_id] == row.version}
        elif wanted:
            seen = kind.memories.objects.visible_to(principal, among=wanted)
            rows |= {(kind.typ, row.pk): row for row in with_door(kind, seen)}
    return rows


@engine.well_planned()
def _searched(question: Question, reach: Groups, *, embedded: bool | None) -> Searched:
    """Counts of the memories in reach, now or then, up to 1,000."""
    most = COUNTED_UP_TO + 1
    where, parameters = _held(question)
    tables = (False,) if question.stand is None else (False, True)

    def count(matches: Sequence[Match], where: str = where, parameters: Sequence[Any] = parameters) -> list[int]:
        each = [engine.counts(matches, most, where, parameters, past=past) for past in tables]
        return [min(sum(found), most) for found in zip(*each, strict=True)]

    # Each memory has a first part, so that to leave out the others, which few have, is quicker than to look for it.
    others = [ONE_OF_SEVERAL, FIRST_PART]
    memories = Match(reach, outside=[others, [DERIVED_VECTOR]]) if reach else Match([[FIRST_PART]])
    with_profile: list[Match] = []
    if question.vector is not None:
        profile = [*reach, [profile_token(question.vector.profile.profil_hash, question.vector.profile.dimension)]]
        with_profile = [Match(profile, outside=[others]), Match([*profile, [STALE]], outside=[others])]
    in_reach, *of_profile = count([memories, *with_profile])
    at = question.stand or timezone.now()
    if where:
        (expired,) = count([memories], f"{where} AND c.gueltig_bis < %s", [*parameters, _moment(at)])
    else:  # there are few, which an index finds
        gone = SearchEntry.objects.filter(gueltig_bis__lt=at, teil=0).values_list("geltung", flat=True)
        expired = sum(Bounds(reach).has(geltung) for geltung in gone.iterator())
    without = stale = None
    if question.vector is not None:
        without = max(in_reach - of_profile[0], 0)
        stale = None if question.vector.also_stale else of_profile[1]
    exact = in_reach < most
    return Searched(min(in_reach, COUNTED_UP_TO), expired, without, stale, exact=exact, embedded=embedded)
