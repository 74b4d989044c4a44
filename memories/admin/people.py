"""People, their roles, and their grants: where they may do what their roles allow."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as StockGroupAdmin
from django.contrib.auth.admin import UserAdmin as StockUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from memories.admin.base import BrainAdmin, ModelForm
from memories.admin.keys import LIMITS, limit_fields
from memories.models import Grant
from memories.roles import TITLES

if TYPE_CHECKING:
    StackedInline = admin.StackedInline[Any, Any]
else:
    StackedInline = admin.StackedInline


class GrantForm(ModelForm):
    """What may be done where."""

    typen, nutzer, agent, scope, scope_vk = limit_fields(*LIMITS)

    class Meta:
        model = Grant
        fields = ("may_write", "may_delete", "may_restore", *LIMITS)


class GrantInline(StackedInline):
    """The grants on the page of their person or group."""

    model = Grant
    form = GrantForm
    extra = 0
    verbose_name_plural = gettext_lazy("grants: without one, no memory is seen; several add up")


class UserAdmin(BrainAdmin, StockUserAdmin):  # type: ignore[type-arg]
    """People. Only a superuser makes or changes superusers."""

    list_display = ("username", "first_name", "last_name", "is_active", "is_staff", "rollen")
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
        """The people, with their roles."""
        return super().get_queryset(request).prefetch_related("groups")

    @admin.display(description=gettext_lazy("Roles"))
    def rollen(self, obj: User) -> str:
        """The names of the groups, in the language of the page."""
        return ", ".join(str(TITLES.get(group.name, group.name)) for group in obj.groups.all())

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """The flag of superusers is theirs to give, and so are single permissions beyond the roles."""
        fixed = ("last_login", "date_joined")
        return fixed if request.user.is_superuser else (*fixed, "is_superuser", "user_permissions")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whoever may change people; superusers are changed by superusers."""
        return self._may_touch(request, obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whoever may delete people; superusers are deleted by superusers."""
        return self._may_touch(request, obj) and super().has_delete_permission(request, obj)

    def _may_touch(self, request: HttpRequest, obj: Model | None) -> bool:
        return request.user.is_superuser or not (isinstance(obj, User) and obj.is_superuser)


class GroupAdmin(BrainAdmin, StockGroupAdmin):
    """Roles: those of the program and others."""

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
