"""Access keys: who an agent is, what it may see and do. Only a keyed hash of the secret is kept."""

import secrets
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AbstractUser, AnonymousUser, Group
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext_lazy as _

from memories.principal import ALL_KINDS, Action, Principal, Quota, Reach

NAME_LENGTH = 150
_DEFAULT = _("Empty: the server's setting.")
_USE_IS_NOTED_EVERY = timedelta(minutes=1)
_VERBS = {Action.READ: "view", Action.WRITE: "change", Action.DELETE: "delete", Action.RESTORE: "restore"}


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

    def unended(self, at: datetime) -> Self:
        """Those that are neither revoked nor expired."""
        return self.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=at), revoked_at__isnull=True)

    def usable(self, at: datetime) -> Self:
        """Those that are neither revoked nor expired and whose account is active."""
        return self.unended(at).filter(account__is_active=True)

    def find(self, presented: str) -> "AccessKey | None":
        """The usable key that this text is, or None. One statement; the secret is compared in constant time."""
        prefix, _dot, secret = presented.partition(".")
        if not (presented.isascii() and presented.isprintable()):
            return None
        key = next(iter(self.select_related("account", "usage").filter(prefix=prefix).order_by()), None)
        given = _digest(prefix, secret)
        known = key.digest if key else _digest("", "")  # the same work for an unknown prefix
        return key if constant_time_compare(given, known) and key and key.is_usable(timezone.now()) else None


def _digest(prefix: str, secret: str) -> str:
    return salted_hmac("memories.AccessKey", f"{prefix}.{secret}", algorithm="sha256").hexdigest()


class Granted(models.Model):
    """What may be done, beside reading, and where. Of the lists, null means all."""

    may_write = models.BooleanField(_("may write"), default=True, help_text=_("Store and change memories."))
    may_delete = models.BooleanField(_("may delete"), default=True, help_text=_("Only together with writing."))
    may_restore = models.BooleanField(
        _("may restore"), default=True, help_text=_("Set memories back to an earlier version; only with writing.")
    )
    typen = models.JSONField(_("kinds"), null=True, blank=True, help_text=_("longterm, shortterm, brain."))
    nutzer = models.JSONField(_("nutzer"), null=True, blank=True, help_text=_("Whose memories."))
    agent = models.JSONField(_("agent"), null=True, blank=True, help_text=_("Memories of which agents."))
    scope = models.JSONField(_("scope"), null=True, blank=True, help_text=_("Memories of which scopes."))
    scope_vk = models.JSONField(_("scope_vk"), null=True, blank=True, help_text=_("Memories of which records."))

    class Meta:
        abstract = True

    def actions(self) -> frozenset[Action]:
        """What may be done, reading included."""
        if not self.may_write:
            return frozenset({Action.READ})
        more = {Action.DELETE: self.may_delete, Action.RESTORE: self.may_restore}
        return frozenset({Action.READ, Action.WRITE, *(action for action, allowed in more.items() if allowed)})

    def reach(self, actions: frozenset[Action], kinds: frozenset[str] = ALL_KINDS) -> Reach:
        """Where it holds, for these actions with these kinds."""
        return Reach(
            actions=actions,
            kinds=kinds if self.typen is None else kinds & frozenset(self.typen),
            nutzer=_only(self.nutzer),
            agent=_only(self.agent),
            scope=_only(self.scope),
            scope_vk=_only(self.scope_vk),
        )


class AccessKey(Granted):
    """A key of a service account, `<prefix>.<secret>`, with what is granted to it. `tools`: null means all."""

    account = models.ForeignKey(
        ServiceAccount, on_delete=models.PROTECT, related_name="keys", verbose_name=_("service account")
    )
    name = models.CharField(
        _("name"), max_length=NAME_LENGTH, help_text=_("Written into the history of whatever it changes.")
    )
    prefix = models.CharField(_("public prefix"), max_length=20, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    tools = models.JSONField(_("tools"), null=True, blank=True, help_text=_("Which tools it may call."))
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    pruefpflicht = models.BooleanField(
        _("review required"),
        default=False,
        help_text=_(
            "What this key stores waits until a person approves it; no agent sees it before. Such a key may neither "
            "change nor delete what is stored."
        ),
    )
    portable = models.BooleanField(
        _("portable schemas"),
        default=False,
        help_text=_("Tells the tools over MCP with one type for each field, as clients on Gemini models need it."),
    )
    calls_a_minute = models.PositiveIntegerField(_("calls a minute"), null=True, blank=True, help_text=_DEFAULT)
    entries_a_day = models.PositiveBigIntegerField(
        _("entries written a day"), null=True, blank=True, help_text=_DEFAULT
    )
    bytes_a_day = models.PositiveBigIntegerField(_("bytes received a day"), null=True, blank=True, help_text=_DEFAULT)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True, editable=False)
    # The call that failed last, as a digest, and how often in a row; see memories.failures.
    failed_call = models.CharField(max_length=64, blank=True, default="", editable=False)
    failed_times = models.PositiveIntegerField(default=0, editable=False)

    objects: ClassVar[Any] = AccessKeyQuerySet.as_manager()

    class Meta:
        verbose_name = _("access key")
        verbose_name_plural = _("access keys")
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def actions(self) -> frozenset[Action]:
        """What may be done; where review is required, reading and storing alone."""
        granted = super().actions()
        return frozenset({Action.READ, Action.INSERT}) if self.pruefpflicht and self.may_write else granted

    def issue(self) -> str:
        """Give the key a new prefix and secret and return its text, which is known at this moment only."""
        self.prefix = f"brk_{secrets.token_hex(6)}"
        secret = secrets.token_urlsafe(32)
        self.digest = _digest(self.prefix, secret)
        return f"{self.prefix}.{secret}"

    def principal(self) -> Principal:
        """What the key may see and change."""
        return Principal(
            reaches=(self.reach(self.actions()),),
            nutzer=_only(self.nutzer),
            agent=_only(self.agent),
            tools=_only(self.tools),
            proposes=self.pruefpflicht,
            portable=self.portable,
            quota=self._quota(),
            account_name=self.account.name,
            key_id=self.pk,
            key_name=self.name,
            failed_before=self.failed_times > 0,
        )

    def _quota(self) -> Quota:
        used: Any = getattr(self, "usage", None)
        limits = {name: getattr(self, name) for name in ("calls_a_minute", "entries_a_day", "bytes_a_day")}
        return Quota(
            **{name: getattr(settings.BRAIN_QUOTA, name) if own is None else own for name, own in limits.items()},
            **({name: getattr(used, name) for name in ("minute", "calls", "day", "entries", "bytes")} if used else {}),
        )

    def is_usable(self, at: datetime) -> bool:
        """Whether it is neither revoked nor expired, and its account active, as `AccessKeyQuerySet.usable` asks."""
        unended = self.revoked_at is None and (self.expires_at is None or self.expires_at > at)
        return unended and self.account.is_active

    def revoke(self, at: datetime) -> None:
        """End the key's use for good; the moment of an earlier revocation stays."""
        AccessKey.objects.filter(pk=self.pk, revoked_at__isnull=True).update(revoked_at=at)

    def note_use(self, at: datetime) -> None:
        """Keep the moment of last use, at most once a minute."""
        if self.last_used_at is None or at - self.last_used_at >= _USE_IS_NOTED_EVERY:
            AccessKey.objects.filter(pk=self.pk).update(last_used_at=at)


def _only(values: list[str] | None) -> frozenset[str] | None:
    return None if values is None else frozenset(values)


class Grant(Granted):
    """Where a person, or everybody of a group, may do what his permissions allow. Without a grant he sees nothing."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="grants"
    )
    group = models.ForeignKey(Group, null=True, blank=True, on_delete=models.CASCADE, related_name="grants")

    class Meta:
        verbose_name = _("grant")
        verbose_name_plural = _("grants")
        constraints = [
            models.CheckConstraint(
                condition=Q(user__isnull=True, group__isnull=False) | Q(user__isnull=False, group__isnull=True),
                name="grant_to_a_user_or_a_group",
            )
        ]

    def __str__(self) -> str:
        return str(self.user or self.group)


def principal_of(user: AbstractBaseUser | AnonymousUser) -> Principal:
    """What a person may do, by the permissions for each kind, and where, by his grants and those of his groups.

    It is found out once for each request, which has its own `user`.
    """
    if not isinstance(user, AbstractUser) or not user.is_active:
        return Principal()
    known: Principal | None = user.__dict__.get("_principal")
    if known is None:
        known = Principal(
            reaches=tuple(_reaches(user)),
            sees_expired=True,
            sees_proposed=True,
            user_id=user.pk,
            user_name=user.get_username(),
        )
        user.__dict__["_principal"] = known
    return known


def _reaches(user: AbstractUser) -> Iterator[Reach]:
    """Each grant, for the kinds with which the permissions allow the same."""
    allowed: dict[frozenset[Action], set[str]] = {}
    for kind in ALL_KINDS:
        may = frozenset(action for action, verb in _VERBS.items() if user.has_perm(f"memories.{verb}_{kind}memory"))
        if Action.READ in may:
            allowed.setdefault(may, set()).add(kind)
    if user.is_superuser:
        yield from (Reach(actions=actions, kinds=frozenset(kinds)) for actions, kinds in allowed.items())
        return
    for grant in Grant.objects.filter(Q(user=user) | Q(group__user=user)).distinct():
        for actions, kinds in allowed.items():
            reach = grant.reach(actions & grant.actions(), frozenset(kinds))
            if reach.kinds:
                yield reach
