"""The record of calls: who called what through which door and what came of it, but none of the texts."""

from functools import reduce
from operator import or_
from typing import Any, ClassVar, Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.access import AccessKey
from memories.principal import Action, Principal

_TOLD = {"nutzer", "agent"}  # the limits that a call can be held against


class CallRecordQuerySet(models.QuerySet["CallRecord"]):
    """Recorded calls."""

    def visible_to(self, principal: Principal) -> Self:
        """The calls of those whose memories the principal may see: a limited auditor sees a part.

        A call tells no scope and no record, so a reach that is limited to some shows none.
        """
        limits = [limits for limits in (r.limits() for r in principal.reaching(Action.READ)) if limits.keys() <= _TOLD]
        if not limits:
            return self.none()
        within = [Q(**{f"{name}__in": sorted(only) for name, only in each.items()}) for each in limits]
        return self.filter(reduce(or_, within)) if all(within) else self


class CallRecord(models.Model):
    """A call. `nutzer` and `agent` are what the caller said; the key and its account are who he is."""

    zeitpunkt = models.DateTimeField(_("when"))
    tuer = models.CharField(_("door"), max_length=20)
    tool = models.CharField(_("tool"), max_length=64)
    schluessel_id = models.BigIntegerField(_("access key ID"), null=True)
    schluessel = models.CharField(_("access key"), max_length=150, blank=True)
    konto = models.CharField(_("service account"), max_length=150, blank=True)
    nutzer = models.CharField(_("nutzer, as claimed"), max_length=255, blank=True)
    agent = models.CharField(_("agent, as claimed"), max_length=255, blank=True)
    gesamt = models.PositiveIntegerField(_("entries"), default=0)
    erfolgreich = models.PositiveIntegerField(_("succeeded"), default=0)
    fehlgeschlagen = models.PositiveIntegerField(_("failed"), default=0)
    code = models.CharField(
        _("outcome"), max_length=32, help_text=_("ok, the code of the fault, or begonnen for a call that never ended.")
    )
    bytes = models.PositiveBigIntegerField(_("bytes received"), default=0)
    dauer_ms = models.PositiveIntegerField(_("milliseconds"), null=True)

    objects: ClassVar[Any] = CallRecordQuerySet.as_manager()

    class Meta:
        verbose_name = _("call")
        verbose_name_plural = _("calls")
        permissions = [("export_callrecord", _("Can export calls"))]
        indexes = [
            models.Index(fields=["zeitpunkt", "id"], name="callrecord_when"),
            models.Index(fields=["schluessel_id", "zeitpunkt"], name="callrecord_key"),
            models.Index(fields=["code", "zeitpunkt"], name="callrecord_code"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} ({self.code})"


class KeyUsage(models.Model):
    """How much a key has used of its limits: calls in this minute, entries and bytes on this day (UTC)."""

    key = models.OneToOneField(AccessKey, primary_key=True, on_delete=models.CASCADE, related_name="usage")
    minute = models.BigIntegerField(_("minutes since 1970"))
    calls = models.PositiveIntegerField(_("calls in this minute"))
    day = models.IntegerField(_("days since 1970"))
    entries = models.PositiveBigIntegerField(_("entries written on this day"))
    bytes = models.PositiveBigIntegerField(_("bytes received on this day"))

    def __str__(self) -> str:
        return str(self.key)
