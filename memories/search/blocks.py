"""Looking through the int8 blocks of a profile. A process keeps some blocks, which never change.

Which blocks there are is read anew each time, and a block's key is drawn at random, so that no other ever has it. So
there is nothing to keep in step, and nothing to load.
"""

import threading
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import simsimd
from django.db import connection

from memories.search import engine

KEPT = 192 * 1024 * 1024  # bytes of codes in a process: half a million vectors of 384 numbers
_AT_ONCE = 100  # blocks

Entries = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Scored:
    """Blocks, the entries of each, and a score for each of all entries that grows with its cosine."""

    keys: Sequence[int]
    entries: Sequence[Entries]
    scores: npt.NDArray[np.float32]

    def at(self, places: npt.NDArray[np.intp]) -> Iterator[tuple[int, int]]:
        """The entries of these scores, each with its block."""
        ends = np.cumsum([len(each) for each in self.entries])
        for place, block in zip(places.tolist(), np.searchsorted(ends, places, side="right").tolist(), strict=True):
            yield int(self.entries[block][place - ends[block]]), self.keys[block]

    def leave(self, keys: Sequence[int]) -> None:
        """Give all but these entries the least score there is."""
        if self.entries:
            self.scores[~np.isin(np.concatenate(self.entries), np.array(keys, dtype=np.int64))] = -np.inf


@dataclass(frozen=True, slots=True)
class _Block:
    """Entries (as int64), the scale of each (as float32), and the codes of their vectors, row by row."""

    key: int
    entries: Entries
    scales: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int8]


_kept: dict[int, _Block] = {}
_turn = threading.Lock()


def keys(profil_hash: str, dimension: int) -> list[int]:
    """The keys of all blocks of the profile."""
    sql = "SELECT id FROM memories_vectorblock WHERE profil_hash = %s AND dimension = %s"
    return [key for (key,) in engine.rows(sql, [profil_hash, dimension])]


def scored(profil_hash: str, dimension: int, code: npt.NDArray[np.int8]) -> Scored:
    """The entries of all blocks of the profile with their scores."""
    sql = "SELECT id FROM memories_vectorblock WHERE profil_hash = %s AND dimension = %s"
    keys, entries, scores = [], [], []
    for block in _blocks([key for (key,) in engine.rows(sql, [profil_hash, dimension])]):
        keys.append(block.key)
        entries.append(block.entries)
        # A constant factor changes no order, so the query's own scale is left out.
        products = np.asarray(simsimd.cdist(code, block.codes, metric="dot"))[0]
        scores.append(np.multiply(products, block.scales, dtype=np.float32))
    return Scored(keys, entries, np.concatenate([np.empty(0, np.float32), *scores]))


def _blocks(there: Sequence[int]) -> Iterator[_Block]:
    """These blocks, each that is still there."""
    missing = []
    for key in there:
        kept = _kept.get(key)
        if kept is None:
            missing.append(key)
        else:
            yield kept
    room = _room(frozenset(there)) if missing else 0
    for start in range(0, len(missing), _AT_ONCE):
        for block in _read(missing[start : start + _AT_ONCE]):
            room -= block.codes.nbytes
            if room >= 0:
                with _turn:
                    _kept[block.key] = block
            yield block


def _room(there: Container[int]) -> int:
    """How many bytes more can be kept; what this search does not look through makes room when there is none."""
    with _turn:
        room = KEPT - sum(block.codes.nbytes for block in _kept.values())
        if room < KEPT // 2:
            for other in [other for other in _kept if other not in there]:
                room += _kept.pop(other).codes.nbytes
        return room


def _read(blocks: Sequence[int]) -> Iterator[_Block]:
    """One after the other, so that not all are in memory at once."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, eintraege, skalen, codes FROM memories_vectorblock "  # noqa: S608
            f"WHERE id IN ({', '.join(map(str, blocks))})"
        )
        row: Any
        for row in iter(cursor.fetchone, None):
            entries = np.frombuffer(row[1], dtype="<i8")
            codes = np.frombuffer(row[3], dtype=np.int8).reshape(len(entries), -1)
            yield _Block(row[0], entries, np.frombuffer(row[2], dtype="<f4"), codes)
