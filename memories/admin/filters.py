"""The filters of the lists. None asks the database which values there are: that costs a scan a page."""

from collections.abc import Iterator
from datetime import datetime, time, timedelta
from functools import reduce
from operator import or_
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memories import values
from memories.admin.base import PLACE_VAR
from memories.errors import ERRORS, BrainError
from memories.figures import EXPIRES_WITHIN
from memories.kinds import KINDS, parse_id
from memories.limits import limits
from memories.models import Aktion, MemoryTyp, ScopeTyp
from memories.search.engine import Match, memories_that
from memories.search.reach import FIRST_PART, STALE


class ListFilter(admin.SimpleListFilter):
    """A filter, with what lists must know to read no whole table for it."""

    indexed: ClassVar[bool] = False  # whether an index finds its rows
    is_sorted: ClassVar[bool] = False  # whether that index is without the list's order
    ranges: ClassVar[bool] = False  # whether they are a piece of the index on `column`
    indexed_with: ClassVar[frozenset[str]] = frozenset()  # the parameters of which one must be chosen for that
    found_by: ClassVar[str] = ""  # its name in `memories.filters.Filter`, when the search knows it
    suggests: ClassVar[str] = ""  # its name in `memories.suggestions`, when that knows the values


class TextFilter(ListFilter):
    """An exact value, typed in."""

    template = "admin/memories/text_filter.html"
    column: ClassVar[str]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """No choices, but the filter is shown."""
        return [("", "")]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """What the form holds: the value, and the other parameters, which stay."""
        model_admin: Any = changelist.model_admin
        others = changelist.filter_params.keys() - {self.parameter_name, PLACE_VAR}
        kept = {name: found for name, found in changelist.filter_params.items() if name in others}
        yield {
            "value": self.value() or "",
            "kept": [(name, one) for name, found in kept.items() for one in found],
            "without": changelist.get_query_string(remove=[str(self.parameter_name)]),
            "suggest_url": model_admin.suggest_url(self.suggests, changelist),
        }

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows that have the value."""
        typed = (self.value() or "").strip()
        if not typed:
            return queryset
        try:
            return self.narrowed(queryset, typed)
        except BrainError as fault:
            raise IncorrectLookupParameters(fault) from fault

    def narrowed(self, queryset: Any, typed: str) -> QuerySet[Any]:
        """The rows whose column has this value. Raises Invalid for what no value can be."""
        found: QuerySet[Any] = queryset.filter(**{self.column: self.wanted(typed)})
        return found

    def wanted(self, typed: str) -> Any:
        """The value in canonical form. Raises Invalid for what no value can be."""
        return values.asked_identifier(typed, self.column)


class TagFilter(TextFilter):
    """A tag's name, in any case."""

    title = _("tag")
    parameter_name = suggests = "tag"
    indexed = True
    is_sorted = True
    found_by = "tags"

    def narrowed(self, queryset: Any, typed: str) -> QuerySet[Any]:
        """The rows that carry the tag."""
        found: QuerySet[Any] = queryset.with_all_tags(self.wanted(typed))
        return found

    def wanted(self, typed: str) -> Any:
        """The tag, as one of several."""
        return (values.asked_tag(typed, "tag"),)


class ScopeFilter(TextFilter):
    """The scope."""

    title = _("scope")
    parameter_name = column = found_by = suggests = "scope"
    indexed = True


class ScopeVkFilter(TextFilter):
    """The record in the scope; an index finds it together with the scope."""

    title = _("scope record (scope_vk)")
    parameter_name = found_by = suggests = "scope_vk"
    indexed_with = frozenset({"scope", "scope_typ"})

    def narrowed(self, queryset: Any, typed: str) -> QuerySet[Any]:
        """The rows of this record."""
        found: QuerySet[Any] = queryset.filter(**{queryset.model.RECORD: self.wanted(typed)})
        return found

    def wanted(self, typed: str) -> Any:
        """The record in canonical form. Raises Invalid for what no value can be."""
        return values.asked_identifier(typed, "scope_vk")


class NutzerFilter(TextFilter):
    """The owner."""

    title = _("owner (nutzer)")
    parameter_name = column = found_by = suggests = "nutzer"
    indexed = True


class AgentFilter(TextFilter):
    """The agent."""

    title = _("agent")
    parameter_name = column = found_by = suggests = "agent"
    indexed = True


class ChoiceFilter(ListFilter):
    """One of a few values; any other value in a link is refused."""

    options: ClassVar[Any]

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """The values with their names."""
        return self.options

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows of the chosen value; all without one."""
        chosen = self.value()
        if chosen is None:
            return queryset
        if chosen not in {str(value) for value, _name in self.lookup_choices}:
            raise IncorrectLookupParameters(self.parameter_name)
        return self.narrowed(queryset, chosen)

    def narrowed(self, queryset: QuerySet[Any], chosen: str) -> QuerySet[Any]:
        """The rows whose column of the parameter's name has the value."""
        return queryset.filter(**{str(self.parameter_name): chosen})

    def wanted(self, chosen: str) -> Any:
        """The value itself."""
        return chosen


class KindFilter(ChoiceFilter):
    """The kind of memory."""

    title = _("kind")
    parameter_name = "typ"
    options = [(kind.typ, kind.memories._meta.verbose_name_plural) for kind in KINDS]  # noqa: SLF001


class DismissedFilter(ChoiceFilter):
    """Pairs that somebody called no duplicates; without a choice the others."""

    title = _("what they are")
    parameter_name = "abgelehnt"
    options = [("ja", _("Not duplicates"))]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """The choices; the first one means not all."""
        first, *rest = super().choices(changelist)
        yield {**first, "display": _("May be duplicates")}
        yield from rest

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The dismissed ones, or the others."""
        return super().queryset(request, queryset).filter(abgelehnt=bool(self.value()))

    def narrowed(self, queryset: QuerySet[Any], chosen: str) -> QuerySet[Any]:
        """All, of which the dismissed ones are left."""
        del chosen
        return queryset


class ScopeTypFilter(ChoiceFilter):
    """The scope of brain memories."""

    title = _("scope")
    parameter_name = "scope_typ"
    found_by = "scope"
    options = ScopeTyp.choices


class MemoryTypFilter(ChoiceFilter):
    """What a brain memory is about."""

    title = _("type")
    parameter_name = "memory_typ"
    options = MemoryTyp.choices


class VectorFilter(ChoiceFilter):
    """Whether the vector stands for an earlier text; the search index knows those."""

    title = _("embedding")
    parameter_name = "vector"
    indexed = True
    is_sorted = True
    options = [("stale", _("Stale"))]

    def narrowed(self, queryset: Any, chosen: str) -> QuerySet[Any]:
        """The rows whose text has moved on."""
        found: QuerySet[Any] = queryset.filter(
            pk__in=memories_that(Match([[FIRST_PART], [STALE]]), queryset.model.typ, [])
        )
        return found


class ProposedFilter(ChoiceFilter):
    """Whether it waits for approval; an index in the list's order has those."""

    title = _("approval")
    parameter_name = "vorgeschlagen"
    indexed = True
    options = [("ja", _("Waiting for approval"))]

    def narrowed(self, queryset: QuerySet[Any], chosen: str) -> QuerySet[Any]:
        """The proposed ones."""
        del chosen
        return queryset.filter(vorgeschlagen=True)


class AktionFilter(ChoiceFilter):
    """What a version came from."""

    title = _("action")
    parameter_name = "aktion"
    options = Aktion.choices


class DoorFilter(ChoiceFilter):
    """Through which door a change came."""

    title = _("door")
    parameter_name = "tuer"
    options = [(name, name) for name in ("rest", "mcp", "admin", "import", "command")]


class CalledToolFilter(TextFilter):
    """The tool's name."""

    title = _("tool")
    parameter_name = column = "tool"


class KeyNameFilter(TextFilter):
    """The name of the access key."""

    title = _("access key")
    parameter_name = column = "schluessel"


class RecalledMemoryFilter(TextFilter):
    """A memory by its ID."""

    title = _("memory (ID)")
    parameter_name = "memory"

    def narrowed(self, queryset: Any, typed: str) -> QuerySet[Any]:
        """The recalls of that memory."""
        kind, key = parse_id(typed, "ID")
        found: QuerySet[Any] = queryset.filter(typ=kind.typ, memory_id=key)
        return found


class OutcomeFilter(ChoiceFilter):
    """What came of a call."""

    title = _("outcome")
    parameter_name = "code"
    options = [("ok", "ok"), ("begonnen", _("never ended")), *((error.code, error.code) for error in ERRORS)]


def start_of_day(days_ago: int) -> datetime:
    """When the day began that many days ago, in the server's time zone."""
    day = timezone.localdate(timezone=timezone.get_default_timezone()) - timedelta(days=days_ago)
    return datetime.combine(day, time.min, tzinfo=timezone.get_default_timezone())


class AgeFilter(ChoiceFilter):
    """How long ago; days begin at midnight in the server's time zone."""

    title = _("age")
    parameter_name = "age"
    column: ClassVar[str] = "erstellt_am"
    ranges = True
    options = [
        ("today", _("Today")),
        ("week", _("Past 7 days")),
        ("month", _("Past 30 days")),
        ("old", _("Older than a year")),
    ]
    _DAYS: ClassVar[dict[str, int]] = {"today": 0, "week": 7, "month": 30}

    def narrowed(self, queryset: QuerySet[Any], chosen: str) -> QuerySet[Any]:
        """The rows of that age."""
        if chosen == "old":
            return queryset.filter(**{f"{self.column}__lt": start_of_day(365)})
        return queryset.filter(**{f"{self.column}__gte": start_of_day(self._DAYS[chosen])})


class WhenFilter(AgeFilter):
    """How long ago a version was written."""

    title = _("date")
    column = "zeitpunkt"


class WhoFilter(TextFilter):
    """Who changed something: nutzer, agent, access key or person."""

    title = _("person or agent")
    parameter_name = "wer"
    _NAMES: ClassVar[tuple[str, ...]] = ("durch_nutzer", "durch_agent", "schluessel", "benutzer")

    def narrowed(self, queryset: Any, typed: str) -> QuerySet[Any]:
        """The versions of which one of these is the name."""
        wanted = [Q(**{name: values.asked_identifier(typed, "wer")}) for name in self._NAMES]
        found: QuerySet[Any] = queryset.filter(reduce(or_, wanted))
        return found


class ReasonFilter(TextFilter):
    """A part of the reason, in any case."""

    title = _("reason")
    parameter_name = "grund"

    def narrowed(self, queryset: Any, typed: str) -> QuerySet[Any]:
        """The versions whose reason holds the text."""
        found: QuerySet[Any] = queryset.filter(grund__icontains=values.asked_text(typed, "grund", limits().grund))
        return found


class ExpiredFilter(ChoiceFilter):
    """Whether the validity is over; both are shown unless one is chosen."""

    title = _("validity")
    parameter_name = "validity"
    options = [("valid", _("Valid")), ("soon", _("Expires within 7 days")), ("expired", _("Expired"))]

    def narrowed(self, queryset: Any, chosen: str) -> QuerySet[Any]:
        """The rows that are valid, still for a few days, or no longer."""
        now = timezone.now()
        if chosen == "soon":
            soon: QuerySet[Any] = queryset.filter(gueltig_bis__range=(now, now + EXPIRES_WITHIN))
            return soon
        found: QuerySet[Any] = queryset.filter(gueltig_bis__lt=now) if chosen == "expired" else queryset.current(now)
        return found
