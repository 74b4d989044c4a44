"""Looking through the int8 blocks of a profile. A process keeps the codes of some blocks, which never change.

Whether a block is there, and which entries it has, is read anew each time; a block that was kept is used only when
its entries and their scales are those in the database. So there is nothing to keep in step, and nothing to load.
"""

import threading
from collections.abc import Container, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import simsimd
from django.db import connection

from memories.search import engine

KEPT = 192 * 1024 * 1024  # bytes of codes in a process: half a million vectors of 384 numbers
_AT_ONCE = 100  # blocks

_kept: dict[int, tuple[bytes, bytes, bytes]] = {}
_turn = threading.Lock()

Scored = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]


def scored(profil_hash: str, dimension: int, code: npt.NDArray[np.int8]) -> Scored:
    """The entries of all blocks of the profile, the block of each, and a score that grows with its cosine."""
    there = {
        block: (bytes(entries), bytes(scales))
        for block, entries, scales in engine.rows(
            "SELECT id, eintraege, skalen FROM memories_vectorblock WHERE profil_hash = %s AND dimension = %s",
            [profil_hash, dimension],
        )
    }
    blocks, entries, scales, products = [], [], [], []
    for block, codes in _codes(there):
        matrix = np.frombuffer(codes, dtype=np.int8).reshape(-1, dimension)
        products.append(np.asarray(simsimd.cdist(code, matrix, metric="dot"))[0])
        blocks.append(block)
        entries.append(there[block][0])
        scales.append(there[block][1])
    held = np.frombuffer(b"".join(entries), dtype="<i8")
    numbers = np.repeat(np.array(blocks, dtype=np.int64), [len(each) for each in products])
    # A constant factor changes no order, so the query's own scale is left out.
    scores = np.concatenate([np.empty(0), *products]).astype(np.float32) * np.frombuffer(b"".join(scales), dtype="<f4")
    return held, numbers, scores


def _codes(there: dict[int, tuple[bytes, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The codes of these blocks, of each that is still there."""
    missing = []
    for block, held in there.items():
        kept = _kept.get(block)
        if kept is not None and kept[:2] == held:
            yield block, kept[2]
        else:
            missing.append(block)
    room = _room(there) if missing else 0
    for start in range(0, len(missing), _AT_ONCE):
        for block, codes in _read(missing[start : start + _AT_ONCE]):
            room -= len(codes)
            if room >= 0:
                with _turn:
                    _kept[block] = (*there[block], codes)
            yield block, codes


def _room(there: Container[int]) -> int:
    """How many bytes more can be kept; what this search does not look through makes room when there is none."""
    with _turn:
        room = KEPT - sum(len(codes) for _entries, _scales, codes in _kept.values())
        if room < KEPT // 2:
            for other in [other for other in _kept if other not in there]:
                room += len(_kept.pop(other)[2])
        return room


def _read(blocks: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """One after the other, so that not all are in memory at once."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id, codes FROM memories_vectorblock WHERE id IN ({', '.join(map(str, blocks))})"  # noqa: S608
        )
        row: Any
        for row in iter(cursor.fetchone, None):
            yield row[0], bytes(row[1])
