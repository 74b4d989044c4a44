"""The roles: groups that the program makes and keeps up to date; what else a group got by hand stays.

A role says what may be done. Where, a grant says: without one, its members see no memory.
"""

from collections.abc import Iterable
from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed
from django.contrib.auth.management import create_permissions
from django.utils.translation import gettext_lazy as _

_KINDS = ("longterm", "shortterm", "brain")
_VIEW = (
    *(f"view_{kind}{what}" for kind in _KINDS for what in ("memory", "version")),
    "view_tag",
    "view_duplicatepair",
    "view_embeddingprofile",
)
_CURATE = (
    *_VIEW,
    *(f"{verb}_{kind}memory" for verb in ("add", "change", "restore", "export") for kind in _KINDS),
    "add_importjob",
    "view_importjob",
    "change_tag",
    "delete_tag",
    "change_duplicatepair",
)
_AUDIT = (
    *_VIEW,
    "view_accesskey",
    "view_serviceaccount",
    "view_callrecord",
    "view_recall",
    "export_callrecord",
    "view_erasure",
)
_ADMINISTRATE = (
    *dict.fromkeys((*_CURATE, *_AUDIT)),
    *(f"delete_{kind}memory" for kind in _KINDS),
    *(f"{verb}_{what}" for verb in ("add", "change") for what in ("accesskey", "serviceaccount", "embeddingprofile")),
    *(f"{verb}_{what}" for verb in ("add", "change", "delete", "view") for what in ("user", "grant")),
    "view_group",
    "erase_person",
)

# The name in the database, which is German everywhere, and the permissions.
ROLES: dict[str, Iterable[str]] = {
    "Betrachter": _VIEW,
    "Kurator": _CURATE,
    "Auditor": _AUDIT,
    "Administrator": _ADMINISTRATE,
}
TITLES = {
    "Betrachter": _("Viewer"),
    "Kurator": _("Curator"),
    "Auditor": _("Auditor"),
    "Administrator": _("Administrator"),
}


def keep_roles(sender: AppConfig, **options: Any) -> None:
    """Make the roles after a migration, and add the permissions that they lack. `sender` is the app of people."""
    apps, using = options.get("apps", installed), options["using"]
    create_permissions(sender, verbosity=0, using=using, apps=apps)
    groups = apps.get_model("auth", "Group").objects.using(using)
    groups.bulk_create([groups.model(name=name) for name in ROLES], ignore_conflicts=True)
    keys = dict(groups.filter(name__in=ROLES).values_list("name", "pk"))
    wanted = apps.get_model("auth", "Permission").objects.using(using)
    wanted = wanted.filter(content_type__app_label__in=("memories", "auth"))
    permissions = dict(wanted.values_list("codename", "pk"))
    held = groups.model.permissions.through
    held.objects.using(using).bulk_create(
        [
            held(group_id=keys[name], permission_id=permissions[codename])
            for name, codenames in ROLES.items()
            for codename in codenames
            if codename in permissions
        ],
        ignore_conflicts=True,
    )
