"""The list of near-duplicates: pairs of memories that may say the same, to be merged or dismissed."""

from typing import Any

from django.contrib import admin
from django.db.models import Case, OuterRef, QuerySet, Subquery, TextField, When
from django.http import HttpRequest
from django.template.defaultfilters import truncatechars
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memories import duplicates
from memories.admin import filters
from memories.admin.base import ReadOnlyAdmin
from memories.admin.history import url_of
from memories.kinds import KINDS, Kind
from memories.models import DuplicatePair
from memories.models.access import principal_of
from memories.principal import Action

_SHOWN = 60  # characters of a title


class DuplicatePairAdmin(ReadOnlyAdmin):
    """Pairs, the most alike first."""

    list_display: Any = ("eine", "andere", "zusammenfuehren", "art", "aehnlichkeit", "abgelehnt_von")
    list_filter = (filters.KindFilter, filters.DismissedFilter)
    list_display_links = None
    ordering = ("-cosinus", "-pk")
    sortable_by = ()
    actions = ("dismiss", "bring_back")
    list_explanation = gettext_lazy(
        "Pairs of memories with the same text, case and accents aside, or with close vectors of one profile. They are "
        "hints: nothing happens by itself. A pair goes when one of its memories changes; what is no duplicate stays "
        "away. New ones are found by manage.py find_duplicates."
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The pairs of which both memories are in sight, with their titles."""
        pairs = self.model.objects.visible_to(principal_of(request.user))
        found: QuerySet[Any] = pairs.annotate(first_titel=_title("first_id"), second_titel=_title("second_id"))
        return found

    def get_list_display(self, request: HttpRequest) -> Any:
        """Without the way to merging for those who may merge nothing."""
        principal = principal_of(request.user)
        merges = principal.kinds(Action.WRITE) & principal.kinds(Action.DELETE)
        return [name for name in self.list_display if merges or name != "zusammenfuehren"]

    def has_dismiss_permission(self, request: HttpRequest) -> bool:
        """Whoever may say that a pair is none."""
        user: Any = request.user
        return bool(user.has_perm("memories.change_duplicatepair"))

    @admin.display(description=gettext_lazy("Older memory"))
    def eine(self, obj: DuplicatePair) -> SafeString:
        """The older memory, leading to its page."""
        return _link(obj, obj.first_id, obj.first_titel)  # type: ignore[attr-defined]

    @admin.display(description=gettext_lazy("Newer memory"))
    def andere(self, obj: DuplicatePair) -> SafeString:
        """The newer one."""
        return _link(obj, obj.second_id, obj.second_titel)  # type: ignore[attr-defined]

    @admin.display(description=gettext_lazy("Likeness"))
    def aehnlichkeit(self, obj: DuplicatePair) -> str:
        """The cosine as a percentage."""
        return f"{obj.cosinus * 100:.1f} %"

    @admin.display(description=gettext_lazy("Merge"))
    def zusammenfuehren(self, obj: DuplicatePair) -> SafeString:
        """Leads to the page on which the two stand side by side."""
        address = f"{url_of('merge', _kind(obj))}?id={obj.first_id}&id={obj.second_id}"
        return format_html('<a href="{}">{}</a>', address, _("Side by side"))

    @admin.action(permissions=["dismiss"], description=gettext_lazy("Not duplicates"))
    def dismiss(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Keep the selected pairs away for good."""
        keys = queryset.values_list("pk", flat=True)
        number = duplicates.dismiss(keys, self.get_queryset(request), request.user.get_username())
        told = ngettext("%(count)d pair is no duplicate.", "%(count)d pairs are no duplicates.", number)
        self.message_user(request, told % {"count": number})

    @admin.action(permissions=["dismiss"], description=gettext_lazy("May be duplicates after all"))
    def bring_back(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """List them again."""
        number = duplicates.bring_back(queryset.values_list("pk", flat=True), self.get_queryset(request))
        told = ngettext("%(count)d pair is listed again.", "%(count)d pairs are listed again.", number)
        self.message_user(request, told % {"count": number})


def _kind(pair: DuplicatePair) -> Kind:
    return next(kind for kind in KINDS if kind.typ == pair.typ)


def _title(side: str) -> Case:
    """The first text of the memory on this side of a pair."""
    titles = {
        kind.typ: kind.memories.objects.filter(pk=OuterRef(side)).values(kind.memories.TEXTS[0])[:1] for kind in KINDS
    }
    return Case(*(When(typ=typ, then=Subquery(title)) for typ, title in titles.items()), output_field=TextField())


def _link(pair: DuplicatePair, key: int, title: str) -> SafeString:
    link = format_html('<a href="{}">{}_{}</a>', url_of("change", _kind(pair), key), pair.typ, key)
    return format_html("{} {}", link, truncatechars(title, _SHOWN))
