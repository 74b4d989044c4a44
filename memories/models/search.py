"""The search index: what each memory can be found by, kept in the same transaction as the memory itself.

Triggers of the database (migration 0003) feed the full-text index and the vocabulary, and move what an entry was before
into the past entries. Nobody but `memories.search.index` writes entries, and nobody at all writes the rest.
"""

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class VectorBlock(models.Model):
    """Up to 1,024 vectors of one profile as int8, to look through quickly; written once, never changed.

    `eintraege` holds the entries' keys (int64), `skalen` a float32 each, `codes` an int8 for each number, all
    little-endian and in the same order. An entry that moved on is recognised by its `block`, which is another one.
    """

    SCALE: ClassVar[int] = 4  # bytes

    profil_hash = models.CharField(max_length=255)
    dimension = models.PositiveIntegerField()
    eintraege = models.BinaryField()
    skalen = models.BinaryField()
    codes = models.BinaryField()

    objects: ClassVar[models.Manager[Any]]

    class Meta:
        indexes = [models.Index(fields=["profil_hash", "dimension"], name="vectorblock_profile")]

    def __str__(self) -> str:
        return f"{self.profil_hash} {self.pk}"

    @property
    def size(self) -> int:
        """How many vectors it holds, living or not."""
        return len(self.skalen) // self.SCALE


class EmbeddingProfile(models.Model):
    """A model that vectors of the texts were derived with; those vectors are entries of the index alone.

    A memory's own vector, which a caller sent, is none of them: its profile is a column of the memory.
    """

    profil_hash = models.CharField(_("embedding profile"), max_length=255, unique=True)
    dimension = models.PositiveIntegerField(_("numbers of the embedding"))
    name = models.CharField(_("name"), max_length=255)
    made_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    objects: ClassVar[models.Manager[Any]]

    class Meta:
        verbose_name = _("embedding profile")
        verbose_name_plural = _("embedding profiles")

    def __str__(self) -> str:
        return self.name


class Entry(models.Model):
    """One part of what one memory's version can be found by. `stamm` are its stems, `geltung` its reach as tokens."""

    typ = models.CharField(max_length=10)
    memory_id = models.BigIntegerField()
    teil = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField()
    seit = models.DateTimeField()
    erstellt_am = models.DateTimeField()
    gueltig_bis = models.DateTimeField(null=True)
    profil_hash = models.CharField(max_length=255, null=True)
    dimension = models.PositiveIntegerField(null=True)
    veraltet = models.BooleanField(default=False)
    vektor = models.BinaryField(null=True)
    stamm = models.TextField()
    geltung = models.TextField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.typ}_{self.memory_id} v{self.version}"


class SearchEntry(Entry):
    """A live memory's entry. `vektor` is its embedding as float32, scaled to length 1."""

    block = models.BigIntegerField(null=True)
    bis = models.DateTimeField(null=True)  # set just before the entry goes, for the past entry that it becomes

    objects: ClassVar[models.Manager[Any]]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["typ", "memory_id", "teil"], name="searchentry_one_per_part"),
        ]
        indexes = [
            models.Index(
                fields=["profil_hash", "dimension"],
                condition=Q(vektor__isnull=False, block__isnull=True),
                name="searchentry_not_in_a_block",
            ),
            models.Index(fields=["gueltig_bis"], condition=Q(gueltig_bis__isnull=False), name="searchentry_expiry"),
        ]


class PastEntry(Entry):
    """What an entry was from `seit` until `bis`."""

    bis = models.DateTimeField()

    objects: ClassVar[models.Manager[Any]]

    class Meta:
        indexes = [models.Index(fields=["typ", "memory_id"], name="pastentry_memory")]


class Word(models.Model):
    """A stem that entries hold or held; on SQLite `df` counts the live entries that do."""

    stamm = models.CharField(max_length=40, unique=True)
    df = models.IntegerField(default=0)

    objects: ClassVar[models.Manager[Any]]

    def __str__(self) -> str:
        return self.stamm
