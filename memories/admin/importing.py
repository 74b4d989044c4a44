"""Imports by people: a file, a preview, the run with its progress, and a report for each row."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.admin.base import ReadOnlyAdmin
from memories.errors import BrainError
from memories.models import ImportJob, Stage
from memories.models.access import principal_of
from memories.principal import Action, Origin
from memories.transfer import jobs
from memories.transfer.formats import FORMATS, format_of
from memories.transfer.importing import TOOL, Verdict
from memories.transfer.table import table

if TYPE_CHECKING:
    from django.urls import URLPattern

_SHOWN = 5  # rows of each verdict
_SHOWN_FAULTS = 50
_LARGEST = 64 * 1024 * 1024
_NUMBER = re.compile("[0-9]{1,19}")  # what the key of a job can be


class ImportForm(forms.Form):
    """The file, and what holds for rows that do not say it."""

    datei = forms.FileField(
        label=gettext_lazy("File"), help_text=gettext_lazy("At most 64 MB; larger ones take import_memories.")
    )
    format = forms.ChoiceField(
        label=gettext_lazy("Format"), choices=lambda: [(each.name, each.titel) for each in FORMATS]
    )
    nutzer = forms.CharField(
        label=gettext_lazy("Nutzer"),
        required=False,
        max_length=255,
        help_text=gettext_lazy("Whose memories they are, where the file does not say."),
    )
    agent = forms.CharField(
        label=gettext_lazy("Agent"),
        required=False,
        max_length=255,
        help_text=gettext_lazy("The agent they belong to, where the file does not say."),
    )
    scope = forms.CharField(
        label=gettext_lazy("Scope"),
        required=False,
        max_length=255,
        help_text=gettext_lazy("Where they hold, where the file does not say."),
    )

    def clean_datei(self) -> Any:
        """A file that can be kept in the database for a while."""
        file = self.cleaned_data["datei"]
        if file.size > _LARGEST:
            raise forms.ValidationError(_("The file is too large; use import_memories on the server."))
        return file

    def defaults(self) -> dict[str, str]:
        """What holds for rows that do not say it."""
        return {name: self.cleaned_data[name] for name in ("nutzer", "agent", "scope") if self.cleaned_data[name]}


class ImportJobAdmin(ReadOnlyAdmin):
    """The person's own imports."""

    list_display = ("dateiname", "format", "stand", "angelegt_am")
    ordering = ("-angelegt_am", "-pk")
    sortable_by = ()
    actions = None
    list_explanation = gettext_lazy(
        "Your imports. A file is previewed first; nothing is stored before you say so. Imports are kept for seven days."
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The person's own."""
        found: QuerySet[Any] = ImportJob.objects.filter(user_id=request.user.pk)
        return found

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whoever may import, and change memories somewhere."""
        user: Any = request.user
        return bool(user.has_perm("memories.add_importjob")) and principal_of(user).may(Action.WRITE)

    def get_urls(self) -> "list[URLPattern]":
        """What is done with an import, and its report."""
        own = []
        for name, view in (("step", self.step_view), ("start", self.start_view), ("discard", self.discard_view)):
            wrapped = self.admin_site.admin_view(self._posted(view))
            own.append(path(f"<int:number>/{name}/", wrapped, name=f"memories_importjob_{name}"))
        report = self.admin_site.admin_view(self.report_view)
        return [*own, path("<int:number>/report/", report, name="memories_importjob_report"), *super().get_urls()]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Asks for the file, and keeps its lines."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = ImportForm(request.POST or None, request.FILES or None)
        if request.method == "POST" and form.is_valid():
            file = form.cleaned_data["datei"]
            try:
                lines = format_of(form.cleaned_data["format"]).read([(file.name, file)])
                job = jobs.begin(request.user.pk or 0, file.name, form.cleaned_data["format"], lines, form.defaults())
            except BrainError as fault:
                form.add_error(fault.feld if fault.feld in form.fields else "datei", str(fault.meldung))
            else:
                return self._to(job)
        context = {
            "title": _("Import memories"),
            "form": form,
            "explanation": _(
                "Memories from a file. You see what would become of each row before anything is stored. Each must lie "
                "where you may write. The same file again changes nothing."
            ),
        }
        return self._page(request, "import_upload", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """How far the import has come, and what became of its rows."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        job = self._job(request, int(object_id)) if _NUMBER.fullmatch(object_id) else None
        if job is None:
            raise Http404
        column, found = jobs.column_of(job), jobs.counts(job)
        total = sum(found.values())
        is_empty = job.stand == Stage.PREVIEWED and not (
            found.get(Verdict.NEW.value) or found.get(Verdict.CHANGED.value)
        )
        context = {
            "title": job.dateiname,
            "job": job,
            "is_empty": is_empty,
            "total": total,
            "done": total - found.get("", 0),
            "is_at_work": job.stand in {Stage.PREVIEWING, Stage.RUNNING} and self.has_add_permission(request),
            "can_start": job.stand == Stage.PREVIEWED and not is_empty and self.has_add_permission(request),
            "may_import": self.has_add_permission(request),
            "groups": [
                (
                    verdict,
                    found.get(verdict.value, 0),
                    job.lines.filter(**{column: verdict.value})
                    .order_by("number")
                    .defer("zeile")[: _SHOWN_FAULTS if verdict is Verdict.FAULTY else _SHOWN],
                )
                for verdict in Verdict
            ],
            "explanation": _EXPLANATIONS[Stage(job.stand)],
        }
        return self._page(request, "import_job", context)

    def _posted(self, view: Callable[[HttpRequest, ImportJob], HttpResponse]) -> Callable[..., HttpResponse]:
        """The view of a job, for somebody who may import, by POST alone."""

        def checked(request: HttpRequest, number: int) -> HttpResponse:
            if not self.has_add_permission(request):
                raise PermissionDenied
            job = self._job(request, number)
            if job is None:
                raise Http404
            return view(request, job) if request.method == "POST" else HttpResponseNotAllowed(["POST"])

        return checked

    def step_view(self, request: HttpRequest, job: ImportJob) -> HttpResponse:
        """Do some of what is left."""
        principal = principal_of(request.user)
        try:
            jobs.step(job, Origin(principal, nutzer=principal.user_name, agent="", tuer="import", tool=TOOL))
        except BrainError as fault:
            self.message_user(request, str(fault.meldung), messages.ERROR)
        return self._to(job)

    def start_view(self, request: HttpRequest, job: ImportJob) -> HttpResponse:
        """Import what was previewed."""
        jobs.start(job)
        return self._to(job)

    def discard_view(self, request: HttpRequest, job: ImportJob) -> HttpResponse:
        """Forget the file and its report; what was imported stays."""
        job.delete()
        self.message_user(request, _("The import was discarded. What was imported stays."))
        return HttpResponseRedirect(reverse("admin:memories_importjob_changelist"))

    def report_view(self, request: HttpRequest, number: int) -> StreamingHttpResponse:
        """What became of each row, as CSV."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        job = self._job(request, number)
        if job is None:
            raise Http404
        names = [_("Line"), _("Outcome"), _("ID"), _("Origin"), _("Title"), _("Fault"), _("Left out")]
        response = StreamingHttpResponse(table(names, jobs.report(job)), content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = 'attachment; filename="import.csv"'
        return response

    def _job(self, request: HttpRequest, number: int) -> ImportJob | None:
        found: ImportJob | None = self.get_queryset(request).filter(pk=number).first() if number < 2**63 else None
        return found

    def _to(self, job: ImportJob) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:memories_importjob_change", args=[job.pk]))

    def _page(self, request: HttpRequest, template: str, context: dict[str, Any]) -> TemplateResponse:
        request.current_app = self.admin_site.name
        common = {**self.admin_site.each_context(request), "opts": self.opts}
        return TemplateResponse(request, f"admin/memories/{template}.html", common | context)


_EXPLANATIONS = {
    Stage.PREVIEWING: gettext_lazy("The file is being previewed; nothing is stored."),
    Stage.PREVIEWED: gettext_lazy("This is what the import would do. Nothing is stored yet."),
    Stage.RUNNING: gettext_lazy("The import is running. If you leave this page, it stops and goes on when you return."),
    Stage.DONE: gettext_lazy("The import is done. The report has every row."),
}
