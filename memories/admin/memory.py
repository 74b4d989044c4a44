"""Lists and forms of the three kinds. Whatever changes goes through the services, so every change has its version."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import ChangeList
from django.db import models
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import truncatechars
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories import services
from memories.admin import filters
from memories.admin.base import may, origin_of
from memories.admin.bulk import BulkAdmin
from memories.admin.deleting import DeletingAdmin
from memories.admin.difference import embedding_state
from memories.admin.exporting import ExportingAdmin
from memories.admin.finding import MemoryList
from memories.admin.forms import BigText, BrainForm, ExactText, NoteForm, SmallText
from memories.admin.history import url_of
from memories.admin.lost import lost_input
from memories.admin.proposals import marked
from memories.admin.reading import ReadingAdmin
from memories.admin.recalls import may_see_recalls, recalls_of, told_recalls
from memories.admin.saved import SavedAdmin
from memories.admin.suggesting import SuggestingAdmin
from memories.admin.trash import TrashingAdmin
from memories.errors import BrainError, Conflict
from memories.kinds import BRAIN, LONGTERM, SHORTTERM, parse_id
from memories.models import Memory
from memories.models.access import principal_of
from memories.principal import Action
from memories.search import derived
from memories.search.embedder import serving
from memories.suggestions import has_index

_MOST_RELEVANT = 100
_TAGS_SHOWN, _PLACE_SHOWN = 80, 60  # characters
_RECORD = ("kennung", "version", "erstellt_am", "aktualisiert_am", "embedding_zustand", "eingebettet")


class MemoryAdmin(ReadingAdmin, SavedAdmin, SuggestingAdmin, ExportingAdmin, TrashingAdmin, BulkAdmin, DeletingAdmin):
    """A kind of memory."""

    fixed: ClassVar[tuple[str, ...]]  # said when a memory is stored, and the same ever after
    main: ClassVar[tuple[str, ...]]
    further: ClassVar[tuple[str, ...]]

    is_walked = True
    ordering = ("-erstellt_am", "-pk")
    sortable_by = ("aktualisiert_am", "erstellt_am")
    further_columns = ("erstellt_am",)
    search_help_text = gettext_lazy(
        "Finds words in other forms, in compounds and misspelt, too, the best first, also what is no longer valid. "
        '"Quotation marks" hold a phrase together, a minus leaves a word out; an ID such as longterm_41 finds it.'
    )
    formfield_overrides = {models.TextField: {"form_class": ExactText, "widget": BigText}}

    # What the person sees and may do

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The memories in sight."""
        found: QuerySet[Any] = self.kind.memories.objects.visible_to(principal_of(request.user))
        return found

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whoever may view the kind."""
        return may(request, Action.READ, self.kind, obj)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whoever may change memories of the kind, or this one."""
        return may(request, Action.WRITE, self.kind, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whoever may change the kind and add to it."""
        return self.has_change_permission(request) and super().has_add_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whoever may delete memories of the kind, or this one."""
        return may(request, Action.DELETE, self.kind, obj)

    # The list

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """For an ID, that memory; what is found by its words is a matter of the list."""
        key = self._searched_key(search_term)
        return (queryset if key is None else queryset.filter(pk=key)), False

    def _searched_key(self, searched: str) -> int | None:
        try:
            return parse_id(searched.strip(), "ID", only=self.kind)[1]
        except BrainError:
            return None

    def is_id(self, searched: str) -> bool:
        """Whether this is an ID of the kind."""
        return self._searched_key(searched) is not None

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list that searches."""
        return MemoryList

    def narrowed(self, request: HttpRequest) -> bool | None:
        """Whether each reach of the person has an index."""
        reaches = principal_of(request.user).reaching(Action.READ, self.kind.typ)
        return has_index(self.kind, reaches) if all(reach.limits() for reach in reaches) else None

    def action_checkbox(self, obj: Memory) -> SafeString:
        """The box to tick, called by the ID: titles are long."""
        told = _("Select %(id)s") % {"id": obj.kennung}
        box = '<input type="checkbox" name="{}" value="{}" class="action-select" aria-label="{}">'
        return format_html(box, ACTION_CHECKBOX_NAME, obj.pk, told)

    @admin.display(description=gettext_lazy("ID"))
    def kennung(self, obj: Memory) -> str:
        """The ID on the wire."""
        return obj.kennung

    @admin.display(description=gettext_lazy("Title"))
    def kurz(self, obj: Memory) -> str:
        """The first words, and whether it is proposed."""
        return marked(obj, truncatechars(str(obj), 80))

    @admin.display(description=gettext_lazy("Tags"))
    def schlagworte(self, obj: Memory) -> str:
        """The tags by name, as far as a row has room for them."""
        return truncatechars(", ".join(obj.tag_namen), _TAGS_SHOWN)

    @admin.display(description=gettext_lazy("Embedding"))
    def embedding_zustand(self, obj: Memory) -> str:
        """Whether there is an embedding and whether it still stands for the text."""
        return embedding_state(obj)

    @admin.display(description=gettext_lazy("Embedded here"))
    def eingebettet(self, obj: Memory) -> str:
        """Whether the embedder that serves has come to the text."""
        if serving() is None:
            return _("no, there is no embedder")
        return _("pending") if derived.waiting([obj]) else _("yes")

    # The form

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """What is asked: all of a new memory, the texts and tags of an old one."""
        if obj is None:
            return [(None, {"fields": self.main}), (_("Where it belongs"), {"fields": self.further})]
        hidden = ("grund", "geladene_version") if self.has_change_permission(request, obj) else ()
        return [
            (None, {"fields": (*self.main, *hidden)}),
            (_("Where it belongs"), {"fields": self.further}),
            (_("Record"), {"fields": (*_RECORD, "abgerufen") if may_see_recalls(request) else _RECORD}),
        ]

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """The memory, with what the recall log tells this person of it."""
        found: Any = super().get_object(request, object_id, from_field)
        if found and may_see_recalls(request):
            found.abrufe = recalls_of(found, principal_of(request.user))
        return found

    @admin.display(description=gettext_lazy("Recalled"))
    def abgerufen(self, obj: Any) -> str:
        """How often searches returned it, and when the last one did."""
        return told_recalls(obj, *obj.abrufe)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """What does not change in an old memory."""
        return () if obj is None else (*self.fixed, *_RECORD, "abgerufen")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002
        """The form, with the faults that the service found when it is shown again."""
        form = super().get_form(request, obj, change=change, **kwargs)
        form.faults = getattr(request, "brain_faults", ())  # type: ignore[attr-defined]
        return form

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Whoever writes a memory usually is its owner."""
        return {"nutzer": request.user.get_username()} | super().get_changeform_initial_data(request)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Without the transaction that Django puts around: the service commits before anything is said to be stored.

        What the service refuses is shown in the form, which keeps what was typed.
        """
        context = {"subtitle": object_id and f"{self.kind.typ}_{object_id}"} | (extra_context or {})
        try:
            return self._changeform_view(request, object_id, form_url, context)  # type: ignore[attr-defined,no-any-return]
        except BrainError as fault:
            request.brain_faults = fault.faults  # type: ignore[attr-defined]
            if isinstance(fault, Conflict):
                context["conflict"] = url_of("history", self.kind, object_id)
            return self._changeform_view(request, object_id, form_url, context)  # type: ignore[attr-defined,no-any-return]

    def save_model(self, request: HttpRequest, obj: Memory, form: Any, change: Any) -> None:
        """Store what the form holds. Raises the service's fault."""
        columns, origin = form.columns(self.kind), origin_of(request)
        if change:
            expected = form.cleaned_data["geladene_version"]
            outcome = services.update(self.kind, [services.Change(obj.pk, columns, expected)], origin)[0]
        else:
            outcome = services.insert(self.kind, [columns], origin)[0]
        if isinstance(outcome, BrainError):
            raise outcome
        obj.id = outcome.key
        self._tell(request, outcome)

    def _tell(self, request: HttpRequest, done: services.Done) -> None:
        if not done.changed:
            self.message_user(request, _("Nothing was changed, so there is no new version."), messages.INFO)
            return
        told = _("{} is stored as version {}.")
        link = format_html('<a href="{}">{}</a>', url_of("change", self.kind, done.key), done.kennung)
        self.message_user(request, format_html(told, link, done.version))

    def response_add(self, request: HttpRequest, obj: Memory, post_url_continue: str | None = None) -> HttpResponse:
        """Back to where the person wants to go on; what happened was told when it was stored."""
        return self._go_on(request, obj)

    def response_change(self, request: HttpRequest, obj: Memory) -> HttpResponse:
        """Likewise."""
        return self._go_on(request, obj)

    def _go_on(self, request: HttpRequest, obj: Memory) -> HttpResponse:
        if "_continue" in request.POST:
            return HttpResponseRedirect(url_of("change", self.kind, obj.pk))
        if "_addanother" in request.POST:
            return HttpResponseRedirect(url_of("add", self.kind))
        return self.response_post_save_change(request, obj)

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> HttpResponse:
        """Of a deleted memory there is the history, from where it can be restored, and what was typed meanwhile."""
        key = self._key(object_id)
        versions = self.kind.versions.objects.visible_to(principal_of(request.user))
        if key is None or not versions.filter(memory_id=key).exists():
            return super()._get_obj_does_not_exist_redirect(request, opts, object_id)  # type: ignore[misc,no-any-return]
        if "geladene_version" in request.POST:
            form = self.get_form(request, fields=(*self.main, "grund"))
            return lost_input(request, self.kind, key, form(request.POST, instance=self.model(pk=key)))
        told = _("This memory was deleted. Its history is here, and it can be restored.")
        self.message_user(request, told, messages.WARNING)
        return HttpResponseRedirect(url_of("history", self.kind, key))

    # Django's own log would hold texts of memories; the history has it all.

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Nothing."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Nothing."""

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Nothing."""


class NoteAdmin(MemoryAdmin):
    """What long-term and short-term memories share."""

    form = NoteForm
    fixed = ("scope", "scope_vk", "nutzer", "agent")
    main: ClassVar[tuple[str, ...]] = ("kurzbeschreibung", "memory", "schlagworte")
    further = fixed
    deferred = ("memory", "embedding")
    search_fields = ("kurzbeschreibung", "memory")
    list_filter: ClassVar[tuple[Any, ...]] = (
        filters.TagFilter,
        filters.ScopeFilter,
        filters.ScopeVkFilter,
        filters.NutzerFilter,
        filters.AgentFilter,
        filters.AgeFilter,
        filters.VectorFilter,
        filters.ProposedFilter,
    )
    list_display: Any = (
        "kennung",
        "kurz",
        "schlagworte",
        "bereich",
        "nutzer",
        "agent",
        "version",
        "aktualisiert_am",
        "embedding_zustand",
    )
    form_explanation = gettext_lazy("Saving writes a new version; the one before stays in the history.")

    @admin.display(description=gettext_lazy("Scope"))
    def bereich(self, obj: Any) -> str:
        """The scope and its record."""
        return truncatechars(f"{obj.scope} {obj.scope_vk}".strip(), _PLACE_SHOWN)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """A short description gets a small place."""
        if db_field.name == "kurzbeschreibung":
            kwargs["widget"] = SmallText
        return super().formfield_for_dbfield(db_field, request, **kwargs)


class LongtermAdmin(NoteAdmin):
    """Long-term memories."""

    kind = LONGTERM
    list_explanation = gettext_lazy("What agents and people keep for good. Newest first.")


class ShorttermAdmin(NoteAdmin):
    """Short-term memories."""

    kind = SHORTTERM
    main = ("kurzbeschreibung", "memory", "schlagworte", "gueltig_bis")
    list_filter = (*NoteAdmin.list_filter, filters.ExpiredFilter)
    list_display = (*NoteAdmin.list_display[:-1], "gueltig_bis", "embedding_zustand")
    list_explanation = gettext_lazy(
        "What agents and people keep for a while. After its validity a memory is found by no search and later deleted; "
        "here it is still shown. Newest first."
    )


class BrainMemoryAdmin(MemoryAdmin):
    """Brain memories."""

    kind = BRAIN
    form = BrainForm
    fixed = ("nutzer", "agent")
    main = ("memory_typ", "titel", "inhalt", "inhalt_json", "schlagworte", "relevanz", "gueltig_bis")
    further = (
        "scope_typ",
        "scope_modul",
        "scope_id",
        "agent_id",
        "room_id",
        "session_id",
        "quelle_typ",
        "quelle_id",
        "nutzer",
        "agent",
    )
    deferred = ("inhalt", "inhalt_json", "embedding")
    search_fields = ("titel", "inhalt", "inhalt_json")
    list_filter = (
        filters.MemoryTypFilter,
        filters.TagFilter,
        filters.ScopeTypFilter,
        filters.ScopeVkFilter,
        filters.NutzerFilter,
        filters.AgentFilter,
        filters.AgeFilter,
        filters.VectorFilter,
        filters.ProposedFilter,
        filters.ExpiredFilter,
    )
    list_display = (
        "kennung",
        "memory_typ",
        "kurz",
        "schlagworte",
        "bereich",
        "nutzer",
        "agent",
        "relevanz",
        "version",
        "aktualisiert_am",
        "gueltig_bis",
        "embedding_zustand",
    )
    list_explanation = gettext_lazy("Structured memories: work, decisions, experience, agents. Newest first.")
    form_explanation = gettext_lazy("Saving writes a new version; the one before stays in the history.")

    @admin.display(description=gettext_lazy("Scope"))
    def bereich(self, obj: Any) -> str:
        """The scope and its record."""
        return truncatechars(f"{obj.get_scope_typ_display()} {obj.scope_id}".strip(), _PLACE_SHOWN)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """A title gets a small place; the relevance ends at 100."""
        if db_field.name == "titel":
            kwargs["widget"] = SmallText
        elif db_field.name == "relevanz":
            kwargs["max_value"] = _MOST_RELEVANT
        return super().formfield_for_dbfield(db_field, request, **kwargs)
