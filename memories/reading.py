"""The questions: memories by key and by filter, histories, tags and their counts. Nobody sees what is not his."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, Count, Exists, F, IntegerField, OuterRef, Subquery, When
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from memories.errors import NotFound
from memories.filters import Filter
from memories.history import changed_fields
from memories.kinds import KINDS, Kind
from memories.models import BrainVersion, Memory, Tag, Version
from memories.models.queries import MemoryQuerySet
from memories.paging import Page, after, cursor, place_of
from memories.principal import Principal
from memories.search.engine import well_planned
from memories.search.query import parse
from memories.search.reach import Bounds, groups
from memories.search.text import hits, holding
from memories.trust import with_door
from memories.values import tag_key

_RANKED_FOR_EACH = 2  # candidates for each memory that is wanted, so that the best are among them


def by_keys(kind: Kind, keys: Iterable[int], principal: Principal) -> dict[int, Memory]:
    """Those of these memories that are there for the principal, by key, each with its door."""
    return {row.pk: row for row in with_door(kind, kind.memories.objects.visible_to(principal, among=keys))}


def listed(
    kind: Kind, only: Filter, sortierung: str, limit: int, weiter: str | None, principal: Principal
) -> Page[Memory]:
    """One page of memories, each with its door.

    `sortierung` is neueste, aelteste (both by creation) or, for brain memories, relevanz.
    """
    query = (kind.typ, only, sortierung)
    place = place_of(weiter, query) if weiter else None
    rows = with_door(kind, only.apply(kind, kind.memories.objects.visible_to(principal)))
    if only.suche:
        rows = rows.filter(pk__in=holding(kind, parse(only.suche), groups(principal, [kind], only)))
    if sortierung == "relevanz":
        return _by_relevance(rows, query, limit, place)
    descending = sortierung == "neueste"
    if place:
        rows = rows.filter(after("erstellt_am", place[0], place[1], descending=descending))
    sign = "-" if descending else ""
    found = list(rows.order_by(f"{sign}erstellt_am", f"{sign}pk")[: limit + 1])
    return _page(found, limit, query, lambda last: (last.erstellt_am, last.pk))


def ranked(
    kind: Kind, only: Filter, limit: int, principal: Principal, among: MemoryQuerySet[Any] | None = None
) -> tuple[list[int], bool]:
    """The keys of the memories that fit the text `only.suche` best, best first, and whether more of them fit.

    `among` holds them to what the search knows nothing of; each is looked up there. What is no longer valid is found.
    """
    where = ""
    values: Sequence[Any] = ()
    if among is not None:
        # `c` is the entry of the index.
        same = among.filter(pk=RawSQL("c.memory_id", [])).order_by().values("pk")
        sql, values = same.query.sql_with_params()
        where = f"AND EXISTS ({sql})"
    reach = groups(principal, [kind], only)
    with well_planned():
        found, whole = hits(parse(only.suche), Bounds(reach, where, values), _RANKED_FOR_EACH * limit)
    keys = [hit.memory_id for hit in found]
    return keys[:limit], not whole or len(keys) > limit


def _by_relevance(rows: MemoryQuerySet[Any], query: object, limit: int, place: list[Any] | None) -> Page[Memory]:
    """By relevance as it was when the first page was read, so that a row whose relevance changes keeps its place."""
    started = datetime.fromisoformat(place[2]) if place else timezone.now()
    then = BrainVersion.objects.filter(memory_id=OuterRef("pk"), zeitpunkt__lte=started).order_by("-version")
    rows = rows.filter(erstellt_am__lte=started).annotate(
        damals=Case(
            When(aktualisiert_am__lte=started, then=F("relevanz")),
            default=Subquery(then.values("relevanz")[:1]),
            output_field=IntegerField(),
        )
    )
    if place:
        rows = rows.filter(after("damals", place[0], place[1], descending=True))
    found = list(rows.order_by("-damals", "-pk")[: limit + 1])
    return _page(found, limit, query, lambda last: (last.damals, last.pk, started))


def _page(found: Sequence[Any], limit: int, query: object, place: Any) -> Page[Any]:
    rows = found[:limit]
    return Page(rows, cursor(query, place(rows[-1])) if len(found) > limit else None)


@dataclass(frozen=True, slots=True)
class Step:
    """A version, and the names of the fields in which it differs from the one before."""

    version: Version
    before: Version | None
    changed: Sequence[str]


def history(kind: Kind, key: int, limit: int, weiter: str | None, principal: Principal) -> Page[Step]:
    """A page of a memory's versions, newest first. NotFound when its newest version is not to be seen."""
    query = (kind.typ, key, "history")
    versions = _versions(kind, key, principal)
    if weiter:
        versions = versions.filter(version__lt=place_of(weiter, query)[0])
    found = list(versions.order_by("-version")[: limit + 1])
    return _page(
        [_step(kind, later, earlier) for later, earlier in zip(found, [*found[1:], None], strict=True)],
        limit,
        query,
        lambda last: (last.version.version,),
    )


def compared(kind: Kind, key: int, von: int, bis: int, principal: Principal) -> Step:
    """What differs between any two versions of a memory. NotFound when one of them is not to be seen."""
    found = {row.version: row for row in _versions(kind, key, principal).filter(version__in=[von, bis])}
    for number, name in ((von, "von"), (bis, "bis")):
        if number not in found:
            raise NotFound(_("The memory has no version of this number."), name)
    return Step(found[bis], found[von], changed_fields(kind, found[von], found[bis]))


def _versions(kind: Kind, key: int, principal: Principal) -> Any:
    """A memory's versions in sight. NotFound when its newest version is not to be seen."""
    newest = kind.versions.objects.filter(memory_id=key).order_by("-version").values("pk")[:1]
    versions = kind.versions.objects.visible_to(principal).filter(memory_id=key)
    if not versions.filter(pk=Subquery(newest)).exists():
        raise NotFound(_("There is no memory of this ID."), "ID")
    return versions


def _step(kind: Kind, later: Version, earlier: Version | None) -> Step:
    """The step from one version to the next; versions in between that may not be seen leave no trace."""
    before = earlier if earlier and earlier.version == later.version - 1 else None
    return Step(later, before, changed_fields(kind, before, later) if before else ())


@dataclass(frozen=True, slots=True)
class TagCount:
    """A tag, and how many memories in sight carry it."""

    tag: Tag
    anzahl: int


def tag_counts(praefix: str, limit: int, weiter: str | None, principal: Principal) -> Page[TagCount]:
    """A page of tags by name; those that no memory in sight carries are left out."""
    query = ("tags", tag_key(praefix))
    tags = Tag.objects.filter(schluessel__startswith=tag_key(praefix))
    if weiter:
        tags = tags.filter(schluessel__gt=place_of(weiter, query)[0])
    total: Any = sum((carried(kind, principal) for kind in KINDS[1:]), carried(KINDS[0], principal))
    found: list[Any] = list(tags.annotate(anzahl=total).filter(anzahl__gt=0).order_by("schluessel")[: limit + 1])
    counts = [TagCount(tag, tag.anzahl) for tag in found]
    return _page(counts, limit, query, lambda last: (last.tag.schluessel,))


def scopes(kinds: Iterable[Kind], beginning: str, limit: int, principal: Principal) -> list[str]:
    """The scopes of memories in sight that begin so, in order; a step along the index for each, at most `limit`."""
    found: set[str] = set()
    for kind in kinds:
        column = kind.memories.SCOPE
        seen = kind.memories.objects.visible_to(principal).order_by(column).values_list(column, flat=True)
        scope = seen.filter(**{f"{column}__gte": beginning}).first()
        for _step in range(limit):
            if scope is None or not scope.casefold().startswith(beginning.casefold()):
                break
            found.add(scope)
            scope = seen.filter(**{f"{column}__gt": scope}).first()
    return sorted(found - {""})[:limit]


def carried(kind: Kind, principal: Principal) -> Any:
    """How many memories of a kind, in sight of the principal, carry a tag: an annotation for tags."""
    seen = kind.memories.objects.visible_to(principal).filter(pk=OuterRef("memory_id"))
    links = kind.links.objects.filter(Exists(seen), tag_id=OuterRef("pk")).order_by().values("tag_id")
    return Coalesce(Subquery(links.annotate(n=Count("memory_id")).values("n")), 0)
