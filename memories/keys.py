"""Making access keys; the limits are checked and brought into canonical form, so that a misspelt one fails here."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from memories import values
from memories.errors import Invalid
from memories.models import AccessKey, ServiceAccount
from memories.models.access import NAME_LENGTH
from memories.principal import ALL_KINDS


def make_key(
    *,
    name: str,
    account: str,
    only: Mapping[str, Sequence[str] | None],
    may_write: bool,
    expires_at: datetime | None,
    **more: object,
) -> tuple[AccessKey, str]:
    """A new key of the service account, made when needed, and the key's text. Of `only`, None means all.

    `more` are further fields of the key: may_delete, may_restore, portable, and its own limits of use.
    """
    key = AccessKey(name=key_name(name, "name"), may_write=may_write, expires_at=expires_at, **more)
    for limit, allowed in only.items():
        setattr(key, limit, canonical_limit(allowed, limit))
    text = key.issue()
    with transaction.atomic():
        key.account, _is_new = ServiceAccount.objects.get_or_create(name=key_name(account, "account"))
        key.save()
    return key, text


def key_name(name: str, feld: str) -> str:
    """A name for a key or an account, which lists, histories and terminals show."""
    if not name.strip().isprintable():
        raise Invalid(_("The name contains control or invisible characters."), feld)
    return values.filled_text(name.strip(), feld, NAME_LENGTH)


def canonical_limit(allowed: Sequence[str] | None, feld: str) -> list[str] | None:
    """The values that a key is limited to, each once; None is all."""
    if allowed is None:
        return None
    if feld == "typen" and not ALL_KINDS.issuperset(allowed):
        raise Invalid(_("The kinds are longterm, shortterm and brain."), feld)
    canonical = list(dict.fromkeys(values.identifier(value, feld) for value in allowed))
    unknown = set(canonical) - {tool.name for tool in import_string(settings.BRAIN_TOOLS)} if feld == "tools" else ()
    if unknown:
        raise Invalid(_("There is no tool %(name)s.") % {"name": min(unknown)[:80]}, feld)
    return canonical
