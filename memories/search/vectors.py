"""Nearest vectors by cosine, of one profile only: exact for small sets, int8 blocks and rescoring for large ones."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import simsimd
from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Length

from memories.models import SearchEntry, VectorBlock
from memories.search import blocks, engine, pgvector
from memories.search.engine import Groups, Match
from memories.search.reach import Bounds, profile_token

BLOCK = 1_024  # vectors
LOOSE = 256  # vectors that are worth a block of their own, which grows with those that come later
PACKED_AT_ONCE = 4  # blocks after a search
KNOWN_UP_TO = 20_000  # entries in reach; of more, only those that come into question are looked at
_ALWAYS_EXACT = 500  # entries in reach
_WORTH_A_BLOCK = 16  # entries that cost as much to read as a block to look through
_READ_AT_ONCE = 2_000  # entries
_MARGIN = 60  # more candidates than wanted, since int8 does not tell neighbours apart
_WIDER = 8
_THIN = 4  # of so many candidates at least one must be in reach, or those in reach are looked up
_GROUP = 64  # scores whose largest is looked at first

Floats = npt.NDArray[np.float32]
Near = tuple[float, int]  # an entry's cosine with the query, and its key


@dataclass(frozen=True, slots=True)
class Profile:
    """What makes vectors comparable: the hash that names the model, and how many numbers they have."""

    profil_hash: str
    dimension: int


@dataclass(frozen=True, slots=True)
class VectorHit:
    """An entry and its cosine with the query."""

    typ: str
    memory_id: int
    version: int
    cosine: float


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """A vector of length 1, its profile, and whether vectors whose text has moved on count too."""

    unit: Floats
    profile: Profile
    also_stale: bool = False


def hits(query: VectorQuery, bounds: Bounds, most: int) -> list[VectorHit]:
    """The nearest vectors within these bounds, best first; fewer than `most` only when there are no more."""
    wanted = _Wanted(query, bounds, most)
    found = _told(_of_live(wanted))
    if bounds.then:
        keys = engine.keys(Match(wanted.of_profile), None, bounds.where, bounds.parameters, past=True).tolist()
        found = [*found, *_told(_exact(wanted, keys, past=True), past=True)]
    return sorted(found, key=lambda hit: -hit.cosine)[:most]


def _told(near: Sequence[Near], *, past: bool = False) -> list[VectorHit]:
    """What entries these are."""
    cosines = {key: cosine for cosine, key in near}
    found = engine.identities(list(cosines), past=past)
    return [VectorHit(typ, memory_id, version, cosines[key]) for key, typ, memory_id, version in found]


def unit(numbers: npt.NDArray[Any]) -> Floats:
    """The vector scaled to length 1, as float32. Computed in float64, where no square overflows or vanishes."""
    wide = numbers.astype(np.float64)
    wide /= np.abs(wide).max()
    scaled: Floats = (wide / np.linalg.norm(wide)).astype("<f4")
    return scaled


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is looked for, and where."""

    query: VectorQuery
    bounds: Bounds
    most: int

    @property
    def profile(self) -> list[Any]:
        """The values of the profile's columns."""
        return [self.query.profile.profil_hash, self.query.profile.dimension]

    @property
    def of_profile(self) -> Groups:
        """The reach, narrowed to the profile."""
        return [*self.bounds.reach, [profile_token(self.query.profile.profil_hash, self.query.profile.dimension)]]

    def rows(self, keys: Sequence[int], columns: str = "c.id, c.vektor", *, past: bool = False) -> list[Any]:
        """The entries of these keys that fulfil the condition."""
        fresh = "" if self.query.also_stale else "AND NOT c.veraltet"
        table = "memories_pastentry" if past else "memories_searchentry"
        # The keys are numbers of the database's own, so they need not be parameters, of which there is a limit.
        return engine.rows(
            f"SELECT {columns} FROM {table} c WHERE c.id IN ({', '.join(map(str, keys))}) "
            f"AND c.profil_hash = %s AND c.dimension = %s AND c.vektor IS NOT NULL {fresh} {self.bounds.where}",
            [*self.profile, *self.bounds.parameters],
        )


_WITH_PLACE = "c.id, c.vektor, c.geltung, c.block"


def _of_live(wanted: _Wanted) -> list[Near]:
    """The nearest entries as things are."""
    near = _of_database(wanted) if pgvector.is_there() else None
    return _of_process(wanted) if near is None else _exact(wanted, near)


def _of_database(wanted: _Wanted) -> list[int] | None:
    profile, bounds = wanted.query.profile, wanted.bounds
    condition = pgvector.Condition(
        profile.profil_hash,
        profile.dimension,
        wanted.query.also_stale,
        Match(bounds.reach),
        bounds.where,
        bounds.parameters,
    )
    return pgvector.nearest(wanted.query.unit.tobytes(), condition, wanted.most + _MARGIN)


def _of_process(wanted: _Wanted) -> list[Near]:
    """Few entries in reach are judged one by one; of many, those that their blocks show to be near."""
    if wanted.bounds.reach or wanted.bounds.where:
        few = max(_ALWAYS_EXACT, _WORTH_A_BLOCK * _blocks(wanted))
        keys = _in_reach(wanted, few)
        if len(keys) <= few:
            return _exact(wanted, keys)
    return _by_blocks(wanted)


def _in_reach(wanted: _Wanted, most: int) -> list[int]:
    """The keys of the entries in reach, or of more than `most`."""
    bounds = wanted.bounds
    match = Match(bounds.reach or wanted.of_profile)
    keys: list[int] = engine.keys(match, most + 1, bounds.where, bounds.parameters).tolist()
    return keys


def _blocks(wanted: _Wanted) -> int:
    sql = "SELECT count(*) FROM memories_vectorblock WHERE profil_hash = %s AND dimension = %s"
    number: int = engine.rows(sql, wanted.profile)[0][0]
    return number


def _exact(wanted: _Wanted, keys: Sequence[int], *, past: bool = False) -> list[Near]:
    """The nearest of these entries, which are in reach."""
    best: list[Near] = []
    for part in _portions(keys):
        best = _nearest(wanted, best + _judged(wanted, wanted.rows(part, past=past)))
    return best


def _portions(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(keys), _READ_AT_ONCE):
        yield keys[start : start + _READ_AT_ONCE]


def _judged(wanted: _Wanted, rows: Sequence[Any]) -> list[Near]:
    """The nearest of these rows' entries."""
    if not rows:
        return []
    dimension = wanted.query.profile.dimension
    matrix = np.frombuffer(b"".join([row[1] for row in rows]), dtype="<f4").reshape(len(rows), dimension)
    # Not by numpy's @, which takes as many threads as there are processors for what one does in a millisecond.
    cosines = np.asarray(simsimd.cdist(wanted.query.unit[None, :], matrix, metric="dot"))[0]
    best = np.argsort(-cosines)[: wanted.most].tolist()
    return [(float(cosines[place]), rows[place][0]) for place in best]


def _nearest(wanted: _Wanted, found: list[Near]) -> list[Near]:
    return sorted(found, key=lambda near: -near[0])[: wanted.most]


def _by_blocks(wanted: _Wanted) -> list[Near]:
    """Look through all blocks with int8, then judge the best exactly, more of them until there are enough in reach.

    Where few of the first are, those in reach are looked up, if they are few enough to know them.
    """
    loose = _loose(wanted)
    best, _places = _looked_at(wanted, list(loose))
    judged: dict[int, int | None] = dict.fromkeys(loose)
    code, _scale = quantised(wanted.query.unit[None, :])
    found = blocks.scored(wanted.query.profile.profil_hash, wanted.query.profile.dimension, code)
    enough, size, looked_up = 0, wanted.most + _MARGIN, False
    while enough < wanted.most and (portion := _candidates(found, size)):
        near, places = _looked_at(wanted, [key for key in portion if key not in judged])
        best, judged = _nearest(wanted, best + near), judged | places
        # An entry that has moved on is judged as what it is now, but was not found by that.
        inside = sum(judged.get(key) in where for key, where in portion.items())
        enough += inside
        size = (wanted.most - enough) * len(portion) // inside + _MARGIN if inside else size * _WIDER
        if not looked_up and inside * _THIN < len(portion):
            keys, looked_up = _in_reach(wanted, KNOWN_UP_TO), True
            if len(keys) <= KNOWN_UP_TO:
                found.leave(keys)
                size = wanted.most + _MARGIN
    if len(loose) >= LOOSE:
        pack(wanted.query.profile, PACKED_AT_ONCE)
    return best


def _looked_at(wanted: _Wanted, keys: Sequence[int]) -> tuple[list[Near], dict[int, int | None]]:
    """The nearest of those of these entries that are in reach, and the block of each of those."""
    best: list[Near] = []
    places: dict[int, int | None] = {}
    for part in _portions(keys):
        rows = wanted.rows(part, _WITH_PLACE)
        if wanted.bounds.reach:
            rows = [row for row in rows if wanted.bounds.has(row[2])]
        best = _nearest(wanted, best + _judged(wanted, rows))
        places |= {row[0]: row[3] for row in rows}
    return best, places


def _loose(wanted: _Wanted) -> set[int]:
    """The entries that are in no block."""
    sql = (
        "SELECT id FROM memories_searchentry "
        "WHERE profil_hash = %s AND dimension = %s AND vektor IS NOT NULL AND block IS NULL"
    )
    return {key for (key,) in engine.rows(sql, wanted.profile)}


def _candidates(found: blocks.Scored, size: int) -> dict[int, set[int]]:
    """The entries that seem nearest, at most so many, each with the blocks that say so; they are taken out."""
    scores = found.scores
    size = min(size, int(np.count_nonzero(scores > -np.inf)))
    portion: dict[int, set[int]] = {}
    if size:
        places = _largest(scores, size)
        for entry, block in found.at(places):
            portion.setdefault(entry, set()).add(block)
        scores[places] = -np.inf
    return portion


def _largest(scores: Floats, size: int) -> npt.NDArray[np.intp]:
    """The places of the largest scores, in no order.

    What is below the size-th largest of the maxima of groups is not among them, which spares sorting nearly all.
    """
    whole = len(scores) // _GROUP * _GROUP
    if size * _GROUP < whole:
        least = np.partition(scores[:whole].reshape(-1, _GROUP).max(axis=1), -size)[-size]
        among = np.flatnonzero(scores >= least)
        return among[np.argpartition(scores[among], -size)[-size:]]
    return np.argpartition(scores, -size)[-size:]


def quantised(units: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Vectors (rows) as int8 codes and a float32 scale each: codes times scale is about the vector."""
    scale = np.abs(units).max(axis=1) / 127
    return np.rint(units / scale[:, None]).astype(np.int8), scale.astype("<f4")


def pack(profile: Profile, most: int) -> int:
    """Put vectors that are in no block yet into at most so many blocks; returns into how many.

    A profile that has a graph in the database needs none.
    """
    if pgvector.is_there() and pgvector.has_graph(profile.profil_hash, profile.dimension):
        return 0
    made = 0
    while made < most and _pack_one(profile):
        made += 1
    return made


def _pack_one(profile: Profile) -> bool:
    """Make a block of loose vectors, and of those of a block that has room for them, which goes."""
    of_profile = {"profil_hash": profile.profil_hash, "dimension": profile.dimension}
    with transaction.atomic():
        loose = SearchEntry.objects.filter(**of_profile, vektor__isnull=False, block__isnull=True)
        rows = _locked(loose)
        if len(rows) < LOOSE:
            return False
        blocks = VectorBlock.objects.filter(**of_profile).annotate(bytes=Length("skalen"))
        with_room = blocks.filter(bytes__lte=(BLOCK - len(rows)) * VectorBlock.SCALE)
        growing = with_room.select_for_update().order_by("-bytes").first()
        if growing is not None:
            living = SearchEntry.objects.filter(block=growing.pk)
            others = _locked(living)
            # What somebody changes right now is not waited for.
            if len(others) == living.count():
                growing.delete()
                rows = sorted(rows + others)
        _make(profile, rows)
        return True


def _locked(entries: QuerySet[Any]) -> list[tuple[int, bytes]]:
    """The first of these entries that nobody else holds, and their vectors."""
    free = entries.select_for_update(skip_locked=connection.features.has_select_for_update_skip_locked)
    return list(free.order_by("id").values_list("id", "vektor")[:BLOCK])


def _make(profile: Profile, rows: Sequence[tuple[int, bytes]]) -> None:
    """A block of these entries with their vectors."""
    matrix = np.frombuffer(b"".join([row[1] for row in rows]), dtype="<f4").reshape(len(rows), profile.dimension)
    codes, scales = quantised(matrix)
    keys = [row[0] for row in rows]
    block = VectorBlock.objects.create(
        pk=secrets.randbits(63),
        profil_hash=profile.profil_hash,
        dimension=profile.dimension,
        eintraege=np.array(keys, dtype="<i8").tobytes(),
        skalen=scales.tobytes(),
        codes=codes.tobytes(),
    )
    SearchEntry.objects.filter(pk__in=keys).update(block=block.pk)


def repack(key: int) -> None:
    """Make the block anew, under another key, without the codes that no entry needs any more, if it has such."""
    with transaction.atomic():
        block = VectorBlock.objects.select_for_update().filter(pk=key).first()
        if block is None:
            return
        living = SearchEntry.objects.select_for_update().filter(block=key).order_by("id")
        rows = list(living.values_list("id", "vektor"))
        if len(rows) == block.size:
            return
        block.delete()
        if rows:
            _make(Profile(block.profil_hash, block.dimension), rows)
