"""A memory with taggit and simple-history."""

from django.db import models
from simple_history.models import HistoricalRecords
from taggit.managers import TaggableManager


class PlainMemory(models.Model):
    """The fields of a long-term memory."""

    kurzbeschreibung = models.TextField()
    memory = models.TextField()
    scope = models.CharField(max_length=255, db_index=True)
    scope_vk = models.CharField(max_length=255, blank=True)
    nutzer = models.CharField(max_length=255, db_index=True)
    agent = models.CharField(max_length=255, db_index=True)
    embedding = models.BinaryField(null=True)
    embedding_profil_hash = models.CharField(max_length=255, null=True)
    erstellt_am = models.DateTimeField(auto_now_add=True, db_index=True)
    aktualisiert_am = models.DateTimeField(auto_now=True, db_index=True)

    tags = TaggableManager()
    history = HistoricalRecords()

    def __str__(self) -> str:
        return self.kurzbeschreibung
