"""The verb of an import that no other service has: memories taken over with the histories that they had elsewhere.

A version taken over keeps who, when, why, with which references and in which call. Its door is `import`; its tool, key
and person are those of the import. What its origin had there is in `urspruenglich`, so nobody passes for somebody else.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from memories.embeddings import ProfileGuard
from memories.errors import BrainError
from memories.history import copied_fields
from memories.kinds import KINDS, Kind
from memories.models import ImportedMemory, Memory, OpenReference, PastEntry, Version
from memories.principal import Action, Origin
from memories.search import index
from memories.search.index import DERIVED
from memories.search.upkeep import past_of
from memories.steps import Done, Outcome, changed_meanwhile, no_memory, out_of_reach
from memories.tags import known_tags, link, spell, unlink
from memories.transfer.lines import REFERENCE
from memories.transfer.rows import Past, Row
from memories.writing import write_in_groups


def adopt(kind: Kind, rows: Sequence[Row], origin: Origin) -> list[Outcome]:
    """Take over memories that are not here yet, each with its versions; the ID is a new one."""

    def write(part: Sequence[Row]) -> list[Outcome]:
        fresh = [_live(kind, row.past[-1]) for row in part]
        there = [memory for row, memory in zip(part, fresh, strict=True) if row.content is not None]
        guard = ProfileGuard(kind, there, origin.principal, apart_from=[])
        faults = [
            _outside(kind, row.past, origin) or (guard.fault(memory) if memory in there else None)
            for row, memory in zip(part, fresh, strict=True)
        ]
        good = [(row, memory) for row, memory, fault in zip(part, fresh, faults, strict=True) if not fault]
        live = [memory for row, memory in good if row.content is not None]
        known = known_tags(name for memory in live for name in memory.tag_namen)
        for memory in live:
            memory.tag_namen = spell(memory.tag_namen, known)
        # Deleted ones have a row for a moment, too: it is what gives out IDs.
        kind.memories.objects.bulk_create([memory for _row, memory in good])
        kind.memories.objects.filter(pk__in=[memory.pk for row, memory in good if row.content is None]).delete()
        link(kind, live, known)
        index.put(kind, live)
        _keep_versions(kind, [(row, memory, 0) for row, memory in good], origin)
        note([(row, memory.pk) for row, memory in good], origin, _first_digest)
        return [fault or Done(kind, memory.pk, memory.version) for memory, fault in zip(fresh, faults, strict=True)]

    return write_in_groups(rows, write, _landed(rows))


def append(kind: Kind, row: Row, key: int, number: int, origin: Origin) -> Outcome:
    """Take over the versions after this number of a memory that is here as it was then."""

    def write(_part: Sequence[Row]) -> list[Outcome]:
        versions = kind.versions.objects.filter(memory_id=key)
        versions.order_by("version").select_for_update().first()
        now = kind.memories.objects.filter(pk=key).select_for_update().first()
        newest = versions.order_by("-version").first()
        if newest is None or not newest.allows(origin.principal, Action.WRITE):
            return [no_memory()]
        if newest.version != number:
            return [changed_meanwhile(newest)]
        wanted = _live(kind, row.past[-1], id=key)
        fault = _outside(kind, row.past[number:], origin)
        if not fault and row.content is not None:
            fault = ProfileGuard(kind, [wanted], origin.principal, apart_from=[key]).fault(wanted)
        if fault:
            return [fault]
        _replace(kind, now, wanted if row.content is not None else None)
        _keep_versions(kind, [(row, wanted, number)], origin)
        note([(row, key)], origin, _first_digest)
        return [Done(kind, key, wanted.version)]

    return write_in_groups([row], write, _landed([row]))[0]


def _first_digest(row: Row) -> str:
    """What is noted when the history is here: not yet the line, when what it holds now is another change."""
    return "" if row.is_edited else row.digest


def note(
    pairs: Iterable[tuple[Row, int]], origin: Origin, digest_of: Callable[[Row], str] = lambda row: row.digest
) -> None:
    """Keep what these memories were imported from, and complete the references that waited for them."""
    at = origin.clock()
    rows = [
        ImportedMemory(
            typ=row.kind.typ,
            memory_id=key,
            instanz=row.instanz,
            kennung=row.kennung,
            digest=digest_of(row),
            imported_at=at,
        )
        for row, key in pairs
    ]
    ImportedMemory.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["typ", "memory_id"],
        update_fields=["instanz", "kennung", "digest", "imported_at"],
    )
    for row in rows:
        _complete(OpenReference.objects.filter(instanz=row.instanz, kennung=row.kennung))


def _complete(waiting: Any) -> None:
    """Say again what these versions refer to, as far as it is here now."""
    for each in list(waiting):
        kind = next(kind for kind in KINDS if kind.typ == each.typ)
        version = kind.versions.objects.filter(memory_id=each.memory_id, version=each.version).first()
        if version is not None:
            told, _open = _here(version.urspruenglich["verweis"], each.instanz, {})
            kind.versions.objects.filter(pk=version.pk).update(verweis=told)
    waiting.delete()


def _here(verweis: str, instanz: str, own: Mapping[str, str]) -> tuple[str, list[tuple[str, str]]]:
    """The references by the IDs of this installation, and those to memories that are not here."""
    told: list[str] = []
    missing: list[tuple[str, str]] = []
    for part in filter(None, verweis.split(", ")):
        found = REFERENCE.match(part)
        if found is None:
            continue
        where, kennung = found["instanz"] or instanz, f"{found['typ']}_{found['key']}"
        row = ImportedMemory.objects.filter(instanz=where, kennung=kennung).first()
        here = own.get(kennung) if where == instanz else None
        if here is None and row is not None:
            here = f"{row.typ}_{row.memory_id}"
        if here is None:
            missing.append((where, kennung))
        else:
            told.append(f"{here}{part[found.end() :]}")
    return ", ".join(told), missing


def _live(kind: Kind, newest: Past, **more: Any) -> Any:
    """The row of a memory whose newest version this is."""
    at = newest.columns["zeitpunkt"]
    return kind.memories(version=newest.version, aktualisiert_am=at, **newest.content, **more)


def _outside(kind: Kind, past: Sequence[Past], origin: Origin) -> BrainError | None:
    """Why the principal may not store one of these versions."""
    found = (out_of_reach(kind, _live(kind, each), origin, Action.WRITE) for each in past)
    return next((fault for fault in found if fault), None)


def _replace(kind: Kind, now: Memory | None, wanted: Any | None) -> None:
    """Put the wanted row in the place of the present one; either may be missing."""
    if wanted is None:
        if now is not None:
            index.retire(kind, [now.pk], now.aktualisiert_am)
            kind.memories.objects.filter(pk=now.pk).delete()
        return
    known = known_tags(wanted.tag_namen)
    wanted.tag_namen = spell(wanted.tag_namen, known)
    names = [column.name for column in kind.memories._meta.concrete_fields if not column.primary_key]  # noqa: SLF001
    kind.memories.objects.bulk_create([wanted], update_conflicts=True, unique_fields=["id"], update_fields=names)
    unlink(kind, [wanted.pk])
    link(kind, [wanted], known)
    index.put(kind, [wanted], replaced=[now] if now is not None else [])


def _keep_versions(kind: Kind, taken: Sequence[tuple[Row, Any, int]], origin: Origin) -> None:
    """Store the versions after the given number of each, and have each be found as it was then."""
    versions: list[Version] = []
    waiting: list[OpenReference] = []
    for row, memory, number in taken:
        for past in row.past[number:]:
            version, missing = _version(kind, row, memory, past, origin)
            versions.append(version)
            waiting.extend(
                OpenReference(typ=kind.typ, memory_id=memory.pk, version=past.version, instanz=instanz, kennung=kennung)
                for instanz, kennung in missing
            )
    kind.versions.objects.bulk_create(versions)
    OpenReference.objects.bulk_create(waiting)
    keys = [memory.pk for _row, memory, _number in taken]
    PastEntry.objects.filter(typ=kind.typ, memory_id__in=keys, teil__lt=DERIVED).delete()
    PastEntry.objects.bulk_create(past_of(kind, keys))


def _version(kind: Kind, row: Row, memory: Any, past: Past, origin: Origin) -> tuple[Version, list[tuple[str, str]]]:
    told, missing = _here(past.original["verweis"], row.instanz, {row.kennung: memory.kennung})
    content = dict(past.content)
    if past is row.past[-1] and row.content is not None:
        content = {name: getattr(memory, name) for name in copied_fields(kind)}  # the tags as they are spelled here
    version = kind.versions(
        memory_id=memory.pk,
        version=past.version,
        tuer=origin.tuer,
        tool=origin.tool,
        schluessel_id=origin.principal.key_id,
        schluessel=origin.principal.key_name,
        benutzer_id=origin.principal.user_id,
        benutzer=origin.principal.user_name,
        verweis=told,
        urspruenglich=dict(past.original),
        **past.columns,
        **content,
    )
    return version, missing


def _landed(rows: Sequence[Row]) -> Callable[[Sequence[Outcome]], bool]:
    """Whether a group is in the database: its transaction noted all its rows or none."""
    digests = [_first_digest(row) for row in rows]

    def check(outcomes: Sequence[Outcome]) -> bool:
        done = [outcome for outcome in outcomes if isinstance(outcome, Done)]
        if not done:
            return True
        noted = ImportedMemory.objects.filter(typ=done[0].kind.typ, memory_id=done[0].key)
        return bool(noted.filter(digest__in=digests).exists())

    return check
