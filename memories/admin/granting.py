"""What a person may give to others, and whom he may change: nothing beyond his own rights, and nobody who has more.

A superuser may give everything. A place is covered when one of his own grants holds in all of it; what his grants cover
only together he gives in parts.
"""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.utils.translation import gettext as _

from memories.models import AccessKey, Grant
from memories.models.access import principal_of
from memories.principal import Principal, Reach


def covers(giver: Any, granted: Grant | AccessKey) -> bool:
    """Whether the person may do himself, everywhere where this holds, all that it allows."""
    if giver.is_superuser:
        return True
    principal, reach = principal_of(giver), granted.reach(granted.actions())
    return all(_is_covered(principal, reach, kind) for kind in reach.kinds)


def _is_covered(principal: Principal, reach: Reach, kind: str) -> bool:
    return all(any(_holds(own, reach) for own in principal.reaching(action, kind)) for action in reach.actions)


def _holds(own: Reach, reach: Reach) -> bool:
    """Whether what is one's own holds wherever the other does."""
    limits = reach.limits()
    return all(name in limits and limits[name] <= only for name, only in own.limits().items())


def check_reach(giver: Any, granted: Grant | AccessKey) -> None:
    """Raises ValidationError for what the person does not have himself."""
    if not covers(giver, granted):
        told = _(
            "You can give no more than you have yourself: these kinds, places or rights lie beyond your own grants."
        )
        raise ValidationError(told)


def check_roles(giver: Any, groups: Iterable[Group]) -> None:
    """Raises ValidationError for roles that may do more than the person, or more where."""
    _refuse(str(group) for group in groups if not _has_role(giver, group))


def check_keys(giver: Any, keys: Iterable[AccessKey]) -> None:
    """Raises ValidationError for keys that may do more than the person, or more where: to let them be used again."""
    _refuse(str(key) for key in keys if not covers(giver, key))


def _refuse(names: Iterable[str]) -> None:
    beyond = list(names)
    if beyond:
        told = _("You can give no more than you have yourself: %(roles)s may do more than you, or in more places.")
        raise ValidationError(told % {"roles": ", ".join(beyond)})


def check_permissions(giver: Any, permissions: Iterable[Permission]) -> None:
    """Raises ValidationError for permissions that the person does not have himself."""
    if not _has(giver, permissions):
        raise ValidationError(
            _("You can give no more than you have yourself: some of these permissions are not yours.")
        )


def may_change(giver: Any, person: User) -> bool:
    """Whether this is oneself, or nobody who has, or would have once he is active, more than oneself."""
    if giver == person or giver.is_superuser:
        return True
    permissions = Permission.objects.filter(Q(user=person) | Q(group__user=person))
    grants = Grant.objects.filter(Q(user=person) | Q(group__user=person))
    return not person.is_superuser and _has(giver, permissions) and all(covers(giver, grant) for grant in grants)


def may_change_role(giver: Any, group: Group) -> bool:
    """Whether neither the role nor anybody who has it has more than whoever wants to change it."""
    return _has_role(giver, group) and all(may_change(giver, person) for person in group.user_set.all())


def _has_role(giver: Any, group: Group) -> bool:
    own = Grant.objects.filter(group=group)
    return _has(giver, group.permissions.all()) and all(covers(giver, grant) for grant in own)


def _has(giver: Any, permissions: Iterable[Permission]) -> bool:
    own = giver.get_all_permissions()
    return giver.is_superuser or all(f"{each.content_type.app_label}.{each.codename}" in own for each in permissions)
