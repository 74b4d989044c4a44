"""Taking memories out of a list, filtered as the list is: JSON lines with their histories, or a table."""

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path

from memories.admin.base import BrainAdmin
from memories.kinds import Kind
from memories.models.access import principal_of
from memories.transfer.exporting import keys_of, memory_lines
from memories.transfer.lines import header
from memories.transfer.table import memory_table

if TYPE_CHECKING:
    from django.urls import URLPattern


def filtered(model_admin: BrainAdmin, request: HttpRequest) -> ChangeList:
    """The list as its address filters it. Raises BadRequest for filters that it does not take."""
    try:
        return model_admin.get_changelist_instance(request)
    except IncorrectLookupParameters as error:
        raise BadRequest("filter") from error


class ExportingAdmin(BrainAdmin):
    """A list whose memories can be taken out."""

    kind: Kind

    change_list_template = "admin/memories/memory_list.html"

    def has_export_permission(self, request: HttpRequest) -> bool:
        """Whoever may view the kind and take its memories out."""
        user: Any = request.user
        return self.has_view_permission(request) and bool(user.has_perm(f"memories.export_{self.kind.typ}memory"))

    def get_urls(self) -> "list[URLPattern]":
        """The two forms of export."""
        name = f"memories_{self.kind.typ}memory_export"
        own = [
            path("export/jsonl/", self.admin_site.admin_view(self.export_lines), name=f"{name}_jsonl"),
            path("export/csv/", self.admin_site.admin_view(self.export_table), name=f"{name}_csv"),
        ]
        return [*own, *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, with the ways to its export."""
        user: Any = request.user
        more = {
            "may_export": self.has_export_permission(request),
            "may_import": user.has_perm("memories.add_importjob") and self.has_change_permission(request),
            "query": request.GET.urlencode(),
            "list_template": BrainAdmin.change_list_template,
        }
        return super().changelist_view(request, more | (extra_context or {}))

    def export_lines(self, request: HttpRequest) -> StreamingHttpResponse:
        """The memories of the list as it is filtered, a JSON line each."""
        lines = memory_lines(self.kind, self._keys(request), principal_of(request.user))
        return self._download("jsonl", "application/jsonl", chain([f"{header(settings.VERSION)}\n"], lines))

    def export_table(self, request: HttpRequest) -> StreamingHttpResponse:
        """The memories of the list as it is filtered, a row each."""
        rows = memory_table(self.kind, self._keys(request), principal_of(request.user))
        return self._download("csv", "text/csv; charset=utf-8", rows)

    def _keys(self, request: HttpRequest) -> Iterator[int]:
        """The keys of the memories in the list, on all of its pages."""
        if not self.has_export_permission(request):
            raise PermissionDenied
        found = filtered(self, request)
        # A search finds what fits best; without one, all pages count, however far the list looks at once.
        return keys_of(found.queryset if found.query.strip() else ChangeList.get_queryset(found, request))

    def _download(self, form: str, content_type: str, rows: Iterator[str]) -> StreamingHttpResponse:
        response = StreamingHttpResponse(rows, content_type=content_type)
        response["Content-Disposition"] = f'attachment; filename="{self.kind.typ}.{form}"'
        return response
