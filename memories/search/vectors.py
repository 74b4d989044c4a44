"""Nearest vectors by cosine, of one profile only: exact for small sets, int8 blocks and rescoring for large ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import simsimd
from django.db import connection, transaction

from memories.models import SearchEntry, VectorBlock
from memories.search import engine
from memories.search.engine import Groups, Match
from memories.search.reach import profile_token

BLOCK = 1_024  # vectors
EXACT_UP_TO = 20_000  # vectors in reach
PACKED_AT_ONCE = 4  # blocks after a search
_FIRST_PASS = 100  # candidates for exact rescoring
_WIDER = 8

Floats = npt.NDArray[np.float32]


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


def hits(query: VectorQuery, reach: Groups, most: int) -> list[VectorHit]:
    """The nearest vectors in reach, best first; fewer than `most` only when there are no more."""
    of_profile = [*reach, [profile_token(query.profile.profil_hash, query.profile.dimension)]]
    if engine.count(Match(of_profile), EXACT_UP_TO + 1) <= EXACT_UP_TO:
        return _exact(query, _in_reach(query, of_profile), most)
    return _by_blocks(query, reach, most)


def hits_where(
    query: VectorQuery, reach: Groups, most: int, where: str, parameters: Sequence[Any], *, then: bool
) -> list[VectorHit]:
    """The nearest vectors that fulfil a condition too, judged exactly; with `then` among past entries as well."""
    of_profile = [*reach, [profile_token(query.profile.profil_hash, query.profile.dimension)]]
    tables = (False, True) if then else (False,)
    found = [row for past in tables for row in _in_reach(query, of_profile, where, parameters, past=past)]
    return _exact(query, found, most)


def unit(numbers: npt.NDArray[Any]) -> Floats:
    """The vector scaled to length 1, as float32. Computed in float64, where no square overflows or vanishes."""
    wide = numbers.astype(np.float64)
    wide /= np.abs(wide).max()
    scaled: Floats = (wide / np.linalg.norm(wide)).astype("<f4")
    return scaled


_COLUMNS = "c.id, c.typ, c.memory_id, c.version, c.vektor"
_OF_PROFILE = "c.profil_hash = %s AND c.dimension = %s AND c.vektor IS NOT NULL"
_FRESH = " AND NOT c.veraltet"


def _in_reach(
    query: VectorQuery, reach: Groups, where: str = "", parameters: Sequence[Any] = (), *, past: bool = False
) -> list[Any]:
    condition = f"AND {_OF_PROFILE} {where}" + ("" if query.also_stale else _FRESH)
    profile = query.profile
    values = [profile.profil_hash, profile.dimension, *parameters]
    return engine.matching(Match(reach), _COLUMNS, condition, values, past=past)


def _exact(query: VectorQuery, rows: Sequence[Any], most: int) -> list[VectorHit]:
    if not rows:
        return []
    matrix = np.frombuffer(b"".join(row[4] for row in rows), dtype="<f4").reshape(len(rows), query.profile.dimension)
    cosines = matrix @ query.unit
    best = np.argsort(-cosines, kind="stable")[:most]
    return [VectorHit(rows[place][1], rows[place][2], rows[place][3], float(cosines[place])) for place in best]


def _by_blocks(query: VectorQuery, reach: Groups, most: int) -> list[VectorHit]:
    """Look through all blocks with int8, then judge the best exactly, more of them until there are enough in reach."""
    profile = [query.profile.profil_hash, query.profile.dimension]
    condition = _OF_PROFILE + ("" if query.also_stale else _FRESH)
    loose = engine.rows(
        f"SELECT {_COLUMNS}, c.block, c.geltung FROM memories_searchentry c WHERE {condition} AND c.block IS NULL",
        profile,
    )
    found = [row for row in loose if reached(row[6], reach)]
    entries, blocks, scores = _scored(query)
    order = np.argsort(-scores)
    start, size = 0, max(_FIRST_PASS, 2 * most)
    while start < len(order):
        places = order[start : start + size]
        wanted = {int(entries[place]): int(blocks[place]) for place in places}
        found.extend(row for row in _entries(wanted, condition, profile) if reached(row[6], reach))
        if len(found) >= most + len(loose):
            break
        start, size = start + size, size * _WIDER
    if len(loose) >= 2 * BLOCK:
        pack(query.profile, PACKED_AT_ONCE)
    return _exact(query, found, most)


def reached(geltung: str, reach: Groups) -> bool:
    """Whether an entry with these tokens is in reach."""
    if not reach:
        return True
    tokens = set(geltung.split(" "))
    return all(not tokens.isdisjoint(group) for group in reach)


def _entries(wanted: dict[int, int], condition: str, profile: Sequence[Any]) -> Iterator[Any]:
    """The entries of these keys that still are in the block they were found in."""
    keys = list(wanted)
    for start in range(0, len(keys), _WIDER * BLOCK):
        part = keys[start : start + _WIDER * BLOCK]
        marks = ", ".join(["%s"] * len(part))
        sql = (
            f"SELECT {_COLUMNS}, c.block, c.geltung FROM memories_searchentry c WHERE {condition} AND c.id IN ({marks})"
        )
        yield from (row for row in engine.rows(sql, [*profile, *part]) if row[5] == wanted[row[0]])


def _scored(query: VectorQuery) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]:
    """The entries of all blocks of the profile, the block of each, and about the cosine of each."""
    codes, scale = quantised(query.unit[None, :])
    entries, blocks, scores = [], [], []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, eintraege, skalen, codes FROM memories_vectorblock WHERE profil_hash = %s AND dimension = %s",
            [query.profile.profil_hash, query.profile.dimension],
        )
        for block, keys, scales, packed in iter(cursor.fetchone, None):
            held = np.frombuffer(keys, dtype="<i8")
            matrix = np.frombuffer(packed, dtype=np.int8).reshape(len(held), query.profile.dimension)
            products = np.asarray(simsimd.cdist(codes, matrix, metric="dot"))[0]
            entries.append(held)
            blocks.append(np.full(len(held), block, dtype=np.int64))
            scores.append((products * np.frombuffer(scales, dtype="<f4") * scale[0]).astype(np.float32))
    if not entries:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    return np.concatenate(entries), np.concatenate(blocks), np.concatenate(scores)


def quantised(units: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
    """Vectors (rows) as int8 codes and a float32 scale each: codes times scale is about the vector."""
    scale = np.abs(units).max(axis=1) / 127
    return np.rint(units / scale[:, None]).astype(np.int8), scale.astype("<f4")


def pack(profile: Profile, most: int) -> int:
    """Put vectors that are in no block yet into at most so many full blocks; returns into how many."""
    made = 0
    while made < most and _pack_one(profile):
        made += 1
    return made


def _pack_one(profile: Profile) -> bool:
    with transaction.atomic():
        loose = SearchEntry.objects.filter(
            profil_hash=profile.profil_hash, dimension=profile.dimension, vektor__isnull=False, block__isnull=True
        )
        locked = loose.select_for_update(skip_locked=connection.features.has_select_for_update_skip_locked)
        rows = list(locked.order_by("id").values_list("id", "vektor")[:BLOCK])
        if len(rows) < BLOCK:
            return False
        matrix = np.frombuffer(b"".join(row[1] for row in rows), dtype="<f4").reshape(BLOCK, profile.dimension)
        codes, scales = quantised(matrix)
        block = VectorBlock.objects.create(
            profil_hash=profile.profil_hash,
            dimension=profile.dimension,
            eintraege=np.array([row[0] for row in rows], dtype="<i8").tobytes(),
            skalen=scales.tobytes(),
            codes=codes.tobytes(),
        )
        SearchEntry.objects.filter(pk__in=[row[0] for row in rows]).update(block=block.pk)
        return True
