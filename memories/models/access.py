"""Access keys: who an agent is, what it may see and do. Only a keyed hash of the secret is kept."""

import secrets
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext_lazy as _

from memories.principal import ALL_KINDS, Principal

NAME_LENGTH = 150
_USE_IS_NOTED_EVERY = timedelta(minutes=1)


class ServiceAccount(models.Model):
    """A program that calls the tools; it may hold several keys, so that one can be replaced without a stop."""

    name = models.CharField(_("name"), max_length=NAME_LENGTH, unique=True)
    is_active = models.BooleanField(
        _("active"), default=True, help_text=_("An account that is not active cannot use any of its keys.")
    )

    class Meta:
        verbose_name = _("service account")
        verbose_name_plural = _("service accounts")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class AccessKeyQuerySet(models.QuerySet["AccessKey"]):
    """Access keys."""

    def usable(self, at: datetime) -> Self:
        """Those that are neither revoked nor expired and whose account is active."""
        return self.filter(
            Q(expires_at__isnull=True) | Q(expires_at__gt=at), revoked_at__isnull=True, account__is_active=True
        )

    def find(self, presented: str) -> "AccessKey | None":
        """The usable key that this text is, or None. One statement; the secret is compared in constant time."""
        prefix, _dot, secret = presented.partition(".")
        if not (presented.isascii() and presented.isprintable()):
            return None
        key = self.usable(timezone.now()).select_related("account").filter(prefix=prefix).first()
        given = _digest(prefix, secret)
        known = key.digest if key else _digest("", "")  # the same work for an unknown prefix
        return key if constant_time_compare(given, known) and key else None


def _digest(prefix: str, secret: str) -> str:
    return salted_hmac("memories.AccessKey", f"{prefix}.{secret}", algorithm="sha256").hexdigest()


class AccessKey(models.Model):
    """A key of a service account, `<prefix>.<secret>`. Of `nutzer`, `agent`, `scope` and `tools` null means all."""

    account = models.ForeignKey(
        ServiceAccount, on_delete=models.PROTECT, related_name="keys", verbose_name=_("service account")
    )
    name = models.CharField(
        _("name"), max_length=NAME_LENGTH, help_text=_("Written into the history of whatever it changes.")
    )
    prefix = models.CharField(_("public prefix"), max_length=20, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    may_write = models.BooleanField(_("may write"), default=True, help_text=_("Otherwise it may only read."))
    nutzer = models.JSONField(_("nutzer"), null=True, blank=True, help_text=_("Whom it may speak for and see."))
    agent = models.JSONField(_("agent"), null=True, blank=True, help_text=_("Which agents it may be and see."))
    scope = models.JSONField(_("scope"), null=True, blank=True, help_text=_("Which scopes it may see and write into."))
    tools = models.JSONField(_("tools"), null=True, blank=True, help_text=_("Which tools it may call."))
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True, editable=False)

    objects: ClassVar[Any] = AccessKeyQuerySet.as_manager()

    class Meta:
        verbose_name = _("access key")
        verbose_name_plural = _("access keys")
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def issue(self) -> str:
        """Give the key a new prefix and secret and return its text, which is known at this moment only."""
        self.prefix = f"brk_{secrets.token_hex(6)}"
        secret = secrets.token_urlsafe(32)
        self.digest = _digest(self.prefix, secret)
        return f"{self.prefix}.{secret}"

    def principal(self) -> Principal:
        """What the key may see and change."""
        return Principal(
            sees=ALL_KINDS,
            changes=ALL_KINDS if self.may_write else frozenset(),
            nutzer=_only(self.nutzer),
            agent=_only(self.agent),
            scope=_only(self.scope),
            tools=_only(self.tools),
            key_id=self.pk,
            key_name=self.name,
        )

    def revoke(self, at: datetime) -> None:
        """End the key's use for good; the moment of an earlier revocation stays."""
        AccessKey.objects.filter(pk=self.pk, revoked_at__isnull=True).update(revoked_at=at)

    def note_use(self, at: datetime) -> None:
        """Keep the moment of last use, at most once a minute."""
        if self.last_used_at is None or at - self.last_used_at >= _USE_IS_NOTED_EVERY:
            AccessKey.objects.filter(pk=self.pk).update(last_used_at=at)


def _only(values: list[str] | None) -> frozenset[str] | None:
    return None if values is None else frozenset(values)


def principal_of(user: AbstractBaseUser | AnonymousUser) -> Principal:
    """What a person may see and change, by the ordinary permissions of each kind."""
    if not isinstance(user, AbstractUser) or not user.is_active:
        return Principal()
    return Principal(
        sees=frozenset(kind for kind in ALL_KINDS if user.has_perm(f"memories.view_{kind}memory")),
        changes=frozenset(kind for kind in ALL_KINDS if user.has_perm(f"memories.change_{kind}memory")),
        sees_expired=True,
        user_id=user.pk,
        user_name=user.get_username(),
    )
