"""The histories as lists: who changed what, when and how, deleted memories included."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import truncatechars
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memories.admin import filters
from memories.admin.base import List, ReadOnlyAdmin, may
from memories.admin.history import url_of
from memories.admin.proposals import marked
from memories.errors import BrainError
from memories.kinds import BRAIN, LONGTERM, SHORTTERM, Kind, parse_id
from memories.models import Version
from memories.models.access import principal_of
from memories.principal import Action

_REASON_SHOWN = 160  # characters


class VersionList(List):
    """A list whose rows lead to the pages of versions."""

    def url_for_result(self, result: Any) -> str:
        """The page of the version."""
        return url_of("version", self.model_admin.kind, result.memory_id, result.version)


class VersionAdmin(ReadOnlyAdmin):
    """The history of a kind."""

    kind: Kind

    is_walked = True
    ordering = ("-zeitpunkt", "-pk")
    sortable_by = ("zeitpunkt",)
    actions = None
    list_display: Any = (
        "zeitpunkt",
        "erinnerung",
        "version",
        "aktion",
        "kurz",
        "durch_nutzer",
        "durch_agent",
        "tuer",
        "wer",
        "warum",
    )
    list_display_links: Any = ("zeitpunkt",)
    list_filter: ClassVar[tuple[Any, ...]] = (filters.AktionFilter, filters.DoorFilter, filters.WhenFilter)
    search_fields = ("durch_nutzer", "durch_agent", "grund", "referenzen")
    search_help_text = _("Searches nutzer, agent, reason and references; an ID such as longterm_41 finds its versions.")
    list_explanation = _(
        "Every change of every memory, newest first. The ID leads to the memory's history, from where deleted memories "
        "can be restored."
    )

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Our list."""
        return VersionList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The versions in sight."""
        found: QuerySet[Any] = self.kind.versions.objects.visible_to(principal_of(request.user))
        return found

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """The versions whose who, why or references hold all the words; for an ID, that memory's."""
        key = self._searched_key(search_term)
        if key is not None:
            return queryset.filter(memory_id=key), False
        if search_term.strip():
            queryset = queryset.annotate(referenzen=Cast("referenzfelder", TextField()))
        return super().get_search_results(request, queryset, search_term)

    def _searched_key(self, searched: str) -> int | None:
        try:
            return parse_id(searched.strip(), "ID", only=self.kind)[1]
        except BrainError:
            return None

    def is_id(self, searched: str) -> bool:
        """Whether this is the ID of a memory of the kind."""
        return self._searched_key(searched) is not None

    def narrowed(self, request: HttpRequest) -> bool | None:
        """Whether the person sees a part of them alone, which no index knows."""
        reaches = principal_of(request.user).reaching(Action.READ, self.kind.typ)
        return False if all(reach.limits() for reach in reaches) else None

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whoever may view the kind."""
        return may(request, Action.READ, self.kind, obj)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Likewise."""
        return self.has_view_permission(request)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of the version is one of the memory's."""
        version = self.get_object(request, object_id)
        if version is None:
            raise Http404
        return HttpResponseRedirect(url_of("version", self.kind, version.memory_id, version.version))

    @admin.display(description=_("Memory"))
    def erinnerung(self, obj: Version) -> SafeString:
        """The ID, which leads to the memory's history."""
        return format_html('<a href="{}">{}</a>', url_of("history", self.kind, obj.memory_id), obj.kennung)

    @admin.display(description=_("Title"))
    def kurz(self, obj: Any) -> str:
        """The first words, and whether it was proposed then."""
        return marked(obj, truncatechars(obj.titel if self.kind is BRAIN else obj.kurzbeschreibung, 60))

    @admin.display(description=_("Key or person"))
    def wer(self, obj: Version) -> str:
        """The access key, or the person that was signed in."""
        return obj.schluessel or obj.benutzer

    @admin.display(description=_("Reason"), empty_value="-")
    def warum(self, obj: Version) -> str:
        """The reason's first words."""
        return truncatechars(obj.grund, _REASON_SHOWN)


class LongtermVersionAdmin(VersionAdmin):
    """The history of long-term memories."""

    kind = LONGTERM
    deferred = ("memory", "embedding", "referenzfelder")


class ShorttermVersionAdmin(VersionAdmin):
    """The history of short-term memories."""

    kind = SHORTTERM
    deferred = ("memory", "embedding", "referenzfelder")


class BrainVersionAdmin(VersionAdmin):
    """The history of brain memories."""

    kind = BRAIN
    deferred = ("inhalt", "inhalt_json", "embedding", "referenzfelder")
