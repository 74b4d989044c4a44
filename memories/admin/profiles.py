"""The list of embedding profiles, with how many memories have a fresh vector of each, a stale one, or none."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.admin.base import ReadOnlyAdmin
from memories.models.access import principal_of
from memories.search.profiles import states


class EmbeddingProfileAdmin(ReadOnlyAdmin):
    """Those of callers as well, which have no row of their own; so the list is made here, not by Django."""

    list_explanation = gettext_lazy(
        "Which models made vectors, and how many memories have one. A fresh vector stands for the present text. "
        "Vectors that were made here are made anew by themselves; stale ones came from a caller."
    )
    form_explanation = gettext_lazy("A model that texts are embedded with here.")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The profiles, for the memories that the person may see."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": _("Embedding profiles"),
            "opts": self.opts,
            "explanation": self.list_explanation,
            "states": states(principal_of(request.user)),
        }
        return TemplateResponse(request, "admin/memories/profiles.html", context | (extra_context or {}))
