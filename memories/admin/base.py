"""What all lists and forms of the admin share: an explaining sentence, declared filters alone, bounded work a page."""

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import SEARCH_VAR, ChangeList, ChangeListSearchForm
from django.contrib.admin.widgets import AdminTextInputWidget
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories import values
from memories.kinds import Kind
from memories.limits import limits
from memories.models.access import principal_of
from memories.principal import Action, Origin

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    ModelForm = forms.ModelForm[Any]
else:
    ModelAdmin = admin.ModelAdmin
    ModelForm = forms.ModelForm

_LONGEST_SEARCH = 200  # characters; a database refuses patterns that are far longer


class SearchForm(ChangeListSearchForm):
    """The search of a list."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields = {SEARCH_VAR: forms.CharField(required=False, max_length=_LONGEST_SEARCH)}


class List(ChangeList):
    """A list that leaves large columns in the database."""

    search_form_class = SearchForm

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        """The rows, without the columns that no list shows."""
        return super().get_queryset(request, exclude_parameters).defer(*self.model_admin.deferred)  # type: ignore[attr-defined]


class BrainAdmin(ModelAdmin):
    """A list and a form."""

    list_explanation: ClassVar[str | Promise] = ""
    form_explanation: ClassVar[str | Promise] = ""
    deferred: ClassVar[tuple[str, ...]] = ()

    list_per_page = 50
    list_max_show_all = 200
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Our list."""
        return List

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
    """A list of what nobody changes here."""

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
