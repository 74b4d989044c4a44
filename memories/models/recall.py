"""The recall log: which search gave which memory to whom. Who searched, when and how is in the call's record."""

from functools import reduce
from operator import or_
from typing import Any, ClassVar, Self

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from memories.models.call import CallRecord
from memories.models.memory import BrainMemory, LongtermMemory, ShorttermMemory
from memories.principal import Principal


class RecalledSearch(models.Model):
    """What a recorded search looked for."""

    call = models.OneToOneField(CallRecord, primary_key=True, on_delete=models.CASCADE, related_name="search")
    suche = models.TextField(_("searched text"), blank=True)

    def __str__(self) -> str:
        return self.suche


class RecallQuerySet(models.QuerySet["Recall"]):
    """Memories that searches returned."""

    def visible_to(self, principal: Principal) -> Self:
        """Those of memories that the principal may see, by searches that he may see."""
        seen = [
            Q(Exists(model.objects.visible_to(principal).filter(pk=OuterRef("memory_id"))), typ=model.typ)
            for model in (LongtermMemory, ShorttermMemory, BrainMemory)
        ]
        calls = CallRecord.objects.visible_to(principal).filter(pk=OuterRef("search_id"))
        return self.filter(reduce(or_, seen), Exists(calls))


class Recall(models.Model):
    """A memory that a search returned, at this place of its answer, the first being 1."""

    search = models.ForeignKey(RecalledSearch, on_delete=models.CASCADE, related_name="recalls")
    typ = models.CharField(_("kind"), max_length=10)
    memory_id = models.BigIntegerField(_("memory"))
    rang = models.PositiveSmallIntegerField(_("rank"))

    objects: ClassVar[Any] = RecallQuerySet.as_manager()

    class Meta:
        verbose_name = _("recall")
        verbose_name_plural = _("recalls")
        indexes = [models.Index(fields=["typ", "memory_id", "-search"], name="recall_of_memory")]

    def __str__(self) -> str:
        return f"{self.kennung} ({self.rang})"

    @property
    def kennung(self) -> str:
        """The memory's ID on the wire."""
        return f"{self.typ}_{self.memory_id}"
