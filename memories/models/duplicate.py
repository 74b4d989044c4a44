"""Near-duplicates: what was compared, and the pairs that were found. Hints for people; nothing acts on them."""

from functools import reduce
from operator import or_
from typing import Any, ClassVar, Self

from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from memories.models.memory import BrainMemory, LongtermMemory, ShorttermMemory
from memories.principal import Principal

_LIVE = (LongtermMemory, ShorttermMemory, BrainMemory)


class ComparedText(models.Model):
    """A version of a memory that was compared with the others; `digest` is that of its text with case folded."""

    typ = models.CharField(max_length=10)
    memory_id = models.BigIntegerField()
    version = models.PositiveIntegerField()
    digest = models.CharField(max_length=32)
    vektor = models.BooleanField(default=False)  # whether its vector was compared as well

    objects: ClassVar[models.Manager[Any]]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["typ", "memory_id"], name="comparedtext_one_per_memory")]
        indexes = [
            models.Index(fields=["typ", "digest", "memory_id"], name="comparedtext_digest"),
            models.Index(fields=["typ", "memory_id"], condition=Q(vektor=False), name="comparedtext_no_vector"),
        ]

    def __str__(self) -> str:
        return f"{self.typ}_{self.memory_id} v{self.version}"


class Likeness(models.TextChoices):
    """In what two memories are alike."""

    TEXT = "text", _("same text")
    VEKTOR = "vektor", _("near vectors")


class PairQuerySet(models.QuerySet["DuplicatePair"]):
    """Pairs of memories of one kind."""

    def visible_to(self, principal: Principal) -> Self:
        """Those of which the principal may see both, as they were compared: a pair goes when one of them changes."""
        return self.filter(reduce(or_, (self._both(model.objects.visible_to(principal), model.typ) for model in _LIVE)))

    def outdated(self) -> Self:
        """Those of which one memory is gone or is no longer as it was compared."""
        return self.exclude(reduce(or_, (self._both(model.objects.all(), model.typ) for model in _LIVE)))

    @staticmethod
    def _both(rows: Any, typ: str) -> Q:
        sides = [
            Exists(rows.filter(pk=OuterRef(f"{side}_id"), version=OuterRef(f"{side}_version")))
            for side in ("first", "second")
        ]
        return Q(*sides, typ=typ)


class DuplicatePair(models.Model):
    """Two memories of one kind that may be the same, the older one first, in the versions that were compared."""

    typ = models.CharField(_("kind"), max_length=10)
    first_id = models.BigIntegerField(_("first memory"))
    second_id = models.BigIntegerField(_("second memory"))
    first_version = models.PositiveIntegerField()
    second_version = models.PositiveIntegerField()
    art = models.CharField(_("alike in"), max_length=10, choices=Likeness)
    cosinus = models.FloatField(_("likeness"))
    abgelehnt = models.BooleanField(_("not a duplicate"), default=False)
    abgelehnt_von = models.CharField(_("said by"), max_length=150, blank=True)

    objects: ClassVar[Any] = PairQuerySet.as_manager()

    class Meta:
        verbose_name = _("near-duplicate")
        verbose_name_plural = _("near-duplicates")
        constraints = [
            models.UniqueConstraint(fields=["typ", "first_id", "second_id"], name="duplicatepair_once"),
            models.CheckConstraint(condition=Q(first_id__lt=F("second_id")), name="duplicatepair_older_first"),
        ]
        indexes = [models.Index(fields=["abgelehnt", "-cosinus", "-id"], name="duplicatepair_nearest")]

    def __str__(self) -> str:
        return f"{self.typ}_{self.first_id}, {self.typ}_{self.second_id}"
