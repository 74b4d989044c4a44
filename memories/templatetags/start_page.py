"""What the templates of the start page ask for."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django import template
from django.utils import timezone
from django.utils.translation import gettext as _

from memories import figures
from memories.admin.history import url_of
from memories.kinds import Kind
from memories.models import Version
from memories.models.access import principal_of

register = template.Library()
_HEIGHT = 120
_COLUMN = 40


@register.simple_tag(takes_context=True)
def start_page(context: Any) -> dict[str, Any]:
    """The figures for whoever is signed in; of calls and near-duplicates only for those who may see them."""
    user = context["request"].user
    principal = principal_of(user)
    told: dict[str, Any] = {"figures": figures.figures(principal), "most": figures.MOST, "grouped": figures.GROUPED}
    told["proposed"] = figures.proposed(principal)
    if user.has_perm("memories.view_callrecord"):
        told["failed"] = figures.failed_calls(principal, timezone.now() - timedelta(days=1))
    if user.has_perm("memories.view_duplicatepair"):
        told["pairs"] = figures.near_duplicates(principal)
    return told


@register.simple_tag
def bars(days: Any) -> list[dict[str, Any]]:
    """The bars of the chart of days: place and height, from the kinds' shares."""
    highest = max((day.number for day in days), default=0) or 1
    drawn = []
    for place, day in enumerate(days):
        parts, top = [], _HEIGHT
        for number, share in enumerate(day.by_kind):
            height = round(share * _HEIGHT / highest)
            top -= height
            parts.append({"y": top, "height": height, "name": f"kind-{number}"})
        drawn.append({"x": place * _COLUMN, "middle": place * _COLUMN + 15, "day": day, "parts": parts})
    return drawn


@register.filter
def number(counted: figures.Counted) -> str:
    """The number; of many, that there are more."""
    return _("more than %(number)d") % {"number": counted.number} if counted.more else str(counted.number)


@register.filter
def verbose_plural(model: Any) -> str:
    """What the rows of a model are called."""
    return str(model._meta.verbose_name_plural)  # noqa: SLF001 - Django's own public-by-custom API


@register.filter
def heading(version: Version) -> str:
    """The first of a version's texts."""
    return str(getattr(version, version.TEXTS[0]))


@register.simple_tag
def list_of(kind: Kind, what: str = "", name: str = "") -> str:
    """The address of a kind's list, filtered by a scope, an agent or a nutzer."""
    what = kind.memories.SCOPE if what == "scope" else what
    return url_of("changelist", kind) + (f"?{urlencode({what: name})}" if what else "")


@register.simple_tag
def by_name(found: figures.Figures) -> list[tuple[str, str, Any]]:
    """The tables of scopes, agents and nutzer: caption, what to filter by, rows."""
    return [
        (_("By scope"), "scope", found.scopes),
        (_("By agent"), "agent", found.agents),
        (_("By nutzer"), "nutzer", found.nutzer),
    ]


@register.filter
def with_kinds(numbers: Any, kinds: Any) -> list[tuple[Kind, int]]:
    """The numbers with the kinds that they are of."""
    return [(of.kind, number) for of, number in zip(kinds, numbers, strict=True)]


@register.simple_tag
def page_of(version: Version, kinds: Any) -> str:
    """The address of a memory's history."""
    kind = next(each.kind for each in kinds if each.kind.typ == version.typ)
    return url_of("history", kind, version.memory_id)
