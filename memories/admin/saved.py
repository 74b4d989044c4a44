"""Each person's own views of a list: filters, search, sorting and columns under a name, and the columns to choose."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import messages
from django.contrib.admin.views.main import ERROR_FLAG, ORDER_VAR, SEARCH_VAR
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from memories import values
from memories.admin.base import BrainAdmin
from memories.admin.finding import VIEW_VAR, WHOLE_LIST
from memories.admin.history import url_of
from memories.errors import BrainError, HoldsSecret
from memories.kinds import Kind
from memories.models import ListSetting, SavedView
from memories.models.view import VIEW_NAME_LENGTH

if TYPE_CHECKING:
    from django.urls import URLPattern

MOST_VIEWS = 30  # of a person and kind
LONGEST_QUERY = 2_000  # characters


@dataclass(frozen=True, slots=True)
class Own:
    """What a person has of a list: his views, the one that is open, and what he set."""

    views: Sequence[SavedView]
    view: SavedView | None
    setting: ListSetting


class SavedAdmin(BrainAdmin):
    """A list that each person arranges."""

    kind: Kind
    list_display: Any
    list_filter: ClassVar[tuple[Any, ...]]
    further_columns: ClassVar[tuple[str, ...]] = ()  # that are not shown unless somebody chooses them

    def get_urls(self) -> "list[URLPattern]":
        """The page of the views, and where they and the columns are changed."""
        name = f"memories_{self.kind.typ}memory"
        wrap = self.admin_site.admin_view
        return [
            path("views/", wrap(self.views_view), name=f"{name}_views"),
            path("views/<int:number>/", wrap(self.view_view), name=f"{name}_view"),
            path("columns/", wrap(self.columns_view), name=f"{name}_columns"),
            *super().get_urls(),
        ]

    # The list

    def own(self, request: HttpRequest, chosen: str | None = None) -> Own:
        """What the person has of the list; once for each request. `chosen` is the view that is open."""
        known: Own | None = getattr(request, "brain_list", None)
        if known is None:
            mine = {"user_id": request.user.pk, "typ": self.kind.typ}
            views = list(SavedView.objects.filter(**mine))
            chosen = request.GET.get(VIEW_VAR) if chosen is None else chosen
            view = next((each for each in views if str(each.pk) == chosen), None)
            known = Own(views, view, ListSetting.objects.filter(**mine).first() or ListSetting(**mine))
            request.brain_list = known  # type: ignore[attr-defined]
        return known

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """The columns of the open view, or those that the person chose, in their order; the first one always."""
        own = self.own(request)
        wanted = own.view.columns if own.view else own.setting.columns
        shown = self.list_display if wanted is None else wanted
        return [self.list_display[0], *(name for name in self._choosable() if name in shown)]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list with the person's views; without any parameter, the view that he wants to begin with."""
        own = self.own(request)
        if request.method == "GET" and not request.GET and own.setting.start_id:
            start = next(each for each in own.views if each.pk == own.setting.start_id)
            return HttpResponseRedirect(f"{request.path}?{self._address(request, start)}")
        shown = self.get_list_display(request)
        context = {
            "views": [(each.name, self._address(request, each), each == own.view) for each in own.views],
            "view": own.view,
            "query_now": request.GET.urlencode(),
            "columns": [(name, self._title(name), name in shown) for name in self._choosable()],
            "name_length": VIEW_NAME_LENGTH,
        }
        page = super().changelist_view(request, context | (extra_context or {}))
        if own.view and page.get("Location", "").endswith(f"?{ERROR_FLAG}=1"):
            told = _(
                "The view “%(name)s” asks for what this list does not know, so you see all. Delete it, or save anew."
            )
            self.message_user(request, told % {"name": own.view.name}, messages.WARNING)
        return page

    def _choosable(self) -> Sequence[str]:
        return (*self.list_display, *self.further_columns)[1:]

    def _title(self, column: str) -> str:
        method = getattr(self, column, None)
        title = method.short_description if method else self.opts.get_field(column).verbose_name  # type: ignore[union-attr]
        return capfirst(str(title))

    # Addresses: a list sorts by the number of a column, which depends on those that are shown; a view by its name.

    def _address(self, request: HttpRequest, view: SavedView) -> str:
        asked = QueryDict(view.query, mutable=True)
        columns = [name for name in self._choosable() if name in view.columns]
        self._number_sorting(request, asked, [self.list_display[0], *columns])
        asked[VIEW_VAR] = str(view.pk)
        return asked.urlencode()

    def _number_sorting(self, request: HttpRequest, asked: QueryDict, columns: Sequence[str]) -> None:
        name = asked.pop(ORDER_VAR, [""])[0]
        if name.lstrip("-") in columns:
            number = columns.index(name.lstrip("-")) + bool(self.get_actions(request))
            asked[ORDER_VAR] = f"{'-' if name.startswith('-') else ''}{number}"

    def _name_sorting(self, request: HttpRequest, asked: QueryDict) -> None:
        number = asked.pop(ORDER_VAR, [""])[0].split(".")[0]
        digits = number.removeprefix("-")
        columns = [""] * bool(self.get_actions(request)) + self.get_list_display(request)
        if digits.isascii() and digits.isdecimal() and int(digits[:4]) < len(columns):
            asked[ORDER_VAR] = f"{'-' if number.startswith('-') else ''}{columns[int(digits[:4])]}"

    def _asked(self, request: HttpRequest) -> QueryDict:
        """What the list was asked when the form was shown: its filters, its search, and its sorting by name."""
        sent = QueryDict(request.POST.get("query", "")[:LONGEST_QUERY])
        self.own(request, sent.get(VIEW_VAR, ""))
        asked = QueryDict(mutable=True)
        for name in (*(str(each.parameter_name) for each in self.list_filter), SEARCH_VAR, ORDER_VAR):
            if sent.get(name):
                asked[name] = sent[name]
        self._name_sorting(request, asked)
        return asked

    # Changes, each to what is the person's own

    def _guard(self, request: HttpRequest, *methods: str) -> HttpResponse | None:
        if not self.has_view_permission(request):
            raise PermissionDenied
        return None if request.method in methods else HttpResponseNotAllowed(methods)

    def views_view(self, request: HttpRequest) -> HttpResponse:
        """The page of the person's views; sent, it saves the list as it was shown under a name."""
        if refused := self._guard(request, "GET", "POST"):
            return refused
        if request.method == "POST":
            return self._save(request)
        own = self.own(request)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Own views"),
            "opts": self.opts,
            "explanation": _(
                "Your own views of this list; nobody else sees them. One of them can open by itself with the list."
            ),
            "views": [(each, self._address(request, each), each.pk == own.setting.start_id) for each in own.views],
            "name_length": VIEW_NAME_LENGTH,
        }
        return TemplateResponse(request, "admin/memories/views.html", context)

    def _save(self, request: HttpRequest) -> HttpResponse:
        asked = self._asked(request)
        own, name = self.own(request), self._name(request)
        if name and (secret := next(values.secrets_in(asked.dict(), ""), None)):
            self.message_user(request, str(secret.meldung), messages.ERROR)
            return self._back(self._shown_before(request))
        known = any(each.name == name for each in own.views)
        if name and not known and len(own.views) >= MOST_VIEWS:
            told = _("You have %(limit)d views of this list; delete one first.")
            self.message_user(request, told % {"limit": MOST_VIEWS}, messages.ERROR)
        elif name:
            saved = {"query": asked.urlencode(), "columns": self.get_list_display(request)[1:]}
            view, _new = SavedView.objects.update_or_create(
                user_id=request.user.pk, typ=self.kind.typ, name=name, defaults=saved
            )
            self.message_user(request, _("The view “%(name)s” is saved.") % {"name": name})
            return self._back(f"?{self._address(request, view)}")
        return self._back(self._shown_before(request))

    def _name(self, request: HttpRequest) -> str:
        """The name that was typed, in canonical form; empty, and told, when it can be none."""
        typed = request.POST.get("bezeichnung", "")
        try:
            return values.tag_name(values.limited_text(typed, "name", VIEW_NAME_LENGTH), "name")
        except BrainError as fault:
            told = _("A name has 1 to %(limit)d characters.") % {"limit": VIEW_NAME_LENGTH}
            if isinstance(fault, HoldsSecret):
                told = str(fault.meldung)
            self.message_user(request, told, messages.ERROR)
            return ""

    def view_view(self, request: HttpRequest, number: int) -> HttpResponse:
        """Renames one of the person's views, deletes it, or opens the list with it from now on, or no longer."""
        if refused := self._guard(request, "POST"):
            return refused
        own = self.own(request)
        view = next((each for each in own.views if each.pk == number), None)
        if view is None:
            raise Http404
        if "delete" in request.POST:
            view.delete()
            self.message_user(request, _("The view “%(name)s” is deleted.") % {"name": view.name})
        elif "start" in request.POST:
            self._set(request, start=None if own.setting.start_id == number else view)
        elif name := self._name(request):
            self._rename(request, own.views, view, name)
        return HttpResponseRedirect(url_of("views", self.kind))

    def _rename(self, request: HttpRequest, views: Sequence[SavedView], view: SavedView, name: str) -> None:
        if any(each.name == name for each in views if each != view):
            told = _("You have a view “%(name)s” already.")
            self.message_user(request, told % {"name": name}, messages.ERROR)
            return
        view.name = name
        view.save(update_fields=["name"])

    def columns_view(self, request: HttpRequest) -> HttpResponse:
        """Keeps which columns the open view has, or else the list; without `columns`, the usual ones."""
        if refused := self._guard(request, "POST"):
            return refused
        asked, own = self._asked(request), self.own(request)
        chosen = [name for name in self._choosable() if name in request.POST.getlist("spalte")]
        usual = "usual" in request.POST
        if not chosen and not usual:
            self.message_user(request, _("Choose at least one column."), messages.ERROR)
            return self._back(self._shown_before(request))
        if own.view:
            own.view.columns = list(self.list_display[1:]) if usual else chosen
            own.view.save(update_fields=["columns"])
            asked[VIEW_VAR] = str(own.view.pk)
        else:
            own.setting.columns = None if usual else chosen
            self._set(request, columns=own.setting.columns)
            asked[VIEW_VAR] = WHOLE_LIST
        self._number_sorting(request, asked, self.get_list_display(request))
        return self._back(f"?{asked.urlencode()}")

    def _set(self, request: HttpRequest, **changes: Any) -> None:
        ListSetting.objects.update_or_create(user_id=request.user.pk, typ=self.kind.typ, defaults=changes)

    def _shown_before(self, request: HttpRequest) -> str:
        return f"?{QueryDict(request.POST.get('query', '')[:LONGEST_QUERY]).urlencode()}"

    def _back(self, query: str) -> HttpResponse:
        return HttpResponseRedirect(f"{url_of('changelist', self.kind)}{query}")
