"""The proof that a person was erased: when, by whom, why, how much and, as a digest, what; not who it was."""

from typing import Any, ClassVar, Self

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as _

from memories.principal import ALL_KINDS, Action, Principal


class ErasureQuerySet(models.QuerySet["Erasure"]):
    """Erasures, begun and ended."""

    def of(self, nutzer: str) -> Self:
        """Those of the person of this name."""
        return self.filter(identitaet=hash_of(nutzer))

    def visible_to(self, principal: Principal) -> Self:
        """All for whoever sees everything, since they do not say whose memories they were; for others their own."""
        reaches = principal.reaching(Action.READ)
        everything = frozenset().union(*(reach.kinds for reach in reaches if not reach.limits()))
        if everything >= ALL_KINDS:
            return self
        return self.filter(benutzer_id=principal.user_id) if principal.user_id is not None else self.none()


def hash_of(nutzer: str) -> str:
    """What stands for a person in a proof: without the server's secret nobody can try names."""
    return salted_hmac("memories.Erasure", nutzer, algorithm="sha256").hexdigest()


class Erasure(models.Model):
    """An erasure. `anzahl` has how many memories, versions and entries of the search index, by kind.

    `digest` is there once it has ended: of the lines that an export had of the memories (`memories.erasure`).
    """

    identitaet = models.CharField(_("person (keyed hash)"), max_length=64)
    begonnen_am = models.DateTimeField(_("begun"), default=timezone.now)
    beendet_am = models.DateTimeField(_("ended"), null=True)
    gereinigt_am = models.DateTimeField(_("storage cleaned"), null=True)
    tuer = models.CharField(_("door"), max_length=20)
    benutzer_id = models.BigIntegerField(_("person ID"), null=True)
    benutzer = models.CharField(_("erased by"), max_length=150, blank=True)
    grund = models.TextField(_("reason"))
    gefunden = models.PositiveBigIntegerField(_("memories when it began"))
    anzahl = models.JSONField(_("numbers"), default=dict)
    spuren = models.PositiveSmallIntegerField(default=0)  # how many kinds of traces elsewhere are gone
    digest = models.CharField(_("digest of what was erased"), max_length=64, blank=True)

    objects: ClassVar[Any] = ErasureQuerySet.as_manager()

    class Meta:
        verbose_name = _("erasure")
        verbose_name_plural = _("erasures")
        default_permissions = ("view",)
        permissions = [("erase_person", _("Can erase a person"))]
        constraints = [
            models.UniqueConstraint(
                fields=["identitaet"], condition=Q(beendet_am__isnull=True), name="erasure_one_at_a_time"
            ),
        ]
        indexes = [
            models.Index(fields=["begonnen_am", "id"], name="erasure_when"),
            models.Index(fields=["identitaet"], name="erasure_of_person"),
        ]

    def __str__(self) -> str:
        return f"{self.identitaet[:12]}…"

    def total(self, what: str) -> int:
        """How many memories (`erinnerungen`), versions (`versionen`) or entries (`eintraege`) of all kinds."""
        return sum(numbers[what] for numbers in self.anzahl.values())


class ErasedMemory(models.Model):
    """A memory that an erasure under way has taken away, with the digest of its line; gone when that has ended."""

    erasure = models.ForeignKey(Erasure, on_delete=models.CASCADE, related_name="erased")
    typ = models.CharField(max_length=10)
    memory_id = models.BigIntegerField()
    digest = models.CharField(max_length=64)

    objects: ClassVar[models.Manager[Any]]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["typ", "memory_id"], name="erasedmemory_once")]

    def __str__(self) -> str:
        return f"{self.typ}_{self.memory_id}"
