"""The trash: what was deleted and is not there any more, as a list of its own, from where it can be restored."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.expressions import RawSQL
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.admin import filters
from memories.admin.base import BrainAdmin
from memories.admin.bulk import offered
from memories.admin.history import url_of
from memories.admin.versions import BrainVersionAdmin, LongtermVersionAdmin, ShorttermVersionAdmin, VersionAdmin
from memories.kinds import Kind
from memories.models import Version
from memories.models.access import principal_of

if TYPE_CHECKING:
    from django.urls import URLPattern


class TrashAdmin(VersionAdmin):
    """The deleted memories of a kind, each by the version that deleted it."""

    change_list_template = "admin/memories/trash.html"
    list_display = (
        "zeitpunkt",
        "erinnerung",
        "kurz",
        "nutzer",
        "durch_nutzer",
        "wer",
        "warum",
        "zurueck",
    )
    list_display_links = None
    list_filter = (filters.WhoFilter, filters.ReasonFilter, filters.WhenFilter)
    search_help_text = gettext_lazy("Searches title and reason; an ID such as longterm_41 finds that memory.")
    list_explanation = gettext_lazy(
        "Deleted memories, the last deleted first. Restoring one writes a new version with what it held; its history "
        "has the versions before."
    )

    def get_search_fields(self, request: HttpRequest) -> tuple[str, str]:
        """The title and the reason."""
        return (self.kind.memories.TEXTS[0], "grund")

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Restoring, for whoever may."""
        return offered(request, self.kind, "trash")

    def response_action(self, request: HttpRequest, queryset: Any, *args: Any, **options: Any) -> HttpResponse | None:
        """What an action answers; without one when the selection holds what is no key."""
        if not all(typed.isascii() and typed.isdecimal() for typed in request.POST.getlist(ACTION_CHECKBOX_NAME)):
            return None
        return super().response_action(request, queryset, *args, **options)

    @property
    def counted(self) -> Any:
        """Memories are counted, not versions."""
        return self.kind.memories._meta  # noqa: SLF001 - Django's own public-by-custom API

    def walk(self) -> QuerySet[Any]:
        """All deletions. The index of them is used for the word itself only, not for a parameter."""
        found: QuerySet[Any] = self.kind.versions.objects.filter(aktion=RawSQL("'geloescht'", []))
        return found

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Of the deletions in sight those after which nothing came."""
        # Subqueries that are asked row by row; of NOT EXISTS PostgreSQL would make a join with the whole table.
        there = self.kind.memories.objects.filter(pk=OuterRef("memory_id")).values("pk")
        newest = self.kind.versions.objects.filter(memory_id=OuterRef("memory_id")).order_by("-version")
        found: Any = self.walk() & self.kind.versions.objects.visible_to(principal_of(request.user))
        found = found.alias(there=Subquery(there[:1]), newest=Subquery(newest.values("version")[:1]))
        gone: QuerySet[Any] = found.filter(there__isnull=True, newest=F("version"))
        return gone

    def narrowed(self, request: HttpRequest) -> bool | None:
        """No index knows which memories are still gone."""
        return False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list under its own name."""
        context = {
            "title": _("Trash: %(kind)s") % {"kind": self.counted.verbose_name_plural},
            "list_url": url_of("changelist", self.kind),
            "list_name": self.counted.verbose_name_plural,
        }
        return super().changelist_view(request, context | (extra_context or {}))

    @admin.display(description=gettext_lazy("Look, restore"))
    def zurueck(self, obj: Version) -> SafeString:
        """The page of what it held, from where whoever may do so restores it."""
        return format_html('<a href="{}">{}</a>', url_of("version", self.kind, obj.memory_id, obj.version), _("Open"))


class LongtermTrash(TrashAdmin, LongtermVersionAdmin):
    """Deleted long-term memories."""


class ShorttermTrash(TrashAdmin, ShorttermVersionAdmin):
    """Deleted short-term memories."""


class BrainTrash(TrashAdmin, BrainVersionAdmin):
    """Deleted brain memories."""


_TRASHES = (LongtermTrash, ShorttermTrash, BrainTrash)


class TrashingAdmin(BrainAdmin):
    """Leads to the trash."""

    kind: Kind

    def get_urls(self) -> "list[URLPattern]":
        """The trash."""
        trash = next(each for each in _TRASHES if each.kind is self.kind)(self.kind.versions, self.admin_site)
        view = self.admin_site.admin_view(trash.changelist_view)
        return [path("trash/", view, name=f"memories_{self.kind.typ}memory_trash"), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, with the way there."""
        return super().changelist_view(request, {"trash_url": url_of("trash", self.kind)} | (extra_context or {}))
