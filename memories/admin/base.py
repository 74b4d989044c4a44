"""What all lists and forms of the admin share: an explaining sentence, declared filters alone, bounded work a page."""

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ALL_VAR, PAGE_VAR, SEARCH_VAR, ChangeList, ChangeListSearchForm
from django.contrib.admin.widgets import AdminTextInputWidget
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories import values
from memories.errors import BrainError
from memories.kinds import Kind
from memories.limits import limits
from memories.models.access import principal_of
from memories.paging import after, cursor, place_of
from memories.principal import Action, Origin

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    ModelForm = forms.ModelForm[Any]
    AnyPaginator = Paginator[Any]
else:
    ModelAdmin = admin.ModelAdmin
    AnyPaginator = Paginator
    ModelForm = forms.ModelForm

LONGEST_SEARCH = 200  # characters; a database refuses patterns that are far longer
COUNTED_UP_TO = 10_000  # rows
PLACE_VAR = "weiter"


class SearchForm(ChangeListSearchForm):
    """The search of a list."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields = {SEARCH_VAR: forms.CharField(required=False, max_length=LONGEST_SEARCH)}


class CappedPaginator(AnyPaginator):
    """Pages of rows, of which no more than COUNTED_UP_TO are counted: an exact count reads the whole table."""

    @cached_property
    def count(self) -> int:
        """How many rows there are to turn over."""
        return min(self._found, COUNTED_UP_TO)

    @property
    def is_capped(self) -> bool:
        """Whether there are more."""
        return self._found > COUNTED_UP_TO

    @cached_property
    def _found(self) -> int:
        rows: Any = self.object_list
        found: int = rows.order_by()[: COUNTED_UP_TO + 1].values("pk").count()
        return found


class List(ChangeList):
    """A list that leaves large columns in the database and never reads a whole table.

    It counts up to COUNTED_UP_TO rows. Where no index narrows a filter, it looks through so many rows in the order of
    the list. From its last page a link leads to where it goes on.
    """

    search_form_class = SearchForm
    whole_list = "?"  # its address without filters
    model_admin: Any
    paginator: Any
    looked_through: Any = None  # the place of the last row that was looked through, when there are more

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        """The rows, without the columns that no list shows."""
        self.params.pop(PLACE_VAR, None)  # a search begins anew
        rows = super().get_queryset(request, exclude_parameters).defer(*self.model_admin.deferred)
        return self.bounded(request, rows)

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        """By one column of those that an index has, and by key in the same direction."""
        ordering: list[Any] = super().get_ordering(request, queryset)
        if not self.model_admin.is_walked:
            return ordering
        first = str(ordering[0])
        if first.lstrip("-") not in self.model_admin.sortable_by:
            first = self.model_admin.ordering[0]
        return [first, "-pk" if first.startswith("-") else "pk"]

    def get_results(self, request: HttpRequest) -> None:
        """The page. Few rows that a filter finds by itself are sorted, instead of looked for in the list's order.

        Planners know how many rows a tag has on average, and would look through all for one that few have.
        """
        narrows = self.model_admin.is_walked and any(spec.is_sorted for spec in self.in_use()) and not self.query
        if narrows and not CappedPaginator(self.queryset, self.list_per_page).is_capped:
            self.queryset = self.queryset.order_by(*_without_index(self.queryset))
        super().get_results(request)

    def get_filters_params(self, params: Any = None) -> Any:
        """The parameters that are filters."""
        found = super().get_filters_params(params)
        found.pop(PLACE_VAR, None)
        return found

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        """A list that is filtered in another way begins anew; its pages do not."""
        turned = bool(new_params) and new_params.keys() <= {PAGE_VAR, ALL_VAR}
        return super().get_query_string(new_params, remove if turned else [*(remove or []), PLACE_VAR])

    def bounded(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        """The rows from the place on where the list goes on, as far as they are looked through."""
        if not self.model_admin.is_walked:
            return rows
        column = _ordered_by(rows)
        walk = self.model_admin.walk()
        for chosen in self._chosen(walking=column):
            walk = chosen.queryset(request, walk)
        if PLACE_VAR in request.GET:
            rest = self._rest(request.GET[PLACE_VAR], column)
            rows, walk = rows.filter(rest), walk.filter(rest)
        if not self._is_thin(request, column):
            return rows
        edge = walk.order_by(*rows.query.order_by).values_list(column.lstrip("-"), "pk")
        last = list(edge[COUNTED_UP_TO - 1 : COUNTED_UP_TO + 1])
        if len(last) <= 1:
            return rows
        self.looked_through = last[0]
        return rows.filter(after(column.lstrip("-"), *last[1], descending=not column.startswith("-")))

    def _rest(self, weiter: str, column: str) -> Any:
        try:
            place = place_of(weiter, (self.opts.label, column))
        except BrainError as fault:
            raise IncorrectLookupParameters(fault) from fault
        return after(column.lstrip("-"), *place, descending=column.startswith("-"))

    def _chosen(self, *, walking: str) -> list[Any]:
        """The filters in use that take a piece of the index by which the list is ordered."""
        return [spec for spec in self.in_use() if getattr(spec, "column", None) == walking.lstrip("-") and spec.ranges]

    def in_use(self) -> list[Any]:
        """The filters for which something is chosen."""
        specs: list[Any] = self.filter_specs
        return [spec for spec in specs if spec.value()]

    def _is_thin(self, request: HttpRequest, column: str) -> bool:
        """Whether rows are left out that no index leaves out."""
        narrowed = self.model_admin.narrowed(request)
        names = {spec.parameter_name for spec in self.in_use()}
        if narrowed or any(spec.indexed or spec.indexed_with & names for spec in self.in_use()):
            return False
        others = [spec for spec in self.in_use() if spec not in self._chosen(walking=column)]
        searched = bool(self.query) and not self.model_admin.is_id(self.query)
        return narrowed is False or bool(others) or searched

    @property
    def notes(self) -> list[str]:
        """What the list leaves out."""
        if self.looked_through:
            told = gettext("%(limit)d rows were looked through for these; after the last page you can go on.")
        elif self.paginator.is_capped:
            told = gettext("There are more than %(limit)d; after the last page you can go on.")
        else:
            return []
        return [told % {"limit": COUNTED_UP_TO}]

    @property
    def further(self) -> str:
        """The address of where the list goes on, on its last page."""
        if not self.model_admin.is_walked or self.page_num < self.paginator.num_pages:
            return ""
        column = _ordered_by(self.queryset)
        place = self.looked_through
        if self.paginator.is_capped:
            last = list(self.result_list)[-1]
            place = getattr(last, column.lstrip("-")), last.pk
        return self.get_query_string({PLACE_VAR: cursor((self.opts.label, column), place)}) if place else ""


def _without_index(rows: QuerySet[Any]) -> list[Any]:
    """The order of the rows, in a way that no index has."""
    first, *others = rows.query.order_by
    column = str(first).lstrip("-")
    same = Coalesce(column, column)
    return [same.desc() if str(first).startswith("-") else same.asc(), *others]


def _ordered_by(rows: QuerySet[Any]) -> str:
    return str(rows.query.order_by[0])


class BrainAdmin(ModelAdmin):
    """A list and a form."""

    list_explanation: ClassVar[str | Promise] = ""
    form_explanation: ClassVar[str | Promise] = ""
    deferred: ClassVar[tuple[str, ...]] = ()
    is_walked: ClassVar[bool] = False  # whether an index has the list's order, so that it goes on beyond the count

    change_list_template = "admin/memories/change_list.html"
    paginator = CappedPaginator
    list_per_page = 50
    list_max_show_all = 200
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Our list."""
        return List

    @property
    def counted(self) -> Any:
        """The options of the model whose name stands beside the count."""
        return self.opts

    def walk(self) -> QuerySet[Any]:
        """All rows in their order, from which filters choose."""
        found: QuerySet[Any] = self.model._default_manager.all()  # noqa: SLF001 - Django's own public-by-custom API
        return found

    def narrowed(self, request: HttpRequest) -> bool | None:
        """Whether rights narrow the list by an index, or without one; None when they do not narrow it."""
        del request
        return None

    def suggest_url(self, suggests: str, changelist: ChangeList) -> str:
        """Where the values of a text filter are asked for; nowhere in most lists."""
        del suggests, changelist
        return ""

    def is_id(self, searched: str) -> bool:
        """Whether somebody searches for an ID, which an index finds."""
        del searched
        return False

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """The list; an undeclared filter is answered like any other wrong one, by the list without filters."""
        try:
            return super().get_changelist_instance(request)
        except DisallowedModelAdminLookup as error:
            raise IncorrectLookupParameters(error) from error

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Only the declared filters: anything else could have the database run whatever somebody writes in a link."""
        declared: Any = self.get_list_filter(request)
        return lookup in {each.parameter_name for each in declared}

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list with its sentence."""
        explanation = self.list_explanation
        if not principal_of(request.user).reaches:
            explanation = _("No grant says which memories you may see. An administrator can give you one.")
        return super().changelist_view(request, {"explanation": explanation} | (extra_context or {}))

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """The form with its sentence."""
        return super().render_change_form(request, {"explanation": self.form_explanation} | context, *args, **kwargs)


class ReadOnlyAdmin(BrainAdmin):
    """A list of what nobody changes here, and so without a history of changes."""

    change_form_template = "admin/memories/read_only_form.html"

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """There is none."""
        raise Http404


def may(request: HttpRequest, action: Action, kind: Kind, obj: Any = None) -> bool:
    """Whether the person may do this with memories of the kind, or with this one, live or a version.

    A list opens for whoever may view the kind, and is empty without a grant.
    """
    if obj is not None:
        return bool(obj.allows(principal_of(request.user), action))
    if action is Action.READ:
        user: Any = request.user
        return bool(user.has_perm(f"memories.view_{kind.typ}memory"))
    return principal_of(request.user).may(action, kind.typ)


def origin_of(request: HttpRequest) -> Origin:
    """How a change by the person that is signed in comes about, with the reason given. Raises TooLarge for that."""
    grund = values.limited_text(request.POST.get("grund", ""), "grund", limits().grund)
    principal = principal_of(request.user)
    return Origin(principal, nutzer=principal.user_name, agent="", tuer="admin", tool="admin", grund=grund)


class ReasonForm(forms.Form):
    """Why something is done; the history keeps it."""

    grund = forms.CharField(
        label=_("Reason"),
        required=False,
        strip=False,
        widget=AdminTextInputWidget,
        help_text=_("Optional; written into the history."),
    )
