"""What the start page tells: what came in, from whom, what needs a look. All of it within what a person may see.

No figure reads a whole table: counts end at a limit, and what is grouped are the latest memories alone.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from heapq import nlargest
from typing import Any

from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import TruncDate
from django.utils import timezone

from memories.filters import Filter
from memories.kinds import KINDS, Kind
from memories.models import CallRecord, DuplicatePair, Version
from memories.principal import Action, Principal
from memories.proposals import waiting
from memories.search import engine
from memories.search.engine import Groups, Match, well_planned
from memories.search.reach import FIRST_PART, STALE, groups

MOST = 10_000  # what is counted at most
GROUPED = 5_000  # memories of a kind, the latest, that are grouped
DAYS = 14
EXPIRES_WITHIN = timedelta(days=7)
_NAMES = 8  # scopes, agents and nutzer shown
_LATEST = 8  # changes shown


@dataclass(frozen=True, slots=True)
class Counted:
    """A number; when there are more than `MOST`, just that."""

    number: int
    more: bool

    @classmethod
    def up_to(cls, number: int) -> "Counted":
        """A number that was counted up to one more than `MOST`."""
        return cls(min(number, MOST), number > MOST)


@dataclass(frozen=True, slots=True)
class OfKind:
    """The figures of one kind."""

    kind: Kind
    all: Counted
    stale: Counted
    expiring: Counted | None


@dataclass(frozen=True, slots=True)
class Day:
    """How many memories were stored on a day, by kind."""

    day: date
    by_kind: tuple[int, ...]

    @property
    def number(self) -> int:
        """All of them."""
        return sum(self.by_kind)


@dataclass(frozen=True, slots=True)
class Named:
    """How many memories have this scope, agent or nutzer, by kind."""

    name: str
    by_kind: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """The start page. `partly` says that days, scopes, agents and nutzer are those of the latest memories only."""

    kinds: Sequence[OfKind]
    days: Sequence[Day]
    scopes: Sequence[Named]
    agents: Sequence[Named]
    nutzer: Sequence[Named]
    latest: Sequence[Version]
    partly: bool


def figures(principal: Principal) -> Figures:
    """The figures for a person."""
    kinds = [kind for kind in KINDS if principal.may(Action.READ, kind.typ)]
    with well_planned():
        of_kinds = [_of_kind(kind, principal) for kind in kinds]
    grouped = [_grouped(kind, principal) for kind in kinds]
    today = timezone.localdate()
    days = [today - timedelta(days=ago) for ago in reversed(range(DAYS))]
    by_day, *by_name = ([_summed(rows, column) for rows in grouped] for column in range(4))
    scopes, agents, nutzer = (_most_common(counters) for counters in by_name)
    return Figures(
        kinds=of_kinds,
        days=[Day(day, tuple(counter[day] for counter in by_day)) for day in days],
        scopes=scopes,
        agents=agents,
        nutzer=nutzer,
        latest=_latest(kinds, principal),
        partly=any(sum(row[-1] for row in rows) == GROUPED for rows in grouped),
    )


def failed_calls(principal: Principal, since: datetime) -> Counted:
    """The calls since then that were refused or of which entries failed."""
    calls = failed(CallRecord.objects.visible_to(principal).filter(zeitpunkt__gte=since))
    return Counted.up_to(calls[: MOST + 1].count())


def near_duplicates(principal: Principal) -> Counted:
    """The pairs that nobody has merged or dismissed yet, of which the person may see both memories."""
    pairs = DuplicatePair.objects.visible_to(principal).filter(abgelehnt=False)
    return Counted.up_to(pairs[: MOST + 1].count())


def proposed(principal: Principal) -> Counted:
    """The memories of all kinds that wait for approval. One statement."""
    first, *others = (waiting(kind, principal).order_by().values("pk") for kind in KINDS)
    return Counted.up_to(first.union(*others, all=True)[: MOST + 1].count())


def proposals_of(kind: Kind, principal: Principal) -> Counted:
    """Those of one kind."""
    return Counted.up_to(waiting(kind, principal)[: MOST + 1].count())


def failed(calls: QuerySet[CallRecord]) -> QuerySet[CallRecord]:
    """The calls that were refused, or of which entries failed."""
    return calls.filter(~Q(code="ok") | Q(fehlgeschlagen__gt=0))


def _of_kind(kind: Kind, principal: Principal) -> OfKind:
    reach = [*groups(principal, [kind], Filter()), [FIRST_PART]]
    expiring = None
    if kind.memories.EXPIRES:
        now = timezone.now()
        soon = kind.memories.objects.visible_to(principal).filter(gueltig_bis__range=(now, now + EXPIRES_WITHIN))
        expiring = Counted.up_to(soon[: MOST + 1].count())
    return OfKind(kind, _counted(reach), _counted([*reach, [STALE]]), expiring)


def _counted(reach: Groups) -> Counted:
    return Counted.up_to(engine.count(Match(reach), MOST + 1))


def _grouped(kind: Kind, principal: Principal) -> list[Any]:
    """Day, scope, agent, nutzer and number of the latest memories."""
    memories = kind.memories.objects
    latest = memories.visible_to(principal).order_by("-erstellt_am", "-pk")[:GROUPED]
    rows = memories.filter(pk__in=latest.values("pk")).order_by()
    place = (F(kind.memories.SCOPE), F("agent"), F("nutzer"))
    return list(rows.annotate(day=TruncDate("erstellt_am")).values_list("day", *place).annotate(n=Count("pk")))


def _summed(rows: list[Any], column: int) -> Counter[Any]:
    summed = Counter[Any]()
    for row in rows:
        summed[row[column]] += row[-1]
    return summed


def _most_common(counters: Sequence[Counter[str]]) -> list[Named]:
    names = sum(counters, Counter[str]()).most_common(_NAMES)
    return [Named(name, tuple(counter[name] for counter in counters)) for name, _number in names]


def _latest(kinds: Sequence[Kind], principal: Principal) -> list[Version]:
    found: list[Version] = []
    for kind in kinds:
        versions = kind.versions.objects.visible_to(principal).order_by("-zeitpunkt", "-pk").defer("embedding")
        found.extend(versions[:_LATEST])
    return nlargest(_LATEST, found, key=lambda version: (version.zeitpunkt, version.pk))
