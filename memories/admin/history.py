"""A memory's history for people: its versions with what changed, one version as a whole, and going back to one."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.translation import gettext as _

from memories import reading, services
from memories.admin.base import BrainAdmin, ReasonForm, may, origin_of
from memories.admin.difference import Difference, differences, whole
from memories.errors import BrainError, NotFound
from memories.kinds import Kind, parse_id
from memories.models import Aktion, Version
from memories.models.access import principal_of
from memories.principal import Action

if TYPE_CHECKING:
    from django.urls import URLPattern

_VERSIONS_A_PAGE = 20
_LONGEST_NUMBER = 10  # digits; no version has so many


@dataclass(frozen=True, slots=True)
class Entry:
    """A version in the timeline."""

    version: Version
    differences: list[Difference]
    referenzfelder: str
    restorable: bool
    undoable: bool
    url: str
    verweise: list[tuple[str, str]]


def url_of(name: str, kind: Kind, *args: object) -> str:
    """The address of a page of the kind's memories."""
    return reverse(f"admin:memories_{kind.typ}memory_{name}", args=args)


def _number(typed: str) -> int:
    """The number of a version; 0, which none has, for anything else."""
    return int(typed) if typed.isascii() and typed.isdecimal() and len(typed) < _LONGEST_NUMBER else 0


def _both(step: reading.Step) -> list[Any]:
    return [step.before, step.version]


def pointers(verweis: str) -> list[tuple[str, str]]:
    """The other memories or versions that a version names, each with the address of the memory's history, if known."""
    return [(name, _history_of(name.split(" ")[0])) for name in verweis.split(", ") if name]


def _history_of(kennung: str) -> str:
    try:
        kind, key = parse_id(kennung, "verweis")
    except BrainError:
        return ""
    return url_of("history", kind, key)


def as_text(referenzfelder: Any) -> str:
    """References as JSON for people; nothing for none."""
    return json.dumps(referenzfelder, ensure_ascii=False) if referenzfelder else ""


class HistoryAdmin(BrainAdmin):
    """The pages of a memory's history. A deleted memory has them, too."""

    kind: Kind

    def get_urls(self) -> "list[URLPattern]":
        """Two versions beside each other, one version, and going back to it."""
        name = f"memories_{self.kind.typ}memory"
        version = "<path:object_id>/history/<int:number>/"
        own = [
            path(
                "<path:object_id>/history/compare/",
                self.admin_site.admin_view(self.compare_view),
                name=f"{name}_compare",
            ),
            path(version, self.admin_site.admin_view(self.version_view), name=f"{name}_version"),
            path(f"{version}restore/", self.admin_site.admin_view(self.restore_view), name=f"{name}_restore"),
        ]
        return [*own, *super().get_urls()]

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The versions, newest first, a page at a time."""
        key = self._seen_key(request, object_id)
        weiter = request.GET.get("weiter")
        try:
            page = reading.history(self.kind, key, _VERSIONS_A_PAGE, weiter, principal_of(request.user))
        except NotFound as fault:
            raise Http404(str(fault.meldung)) from fault
        except BrainError as fault:
            self.message_user(request, str(fault.meldung), messages.ERROR)
            return HttpResponseRedirect(request.path)
        there = self.get_object(request, str(key)) is not None
        newest = None if weiter else page.rows[0].version.version
        allowed = may(request, Action.RESTORE, self.kind)
        context = {
            "entries": [
                self._entry(step, allowed=allowed, present=there and step.version.version == newest)
                for step in page.rows
            ],
            "weiter": page.weiter,
            "first_page": not weiter,
            "there": there,
            "reason_form": ReasonForm(auto_id=False),
            "compare_url": url_of("compare", self.kind, key) if len(page.rows) > 1 else "",
            "explanation": _(
                "Every change is a version, newest first: what changed, who did it, when and how. Choose two versions "
                "to see what differs between them."
            ),
        }
        return self._page(request, "history", key, _("History of %(id)s"), context | (extra_context or {}))

    def _entry(self, step: reading.Step, *, allowed: bool, present: bool) -> Entry:
        """`allowed` to restore; instead of the present state the merge can be taken back that it came from."""
        version = step.version
        return Entry(
            version,
            differences(self.kind, step),
            as_text(version.referenzfelder),
            restorable=allowed and not present,
            undoable=allowed and present and version.aktion == Aktion.ZUSAMMENGEFUEHRT,
            url=url_of("version", self.kind, version.memory_id, version.version),
            verweise=pointers(version.verweis),
        )

    def compare_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """What differs between two versions, which need not follow each other."""
        key = self._seen_key(request, object_id)
        von, bis = _number(request.GET.get("von", "")), _number(request.GET.get("bis", ""))
        try:
            step = reading.compared(self.kind, key, von, bis, principal_of(request.user))
        except NotFound as fault:
            if fault.feld == "ID":
                raise Http404(str(fault.meldung)) from fault
            self.message_user(request, _("Choose two versions that there are."), messages.ERROR)
            return HttpResponseRedirect(url_of("history", self.kind, key))
        context = {
            "sides": [(version, url_of("version", self.kind, key, version.version)) for version in _both(step)],
            "von": von,
            "bis": bis,
            "differences": differences(self.kind, step),
            "explanation": _("What has to be taken out of the one version and put in to get the other."),
        }
        return self._page(request, "compare", key, _("Versions of %(id)s compared"), context)

    def version_view(self, request: HttpRequest, object_id: str, number: int) -> HttpResponse:
        """One version with all its fields."""
        key = self._seen_key(request, object_id)
        versions = self.kind.versions.objects.visible_to(principal_of(request.user))
        version = versions.filter(memory_id=key, version=number).first() if number < 2**31 else None
        if version is None:
            raise Http404
        context = {
            "version": version,
            "fields": whole(self.kind, version),
            "referenzfelder": as_text(version.referenzfelder),
            "verweise": pointers(version.verweis),
            "reason_form": ReasonForm(auto_id=False) if may(request, Action.RESTORE, self.kind) else None,
            "explanation": _("The memory as it was after this change."),
        }
        return self._page(request, "version", key, _("Version %(number)d of %(id)s"), context)

    def restore_view(self, request: HttpRequest, object_id: str, number: int) -> HttpResponse:
        """Set the memory back to the version, which is a change with a version of its own."""
        key = self._seen_key(request, object_id)
        if not may(request, Action.RESTORE, self.kind):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            outcome = services.restore(self.kind, key, min(number, 2**31 - 1), origin_of(request))
        except BrainError as fault:
            outcome = fault
        if isinstance(outcome, BrainError):
            self.message_user(request, str(outcome.meldung), messages.ERROR)
        elif outcome.changed:
            self.message_user(request, _("Restored. This is version %(number)d.") % {"number": outcome.version})
        else:
            self.message_user(request, _("The memory already is as it was in this version."), messages.INFO)
        return HttpResponseRedirect(url_of("history", self.kind, key))

    def _seen_key(self, request: HttpRequest, object_id: str) -> int:
        """The memory's key; PermissionDenied or Http404 otherwise."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        key = self._key(object_id)
        if not key:
            raise Http404
        return key

    def _key(self, object_id: str) -> int:
        """The key that this part of an address or form means; 0 for what no memory can have."""
        try:
            return parse_id(f"{self.kind.typ}_{object_id}", "ID", only=self.kind)[1]
        except BrainError:
            return 0

    def _page(
        self, request: HttpRequest, template: str, key: int, title: str, context: dict[str, Any]
    ) -> TemplateResponse:
        request.current_app = self.admin_site.name
        version = context.get("version")
        shown = {"id": f"{self.kind.typ}_{key}", "number": version.version if version else 0}
        common = {
            **self.admin_site.each_context(request),
            "title": title % shown,
            "kennung": shown["id"],
            "key": key,
            "opts": self.opts,
            "history_url": url_of("history", self.kind, key),
            "memory_url": url_of("change", self.kind, key),
        }
        return TemplateResponse(request, f"admin/memories/{template}.html", common | context)
