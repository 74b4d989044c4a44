"""Calls that may be sent again: what their first execution answered, and which of its entries are stored already."""

from django.db import models
from django.utils.translation import gettext_lazy as _

KEY_LENGTH = 255


class RepeatableCall(models.Model):
    """A call that named an idempotency key. `answer`, as JSON, is there once every entry has been handled."""

    schluessel_id = models.BigIntegerField(_("access key ID"))
    idempotency_key = models.CharField(_("idempotency key"), max_length=KEY_LENGTH)
    digest = models.CharField(_("digest of the call"), max_length=64)
    begun_at = models.DateTimeField(_("begun"), db_index=True)
    answer = models.TextField(_("answer"), null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["schluessel_id", "idempotency_key"], name="repeatablecall_one_per_key")
        ]

    def __str__(self) -> str:
        return self.idempotency_key


class HandledEntry(models.Model):
    """An entry of such a call that is stored, written in the transaction that stored it."""

    call = models.ForeignKey(RepeatableCall, on_delete=models.CASCADE, related_name="entries")
    place = models.PositiveIntegerField(_("place in the call"))
    outcome = models.JSONField(_("outcome"))

    class Meta:
        constraints = [models.UniqueConstraint(fields=["call", "place"], name="handledentry_once_a_place")]

    def __str__(self) -> str:
        return f"{self.call} [{self.place}]"
