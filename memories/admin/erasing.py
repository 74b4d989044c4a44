"""Erasing a person: asked with the name typed twice and a reason, done in steps; and the list of the proofs."""

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memories import erasure, values
from memories.admin.base import ReadOnlyAdmin, ReasonForm, origin_of
from memories.admin.forms import ExactText
from memories.errors import BrainError
from memories.kinds import KINDS
from memories.models import Erasure
from memories.models.access import principal_of

if TYPE_CHECKING:
    from django.urls import URLPattern

_SECONDS_A_STEP = 2.0


class NameForm(forms.Form):
    """Whose memories."""

    nutzer = forms.CharField(
        label=gettext_lazy("Person (nutzer)"),
        strip=False,
        widget=forms.TextInput({"class": "vTextField", "autocomplete": "off"}),
        help_text=gettext_lazy("Exactly as the memories have it."),
    )

    def clean_nutzer(self) -> str:
        """The name in canonical form."""
        try:
            return values.asked_identifier(self.cleaned_data["nutzer"].strip(), "nutzer")
        except BrainError as fault:
            raise forms.ValidationError(str(fault.meldung)) from fault


class ErasureForm(ReasonForm):
    """Whether it is meant, and why."""

    field_order = ("nutzer", "bestaetigung", "grund")
    nutzer = ExactText(widget=forms.HiddenInput)
    bestaetigung = forms.CharField(
        label=gettext_lazy("The name once more"),
        strip=False,
        widget=forms.TextInput({"class": "vTextField", "autocomplete": "off"}),
        help_text=gettext_lazy("What is erased comes back by no restore and no undo."),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["grund"].required = True
        self.fields["grund"].help_text = _("Kept with the proof: do not name the person here.")

    def clean(self) -> dict[str, Any]:
        """The same name twice."""
        found: dict[str, Any] = super().clean() or self.cleaned_data
        again = NameForm({"nutzer": found.get("bestaetigung")})
        if "bestaetigung" in found and not (again.is_valid() and again.cleaned_data["nutzer"] == found.get("nutzer")):
            self.add_error("bestaetigung", _("That is another name."))
        return found


class ErasureAdmin(ReadOnlyAdmin):
    """The proofs, newest first, and the way to another one."""

    list_display = ("begonnen_am", "person", "ende", "erinnerungen", "versionen", "durch", "grund", "gereinigt")
    fields = (
        "person_ganz",
        "begonnen_am",
        "ende",
        "durch",
        "grund",
        "erinnerungen",
        "versionen",
        "eintraege",
        "digest",
        "gereinigt",
    )
    readonly_fields = fields
    ordering = ("-begonnen_am", "-pk")
    sortable_by = ()
    search_fields = ("identitaet",)
    actions = None
    change_list_template = "admin/memories/erasure/change_list.html"
    change_form_template = "admin/memories/erasure/change_form.html"
    list_explanation = gettext_lazy(
        "Which erasures of persons there were: how much, when, by whom and why. Whose memories they were is kept as a "
        "keyed hash alone."
    )
    form_explanation = gettext_lazy(
        "The digest proves what was erased to whoever has an export from before: the README says how it is computed."
    )
    search_help_text = gettext_lazy("Searches for a person: type the name (nutzer) exactly as the memories had it.")

    # Who sees what

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """All for those who see everything, for others their own."""
        found: QuerySet[Any] = Erasure.objects.visible_to(principal_of(request.user))
        return found

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Those of the person of this name."""
        try:
            nutzer = values.asked_identifier(search_term.strip(), "nutzer", may_be_empty=True)
        except BrainError:
            return queryset.none(), False
        found: Any = queryset
        return (found.of(nutzer) if nutzer else found), False

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Also whoever may erase."""
        return super().has_view_permission(request, obj) or self._has_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whoever may erase, and reaches somebody wholly."""
        return self._has_permission(request) and erasure.may_erase_somebody(principal_of(request.user))

    def get_model_perms(self, request: HttpRequest) -> dict[str, bool]:
        """The menu offers no "Add": what one adds here is nothing."""
        return {**super().get_model_perms(request), "add": False}

    def _has_permission(self, request: HttpRequest) -> bool:
        user: Any = request.user
        return bool(user.has_perm("memories.erase_person"))

    # What is shown of a proof

    @admin.display(description=gettext_lazy("Person (keyed hash)"))
    def person(self, obj: Erasure) -> str:
        """The beginning of the hash."""
        return str(obj)

    @admin.display(description=gettext_lazy("Person (keyed hash)"))
    def person_ganz(self, obj: Erasure) -> str:
        """The hash."""
        return obj.identitaet

    @admin.display(description=gettext_lazy("Ended"))
    def ende(self, obj: Erasure) -> str:
        """When it ended."""
        return _moment(obj.beendet_am) or _("not yet")

    @admin.display(description=gettext_lazy("Storage cleaned"))
    def gereinigt(self, obj: Erasure) -> str:
        """When the database's files were rid of it."""
        return _moment(obj.gereinigt_am) or _("not yet; clean_up does it")

    @admin.display(description=gettext_lazy("Erased by"))
    def durch(self, obj: Erasure) -> str:
        """The person, or the command."""
        return obj.benutzer or "erase_person"

    @admin.display(description=gettext_lazy("Memories"))
    def erinnerungen(self, obj: Erasure) -> str:
        """How many."""
        return _numbers(obj, "erinnerungen")

    @admin.display(description=gettext_lazy("Versions"))
    def versionen(self, obj: Erasure) -> str:
        """How many."""
        return _numbers(obj, "versionen")

    @admin.display(description=gettext_lazy("Entries of the search index"))
    def eintraege(self, obj: Erasure) -> str:
        """How many."""
        return _numbers(obj, "eintraege")

    # Erasing

    def get_urls(self) -> "list[URLPattern]":
        """The steps."""
        step = self.admin_site.admin_view(self.step_view)
        return [path("<int:number>/step/", step, name="memories_erasure_step"), *super().get_urls()]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Asks who, then shows how much and asks whether it is meant, then does the first step."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        named = NameForm(request.POST or None)
        if not named.is_valid():
            return self._ask(request, form=named)
        nutzer = named.cleaned_data["nutzer"]
        try:
            found = erasure.find(nutzer, principal_of(request.user))
        except BrainError as fault:
            named.add_error("nutzer", str(fault.meldung))
            return self._ask(request, form=named)
        form = ErasureForm(request.POST if "bestaetigung" in request.POST else None, initial=_initial(nutzer, found))
        if form.is_valid():
            try:
                return self._step(request, erasure.begin(nutzer, origin_of(request)), nutzer)
            except BrainError as fault:
                form.add_error("grund" if fault.feld == "grund" else None, str(fault.meldung))
        numbers = [(kind.memories._meta.verbose_name_plural, *found.anzahl[kind.typ]) for kind in KINDS]  # noqa: SLF001
        return self._ask(request, form=form, nutzer=nutzer, numbers=numbers, begun=found.begun)

    def step_view(self, request: HttpRequest, number: int) -> HttpResponse:
        """Do some of what is left; the name comes along, since nothing else knows it."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        named = NameForm(request.POST)
        nutzer = named.cleaned_data["nutzer"] if named.is_valid() else ""
        begun = Erasure.objects.of(nutzer).filter(pk=number).first() if number < 2**63 else None
        if begun is None or not erasure.reaches(nutzer, principal_of(request.user)):
            raise Http404
        return self._step(request, begun, nutzer)

    def _step(self, request: HttpRequest, begun: Erasure, nutzer: str) -> HttpResponse:
        until = time.monotonic() + _SECONDS_A_STEP
        fault = ""
        try:
            while not erasure.step(begun, nutzer, principal_of(request.user)):
                if time.monotonic() > until:
                    break
            else:
                return self._ended(request, begun, nutzer)
        except BrainError as refused:
            fault = str(refused.meldung)
        begun.refresh_from_db()
        done = begun.total("erinnerungen")
        context = {
            "title": _("Erase a person"),
            "explanation": _("If you leave this page, it stops; it goes on when you erase the same person again."),
            "begun": begun,
            "nutzer": nutzer,
            "done": done,
            "total": max(begun.gefunden, done),
            "fault": fault,
        }
        return self._page(request, "step", context)

    def _ended(self, request: HttpRequest, begun: Erasure, nutzer: str) -> HttpResponse:
        number = begun.total("erinnerungen")
        told = ngettext("%(count)d memory was erased.", "%(count)d memories were erased.", number)
        self.message_user(request, told % {"count": number})
        told = _("The database's files still hold traces of it, until manage.py clean_up has cleaned them.")
        self.message_user(request, told, messages.WARNING)
        try:
            left = erasure.find(nutzer, principal_of(request.user)).memories
        except BrainError:
            left = 0
        if left:
            told = _(
                "Meanwhile %(number)d memories were stored for this person. Limit the keys that do so; erase again."
            )
            self.message_user(request, told % {"number": left}, messages.ERROR)
        if self.get_queryset(request).filter(pk=begun.pk).exists():
            return HttpResponseRedirect(reverse("admin:memories_erasure_change", args=[begun.pk]))
        return HttpResponseRedirect(reverse("admin:memories_erasure_changelist"))

    def _ask(self, request: HttpRequest, **context: Any) -> TemplateResponse:
        explanation = _(
            "Erases all memories that are or were this person's: live, proposed, expired and in the trash, with every "
            "version, from the search index and from what is kept about them elsewhere. A proof stays, without a "
            "name and without a text. Backups and exports made before still hold everything."
        )
        return self._page(request, "ask", {"title": _("Erase a person"), "explanation": explanation} | context)

    def _page(self, request: HttpRequest, template: str, context: dict[str, Any]) -> TemplateResponse:
        request.current_app = self.admin_site.name
        common = {**self.admin_site.each_context(request), "opts": self.opts}
        return TemplateResponse(request, f"admin/memories/erasure/{template}.html", common | context)


def _initial(nutzer: str, found: erasure.Found) -> dict[str, str]:
    return {"nutzer": nutzer, "grund": found.begun.grund if found.begun else ""}


def _moment(at: datetime | None) -> str:
    return date_format(timezone.localtime(at), "SHORT_DATETIME_FORMAT") if at else ""


def _numbers(obj: Erasure, what: str) -> str:
    """The total, and the kinds that it is made of."""
    parts = ", ".join(f"{typ} {numbers[what]}" for typ, numbers in obj.anzahl.items() if numbers[what])
    total = obj.total(what)
    return f"{total} ({parts})" if parts else str(total)
