"""The full-text index of the database at hand, SQLite's FTS5 or PostgreSQL's tsvector: same questions, same answers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db import DatabaseError, connection, transaction
from django.db.models.expressions import RawSQL

Groups = Sequence[Sequence[str]]
Keys = npt.NDArray[np.int64]

LIVE, PAST = "memories_searchentry", "memories_pastentry"
_MANY, _FAR_MORE = 1_000, 3
_MERGED_AT_ONCE = 200  # pages
_MERGED_SOME = 2  # changes; the statement itself is one
_FULLTEXT = {LIVE: "memories_fulltext", PAST: "memories_pastfulltext"}


@dataclass(frozen=True, slots=True)
class Match:
    """What an entry holds: a token of each group of the reach, a term of each group, and none of those excluded.

    A term is a stem, or a phrase: several stems, with blanks between them, that follow each other. Of each group of
    `outside` it does not hold the first token, unless it holds the second, where there is one.
    """

    reach: Groups = ()
    terms: Groups = ()
    excluded: Sequence[str] = ()
    outside: Groups = ()


@contextmanager
def well_planned() -> Iterator[None]:
    """What a search asks inside is answered from the indexes.

    PostgreSQL's planner does not know what it costs to unpack a tsvector, and that compiling pays for nothing here.
    """
    if connection.vendor == "sqlite":
        yield
        return
    with transaction.atomic():
        rows(_PLANNING)
        yield


# Workers cost more than they bring; a bitmap of the rows must have room, since what it forgets is read and judged anew.
_PLANNING = """
    SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
        set_config('max_parallel_workers_per_gather', '0', true), set_config('work_mem', '32MB', true)"""


def rows(sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        found: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
        return found


def listed(column: str, between: str) -> str:
    """The aggregate that makes one text of a column."""
    if connection.vendor == "sqlite":
        return f"group_concat({column}, '{between}')"
    return f"string_agg({column}::text, '{between}')"


_ENTRY = "id, typ, memory_id, version, stamm, geltung"


def entries(keys: Sequence[int], where: str = "", parameters: Sequence[Any] = (), *, past: bool = False) -> list[Any]:
    """Those of these entries (as c) that fulfil the condition: (id, typ, memory_id, version, stamm, geltung)."""
    return _of(keys, _ENTRY, where, parameters, past=past)


def sample(number: int, where: str, parameters: Sequence[Any], *, past: bool) -> list[Any]:
    """Of so many of SQLite's entries (as c), from the first to the last at equal distances, those that fulfil the
    condition: as above. Few of these keys belong to no entry.
    """
    table = PAST if past else LIVE
    # Each by itself, which the key answers; for both together SQLite would read all.
    ends = f"SELECT (SELECT min(id) FROM {table}) AS low, (SELECT max(id) FROM {table}) AS high"
    spread = f"SELECT low + (high - low) * value / {number} FROM ({ends}), json_each('{list(range(number))}')"
    return rows(f"SELECT {_ENTRY} FROM {table} c WHERE c.id IN ({spread}) {where}", parameters)


def identities(keys: Sequence[int], *, past: bool = False) -> list[Any]:
    """What entries these are, those that are still there: (id, typ, memory_id, version)."""
    return _of(keys, "id, typ, memory_id, version", past=past)


def _of(keys: Sequence[int], columns: str, where: str = "", parameters: Sequence[Any] = (), *, past: bool) -> list[Any]:
    # The keys are numbers of the database's own, so they need not be parameters, of which there is a limit.
    wanted = ", ".join(map(str, keys))
    sql = f"SELECT {columns} FROM {PAST if past else LIVE} c WHERE c.id IN ({wanted}) {where}"
    return rows(sql, parameters) if keys else []


def count(match: Match, most: int, where: str = "", parameters: Sequence[Any] = (), *, past: bool = False) -> int:
    """How many entries (as c) match and fulfil the condition; counting ends at `most`."""
    return counts([match], most, where, parameters, past=past)[0]


def counts(
    matches: Sequence[Match], most: int, where: str = "", parameters: Sequence[Any] = (), *, past: bool = False
) -> list[int]:
    """How many entries match each, counted as above, in one statement; the first is what most of them match."""
    queries = [those(match, "1", where, parameters, past=past) for match in matches]
    many = most >= _MANY and far_more(*queries[0], most)
    found = [most if many and (not place or far_more(*query, most)) else None for place, query in enumerate(queries)]
    left = [query for query, known in zip(queries, found, strict=True) if known is None]
    if left:
        columns = ", ".join(f"(SELECT count(*) FROM ({sql} LIMIT {most:d}) AS found)" for sql, _values in left)
        counted = iter(rows(f"SELECT {columns}", [value for _sql, values in left for value in values])[0])
    return [next(counted) if known is None else known for known in found]


def far_more(sql: str, values: Sequence[Any], most: int) -> bool:
    """Whether PostgreSQL expects that a query gives many times more rows than these. SQLite expects nothing."""
    if connection.vendor == "sqlite":
        return False
    expected: int = rows(f"EXPLAIN (FORMAT JSON) {sql}", values)[0][0][0]["Plan"]["Plan Rows"]
    return expected > _FAR_MORE * most


def keys(
    match: Match, most: int | None = None, where: str = "", parameters: Sequence[Any] = (), *, past: bool = False
) -> Keys:
    """The keys of the entries (as c) that match and fulfil the condition, at most so many; in no order."""
    sql, values = those(match, f"{_key()} AS id", where, parameters, past=past)
    limit, limits = ("", []) if most is None else (" LIMIT %s", [most])
    return _joined([(f"{sql}{limit}", [*values, *limits])])[0]


def matching(
    match: Match, groups: Groups, few: int, where: str = "", parameters: Sequence[Any] = (), *, past: bool = False
) -> tuple[Keys, list[Keys]]:
    """The keys (sorted) of the entries that match and fulfil the condition, and of those that hold one of each group.

    The groups together are the first terms of the match. Those that hold them may be out of reach, and are not told
    where no more than `few` match: SQLite takes a filter most quickly once and by itself, PostgreSQL with every group,
    since it then reads fewer rows.
    """
    if connection.vendor == "sqlite":
        keys = None
        if len(match.terms) > 1 or match.reach or match.excluded or where:
            keys = np.sort(_joined([those(match, f"{_key()} AS id", where, parameters, past=past)])[0])
            if len(keys) <= few:
                return keys, []
        holding = _joined([those(Match(terms=[group]), f"{_key()} AS id", past=past) for group in groups])
        return _all(holding) if keys is None else keys, holding
    narrowed = [replace(match, terms=[group, *match.terms[1:]]) for group in groups]
    holding = _joined([those(each, f"{_key()} AS id", where, parameters, past=past) for each in narrowed])
    return _all(holding), holding


def reads_reach_whole() -> bool:
    """Whether the index reads all that is in reach for each question, as SQLite's does, so that few should be."""
    return connection.vendor == "sqlite"


def _all(holding: Sequence[Keys]) -> Keys:
    return np.unique(np.concatenate([np.empty(0, np.int64), *holding]))


def _key() -> str:
    return "f.rowid" if connection.vendor == "sqlite" else "c.id"


def _joined(queries: Sequence[tuple[str, Sequence[Any]]]) -> list[Keys]:
    """The keys that these queries give, each as one text, which is many times quicker to read than rows."""
    columns = ", ".join(f"(SELECT {listed('id', ',')} FROM ({sql}) AS found)" for sql, _values in queries)
    found = rows(f"SELECT {columns}", [value for _sql, values in queries for value in values])[0]
    return [np.fromstring(each or "", dtype=np.int64, sep=",") for each in found]


def versions(match: Match, *, past: bool = False) -> set[tuple[str, int, int]]:
    """The memories' versions (typ, memory_id, version) of which an entry matches."""
    sql, values = those(match, "c.typ, c.memory_id, c.version", "AND true", past=past)
    return {(typ, memory_id, version) for typ, memory_id, version in rows(sql, values)}


def those(
    match: Match, columns: str, where: str = "", parameters: Sequence[Any] = (), *, past: bool = False
) -> tuple[str, list[Any]]:
    """The statement that reads these columns of the entries (as c; f is SQLite's index) that match."""
    table = PAST if past else LIVE
    if connection.vendor == "sqlite":
        fulltext = _FULLTEXT[table]
        # Crossed, so that SQLite begins with the full-text index, which it would otherwise ask for each entry.
        joined = f"CROSS JOIN {table} c ON c.id = f.rowid" if where else ""
        sql = f"SELECT {columns} FROM {fulltext} f {joined} WHERE {fulltext} MATCH %s {where}"
        return sql, [_fts5(match), *parameters]
    holds, values = _holds(match)
    return f"SELECT {columns} FROM {table} c WHERE {holds} {where}", [*values, *parameters]


def condition(match: Match) -> tuple[str, list[Any]]:
    """On PostgreSQL, the match as a condition on an entry (as c), with its parameters."""
    wanted = _tsquery(match)
    return ("AND c.sd @@ %s::tsquery", [wanted]) if wanted else ("", [])


def broken() -> list[str]:
    """The vocabulary and the full-text tables that do not agree with the entries; PostgreSQL's index cannot."""
    sqlite = connection.vendor == "sqlite"
    found = ["memories_word"] if rows(_WRONG_SQLITE if sqlite else _WRONG_POSTGRESQL)[0][0] else []
    for table in FTS5_TABLES if sqlite else ():
        try:
            with transaction.atomic():
                rows(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)")
        except DatabaseError:
            found.append(table)
    return found


def renew() -> None:
    """Make the vocabulary and the full-text tables anew from the entries."""
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in _RENEW_SQLITE if connection.vendor == "sqlite" else _RENEW_POSTGRESQL:
            cursor.execute(statement)


def merge() -> None:
    """Put together the pieces that writes leave of SQLite's full-text index; a search looks words up in each of them.

    A little at a time, between which others write.
    """
    for table in FTS5_TABLES if connection.vendor == "sqlite" else ():
        pages = -_MERGED_AT_ONCE  # below zero: all pieces, not only those that are due
        while _changes(f"INSERT INTO {table}({table}, rank) VALUES ('merge', {pages})") >= _MERGED_SOME:
            pages = _MERGED_AT_ONCE


def _changes(sql: str) -> int:
    """How many rows of SQLite's tables a statement changes, those beneath the full-text index included."""
    connection.ensure_connection()
    before: int = connection.connection.total_changes
    rows(sql)
    return int(connection.connection.total_changes) - before


FTS5_TABLES = (*_FULLTEXT.values(), "memories_wordtrigram")
# Stems hold letters and digits alone, so a list of them becomes JSON by putting quotes between them.
_SPLIT = "json_each('[\"' || replace(e.stamm, ' ', '\",\"') || '\"]') j WHERE j.value <> ''"
_COUNTED_WORDS = f"""
    SELECT value AS stamm, count(*) AS df
    FROM (SELECT DISTINCT e.id, j.value FROM {LIVE} e, {_SPLIT}) GROUP BY value"""
_PAST_WORDS = f"SELECT DISTINCT j.value AS stamm, 0 AS df FROM {PAST} e, {_SPLIT}"
_HELD_WORDS = f"""
    SELECT w AS stamm, 0 AS df FROM (
        SELECT unnest(string_to_array(stamm, ' ')) AS w FROM {LIVE}
        UNION SELECT unnest(string_to_array(stamm, ' ')) FROM {PAST}) AS held WHERE w <> ''"""
_RENEW_SQLITE = (
    # First, since one that is out of step takes no deletion.
    *(f"INSERT INTO {table}({table}) VALUES ('rebuild')" for table in FTS5_TABLES),
    "DELETE FROM memories_word",
    f"INSERT INTO memories_word(stamm, df) {_COUNTED_WORDS}",
    f"INSERT INTO memories_word(stamm, df) {_PAST_WORDS} ON CONFLICT (stamm) DO NOTHING",
)
_RENEW_POSTGRESQL = ("DELETE FROM memories_word", f"INSERT INTO memories_word(stamm, df) {_HELD_WORDS}")
_WRONG_SQLITE = f"""
    WITH counted AS MATERIALIZED ({_COUNTED_WORDS})
    SELECT EXISTS (SELECT stamm, df FROM counted EXCEPT SELECT stamm, df FROM memories_word)
        OR EXISTS (SELECT stamm, df FROM memories_word WHERE df <> 0 EXCEPT SELECT stamm, df FROM counted)
        OR EXISTS (SELECT stamm FROM ({_PAST_WORDS}) EXCEPT SELECT stamm FROM memories_word)"""
_WRONG_POSTGRESQL = f"SELECT EXISTS (SELECT stamm FROM ({_HELD_WORDS}) AS h EXCEPT SELECT stamm FROM memories_word)"


def memories_that(match: Match, typ: str, several: Groups) -> RawSQL:
    """The keys of the memories of a kind that match, for a filter with `pk__in`.

    Of a memory with several entries, which hold one of the tokens `several`, all of them together count.
    """
    reach = [*match.reach, *several]
    queries = [match, *(Match(reach, [group]) for group in match.terms), Match(reach, [match.excluded])]
    selects, values = [], []
    for query in queries if match.excluded else queries[:-1]:
        sql, parameters = those(query, "c.memory_id", "AND c.typ = %s", [typ])
        selects.append(sql)
        values.extend(parameters)
    entire, each = selects[0], selects[1 : len(match.terms) + 1]
    found = f"SELECT * FROM ({entire} UNION SELECT * FROM ({' INTERSECT '.join(each)}) AS parts) AS found"
    if not each:
        found = f"SELECT * FROM ({entire}) AS found"
    return RawSQL(" EXCEPT ".join([found, *selects[len(match.terms) + 1 :]]), values)


def _fts5(match: Match) -> str:
    """The match as FTS5 reads it; every term is quoted, so none can be an operator."""
    parts = [in_column("geltung", group) for group in match.reach]
    parts.extend(in_column("stamm", group) for group in match.terms)
    wanted = f"({' AND '.join(parts)})"
    unwanted = [in_column("stamm", match.excluded)] if match.excluded else []
    unwanted += ["(" + " NOT ".join(in_column("geltung", [token]) for token in group) + ")" for group in match.outside]
    return " NOT ".join([wanted, *unwanted])


def in_column(column: str, group: Sequence[str]) -> str:
    """One of these terms in a column, as FTS5 reads it."""
    return f"({column} : (" + " OR ".join(f'"{term}"' for term in group) + "))"


def _holds(match: Match) -> tuple[str, list[Any]]:
    """The match as a condition of PostgreSQL, on entries c.

    A tsvector forgets the place of a word that is far from the beginning or was there 255 times, so phrases are looked
    for in the text of the stems, of those entries that hold their words.
    """
    conditions = ["c.sd @@ %s::tsquery"]
    values: list[Any] = [_tsquery(match)]
    checked = [("", group) for group in match.terms if any(" " in term for term in group)]
    checked.extend(("NOT ", [phrase]) for phrase in match.excluded if " " in phrase)
    for sign, group in checked:
        conditions.append(f"{sign}(' ' || c.stamm || ' ') LIKE ANY(%s)")
        values.append([f"% {term} %" for term in group])
    return " AND ".join(conditions), values


def _tsquery(match: Match) -> str:
    """The match, but for the order of words, as a tsquery; every lexeme is quoted."""
    parts = ["(" + " | ".join(quoted(f"={token}") for token in group) + ")" for group in match.reach]
    parts.extend("(" + " | ".join(map(_all_words, group)) + ")" for group in match.terms)
    parts.extend(f"!{quoted(term)}" for term in match.excluded if " " not in term)
    parts.extend("!(" + " & !".join(quoted(f"={token}") for token in group) + ")" for group in match.outside)
    return " & ".join(parts)


def _all_words(term: str) -> str:
    return "(" + " & ".join(map(quoted, term.split(" "))) + ")"


def quoted(lexeme: str) -> str:
    """A lexeme in a tsquery."""
    return f"'{lexeme}'"
