"""The vocabulary: which stems there are in memories, live and past ones, and in how many."""

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from django.db import connection

from memories.search.engine import LIVE, PAST, Match, in_column, listed, quoted, rows, those, well_planned

_MEMORIES = ("memories_longtermmemory", "memories_shorttermmemory", "memories_brainmemory")
_REMEMBERED = 10  # seconds
_LONGEST = 40  # letters of a stem


def known(words: Collection[str]) -> list[str]:
    """Those of these stems that the vocabulary has."""
    if not words:
        return []
    if connection.vendor == "sqlite":
        return [word for (word,) in rows(_STEMS_SQLITE, [json.dumps(list(words))])]
    return [word for (word,) in rows(_KNOWN, [list(words)])]


# A range, since for an equality PostgreSQL would take the trigram index: a second instead of a millisecond.
_KNOWN = """
    SELECT w.stamm FROM unnest(%s::text[]) AS wanted CROSS JOIN LATERAL (
        SELECT stamm FROM memories_word WHERE stamm >= wanted AND stamm <= wanted ORDER BY stamm LIMIT 1) AS w"""


def look_up(
    parts: Mapping[str, bool], pieces: Collection[str], held: Sequence[Match], most: int, *, then: bool = False
) -> tuple[list[list[str]], set[str], list[bool], int]:
    """What there is of words, in one statement: all that a search must know before it knows what to look for.

    For each of `parts` the stems that hold it, anywhere or, where it is False, at their beginning, the shortest `most`;
    which of `pieces` are stems; for each match whether an entry is there; and `size`. With `then` past ones count too.
    """
    asked: list[tuple[str, list[Any]]]
    if connection.vendor == "sqlite":
        sql = _HOLDING_SQLITE.format(least=int(not then))
        asked = [
            (sql, [_trigrams(part), part, _LONGEST if anywhere else 1, part, most]) for part, anywhere in parts.items()
        ]
        asked.append((_STEMS_SQLITE, [json.dumps(list(pieces))]))
    else:
        patterns = [f"%{part}%" if anywhere else f"{part}%" for part, anywhere in parts.items()]
        asked = [(_HOLDING_POSTGRESQL, [pattern, part, most]) for pattern, part in zip(patterns, parts, strict=True)]
        asked.append((_KNOWN, [list(pieces)]))
    tables = (False, True) if then else (False,)
    each = [[those(match, "1", past=past) for past in tables] for match in held]
    columns = [f"(SELECT {listed('stamm', ' ')} FROM ({sql}) AS w)" for sql, _values in asked]
    columns += [f"({' OR '.join(f'EXISTS ({sql})' for sql, _values in queries)})" for queries in each]
    values = [value for query in [*asked, *chain.from_iterable(each)] for value in query[1]]
    told = rows(f"SELECT {', '.join([*columns, _SIZE])}", values)[0]
    words = [(text or "").split() for text in told[: len(asked)]]
    return words[:-1], set(words[-1]), [bool(one) for one in told[len(asked) : -1]], max(told[-1], 1)


def _trigrams(part: str) -> str:
    """What a stem that holds this part has: few of its trigrams, which is twice as quick to find as the part itself."""
    last = len(part) - 3
    return " AND ".join(f'"{part[place : place + 3]}"' for place in {*range(0, last, 3), last})


_HOLDING_SQLITE = """
    SELECT w.stamm FROM memories_wordtrigram t JOIN memories_word w ON w.id = t.rowid
    WHERE memories_wordtrigram MATCH %s AND instr(w.stamm, %s) BETWEEN 1 AND %s AND w.df >= {least} AND w.stamm <> %s
    ORDER BY length(w.stamm), w.stamm LIMIT %s"""
_HOLDING_POSTGRESQL = """
    SELECT stamm FROM memories_word WHERE stamm LIKE %s AND stamm <> %s ORDER BY length(stamm), stamm LIMIT %s"""
_STEMS_SQLITE = "SELECT stamm FROM memories_word WHERE stamm IN (SELECT value FROM json_each(%s))"
# How many memories there are, more or less.
_SIZE = f"({' + '.join(f'coalesce((SELECT max(id) FROM {table}), 0)' for table in _MEMORIES)})"


def words_like(word: str, faults: int, *, then: bool = False) -> list[str]:
    """Stems of about this length that may be this one with so many faults; `then` as above.

    They share three letters in a row, or more with a long word: the faults, each of two letters at most, leave one more
    piece than they are, and the longest of those is at least the mean.
    """
    size = max(3, -(-(len(word) - 2 * faults) // (faults + 1)))
    grams = [word[place : place + size] for place in range(len(word) - size + 1)]
    lengths = [len(word) - faults, len(word) + faults]
    if connection.vendor == "sqlite":
        sql = (
            "SELECT w.stamm FROM memories_wordtrigram t JOIN memories_word w ON w.id = t.rowid "
            f"WHERE memories_wordtrigram MATCH %s AND w.df >= {int(not then)} AND length(w.stamm) BETWEEN %s AND %s"
        )
        wanted: Any = " OR ".join(f'"{gram}"' for gram in grams)
    else:
        sql = "SELECT stamm FROM memories_word WHERE stamm LIKE ANY(%s) AND length(stamm) BETWEEN %s AND %s"
        wanted = [f"%{gram}%" for gram in grams]
    # As one text, which is many times quicker to read than rows.
    told = rows(f"SELECT {listed('stamm', ' ')} FROM ({sql}) AS w", [wanted, *lengths])[0][0]
    return (told or "").split()


def frequencies(terms: Iterable[str]) -> dict[str, int]:
    """In how many live entries each stem occurs, more or less."""
    wanted = sorted(set(terms))
    if not wanted:
        return {}
    if connection.vendor == "sqlite":
        marks = ", ".join(["%s"] * len(wanted))
        return dict(rows(f"SELECT stamm, df FROM memories_word WHERE stamm IN ({marks})", wanted))
    analysed = _analysed(int(time.monotonic() / _REMEMBERED))
    common = {term: analysed[term] for term in wanted if term in analysed}
    rare = [term for term in wanted if term not in common]
    return common | dict(rows(_COUNTED, [[quoted(term) for term in rare], rare])) if rare else common


@lru_cache(maxsize=1)
def _analysed(_turn: int) -> dict[str, int]:
    """What ANALYZE knows of the most common lexemes, as counts, read again once a turn.

    It is old by nature: hours as a rule. It may be older than what is known of the table's size.
    """
    return dict(rows(_COMMON))


_COMMON = f"""
    SELECT e, greatest(round(f * c.reltuples)::int, 1) FROM pg_stats s, pg_class c,
        unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) AS t(e, f)
    WHERE s.schemaname = current_schema() AND s.tablename = '{LIVE}' AND s.attname = 'sd'
        AND c.oid = '{LIVE}'::regclass AND left(e, 1) <> '='"""
_COUNTED = f"""
    SELECT term, (SELECT count(*) FROM {LIVE} WHERE sd @@ q::tsquery)::int
    FROM unnest(%s::text[], %s::text[]) AS t(q, term)"""


def size() -> int:
    """How many memories there are, more or less; at least 1."""
    number: int = rows(f"SELECT {_SIZE}")[0][0]
    return max(number, 1)


def forget(words: Collection[str]) -> None:
    """Take those of these stems out of the vocabulary that no entry holds or held, within the caller's transaction.

    On PostgreSQL nobody stores an entry until that ends: whoever just did, with a word that is there, adds none.
    """
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.executemany(_FORGET_SQLITE, [(word, in_column("stamm", [word])) for word in sorted(words)])
    elif words:
        rows(f"LOCK TABLE {LIVE}, {PAST} IN SHARE ROW EXCLUSIVE MODE")
        with well_planned():
            rows(_FORGET_POSTGRESQL, [sorted(set(words) - {word for (word,) in rows(_HELD_BY_SOME)})])


_FORGET_SQLITE = """
    DELETE FROM memories_word WHERE stamm = %s AND df <= 0
    AND NOT EXISTS (SELECT 1 FROM memories_pastfulltext WHERE memories_pastfulltext MATCH %s)"""
# Words of some entries, so that nobody waits while the index gathers all entries that hold a very frequent one.
_HELD_BY_SOME = f"""
    SELECT DISTINCT unnest(string_to_array(stamm, ' '))
    FROM (SELECT stamm FROM {LIVE} ORDER BY id DESC LIMIT 500) AS latest"""
_FORGET_POSTGRESQL = f"""
    DELETE FROM memories_word w USING unnest(%s::text[]) AS gone WHERE w.stamm = gone
    AND NOT EXISTS (SELECT 1 FROM {LIVE} c WHERE c.sd @@ quote_literal(gone)::tsquery)
    AND NOT EXISTS (SELECT 1 FROM {PAST} c WHERE c.sd @@ quote_literal(gone)::tsquery)"""
