"""PostgreSQL with pgvector: the database compares the vectors itself, by a graph where there are many in reach.

Migration 0007 gives the entries a column of float16 numbers where the server has the extension. It chooses candidates;
their order comes from the float32 numbers beside it. Without the extension `memories.search.vectors` uses its blocks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from django.db import connection, transaction

from memories.search import engine
from memories.search.engine import Match
from memories.search.reach import profile_token

COLUMN = "naehe"
INDEXED_FROM = 20_000  # vectors of a profile
COMPARED_UP_TO = 20_000  # entries in reach: more quickly compared one by one than found by the graph
_MOST_OF_GRAPH = 1_000
_MOST_DIMENSIONS = 4_000  # of an HNSW index over halfvec
_LARGEST = 2_047
_BYTES_OF_LINKS = 400  # a vector's, in the graph
_MOST_MEMORY = 1_048_576  # kB; a graph that does not fit is made many times more slowly

# pgvector's defaults answer a filter with a fraction of what there is. What the graph does not find in so many steps
# is compared one by one; sorting is left out since it would mean to read everything.
_BY_GRAPH = {
    "hnsw.ef_search": "400",
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.max_scan_tuples": "60000",
    "enable_sort": "off",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """Which entries (as c): of one profile, fresh or not, that match, and what else must hold."""

    profil_hash: str
    dimension: int
    also_stale: bool
    match: Match
    where: str
    parameters: Sequence[Any]

    def sql(self) -> tuple[str, list[Any]]:
        """The condition with its parameters."""
        reach, values = engine.condition(self.match)
        fresh = "" if self.also_stale else "AND NOT c.veraltet"
        return (
            f"c.profil_hash = %s AND c.dimension = %s AND c.{COLUMN} IS NOT NULL {fresh} {reach} {self.where}",
            [self.profil_hash, self.dimension, *values, *self.parameters],
        )


@cache
def is_there() -> bool:
    """Whether the entries have the column; asked once a process, since a migration makes it."""
    if connection.vendor != "postgresql":
        return False
    found = engine.rows(
        "SELECT 1 FROM pg_attribute WHERE attrelid = 'memories_searchentry'::regclass AND attname = %s", [COLUMN]
    )
    return bool(found)


def written(vector: bytes | memoryview | None) -> str | None:
    """A float32 vector as pgvector reads it: whole numbers that float16 holds exactly, as a cosine has no length."""
    if vector is None:
        return None
    numbers = np.frombuffer(vector, dtype="<f4")
    return str(np.rint(numbers * (_LARGEST / np.abs(numbers).max())).astype(int).tolist())


def nearest(vector: bytes, condition: Condition, most: int) -> list[int] | None:
    """The keys of about the nearest entries; None when there are too many to compare, and no graph of them yet."""
    bounded = bool(condition.match.reach or condition.where)
    graph = not bounded and has_graph(condition.profil_hash, condition.dimension)
    if not graph:
        sql, values = condition.sql()
        if not engine.far_more(f"SELECT 1 FROM memories_searchentry c WHERE {sql}", values, COMPARED_UP_TO):
            found, number = _compared(vector, condition, most, COMPARED_UP_TO + 1)
            if number <= COMPARED_UP_TO:
                return found
        if not has_graph(condition.profil_hash, condition.dimension):
            return None
    found = _by_graph(vector, condition, most) if most <= _MOST_OF_GRAPH else []
    return found if len(found) == most else _compared(vector, condition, most, None)[0]


def _compared(vector: bytes, condition: Condition, most: int, up_to: int | None) -> tuple[list[int], int]:
    """The nearest of all, or of `up_to`, and how many were compared.

    MATERIALIZED keeps the planner from taking the graph, which would find but some of them.
    """
    sql, values = condition.sql()
    found = engine.rows(
        f"WITH reached AS MATERIALIZED (SELECT c.id, c.{COLUMN} FROM memories_searchentry c WHERE {sql} LIMIT %s) "
        f"SELECT id, (SELECT count(*) FROM reached) FROM reached ORDER BY {COLUMN} <=> %s::halfvec LIMIT %s",
        [*values, up_to, written(vector), most],
    )
    return [key for key, _number in found], found[0][1] if found else 0


def _by_graph(vector: bytes, condition: Condition, most: int) -> list[int]:
    sql, values = condition.sql()
    kind = f"halfvec({condition.dimension:d})"
    query = f"SELECT c.id FROM memories_searchentry c WHERE {sql} ORDER BY (c.{COLUMN}::{kind}) <=> %s::{kind} LIMIT %s"
    with transaction.atomic():
        calls = ", ".join("set_config(%s, %s, true)" for _name in _BY_GRAPH)
        engine.rows(f"SELECT {calls}", [part for setting in _BY_GRAPH.items() for part in setting])
        found = engine.rows(query, [*values, written(vector), most])
        transaction.set_rollback(True)  # nothing was written, and the settings are for this query alone
    return [key for (key,) in found]


def has_graph(profil_hash: str, dimension: int) -> bool:
    """Whether the vectors of this profile have a graph."""
    sql = "SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname = %s AND i.indisvalid"
    return bool(engine.rows(sql, [_name(profil_hash, dimension)]))


def _name(profil_hash: str, dimension: int) -> str:
    return f"memories_naehe_{profile_token(profil_hash, dimension)}"


def build(progress: Callable[[str, int], None]) -> None:
    """Make the graph of each profile that is large enough and has none; writes go on meanwhile."""
    large = engine.rows(
        f"SELECT profil_hash, dimension, count(*) FROM memories_searchentry WHERE {COLUMN} IS NOT NULL "
        "AND profil_hash IS NOT NULL AND dimension <= %s GROUP BY 1, 2 HAVING count(*) >= %s",
        [_MOST_DIMENSIONS, INDEXED_FROM],
    )
    for profil_hash, dimension, number in large:
        if not has_graph(profil_hash, dimension):
            _build(profil_hash, dimension, number)
            progress(profil_hash, number)


def _build(profil_hash: str, dimension: int, number: int) -> None:
    concurrently = "" if connection.in_atomic_block else "CONCURRENTLY"
    name = _name(profil_hash, dimension)
    made = connection.ops.compose_sql(  # type: ignore[attr-defined]
        f"CREATE INDEX {concurrently} {name} ON memories_searchentry "
        f"USING hnsw (({COLUMN}::halfvec({dimension:d})) halfvec_cosine_ops) "
        f"WHERE profil_hash = %s AND dimension = %s AND {COLUMN} IS NOT NULL",
        [profil_hash, dimension],
    )
    memory = min(number * (2 * dimension + _BYTES_OF_LINKS) // 1024, _MOST_MEMORY)
    engine.rows(f"DROP INDEX {concurrently} IF EXISTS {name}")  # what an attempt that was broken off left
    engine.rows(
        "SELECT set_config('maintenance_work_mem', greatest(%s, setting::int)::text, false) "
        "FROM pg_settings WHERE name = 'maintenance_work_mem'",
        [memory],
    )
    try:
        engine.rows(made)
    finally:
        if not connection.needs_rollback:
            engine.rows("RESET maintenance_work_mem")
