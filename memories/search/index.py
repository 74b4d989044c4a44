"""Keeping the search index: an entry for each memory, written in the memory's own transaction."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import QuerySet

from memories.kinds import BRAIN, Kind
from memories.models import Memory, PastEntry, SearchEntry, Version
from memories.search import pgvector
from memories.search.analyser import stems
from memories.search.reach import FIRST_PART, ONE_OF_SEVERAL, STALE, profile_token, token
from memories.search.vectors import unit
from memories.values import tag_key

PART = 50_000  # characters; a longer text has several entries
OVERLAP = 500
_COLUMNS = [column for column in SearchEntry._meta.concrete_fields if not column.primary_key]  # noqa: SLF001
_IDENTITY = ("typ", "memory_id", "teil")
_AT_ONCE = 500  # entries a statement


def put(kind: Kind, memories: Iterable[Memory], replaced: Sequence[Memory] = ()) -> None:
    """Make these memories be found as they are now; `replaced` are their former states. One statement as a rule."""
    made = [entry for memory in memories for entry in entries_of(kind, memory)]
    for start in range(0, len(made), _AT_ONCE):
        _upsert(made[start : start + _AT_ONCE])
    for memory in memories:
        former = next((old for old in replaced if old.pk == memory.pk and len(_text(old)) > PART), None)
        if former is not None:
            parts = len(list(_parts(_text(memory))))
            _drop(
                SearchEntry.objects.filter(typ=kind.typ, memory_id=memory.pk, teil__gte=parts), memory.aktualisiert_am
            )


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


def renew(kind: Kind, memories: Sequence[Memory]) -> None:
    """Make the entries of these memories anew; what they were before leaves no past entry."""
    SearchEntry.objects.filter(typ=kind.typ, memory_id__in=[memory.pk for memory in memories]).delete()
    put(kind, memories)


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


def _fields(kind: Kind, content: Any) -> Iterator[dict[str, Any]]:
    """What an entry takes from the content of a memory or version, for each part of its text."""
    vector = None if content.embedding is None else unit(np.frombuffer(bytes(content.embedding), dtype="<f4")).tobytes()
    reach = " ".join(_reach(kind, content))
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
            "stamm": " ".join(stems(part)),
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


def _reach(kind: Kind, memory: Any) -> Iterator[str]:
    record = memory.scope_id if kind is BRAIN else memory.scope_vk
    yield token("k", kind.typ)
    yield token("n", memory.nutzer)
    yield token("a", memory.agent)
    yield token("s", getattr(memory, kind.memories.SCOPE))
    yield token("r", record)
    for name in memory.tag_namen:
        yield token("t", tag_key(name))
    if memory.embedding_profil_hash is not None and memory.embedding_dimension is not None:
        yield profile_token(memory.embedding_profil_hash, memory.embedding_dimension)
        if memory.embedding_veraltet:
            yield STALE
