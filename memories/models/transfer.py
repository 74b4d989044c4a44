"""What export and import keep: which installation this is, and where imported memories came from."""

import uuid
from typing import Any, ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


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
