"""The recall log: which searches returned which memories, as a list and on each memory's page."""

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import Count, Max, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memories.admin import filters
from memories.admin.base import ReadOnlyAdmin
from memories.admin.history import url_of
from memories.kinds import KINDS
from memories.models import Memory, Recall
from memories.models.access import principal_of
from memories.principal import Principal


class RecallAdmin(ReadOnlyAdmin):
    """Recalls, newest first."""

    list_display = ("wann", "erinnerung", "rang", "gesucht", "nutzer", "agent", "schluessel", "tuer")
    list_filter = (filters.RecalledMemoryFilter,)
    list_select_related = ("search__call",)
    list_display_links = None
    ordering = ("-search", "rang")
    sortable_by = ()
    actions = None
    list_explanation = gettext_lazy(
        "Which search returned which memory, at which rank. How long this is kept is the setting BRAIN_RECALL_DAYS."
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The recalls in sight."""
        found: QuerySet[Any] = self.model.objects.visible_to(principal_of(request.user))
        return found

    @admin.display(description=gettext_lazy("When"))
    def wann(self, obj: Recall) -> datetime:
        """When the search was made."""
        return obj.search.call.zeitpunkt

    @admin.display(description=gettext_lazy("Memory"))
    def erinnerung(self, obj: Recall) -> str:
        """The memory's ID, leading to its page."""
        kind = next(kind for kind in KINDS if kind.typ == obj.typ)
        return format_html('<a href="{}">{}</a>', url_of("change", kind, obj.memory_id), obj.kennung)

    @admin.display(description=gettext_lazy("Searched text"))
    def gesucht(self, obj: Recall) -> str:
        """What was searched for; empty for an embedding alone."""
        return obj.search.suche

    @admin.display(description=gettext_lazy("Nutzer"))
    def nutzer(self, obj: Recall) -> str:
        """Who the caller said he is."""
        return obj.search.call.nutzer

    @admin.display(description=gettext_lazy("Agent"))
    def agent(self, obj: Recall) -> str:
        """Which agent the caller said it is."""
        return obj.search.call.agent

    @admin.display(description=gettext_lazy("Access key"))
    def schluessel(self, obj: Recall) -> str:
        """By which key."""
        return obj.search.call.schluessel

    @admin.display(description=gettext_lazy("Door"))
    def tuer(self, obj: Recall) -> str:
        """Through which door."""
        return obj.search.call.tuer


def may_see_recalls(request: HttpRequest) -> bool:
    """Whether the person may look into the recall log."""
    user: Any = request.user
    return bool(user.has_perm("memories.view_recall"))


def recalls_of(memory: Memory, principal: Principal) -> tuple[int, datetime | None]:
    """How often searches in sight returned the memory, and when the last one did."""
    seen = Recall.objects.visible_to(principal).filter(typ=memory.typ, memory_id=memory.pk)
    counted = seen.aggregate(times=Count("pk"), last=Max("search__call__zeitpunkt"))
    return counted["times"], counted["last"]


def told_recalls(memory: Memory, times: int, last: datetime | None) -> str:
    """The same as a sentence that leads to the list."""
    if last is None:
        return _("Not recalled, as far as the recall log goes back.")
    moment = date_format(timezone.localtime(last), "SHORT_DATETIME_FORMAT")
    told = ngettext("%(times)d time, last on %(moment)s", "%(times)d times, last on %(moment)s", times)
    address = f"{reverse('admin:memories_recall_changelist')}?memory={memory.kennung}"
    return format_html('<a href="{}">{}</a>', address, told % {"times": times, "moment": moment})
