"""The record of calls, for auditors: filtered, and taken out as CSV."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.urls import path
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memories.admin import filters
from memories.admin.base import ReadOnlyAdmin
from memories.admin.exporting import filtered
from memories.figures import failed
from memories.models.access import principal_of
from memories.transfer.table import table

if TYPE_CHECKING:
    from django.urls import URLPattern

_ROWS_AT_ONCE = 2_000


class FailedFilter(filters.ChoiceFilter):
    """Calls that were refused, or of which entries failed."""

    title = _("failures")
    parameter_name = "failed"
    options = [("all", _("Failed")), ("day", _("Failed on the last day"))]

    def narrowed(self, queryset: Any, chosen: str) -> QuerySet[Any]:
        """The calls that failed."""
        if chosen == "day":
            queryset = queryset.filter(zeitpunkt__gte=timezone.now() - timedelta(days=1))
        return failed(queryset)


class CallRecordAdmin(ReadOnlyAdmin):
    """Calls, newest first."""

    list_display = (
        "zeitpunkt",
        "tuer",
        "tool",
        "schluessel",
        "nutzer",
        "agent",
        "gesamt",
        "fehlgeschlagen",
        "code",
        "dauer_ms",
    )
    list_filter = (
        FailedFilter,
        filters.WhenFilter,
        filters.DoorFilter,
        filters.CalledToolFilter,
        filters.KeyNameFilter,
        filters.NutzerFilter,
        filters.AgentFilter,
        filters.OutcomeFilter,
    )
    ordering = ("-zeitpunkt", "-pk")
    sortable_by = ()
    actions = None
    change_list_template = "admin/memories/callrecord/change_list.html"
    list_explanation = _(
        "Every call of a tool: who said he is whom, by which key, and what came of it. Texts are not recorded. How "
        "long calls are kept is the setting BRAIN_CALLS_DAYS."
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The calls of those whose memories the person may see."""
        found: QuerySet[Any] = self.model.objects.visible_to(principal_of(request.user))
        return found

    def has_export_permission(self, request: HttpRequest) -> bool:
        """Whoever may view calls and take them out."""
        user: Any = request.user
        return self.has_view_permission(request) and bool(user.has_perm("memories.export_callrecord"))

    def get_urls(self) -> "list[URLPattern]":
        """The export."""
        view = self.admin_site.admin_view(self.export_view)
        return [path("export/", view, name="memories_callrecord_export"), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The list, with the way to its export."""
        more = {"may_export": self.has_export_permission(request), "query": request.GET.urlencode()}
        return super().changelist_view(request, more | (extra_context or {}))

    def export_view(self, request: HttpRequest) -> StreamingHttpResponse:
        """The calls of the list as it is filtered, as CSV in UTF-8, row by row."""
        if not self.has_export_permission(request):
            raise PermissionDenied
        rows = filtered(self, request).get_queryset(request)
        response = StreamingHttpResponse(_lines(rows), content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = 'attachment; filename="aufrufe.csv"'
        return response


def _lines(rows: QuerySet[Any]) -> Iterator[str]:
    names = [field.name for field in rows.model._meta.concrete_fields]  # noqa: SLF001
    return table(names, rows.values_list(*names).iterator(chunk_size=_ROWS_AT_ONCE))
