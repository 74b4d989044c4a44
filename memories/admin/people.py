"""People, their roles, and their grants: where they may do what their roles allow."""

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as StockGroupAdmin
from django.contrib.auth.admin import UserAdmin as StockUserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_otp.plugins.otp_totp.models import TOTPDevice

from memories import second_factor
from memories.admin.base import BrainAdmin, ModelForm
from memories.admin.granting import check_permissions, check_reach, check_roles, may_change, may_change_role
from memories.admin.keys import LIMITS, granted_by, limit_fields
from memories.admin.second_factor import PAGE, note, second_factor_view
from memories.models import Grant
from memories.roles import TITLES

if TYPE_CHECKING:
    StackedInline = admin.StackedInline[Any, Any]
    UserForm = UserChangeForm[User]
    GroupForm = forms.ModelForm[Group]
else:
    StackedInline = admin.StackedInline
    UserForm = UserChangeForm
    GroupForm = forms.ModelForm


class GrantForm(ModelForm):
    """What may be done where. What is there already stays, whoever gave it."""

    typen, nutzer, agent, scope, scope_vk = limit_fields(*LIMITS)
    giver: Any = None  # who sends the form

    class Meta:
        model = Grant
        fields = ("may_write", "may_delete", "may_restore", *LIMITS)

    def clean(self) -> dict[str, Any]:
        """Nobody gives more than he has."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and self.has_changed():
            check_reach(self.giver, granted_by(self, Grant))
        return given


class PersonForm(UserForm):
    """A person's roles are none that may do more than whoever gives them."""

    giver: Any = None

    def clean_groups(self) -> Any:
        """The roles, of which the new ones count: somebody's own stay."""
        groups = self.cleaned_data["groups"]
        check_roles(self.giver, groups.exclude(user=self.instance) if self.instance.pk else groups)
        return groups


class RoleForm(GroupForm):
    """A role may do no more than whoever changes it."""

    giver: Any = None

    def clean_permissions(self) -> Any:
        """The permissions."""
        permissions = self.cleaned_data["permissions"]
        check_permissions(self.giver, permissions.select_related("content_type"))
        return permissions


class GrantInline(StackedInline):
    """The grants on the page of their person or group."""

    model = Grant
    form = GrantForm
    extra = 0
    verbose_name_plural = gettext_lazy("grants: without one, no memory is seen; several add up")

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        """The forms, which know who sends them."""
        formset = super().get_formset(request, obj, **kwargs)
        formset.form.giver = request.user  # type: ignore[attr-defined]
        return formset


class GivingAdmin(BrainAdmin):
    """Those to whom rights are given: the form knows who sends it, and nobody changes what has more than he."""

    may_touch: ClassVar["staticmethod[[Any, Any], bool]"]  # whether the first has all that the second has

    class Media:
        js = ("brain/signs.js",)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002
        """The form, which knows who sends it."""
        form = super().get_form(request, obj, change=change, **kwargs)
        form.giver = request.user  # type: ignore[attr-defined]
        return form

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whoever may change them, but none that has more than he: he could set a password, or give himself a role."""
        return self._touches(request, obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whoever may delete them, but none that has more than he."""
        return self._touches(request, obj) and super().has_delete_permission(request, obj)

    def _touches(self, request: HttpRequest, obj: Model | None) -> bool:
        return not isinstance(obj, self.model) or self.may_touch(request.user, obj)


class UserAdmin(GivingAdmin, StockUserAdmin):  # type: ignore[type-arg]
    """People. Only a superuser makes or changes superusers, and nobody changes somebody who has more than he."""

    form = PersonForm
    may_touch = staticmethod(may_change)
    change_form_template = "admin/memories/user/change_form.html"
    list_display = ("username", "first_name", "last_name", "is_active", "is_staff", "rollen", "zweiter_faktor")
    list_filter = ()
    inlines = (GrantInline,)
    actions = None
    list_explanation = gettext_lazy(
        "People who sign in here. A role (group) says what somebody may do, a grant where; without a grant he sees no "
        "memory."
    )
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (gettext_lazy("Person"), {"fields": ("first_name", "last_name", "email")}),
        (gettext_lazy("Rights"), {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")}),
        (gettext_lazy("Record"), {"fields": ("last_login", "date_joined")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """The people, with their roles, and whether they have a second factor."""
        device = TOTPDevice.objects.filter(user_id=OuterRef("pk"), confirmed=True)
        people: QuerySet[User] = super().get_queryset(request).prefetch_related("groups")
        return people.annotate(second_factor=Exists(device))

    def get_urls(self) -> list[URLPattern]:
        """The own second factor, and removing somebody's."""
        own = self.admin_site.admin_view(second_factor_view)
        remove = self.admin_site.admin_view(self.remove_second_factor_view)
        return [
            path("second-factor/", own, name="auth_user_second_factor"),
            path("<int:object_id>/remove-second-factor/", remove, name="auth_user_remove_second_factor"),
            *super().get_urls(),
        ]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """The form, with the way to remove a second factor for whoever may."""
        person = context.get("original")
        removable = (
            isinstance(person, User)
            and person != request.user
            and self.has_change_permission(request, person)
            and second_factor.device_of(person) is not None
        )
        return super().render_change_form(request, context | {"has_second_factor": removable}, *args, **kwargs)

    def remove_second_factor_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Asks, then removes the second factor of somebody who lost it."""
        person = self.get_object(request, str(object_id))
        if not self.has_change_permission(request, person):
            raise PermissionDenied
        if person is None:
            raise Http404
        if person == request.user:  # this takes the password and a code
            return HttpResponseRedirect(reverse(PAGE))
        if request.method == "POST":
            if second_factor.switch_off(person):
                note(request, person, _("Second factor removed."))
                self.message_user(request, _("The second factor is removed."), messages.SUCCESS)
            return HttpResponseRedirect(reverse("admin:auth_user_change", args=[person.pk]))
        context = {
            **self.admin_site.each_context(request),
            "title": _("Remove second factor"),
            "explanation": _("Make sure that it is really this person who asks: the password alone is enough then."),
            "opts": self.opts,
            "person": person,
        }
        return TemplateResponse(request, "admin/memories/user/remove_second_factor.html", context)

    @admin.display(description=gettext_lazy("Second factor"), boolean=True)
    def zweiter_faktor(self, obj: User) -> bool:
        """Whether it is switched on."""
        return bool(obj.second_factor)  # type: ignore[attr-defined]

    @admin.display(description=gettext_lazy("Roles"))
    def rollen(self, obj: User) -> str:
        """The names of the groups, in the language of the page."""
        return ", ".join(str(TITLES.get(group.name, group.name)) for group in obj.groups.all())

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """The flag of superusers is theirs to give, and so are single permissions beyond the roles."""
        fixed = ("last_login", "date_joined")
        return fixed if request.user.is_superuser else (*fixed, "is_superuser", "user_permissions")


class GroupAdmin(GivingAdmin, StockGroupAdmin):
    """Roles: those of the program and others. Nobody changes one that has more than he."""

    form = RoleForm
    may_touch = staticmethod(may_change_role)
    list_display = ("name", "titel")
    inlines = (GrantInline,)
    actions = None
    list_explanation = gettext_lazy(
        "Roles. The program keeps Betrachter, Kurator, Auditor and Administrator up to date; others can be added."
    )

    @admin.display(description=gettext_lazy("Meaning"))
    def titel(self, obj: Group) -> str:
        """The role's name in the language of the page."""
        return str(TITLES.get(obj.name, ""))
