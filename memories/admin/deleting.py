"""Deleting memories, one or some: asked before, through the service, with a reason. The history keeps them."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import truncatechars
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memories import services
from memories.admin.base import ReasonForm, origin_of
from memories.admin.history import url_of
from memories.admin.merging import MergingAdmin
from memories.errors import BrainError
from memories.models import Memory

MOST_AT_ONCE = 500  # memories that are deleted together
_BATCH = 100
_SHOWN = 20


class DeletingAdmin(MergingAdmin):
    """The pages that delete."""

    actions = ("delete_selected", "merge_selected")

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Asks, then deletes; without Django's transaction around it."""
        context = {"explanation": _("The history stays: a deleted memory can be restored from it.")}
        try:
            page: HttpResponse = self._delete_view(  # type: ignore[attr-defined]
                request, object_id, context | {"reason_form": ReasonForm()} | (extra_context or {})
            )
        except BrainError as fault:
            self.message_user(request, str(fault.meldung), messages.ERROR)
            return HttpResponseRedirect(url_of("changelist", self.kind))
        return page

    def delete_model(self, request: HttpRequest, obj: Memory) -> None:
        """Delete the memory. Raises the service's fault."""
        outcome = services.delete(self.kind, [obj.pk], origin_of(request))[0]
        if isinstance(outcome, BrainError):
            raise outcome

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """The memories alone: what hangs on them goes with them, and there is no need to collect it."""
        return [f"{obj.kennung}: {truncatechars(str(obj), 80)}" for obj in objs], {}, set(), []

    def response_action(self, request: HttpRequest, queryset: Any, *args: Any, **options: Any) -> HttpResponse | None:
        """What an action answers; without one when the selection holds what is no key."""
        if not all(map(self._key, request.POST.getlist(ACTION_CHECKBOX_NAME))):
            return None
        return super().response_action(request, queryset, *args, **options)

    @admin.action(permissions=["delete"], description=gettext_lazy("Delete selected %(verbose_name_plural)s"))
    def delete_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Asks, then deletes in batches."""
        rows = list(queryset.order_by("pk")[: MOST_AT_ONCE + 1])
        if len(rows) > MOST_AT_ONCE:
            told = _("At most %(limit)d memories can be deleted at once. Narrow the list by filters.")
            self.message_user(request, told % {"limit": MOST_AT_ONCE}, messages.ERROR)
            return None
        if "post" in request.POST:
            self._delete_all(request, [row.pk for row in rows])
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": _("Delete"),
            "opts": self.opts,
            "rows": self.get_deleted_objects(rows[:_SHOWN], request)[0],
            "keys": [row.pk for row in rows],
            "more": max(len(rows) - _SHOWN, 0),
            "checkbox": ACTION_CHECKBOX_NAME,
            "reason_form": ReasonForm(),
            "explanation": _("The history stays: deleted memories can be restored from it."),
        }
        return TemplateResponse(request, "admin/memories/delete_selected.html", context)

    def _delete_all(self, request: HttpRequest, keys: list[int]) -> None:
        deleted = 0
        try:
            origin = origin_of(request)
            for start in range(0, len(keys), _BATCH):
                outcomes = services.delete(self.kind, keys[start : start + _BATCH], origin)
                deleted += sum(isinstance(outcome, services.Done) for outcome in outcomes)
        except BrainError as fault:
            self.message_user(request, str(fault.meldung), messages.ERROR)
        told = ngettext("%(count)d memory was deleted.", "%(count)d memories were deleted.", deleted)
        self.message_user(request, told % {"count": deleted})
