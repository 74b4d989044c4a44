"""Values offered in the text filters of a list while somebody types: an address that answers with JSON."""

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.urls import path

from memories.admin.base import BrainAdmin
from memories.admin.history import url_of
from memories.kinds import Kind
from memories.models.access import principal_of
from memories.suggestions import suggested

if TYPE_CHECKING:
    from django.urls import URLPattern


class SuggestingAdmin(BrainAdmin):
    """A list whose text filters know what there is."""

    kind: Kind
    list_filter: ClassVar[tuple[Any, ...]]

    def get_urls(self) -> "list[URLPattern]":
        """The address that is asked."""
        view = self.admin_site.admin_view(self.suggest_view)
        return [path("suggest/", view, name=f"memories_{self.kind.typ}memory_suggest"), *super().get_urls()]

    def suggest_url(self, suggests: str, changelist: ChangeList) -> str:
        """Where the values of a filter are asked for, in the scope that is chosen."""
        chosen: Any = changelist.params.get(self.kind.memories.SCOPE, "")
        asked = {"filter": suggests} | ({"scope": chosen} if chosen and suggests == "scope_vk" else {})
        return f"{url_of('suggest', self.kind)}?{urlencode(asked)}" if suggests else ""

    def suggest_view(self, request: HttpRequest) -> HttpResponse:
        """The values of `filter` that begin with `beginn`, in `scope` if it is given."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method != "GET":
            return HttpResponseNotAllowed(["GET"])
        name = request.GET.get("filter", "")
        if name not in {each.suggests for each in self.list_filter if each.suggests}:
            raise Http404
        beginning, scope = request.GET.get("beginn", ""), request.GET.get("scope", "")
        found = suggested(self.kind, name, beginning, principal_of(request.user), scope=scope)
        return JsonResponse({"values": found})
