"""The full-text index of the database at hand, SQLite's FTS5 or PostgreSQL's tsvector: same questions, same answers."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models.expressions import RawSQL

Groups = Sequence[Sequence[str]]

_LIVE, _PAST = "memories_searchentry", "memories_pastentry"
_FULLTEXT = {_LIVE: "memories_fulltext", _PAST: "memories_pastfulltext"}


@dataclass(frozen=True, slots=True)
class Match:
    """What an entry holds: a token of each group of the reach, a term of each group, all phrases, nothing excluded."""

    reach: Groups = ()
    terms: Groups = ()
    phrases: Groups = ()
    excluded: Groups = ()


def rows(sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        found: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
        return found


def known(words: Collection[str]) -> list[str]:
    """Those of these stems that the vocabulary has."""
    if not words:
        return []
    if connection.vendor != "sqlite":
        return [word for (word,) in rows(_KNOWN, [list(words)])]
    marks = ", ".join(["%s"] * len(words))
    return [word for (word,) in rows(f"SELECT stamm FROM memories_word WHERE stamm IN ({marks})", list(words))]


# A range, since for an equality PostgreSQL would take the trigram index: a second instead of a millisecond.
_KNOWN = """
    SELECT w.stamm FROM unnest(%s::text[]) AS wanted CROSS JOIN LATERAL (
        SELECT stamm FROM memories_word WHERE stamm >= wanted AND stamm <= wanted ORDER BY stamm LIMIT 1) AS w"""


def words_with(part: str, most: int) -> list[str]:
    """Stems that contain this one, the shortest first."""
    if connection.vendor == "sqlite":
        sql = (
            "SELECT w.stamm FROM memories_wordtrigram t JOIN memories_word w ON w.id = t.rowid "
            "WHERE memories_wordtrigram MATCH %s AND w.df > 0 AND w.stamm <> %s ORDER BY length(w.stamm) LIMIT %s"
        )
        return [word for (word,) in rows(sql, [f'"{part}"', part, most])]
    sql = "SELECT stamm FROM memories_word WHERE stamm LIKE %s AND stamm <> %s ORDER BY length(stamm) LIMIT %s"
    return [word for (word,) in rows(sql, [f"%{part}%", part, most])]


def words_like(word: str) -> list[str]:
    """Stems of about this length that share three letters in a row with this one."""
    grams = [word[place : place + 3] for place in range(len(word) - 2)]
    lengths = [len(word) - 2, len(word) + 2]
    if connection.vendor == "sqlite":
        sql = (
            "SELECT w.stamm FROM memories_wordtrigram t JOIN memories_word w ON w.id = t.rowid "
            "WHERE memories_wordtrigram MATCH %s AND w.df > 0 AND length(w.stamm) BETWEEN %s AND %s"
        )
        return [near for (near,) in rows(sql, [" OR ".join(f'"{gram}"' for gram in grams), *lengths])]
    sql = "SELECT stamm FROM memories_word WHERE stamm LIKE ANY(%s) AND length(stamm) BETWEEN %s AND %s"
    return [near for (near,) in rows(sql, [[f"%{gram}%" for gram in grams], *lengths])]


def frequencies(terms: Iterable[str]) -> dict[str, int]:
    """In how many live entries each stem occurs, more or less."""
    wanted = sorted(set(terms))
    if not wanted:
        return {}
    if connection.vendor == "sqlite":
        marks = ", ".join(["%s"] * len(wanted))
        return dict(rows(f"SELECT stamm, df FROM memories_word WHERE stamm IN ({marks})", wanted))
    common = dict(rows(_COMMON, [wanted]))
    rare = [term for term in wanted if term not in common]
    return common | dict(rows(_COUNTED, [[_quoted(term) for term in rare], rare])) if rare else common


# What ANALYZE knows of the most common lexemes, as counts.
_COMMON = f"""
    SELECT e, round(f * c.reltuples)::int FROM pg_stats s, pg_class c,
        unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) AS t(e, f)
    WHERE s.schemaname = current_schema() AND s.tablename = '{_LIVE}' AND s.attname = 'sd'
        AND c.oid = '{_LIVE}'::regclass AND e = ANY(%s)"""
_COUNTED = f"""
    SELECT term, (SELECT count(*) FROM {_LIVE} WHERE sd @@ q::tsquery)::int
    FROM unnest(%s::text[], %s::text[]) AS t(q, term)"""


def size() -> int:
    """How many live entries there are, more or less; at least 1."""
    return max(rows(f"SELECT max(id) FROM {_LIVE}")[0][0] or 1, 1)


def candidates(
    match: Match, most: int, *, where: str = "", parameters: Sequence[Any] = (), past: bool = False
) -> list[Any]:
    """Entries that match, the best by the database's own ranking first: (id, typ, memory_id, version, stamm)."""
    table = _PAST if past else _LIVE
    if connection.vendor == "sqlite":
        fulltext = _FULLTEXT[table]
        joined = f"JOIN {table} c ON c.id = f.rowid" if where else ""
        sql = (
            "SELECT e.id, e.typ, e.memory_id, e.version, e.stamm FROM (SELECT f.rowid AS id "
            f"FROM {fulltext} f {joined} WHERE {fulltext} MATCH %s {where} "
            f"ORDER BY bm25({fulltext}, 1.0, 0.0) LIMIT %s) AS best JOIN {table} e ON e.id = best.id"
        )
        return rows(sql, [_fts5(match), *parameters, most])
    terms = " | ".join(_quoted(term) for group in match.terms for term in group) or "''"
    sql = (
        f"SELECT c.id, c.typ, c.memory_id, c.version, c.stamm FROM {table} c WHERE c.sd @@ %s::tsquery {where} "
        "ORDER BY ts_rank(c.sd, %s::tsquery, 1) DESC, c.id LIMIT %s"
    )
    return rows(sql, [_tsquery(match), *parameters, terms, most])


def count(match: Match, most: int, *, past: bool = False) -> int:
    """How many entries match; counting ends at `most`."""
    if connection.vendor == "sqlite":
        fulltext = _FULLTEXT[_PAST if past else _LIVE]
        inner, parameters = f"SELECT 1 FROM {fulltext} WHERE {fulltext} MATCH %s LIMIT %s", [_fts5(match), most]
    else:
        table = _PAST if past else _LIVE
        inner, parameters = f"SELECT 1 FROM {table} WHERE sd @@ %s::tsquery LIMIT %s", [_tsquery(match), most]
    counted: int = rows(f"SELECT count(*) FROM ({inner}) AS found", parameters)[0][0]
    return counted


def keys(
    match: Match, most: int | None, where: str = "", parameters: Sequence[Any] = (), *, past: bool = False
) -> list[int]:
    """The keys of the entries (as c) that match and fulfil the condition, at most so many."""
    table = _PAST if past else _LIVE
    limit, limits = ("", []) if most is None else ("LIMIT %s", [most])
    if connection.vendor == "sqlite":
        fulltext = _FULLTEXT[table]
        joined = f"JOIN {table} c ON c.id = f.rowid" if where else ""
        sql = f"SELECT f.rowid FROM {fulltext} f {joined} WHERE {fulltext} MATCH %s {where} {limit}"
        found = rows(sql, [_fts5(match), *parameters, *limits])
    else:
        sql = f"SELECT c.id FROM {table} c WHERE c.sd @@ %s::tsquery {where} {limit}"
        found = rows(sql, [_tsquery(match), *parameters, *limits])
    return [key for (key,) in found]


def broken() -> list[str]:
    """The full-text tables that do not agree with what they index; PostgreSQL's cannot disagree."""
    if connection.vendor != "sqlite":
        return []
    found = []
    for table in _FTS5_TABLES:
        try:
            with transaction.atomic():
                rows(f"INSERT INTO {table}({table}) VALUES ('integrity-check')")
        except DatabaseError:
            found.append(table)
    return found


def renew() -> None:
    """Make the vocabulary and the full-text tables anew from the entries."""
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in _RENEW_SQLITE if connection.vendor == "sqlite" else _RENEW_POSTGRESQL:
            cursor.execute(statement)


_FTS5_TABLES = (*_FULLTEXT.values(), "memories_wordtrigram")
# Stems hold letters and digits alone, so a list of them becomes JSON by putting quotes between them.
_COUNT_WORDS = f"""
    INSERT INTO memories_word(stamm, df) SELECT value, count(*)
    FROM (SELECT DISTINCT e.id, j.value FROM {_LIVE} e,
          json_each('["' || replace(e.stamm, ' ', '","') || '"]') j WHERE j.value <> '')
    GROUP BY value"""
_COLLECT_WORDS = f"""
    INSERT INTO memories_word(stamm, df) SELECT DISTINCT w, 0
    FROM (SELECT unnest(string_to_array(stamm, ' ')) AS w FROM {_LIVE}) AS held WHERE w <> ''"""
_RENEW_SQLITE = (
    "DELETE FROM memories_word",
    _COUNT_WORDS,
    *(f"INSERT INTO {table}({table}) VALUES ('rebuild')" for table in _FTS5_TABLES),
)
_RENEW_POSTGRESQL = ("DELETE FROM memories_word", _COLLECT_WORDS)


def memories_that(match: Match, typ: str) -> RawSQL:
    """The keys of the memories of a kind of which an entry matches, for a filter with `pk__in`."""
    if connection.vendor == "sqlite":
        fulltext = _FULLTEXT[_LIVE]
        found, parameter = f"id IN (SELECT rowid FROM {fulltext} WHERE {fulltext} MATCH %s)", _fts5(match)
    else:
        found, parameter = "sd @@ %s::tsquery", _tsquery(match)
    return RawSQL(f"SELECT memory_id FROM {_LIVE} WHERE typ = %s AND {found}", [typ, parameter])


def _fts5(match: Match) -> str:
    """The match as FTS5 reads it; every term is quoted, so none can be an operator."""
    parts = ["(geltung : (" + " OR ".join(f'"{token}"' for token in group) + "))" for group in match.reach]
    parts.extend("(stamm : (" + " OR ".join(f'"{term}"' for term in group) + "))" for group in match.terms)
    parts.extend('(stamm : "' + " ".join(phrase) + '")' for phrase in match.phrases)
    wanted = " AND ".join(parts)
    return f"({wanted})" + "".join(' NOT (stamm : "' + " ".join(phrase) + '")' for phrase in match.excluded)


def _tsquery(match: Match) -> str:
    """The match as PostgreSQL reads it; every lexeme is quoted."""
    parts = ["(" + " | ".join(map(_quoted, group)) + ")" for group in (*match.reach, *match.terms)]
    parts.extend("(" + " <-> ".join(map(_quoted, phrase)) + ")" for phrase in match.phrases)
    parts.extend("!(" + " <-> ".join(map(_quoted, phrase)) + ")" for phrase in match.excluded)
    return " & ".join(parts)


def _quoted(term: str) -> str:
    return f"'{term}'"
