"""Keeping the search index: an entry for each memory, written in the memory's own transaction.

Vectors derived from a text (`memories.search.derived`) are further entries of its memory, from part DERIVED on: they
follow its reach, and go when its text moves on.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import QuerySet

from memories.kinds import BRAIN, Kind
from memories.models import EmbeddingProfile, Memory, PastEntry, SearchEntry, Version
from memories.search import pgvector
from memories.search.analyser import held_by
from memories.search.reach import DERIVED_VECTOR, FIRST_PART, ONE_OF_SEVERAL, STALE, profile_token, token
from memories.search.vectors import unit
from memories.values import tag_key

PART = 50_000  # characters; a longer text has several entries
OVERLAP = 500
DERIVED = 1_000_000  # parts from here on hold derived vectors, each at the key of its profile
_COLUMNS = [column for column in SearchEntry._meta.concrete_fields if not column.primary_key]  # noqa: SLF001
_IDENTITY = ("typ", "memory_id", "teil")
_AT_ONCE = 500  # entries a statement
_OF_PROFILE = len(f"{DERIVED_VECTOR} {profile_token('', 1)} ")  # what the reach of a derived entry begins with


def put(kind: Kind, memories: Iterable[Memory], replaced: Sequence[Memory] = ()) -> None:
    """Make these memories be found as they are now; `replaced` are their former states.

    One statement as a rule, one more when there were former states, and one more when texts changed.
    """
    store([entry for memory in memories for entry in entries_of(kind, memory)])
    if replaced:
        _take_along(kind, memories, replaced)
    for memory in memories:
        former = next((old for old in replaced if old.pk == memory.pk and len(_text(old)) > PART), None)
        if former is not None:
            parts = len(list(_parts(_text(memory))))
            gone = SearchEntry.objects.filter(typ=kind.typ, memory_id=memory.pk, teil__gte=parts, teil__lt=DERIVED)
            _drop(gone, memory.aktualisiert_am)


def _take_along(kind: Kind, memories: Iterable[Memory], replaced: Sequence[Memory]) -> None:
    """Have the derived vectors follow their memories, but not those whose text moved on."""
    texts = {former.pk: former.texts for former in replaced}
    follow(kind, memories)
    moved = [memory.pk for memory in memories if memory.texts != texts[memory.pk]]
    if moved:
        # What they were until now is a past entry since they followed.
        derived_of(kind, moved).delete()


def follow(kind: Kind, memories: Iterable[Memory]) -> None:
    """Give the derived vectors of these memories the reach and the times that their memories have. One statement."""
    rows = [(memory.pk, memory.version, *_times(kind, memory), _reach_of(kind, memory)) for memory in memories]
    if not rows:
        return
    moment = "column{}" if connection.vendor == "sqlite" else "CAST(column{} AS timestamptz)"
    marks = ", ".join(["(%s, %s, %s, %s, %s, %s)"] * len(rows))
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {SearchEntry._meta.db_table} AS d SET version = column2, seit = {moment.format(3)}, "  # noqa: S608, SLF001
            f"erstellt_am = {moment.format(4)}, gueltig_bis = {moment.format(5)}, "
            f"geltung = substr(d.geltung, 1, {_OF_PROFILE}) || column6 "
            f"FROM (VALUES {marks}) AS v WHERE d.typ = %s AND d.memory_id = column1 AND d.teil >= %s",
            [*(value for row in rows for value in row), kind.typ, DERIVED],
        )


def _times(kind: Kind, memory: Memory) -> list[Any]:
    gueltig_bis = memory.gueltig_bis if kind.memories.EXPIRES else None  # type: ignore[attr-defined]
    moments = (memory.aktualisiert_am, memory.erstellt_am, gueltig_bis)
    return [connection.ops.adapt_datetimefield_value(moment) for moment in moments]


def derived_of(kind: Kind, keys: Iterable[int]) -> QuerySet[SearchEntry]:
    """The entries of these memories that hold derived vectors."""
    found: QuerySet[SearchEntry] = SearchEntry.objects.filter(typ=kind.typ, memory_id__in=keys, teil__gte=DERIVED)
    return found


def store(entries: Sequence[SearchEntry]) -> None:
    """Store these entries in the place of those they have in the index."""
    for start in range(0, len(entries), _AT_ONCE):
        _upsert(entries[start : start + _AT_ONCE])


def _upsert(entries: Sequence[SearchEntry]) -> None:
    """One statement, where bulk_create would take several: it holds SQLite to 999 values, which takes 32,766."""
    names = [column.name for column in _COLUMNS] + ([pgvector.COLUMN] if pgvector.is_there() else [])
    changed = ", ".join(f"{name} = excluded.{name}" for name in names if name not in _IDENTITY)
    marks = f"({', '.join(['%s'] * len(names))})"
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {SearchEntry._meta.db_table} ({', '.join(names)}) "  # noqa: S608, SLF001
            f"VALUES {', '.join([marks] * len(entries))} "
            f"ON CONFLICT ({', '.join(_IDENTITY)}) DO UPDATE SET {changed}",
            [value for entry in entries for value in _values(entry)],
        )


def _values(entry: SearchEntry) -> list[Any]:
    values = [column.get_db_prep_save(getattr(entry, column.attname), connection) for column in _COLUMNS]
    return [*values, pgvector.written(entry.vektor)] if pgvector.is_there() else values


def retire(kind: Kind, keys: Sequence[int], at: datetime) -> None:
    """Make these memories be found no longer, but in what was known before this moment."""
    _drop(SearchEntry.objects.filter(typ=kind.typ, memory_id__in=keys), at)


def _drop(entries: QuerySet[SearchEntry], at: datetime) -> None:
    entries.update(bis=at)
    entries.delete()


def entries_of(kind: Kind, memory: Memory) -> Iterator[SearchEntry]:
    """The entries that a live memory should have."""
    for fields in _fields(kind, memory):
        yield SearchEntry(memory_id=memory.pk, version=memory.version, seit=memory.aktualisiert_am, **fields)


def past_entries_of(kind: Kind, version: Version, bis: datetime) -> Iterator[PastEntry]:
    """The entries of a version that held until `bis`."""
    for fields in _fields(kind, version):
        yield PastEntry(memory_id=version.memory_id, version=version.version, seit=version.zeitpunkt, bis=bis, **fields)


def derived_entry(kind: Kind, memory: Any, profile: EmbeddingProfile, vektor: bytes) -> SearchEntry:
    """The entry for a vector of this profile, derived from the memory's present text: in its reach, without a stem."""
    of_profile = profile_token(profile.profil_hash, profile.dimension)
    return SearchEntry(
        typ=kind.typ,
        memory_id=memory.pk,
        teil=DERIVED + profile.pk,
        version=memory.version,
        seit=memory.aktualisiert_am,
        erstellt_am=memory.erstellt_am,
        gueltig_bis=memory.gueltig_bis if kind.memories.EXPIRES else None,
        profil_hash=profile.profil_hash,
        dimension=profile.dimension,
        vektor=vektor,
        stamm="",
        geltung=f"{DERIVED_VECTOR} {of_profile} {_reach_of(kind, memory)}",
    )


def _fields(kind: Kind, content: Any) -> Iterator[dict[str, Any]]:
    """What an entry takes from the content of a memory or version, for each part of its text.

    Nothing of what is proposed: it is found by nobody, also not as what was known before it was approved.
    """
    if content.vorgeschlagen:
        return
    vector = None if content.embedding is None else unit(np.frombuffer(bytes(content.embedding), dtype="<f4")).tobytes()
    reach = " ".join([_reach_of(kind, content), *_own_profile(content)])
    parts = list(_parts(_text(content)))
    if len(parts) > 1:
        reach = f"{ONE_OF_SEVERAL} {reach}"
    for teil, part in enumerate(parts):
        yield {
            "typ": kind.typ,
            "teil": teil,
            "erstellt_am": content.erstellt_am,
            "gueltig_bis": content.gueltig_bis if kind.memories.EXPIRES else None,
            "profil_hash": content.embedding_profil_hash,
            "dimension": content.embedding_dimension,
            "veraltet": content.embedding_veraltet,
            "vektor": None if teil else vector,
            "stamm": " ".join(held_by(part)),
            "geltung": reach if teil else f"{FIRST_PART} {reach}",
        }


def _text(content: Memory | Version) -> str:
    return "\n".join([*content.texts, *content.tag_namen])


def _parts(text: str) -> Iterator[str]:
    """The text in parts of at most PART characters, cut between words; each begins in the one before it.

    So a phrase of up to OVERLAP characters is whole in one of them.
    """
    start = 0
    while len(text) - start > PART:
        end = _between_words(text, start + PART)
        yield text[start:end]
        start = _between_words(text, end - OVERLAP)
    yield text[start:]


def _between_words(text: str, place: int) -> int:
    """The last place up to this one where no word is cut, if there is one not far before."""
    for end in range(place, place - OVERLAP, -1):
        if not (text[end - 1].isalnum() and text[end].isalnum()):
            return end
    return place


def _reach_of(kind: Kind, memory: Any) -> str:
    return " ".join(_reach(kind, memory))


def _reach(kind: Kind, memory: Any) -> Iterator[str]:
    record = memory.scope_id if kind is BRAIN else memory.scope_vk
    yield token("k", kind.typ)
    yield token("n", memory.nutzer)
    yield token("a", memory.agent)
    yield token("s", getattr(memory, kind.memories.SCOPE))
    yield token("r", record)
    for name in memory.tag_namen:
        yield token("t", tag_key(name))


def _own_profile(memory: Any) -> Iterator[str]:
    if memory.embedding_profil_hash is not None and memory.embedding_dimension is not None:
        yield profile_token(memory.embedding_profil_hash, memory.embedding_dimension)
        if memory.embedding_veraltet:
            yield STALE
