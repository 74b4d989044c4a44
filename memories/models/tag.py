"""Tags, and which memory carries which: the filter index. The truth about a memory's tags is its `tag_namen`."""

from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from memories.models.memory import BrainMemory, LongtermMemory, ShorttermMemory


class Tag(models.Model):
    """A tag, in its first spelling; `schluessel` (values.tag_key) makes spellings that differ in case alone one tag."""

    name = models.CharField(_("name"), max_length=100)
    # Folding case can make a name longer: ŉ, ΐ and the like become up to three characters.
    schluessel = models.CharField(_("key"), max_length=300, unique=True, editable=False)

    class Meta:
        verbose_name = _("tag")
        verbose_name_plural = _("tags")
        ordering = ["schluessel"]

    def __str__(self) -> str:
        return self.name


class TagLink(models.Model):
    """A memory carries a tag. There is no `tags` manager: tags change through services, with the history."""

    memory_id: int
    objects: ClassVar[models.Manager[Any]]

    pk = models.CompositePrimaryKey("memory_id", "tag_id")
    tag = models.ForeignKey(Tag, on_delete=models.PROTECT, db_index=False, related_name="%(class)s_set")

    class Meta:
        abstract = True
        indexes = [models.Index(fields=["tag", "memory"], name="%(class)s_by_tag")]

    def __str__(self) -> str:
        return f"{self.memory_id} {self.tag_id}"


class LongtermTag(TagLink):
    """A long-term memory carries a tag."""

    memory = models.ForeignKey(LongtermMemory, on_delete=models.CASCADE, db_index=False, related_name="tag_links")


class ShorttermTag(TagLink):
    """A short-term memory carries a tag."""

    memory = models.ForeignKey(ShorttermMemory, on_delete=models.CASCADE, db_index=False, related_name="tag_links")


class BrainTag(TagLink):
    """A brain memory carries a tag."""

    memory = models.ForeignKey(BrainMemory, on_delete=models.CASCADE, db_index=False, related_name="tag_links")
