"""Merging memories: side by side with a choice for each field, asked before, and undone with one button."""

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import truncatechars
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories import services
from memories.admin.base import ReasonForm, may, origin_of
from memories.admin.difference import Difference, changes, label_of, shown_value, text_difference
from memories.admin.history import HistoryAdmin, url_of
from memories.errors import BrainError
from memories.kinds import Kind
from memories.merging import FEWEST_MERGED, MOST_MERGED, choosable, merged_tags, merged_values, versions_of
from memories.models import Aktion, Memory, Version
from memories.models.access import principal_of
from memories.principal import Action

if TYPE_CHECKING:
    from django.urls import URLPattern

_FIELD = "feld_"
_VERSION = "version_"


class MergeForm(forms.Form):
    """Which memory lives on, and whose value each field gets in which they differ."""

    def __init__(self, kind: Kind, rows: Sequence[Memory], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.kind, self.rows = kind, rows
        titles = [
            (row.pk, format_html("<strong>{}</strong> {}", row.kennung, truncatechars(str(row), 80))) for row in rows
        ]
        self.fields["bleibt"] = _choice(_("Lives on"), titles, initial=rows[0].pk)
        for name in sorted(choosable(kind), key=lambda name: name not in kind.memories.TEXTS):
            values = _values(kind, rows, name)
            if len(values) > 1:
                stays = ("", _("As in the memory that lives on"))
                self.fields[_FIELD + name] = _choice(label_of(kind, name), [stays, *values], required=False)
        if len({tuple(row.tag_namen) for row in rows}) > 1:
            united = ("", format_html("<strong>{}</strong> {}", _("All together"), _tags(merged_tags(rows))))
            own = [(row.pk, format_html("<strong>{}</strong> {}", row.kennung, _tags(row.tag_namen))) for row in rows]
            self.fields["tags"] = _choice(_("Tags"), [united, *own], required=False)
        for row in rows:
            hidden = forms.IntegerField(initial=row.version, widget=forms.HiddenInput)
            self.fields[f"{_VERSION}{row.pk}"] = hidden

    def wish(self) -> services.Merge:
        """What was chosen."""
        chosen = {
            name.removeprefix(_FIELD): int(value)
            for name, value in self.cleaned_data.items()
            if name.startswith(_FIELD) and value
        }
        return services.Merge(
            survivor=int(self.cleaned_data["bleibt"]),
            seen={row.pk: self.cleaned_data[f"{_VERSION}{row.pk}"] for row in self.rows},
            chosen=chosen,
            tags_of=int(self.cleaned_data.get("tags") or 0) or None,
        )


def _choice(label: str, choices: Sequence[tuple[Any, Any]], **options: Any) -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=choices, widget=forms.RadioSelect, **options)


def _values(kind: Kind, rows: Sequence[Memory], name: str) -> list[tuple[int, SafeString]]:
    """The different values of a field, each at the first memory that has it; texts marked against the first."""
    holders: dict[Any, list[Memory]] = {}
    for row in rows:
        holders.setdefault(getattr(row, name), []).append(row)
    first = rows[0]
    found = []
    for same in holders.values():
        value: str = shown_value(same[0], name)
        if name in kind.memories.TEXTS and same[0] is not first:
            value = text_difference(getattr(first, name), getattr(same[0], name))
        whose = ", ".join(row.kennung for row in same)
        found.append((same[0].pk, format_html("<strong>{}</strong>\n{}", whose, value or "–")))
    return found


def _tags(names: Sequence[str]) -> SafeString:
    return (
        format_html_join(" ", '<span class="tag">{}</span>', [(name,) for name in names]) if names else SafeString("–")
    )


class MergingAdmin(HistoryAdmin):
    """The pages that merge memories and take that back."""

    def get_urls(self) -> "list[URLPattern]":
        """Merging, and undoing it."""
        name = f"memories_{self.kind.typ}memory"
        undo = "<path:object_id>/history/<int:number>/undo/"
        own = [
            path("merge/", self.admin_site.admin_view(self.merge_view), name=f"{name}_merge"),
            path(undo, self.admin_site.admin_view(self.undo_view), name=f"{name}_undo"),
        ]
        return [*own, *super().get_urls()]

    def has_merge_permission(self, request: HttpRequest) -> bool:
        """Whoever may change memories of the kind, and delete some."""
        return all(may(request, action, self.kind) for action in (Action.WRITE, Action.DELETE))

    @admin.action(permissions=["merge"], description=gettext_lazy("Merge selected %(verbose_name_plural)s…"))
    def merge_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Leads to the page on which they stand side by side."""
        keys = list(queryset.order_by("pk").values_list("pk", flat=True)[: MOST_MERGED + 1])
        if FEWEST_MERGED <= len(keys) <= MOST_MERGED:
            return HttpResponseRedirect(self._merge_url(keys))
        told = _("Select 2 to %(limit)d memories to merge.")
        self.message_user(request, told % {"limit": MOST_MERGED}, messages.ERROR)
        return None

    def _merge_url(self, keys: Sequence[int]) -> str:
        return f"{url_of('merge', self.kind)}?{urlencode([('id', key) for key in keys])}"

    def merge_view(self, request: HttpRequest) -> HttpResponse:
        """Side by side; then what it comes to, with the question; then it is done."""
        if not self.has_merge_permission(request):
            raise PermissionDenied
        rows = self._chosen(request)
        if len(rows) < FEWEST_MERGED:
            self.message_user(request, _("These memories are not all there."), messages.ERROR)
            return HttpResponseRedirect(url_of("changelist", self.kind))
        form = MergeForm(self.kind, rows, request.POST or None)
        if "back" in request.POST or not form.is_valid():
            return self._merge_page(request, "merge", form, {})
        if "post" in request.POST:
            return self._merge(request, form.wish())
        return self._merge_page(request, "merge_confirmation", form, _result(self.kind, form.wish(), rows))

    def _chosen(self, request: HttpRequest) -> list[Memory]:
        """The memories to merge, the oldest first; none when one of them is not there."""
        keys = {self._key(each) for each in (request.POST or request.GET).getlist("id")[: MOST_MERGED + 1]}
        seen = self.kind.memories.objects.visible_to(principal_of(request.user), among=keys)
        rows = seen.order_by("erstellt_am", "pk").defer("embedding")
        found = list(rows) if len(keys) <= MOST_MERGED else []
        return found if len(found) == len(keys) else []

    def _merge(self, request: HttpRequest, wish: services.Merge) -> HttpResponse:
        try:
            outcome = services.merge(self.kind, wish, origin_of(request))
        except BrainError as fault:
            outcome = fault
        if isinstance(outcome, BrainError):
            self.message_user(request, str(outcome.meldung), messages.ERROR)
            return HttpResponseRedirect(self._merge_url(sorted(wish.seen)))
        told = _("{} memories were merged into {}.")
        message = format_html(told, len(wish.seen), outcome.kennung)
        if may(request, Action.RESTORE, self.kind):
            undo = url_of("undo", self.kind, outcome.key, outcome.version)
            message = format_html('{} <a class="button" href="{}">{}</a>', message, undo, _("Undo"))
        self.message_user(request, message)
        return HttpResponseRedirect(url_of("change", self.kind, outcome.key))

    def _merge_page(
        self, request: HttpRequest, template: str, form: MergeForm, more: Mapping[str, Any]
    ) -> TemplateResponse:
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": _("Merge memories"),
            "opts": self.opts,
            "form": form,
            "keys": [row.pk for row in form.rows],
            "reason_form": ReasonForm(),
            "list_url": url_of("changelist", self.kind),
            "explanation": _(
                "One memory lives on with the values chosen here; the others are deleted, and their histories point to "
                "it. Texts are marked where they differ from the oldest memory. The embedding stays fresh only "
                "with the text it was made for. This can be undone as long as none of the memories changes."
            ),
        }
        return TemplateResponse(request, f"admin/memories/{template}.html", {**context, **more})

    def undo_view(self, request: HttpRequest, object_id: str, number: int) -> HttpResponse:
        """Asks, then takes back the merge that this version of the surviving memory came from."""
        key = self._seen_key(request, object_id)
        principal = principal_of(request.user)
        if not may(request, Action.RESTORE, self.kind):
            raise PermissionDenied
        merged = self.kind.versions.objects.visible_to(principal).filter(
            memory_id=key, version=min(number, 2**31 - 1), aktion=Aktion.ZUSAMMENGEFUEHRT
        )
        version: Version | None = merged.first()
        if version is None:
            raise Http404
        if request.method == "POST":
            return self._undo(request, version)
        context = {
            "versions": versions_of(self.kind, version.aufruf, principal),
            "reason_form": ReasonForm(),
            "explanation": _("All memories become as they were before the merge. That is a new version of each."),
        }
        return self._page(request, "merge_undo", key, _("Undo the merge into %(id)s"), context)

    def _undo(self, request: HttpRequest, version: Version) -> HttpResponse:
        try:
            outcome = services.undo_merge(self.kind, version.aufruf, origin_of(request))
        except BrainError as fault:
            outcome = fault
        if isinstance(outcome, BrainError):
            self.message_user(request, str(outcome.meldung), messages.ERROR)
        else:
            self.message_user(request, _("The merge was undone; all its memories are there again."))
        return HttpResponseRedirect(url_of("history", self.kind, version.memory_id))


def _result(kind: Kind, wish: services.Merge, rows: Sequence[Memory]) -> dict[str, Any]:
    """What the merge comes to: how the memory that lives on changes, and which go."""
    by_key = {row.pk: row for row in rows}
    now = by_key[wish.survivor]
    then = copy.copy(now)
    for name, value in merged_values(wish, by_key).items():
        setattr(then, name, value)
    names = [name for name in (*choosable(kind), "tag_namen") if getattr(now, name) != getattr(then, name)]
    differences: list[Difference] = changes(kind, now, then, names)
    return {"survivor": now, "differences": differences, "gone": [row for row in rows if row is not now]}
