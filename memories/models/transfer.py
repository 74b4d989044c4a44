"""What export and import keep: which installation this is, and where imported memories came from."""

import uuid
from typing import Any, ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memories.models.memory import ReadableJSON


class Installation(models.Model):
    """This installation's own name in exports; one row, made when it is first asked for."""

    instanz = models.UUIDField(default=uuid.uuid4, editable=False)

    objects: ClassVar[models.Manager[Any]]

    def __str__(self) -> str:
        return str(self.instanz)

    @classmethod
    def own(cls) -> str:
        """The name. It moves with the database."""
        row, _is_new = cls.objects.get_or_create(pk=1)
        return str(row.instanz)


class ImportedMemory(models.Model):
    """A memory that came from a file: `instanz` and `kennung` say whose it was, `digest` what was read of it last.

    It stays when the memory is deleted, so that a second run of the file does not bring it back.
    """

    typ = models.CharField(_("kind"), max_length=10)
    memory_id = models.BigIntegerField(_("memory"))
    instanz = models.CharField(_("origin"), max_length=64)
    kennung = models.CharField(_("ID at its origin"), max_length=255)
    digest = models.CharField(max_length=64)
    imported_at = models.DateTimeField(_("imported"), default=timezone.now)

    objects: ClassVar[models.Manager[Any]]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["instanz", "kennung"], name="importedmemory_one_per_origin"),
            models.UniqueConstraint(fields=["typ", "memory_id"], name="importedmemory_one_per_memory"),
        ]

    def __str__(self) -> str:
        return f"{self.typ}_{self.memory_id}"


class OpenReference(models.Model):
    """An imported version refers to a memory of its origin that was not imported yet."""

    typ = models.CharField(max_length=10)
    memory_id = models.BigIntegerField()
    version = models.PositiveIntegerField()
    instanz = models.CharField(max_length=64)
    kennung = models.CharField(max_length=255)

    objects: ClassVar[models.Manager[Any]]

    class Meta:
        indexes = [models.Index(fields=["instanz", "kennung"], name="openreference_to")]

    def __str__(self) -> str:
        return f"{self.typ}_{self.memory_id} v{self.version}"


class Stage(models.TextChoices):
    """How far an import has come."""

    PREVIEWING = "prueft", _("being previewed")
    PREVIEWED = "geprueft", _("previewed")
    RUNNING = "laeuft", _("running")
    DONE = "fertig", _("done")


class ImportJob(models.Model):
    """A person's import: a file whose lines are previewed and then imported, some with each request."""

    user_id = models.BigIntegerField(_("person ID"))
    dateiname = models.CharField(_("file"), max_length=255)
    format = models.CharField(_("format"), max_length=20)
    vorgaben = models.JSONField(_("defaults"), default=dict, encoder=ReadableJSON)
    stand = models.CharField(_("state"), max_length=10, choices=Stage, default=Stage.PREVIEWING)
    angelegt_am = models.DateTimeField(_("created"), default=timezone.now)
    leased_until = models.DateTimeField(null=True)

    objects: ClassVar[models.Manager[Any]]

    class Meta:
        verbose_name = _("import")
        verbose_name_plural = _("imports")
        default_permissions = ("add", "view")
        ordering = ["-angelegt_am", "-id"]

    def __str__(self) -> str:
        return self.dateiname


class ImportLine(models.Model):
    """A line of the file, what is to become of it, and what became of it; the line itself goes once it is imported."""

    job = models.ForeignKey(ImportJob, on_delete=models.CASCADE, related_name="lines")
    number = models.PositiveIntegerField(_("line"))
    zeile = models.BinaryField(null=True)
    vorschau = models.CharField(_("preview"), max_length=10, blank=True)
    ergebnis = models.CharField(_("outcome"), max_length=10, blank=True)
    herkunft = models.CharField(_("origin"), max_length=400, blank=True)
    kennung = models.CharField(_("ID"), max_length=40, blank=True)
    titel = models.TextField(_("title"), blank=True)
    meldung = models.TextField(_("fault"), blank=True)
    hinweise = models.TextField(_("left out"), blank=True)

    objects: ClassVar[models.Manager[Any]]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="importline_one_per_number")]
        indexes = [
            models.Index(fields=["job", "vorschau", "number"], name="importline_preview"),
            models.Index(fields=["job", "ergebnis", "number"], name="importline_outcome"),
        ]

    def __str__(self) -> str:
        return str(self.number)
