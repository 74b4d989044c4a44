"""Clients, and connections: which client has the rights of which access key."""

import hashlib
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self
from uuid import UUID

from django.db import models, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from oauth2_provider.models import AccessToken, Application, RefreshToken

from memories.models import AccessKey
from oauth.addresses import resource

_CODE_IS_GONE_AFTER = timedelta(hours=1)


class Client(Application):
    """A client as the admin shows it: entered by hand, or known from the document that its ID is the address of."""

    class Meta:
        proxy = True
        verbose_name = _("client")
        verbose_name_plural = _("clients")
        ordering = ["name", "id"]

    @property
    def has_document(self) -> bool:
        """Whether it is known from its own document."""
        return bool(self.registration_source == self.RegistrationSource.CIMD)


def checksum(secret: str) -> str:
    """How a code or token is kept."""
    return hashlib.sha256(secret.encode()).hexdigest()


_LIVING = RefreshToken.objects.filter(token_family=models.OuterRef("family"), revoked__isnull=True)


class ConnectionQuerySet(models.QuerySet["Connection"]):
    """Connections."""

    def usable(self, at: datetime) -> Self:
        """Those whose key can be used."""
        return self.filter(key__in=AccessKey.objects.usable(at))

    def with_state(self, at: datetime) -> Self:
        """With `is_usable`, whether the key can be used, and `is_alive`, whether the client still has a token."""
        return self.annotate(
            is_usable=models.Exists(AccessKey.objects.usable(at).filter(pk=models.OuterRef("key"))),
            is_alive=models.Exists(_LIVING),
        )

    def key_of(self, token: str) -> AccessKey | None:
        """The usable key whose rights come with this access token, or None."""
        now = timezone.now()
        found = (
            AccessToken.objects.filter(token_checksum=checksum(token), expires__gt=now, resource=[resource()])
            .values_list("refresh_token__token_family", flat=True)
            .first()
        )
        connection = self.usable(now).filter(family=found).select_related("key__account").first() if found else None
        return connection.key if connection else None

    def take_code(self, code: str, family: UUID) -> bool:
        """Note that this code was turned into these tokens; False when it was before, or the connection is gone."""
        return bool(self.filter(code_checksum=checksum(code), family__isnull=True).update(family=family))

    def end(self) -> None:
        """End them; their tokens go with them."""
        with transaction.atomic():
            families = list(self.filter(family__isnull=False).values_list("family", flat=True))
            tokens = RefreshToken.objects.filter(token_family__in=families)
            AccessToken.objects.filter(refresh_token__in=tokens).delete()
            tokens.delete()
            self.delete()

    def dead(self, at: datetime) -> Self:
        """Those that nobody can use any more: never taken up, without a token left, or of a revoked key."""
        return self.filter(
            models.Q(key__revoked_at__isnull=False)
            | models.Q(~models.Exists(_LIVING), granted_at__lte=at - _CODE_IS_GONE_AFTER)
        )


class Connection(models.Model):
    """A client that has a key's rights. Without this row its tokens are worth nothing."""

    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="+", verbose_name=_("client"))
    key = models.ForeignKey(AccessKey, on_delete=models.CASCADE, related_name="+", verbose_name=_("access key"))
    granted_by = models.CharField(_("allowed by"), max_length=150)
    granted_at = models.DateTimeField(_("since"), default=timezone.now)
    code_checksum = models.CharField(max_length=64, unique=True, editable=False)
    # The toolkit's name for all tokens that came, one after the other, of one code; null until the code is taken.
    family = models.UUIDField(null=True, unique=True, editable=False)

    objects: ClassVar[Any] = ConnectionQuerySet.as_manager()

    class Meta:
        verbose_name = _("connection")
        verbose_name_plural = _("connections")
        ordering = ["-granted_at", "-id"]

    def __str__(self) -> str:
        return f"{self.client} – {self.key}"
