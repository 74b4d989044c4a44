"""The proof that histories have no gaps, and that live rows, newest versions and tag links say the same."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.db import connection
from django.db.models import Count, Exists, F, Max, Min, OuterRef, TextChoices
from django.utils.translation import gettext_lazy as _

from memories.history import copied_fields, removing
from memories.kinds import Kind
from memories.values import tag_key

_ROWS_AT_ONCE = 2_000


class Flaw(TextChoices):
    """What can be wrong with a memory."""

    GAP = "gap", _("its versions do not run from 1 without a gap")
    DIFFERENT = "different", _("its live row differs from its newest version")
    VANISHED = "vanished", _("it has no live row, but no version that removed it")
    REVIVED = "revived", _("it has a live row, but its newest version removed it")
    TAGS = "tags", _("its tag links differ from its tags")


@dataclass(frozen=True, slots=True)
class Deviation:
    """A memory by its ID, and what is wrong with it; none of its texts."""

    kennung: str
    flaw: Flaw


def deviations(kind: Kind) -> Iterator[Deviation]:
    """All that is wrong with the memories of this kind.

    Five statements however many memories there are, each right in itself, so others may write meanwhile. Rows are
    compared by the database and read as a stream.
    """
    found = (
        (Flaw.GAP, _with_gaps(kind)),
        (Flaw.DIFFERENT, _different_from_newest(kind)),
        (Flaw.VANISHED, _newest(kind, live=False).exclude(aktion__in=removing(kind))),
        (Flaw.REVIVED, _newest(kind, live=True).filter(aktion__in=removing(kind))),
        (Flaw.TAGS, _with_other_links(kind)),
    )
    for flaw, keys in found:
        for key in keys if isinstance(keys, Iterator) else keys.iterator(_ROWS_AT_ONCE):
            yield Deviation(f"{kind.typ}_{key}", flaw)


def _with_gaps(kind: Kind) -> Any:
    """Numbers are unique within a memory, so they are 1 to n when there are n of them, from 1 to n."""
    numbers = kind.versions.objects.order_by("memory_id").values("memory_id")
    counted = numbers.annotate(first=Min("version"), last=Max("version"), count=Count("pk"))
    return counted.exclude(first=1, last=F("count")).values_list("memory_id", flat=True)


def _different_from_newest(kind: Kind) -> Iterator[int]:
    """Raw, since the comparison must take null for equal to null in every column."""
    quote = connection.ops.quote_name
    live, versions = kind.memories._meta, kind.versions._meta  # noqa: SLF001
    unlike = "IS NOT" if connection.vendor == "sqlite" else "IS DISTINCT FROM"
    pairs = [(name, name) for name in (*copied_fields(kind), "version")] + [("aktualisiert_am", "zeitpunkt")]
    columns = [(live.get_field(here).column, versions.get_field(there).column) for here, there in pairs]
    differs = " OR ".join(f"l.{quote(here)} {unlike} v.{quote(there)}" for here, there in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            # Names of tables and columns come from the models.
            f"SELECT l.id FROM {quote(live.db_table)} l LEFT JOIN {quote(versions.db_table)} v "  # noqa: S608
            f"ON v.memory_id = l.id AND v.version = "
            f"(SELECT MAX(n.version) FROM {quote(versions.db_table)} n WHERE n.memory_id = l.id) "
            f"WHERE {differs} ORDER BY l.id"
        )
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            yield from (key for (key,) in rows)


def _newest(kind: Kind, *, live: bool) -> Any:
    """The memories, by their newest version, that have a live row, or have none."""
    later = kind.versions.objects.filter(memory_id=OuterRef("memory_id"), version__gt=OuterRef("version"))
    row = Exists(kind.memories.objects.filter(pk=OuterRef("memory_id")))
    newest = kind.versions.objects.filter(~Exists(later), row if live else ~row)
    return newest.order_by("memory_id").values_list("memory_id", flat=True)


def _with_other_links(kind: Kind) -> Iterator[int]:
    """A memory's links and its `tag_namen` in one row each, as no second statement would see the same state."""
    linked = kind.memories.objects.order_by("pk").values_list(
        "pk", "tag_namen", "tag_links__tag__schluessel", "tag_links__tag__name"
    )
    for key, rows in groupby(linked.iterator(_ROWS_AT_ONCE), itemgetter(0)):
        together = list(rows)
        names = together[0][1]
        links = sorted((schluessel, name) for _key, _names, schluessel, name in together if schluessel is not None)
        if links != sorted((tag_key(name), name) for name in names):
            yield key
