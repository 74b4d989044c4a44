"""The list of tags, with how many memories carry each."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.history import url_of
from memories.admin.retagging import RetaggingAdmin
from memories.kinds import BRAIN, KINDS, LONGTERM, SHORTTERM, Kind
from memories.models.access import principal_of
from memories.reading import carried
from memories.values import tag_key


class TagAdmin(RetaggingAdmin):
    """Tags are made by the memories that carry them."""

    change_list_template = "admin/memories/tag/change_list.html"
    list_display = ("name", "in_longterm", "in_shortterm", "in_brain")
    list_display_links = None
    sortable_by = ("name",)
    ordering = ("schluessel",)
    search_fields = ("name",)
    list_explanation = _("Tags are made when a memory carries them. A number leads to the memories of that tag.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The tags that a memory in sight carries, with their counts."""
        principal = principal_of(request.user)
        in_sight = Q()
        for kind in KINDS:
            seen = kind.memories.objects.visible_to(principal).filter(pk=OuterRef("memory_id"))
            in_sight |= Q(Exists(kind.links.objects.filter(Exists(seen), tag_id=OuterRef("pk"))))
        counts = {kind.typ: carried(kind, principal) for kind in KINDS}
        found: QuerySet[Any] = super().get_queryset(request).filter(in_sight).annotate(**counts)
        return found

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """The tags whose name holds the text, in any case."""
        return queryset.filter(schluessel__contains=tag_key(search_term.strip())), False

    def _count(self, obj: Any, kind: Kind) -> SafeString | int:
        count: int = getattr(obj, kind.typ)
        address = f"{url_of('changelist', kind)}?{urlencode({'tag': obj.name})}"
        return format_html('<a href="{}">{}</a>', address, count) if count else 0

    @admin.display(description=_("Long-term memories"))
    def in_longterm(self, obj: Any) -> SafeString | int:
        """How many long-term memories carry it."""
        return self._count(obj, LONGTERM)

    @admin.display(description=_("Short-term memories"))
    def in_shortterm(self, obj: Any) -> SafeString | int:
        """How many short-term memories carry it."""
        return self._count(obj, SHORTTERM)

    @admin.display(description=_("Brain memories"))
    def in_brain(self, obj: Any) -> SafeString | int:
        """How many brain memories carry it."""
        return self._count(obj, BRAIN)

    @admin.display(description=_("Rename"))
    def umbenennen(self, obj: Any) -> SafeString:
        """Leads to the page that renames it."""
        return format_html(
            '<a href="{}">{}</a>', reverse("admin:memories_tag_rename", args=[obj.pk]), gettext("Rename")
        )
