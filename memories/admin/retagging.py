"""The pages that rename, merge and remove tags."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminTextInputWidget
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memories import tagging, values
from memories.admin.base import ReadOnlyAdmin, ReasonForm, origin_of
from memories.errors import BrainError
from memories.kinds import KINDS
from memories.models import Tag
from memories.models.access import principal_of
from memories.principal import Origin

if TYPE_CHECKING:
    from django.urls import URLPattern

MOST_AT_ONCE = 5_000  # memories that a page changes; more take longer than anybody waits
_MOST_TAGS = 20
_SHOWN = 200
_LONGEST_KEY = 19  # digits; no tag has so many


class RenameForm(ReasonForm):
    """A tag's new name."""

    name = forms.CharField(
        label=gettext_lazy("New name"),
        strip=False,
        widget=AdminTextInputWidget,
        help_text=gettext_lazy("Another name, or the same in another spelling."),
    )
    field_order = ("name", "grund")

    def clean_name(self) -> str:
        """The name in the form in which tags are stored."""
        try:
            return values.tag_name(self.cleaned_data["name"], "name")
        except BrainError as fault:
            raise forms.ValidationError(str(fault.meldung)) from fault


class IntoForm(ReasonForm):
    """Which of several tags replaces the others."""

    into = forms.ChoiceField(label=gettext_lazy("Replace the others by"), widget=forms.RadioSelect)
    field_order = ("into", "grund")

    def __init__(self, tags: Sequence[Tag], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["into"].choices = [(tag.pk, tag.name) for tag in tags]  # type: ignore[attr-defined]


class RetaggingAdmin(ReadOnlyAdmin):
    """What can be done with tags as a whole."""

    actions = ("merge_tags",)

    def get_urls(self) -> "list[URLPattern]":
        """Renaming, merging, and the tags that nobody uses."""
        own = [
            path("merge/", self.admin_site.admin_view(self.merge_view), name="memories_tag_merge"),
            path("unused/", self.admin_site.admin_view(self.unused_view), name="memories_tag_unused"),
            path("<path:object_id>/rename/", self.admin_site.admin_view(self.rename_view), name="memories_tag_rename"),
        ]
        return [*own, *super().get_urls()]

    def has_rename_permission(self, request: HttpRequest) -> bool:
        """Whoever may change tags; in which memories, his rights to change them say."""
        user: Any = request.user
        return bool(user.has_perm("memories.change_tag"))

    def has_remove_permission(self, request: HttpRequest) -> bool:
        """Whoever may delete tags that no memory carries."""
        user: Any = request.user
        return bool(user.has_perm("memories.delete_tag"))

    def get_list_display(self, request: HttpRequest) -> Any:
        """With a link to rename a tag, for those who may."""
        shown = super().get_list_display(request)
        return (*shown, "umbenennen") if self.has_rename_permission(request) else shown

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, with a link to unused tags for those who may remove them."""
        return super().changelist_view(
            request, {"may_remove": self.has_remove_permission(request)} | (extra_context or {})
        )

    @admin.action(permissions=["rename"], description=gettext_lazy("Merge selected tags…"))
    def merge_tags(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Leads to the page that asks which of them replaces the others."""
        keys = list(queryset.values_list("pk", flat=True)[: _MOST_TAGS + 1])
        if 1 < len(keys) <= _MOST_TAGS:
            return HttpResponseRedirect(_merge_url(keys))
        told = _("Select 2 to %(limit)d tags to merge.")
        self.message_user(request, told % {"limit": _MOST_TAGS}, messages.ERROR)
        return None

    def rename_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks for the new name; where there is such a tag already, leads to merging the two."""
        if not self.has_rename_permission(request):
            raise PermissionDenied
        tag = next(iter(self._seen(request, [object_id])), None)
        if tag is None:
            raise Http404
        form = RenameForm(request.POST or None, initial={"name": tag.name})
        if form.is_valid():
            other = Tag.objects.filter(schluessel=values.tag_key(form.cleaned_data["name"])).exclude(pk=tag.pk).first()
            if other is not None and self.get_queryset(request).filter(pk=other.pk).exists():
                self.message_user(request, _("There is a tag of this name; the two can be merged."), messages.WARNING)
                return HttpResponseRedirect(_merge_url([tag.pk, other.pk]))
            if self._run(request, [tag], lambda origin: _renamed(tag, other, form.cleaned_data["name"], origin)):
                return HttpResponseRedirect(reverse("admin:memories_tag_changelist"))
        title = _("Rename the tag %(name)s") % {"name": tag.name}
        return self._tag_page(request, "tag_change", title, [tag], {"form": form})

    def merge_view(self, request: HttpRequest) -> HttpResponse:
        """Asks which tag replaces the others."""
        if not self.has_rename_permission(request):
            raise PermissionDenied
        tags = self._seen(request, (request.POST or request.GET).getlist("id")[:_MOST_TAGS])
        if len(tags) <= 1:
            self.message_user(request, _("These tags are not all there."), messages.ERROR)
            return HttpResponseRedirect(reverse("admin:memories_tag_changelist"))
        form = IntoForm(tags, request.POST or None)
        if form.is_valid():
            into, keys = int(form.cleaned_data["into"]), [tag.pk for tag in tags]
            others = [tag for tag in tags if tag.pk != into]
            if self._run(request, others, lambda origin: tagging.merge(keys, into, origin)):
                return HttpResponseRedirect(reverse("admin:memories_tag_changelist"))
        return self._tag_page(request, "tag_change", _("Merge tags"), tags, {"form": form})

    def unused_view(self, request: HttpRequest) -> HttpResponse:
        """The tags that no memory carries, and their removal."""
        if not self.has_remove_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            removed = tagging.remove_unused()
            told = ngettext("%(count)d tag was removed.", "%(count)d tags were removed.", removed)
            self.message_user(request, told % {"count": removed})
            return HttpResponseRedirect(reverse("admin:memories_tag_changelist"))
        tags = list(tagging.unused().order_by("schluessel")[: _SHOWN + 1])
        context = {"shown": tags[:_SHOWN], "more": len(tags) > _SHOWN}
        return self._tag_page(request, "tag_unused", _("Unused tags"), [], context)

    def _seen(self, request: HttpRequest, typed: Sequence[str]) -> list[Tag]:
        """Those of these tags that a memory in sight carries."""
        keys = [int(each) for each in typed if each.isascii() and each.isdecimal() and len(each) < _LONGEST_KEY]
        return list(self.get_queryset(request).filter(pk__in=keys).order_by("schluessel"))

    def _run(self, request: HttpRequest, tags: Sequence[Tag], work: Callable[[Origin], tagging.Retagged]) -> bool:
        """Change the tags and tell what came of it; whether that was possible."""
        principal = principal_of(request.user)
        found = [tagging.carriers(kind, tag, principal)[: MOST_AT_ONCE + 1].count() for kind in KINDS for tag in tags]
        if sum(found) > MOST_AT_ONCE:
            told = _("More than %(limit)d memories would change; manage.py tags does that with progress.")
            self.message_user(request, told % {"limit": MOST_AT_ONCE}, messages.ERROR)
            return False
        try:
            done = work(origin_of(request))
        except BrainError as fault:
            self.message_user(request, str(fault.meldung), messages.ERROR)
            return False
        told = ngettext(
            "%(count)d memory has the tag %(name)s now.", "%(count)d memories have the tag %(name)s now.", done.changed
        )
        self.message_user(request, told % {"count": done.changed, "name": done.name})
        if done.left:
            left = _("The old tag is still there: memories that you may not change carry it.")
            self.message_user(request, left, messages.WARNING)
        return True

    def _tag_page(
        self, request: HttpRequest, template: str, title: str, tags: Sequence[Tag], context: dict[str, Any]
    ) -> TemplateResponse:
        request.current_app = self.admin_site.name
        common = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "tags": tags,
            "list_url": reverse("admin:memories_tag_changelist"),
            "explanation": _(
                "Each memory that changes gets a new version with this reason. Only memories that you may change do; "
                "where others carry the tag, too, it stays for them, and its spelling cannot change."
            ),
        }
        if template == "tag_unused":
            common["explanation"] = _("Tags stay when the last memory loses them. Removed, they can be used anew.")
        return TemplateResponse(request, f"admin/memories/{template}.html", common | context)


def _renamed(tag: Tag, other: Tag | None, name: str, origin: Origin) -> tagging.Retagged:
    """The tag under another name; a tag of that name which no memory in sight carries is as good as a new one."""
    return tagging.rename(tag.pk, name, origin) if other is None else tagging.merge([tag.pk], other.pk, origin)


def _merge_url(keys: Sequence[int]) -> str:
    return reverse("admin:memories_tag_merge") + "?" + "&".join(f"id={key}" for key in keys)
