"""A memory for whoever reads: its text, as it was written or as Markdown, and the memories like it."""

from typing import TYPE_CHECKING, Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils.translation import gettext as _

from memories import similar
from memories.admin import markdown
from memories.admin.difference import label_of, shown_value
from memories.admin.history import HistoryAdmin, url_of
from memories.models.access import principal_of
from memories.suspicion import passages_of

if TYPE_CHECKING:
    from django.urls import URLPattern

VIEW_VAR, MARKDOWN = "ansicht", "markdown"


class ReadingAdmin(HistoryAdmin):
    """The pages of a memory that change nothing."""

    further: ClassVar[tuple[str, ...]]  # fields beside the text

    def get_urls(self) -> "list[URLPattern]":
        """The text, and what is like it."""
        name = f"memories_{self.kind.typ}memory"
        own = [
            path("<path:object_id>/read/", self.admin_site.admin_view(self.read_view), name=f"{name}_read"),
            path("<path:object_id>/similar/", self.admin_site.admin_view(self.similar_view), name=f"{name}_similar"),
        ]
        return [*own, *super().get_urls()]

    def read_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The text with its line breaks, or as Markdown on wish."""
        memory = self._memory(request, object_id)
        if memory is None:
            return self._gone(request, object_id)
        title, text, *structured = memory.texts
        wished = request.GET.get(VIEW_VAR) == MARKDOWN
        context = {
            "heading": title,
            "text": text,
            "structured": structured,
            "wished": wished,
            "markdown": markdown.rendered(text) if wished and len(text) <= markdown.LONGEST else "",
            "longest": markdown.LONGEST,
            "markdown_query": f"?{VIEW_VAR}={MARKDOWN}",
            "tags": memory.tag_namen,
            "passages": passages_of(memory),
            "fields": [(label_of(self.kind, name), shown_value(memory, name)) for name in self._told_beside()],
        }
        return self._page(request, "read", memory.pk, "%(id)s", context | {"pages": self._pages(memory.pk, "read")})

    def similar_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The nearest memories, and why they are here."""
        memory = self._memory(request, object_id)
        if memory is None:
            return self._gone(request, object_id)
        found = similar.similar(self.kind, memory, principal_of(request.user))
        context = {
            "heading": memory.texts[0],
            "found": [(each.memory, url_of("change", each.kind, each.memory.pk), told_why(each)) for each in found],
            "pages": self._pages(memory.pk, "similar"),
            "explanation": _(
                "The nearest memories of all kinds, the nearest first, as far as you may see them. The figures say how "
                "near the vectors are, and how many of the words of this memory stand in the other, too."
            ),
        }
        return self._page(request, "similar", memory.pk, _("Similar to %(id)s"), context)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """The form, with the ways to these pages, and what in the memory reads like instructions to a model."""
        memory = context.get("original")
        if memory:
            context |= {"pages": self._pages(memory.pk, "change", "history"), "passages": passages_of(memory)}
        return super().render_change_form(request, context, *args, **kwargs)

    def _memory(self, request: HttpRequest, object_id: str) -> Any:
        return self.get_object(request, str(self._seen_key(request, object_id)))

    def _gone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        answer: HttpResponse = self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined]
        return answer

    def _told_beside(self) -> list[str]:
        expires = ["gueltig_bis"] if self.kind.memories.EXPIRES else []
        return [*self.further, *expires, "version", "aktualisiert_am"]

    def _pages(self, key: int, *without: str) -> list[tuple[str, str]]:
        """Addresses and names of the memory's other pages."""
        names = {"change": _("Form"), "read": _("Read"), "similar": _("Similar memories"), "history": _("History")}
        return [(url_of(name, self.kind, key), told) for name, told in names.items() if name not in without]


def told_why(found: similar.Similar) -> str:
    """What the two have in common, in per cent."""
    parts: list[tuple[str, float | None]] = [(_("vector"), found.cosine), (_("text"), found.words)]
    return " · ".join(f"{name} {100 * share:.0f} %" for name, share in parts if share is not None)
