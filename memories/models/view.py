"""How people look at the lists of memories: views that they saved, and the columns that they want to see."""

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

VIEW_NAME_LENGTH = 100


class SavedView(models.Model):
    """A person's own view of a kind's list. `query` is as in an address, but sorts by the name of a column."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    typ = models.CharField(max_length=10)
    name = models.CharField(_("name"), max_length=VIEW_NAME_LENGTH)
    query = models.TextField(blank=True)
    columns = models.JSONField(default=list)

    objects: ClassVar[models.Manager[Any]]

    class Meta:
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        default_permissions = ()
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["user", "typ", "name"], name="savedview_one_per_name")]

    def __str__(self) -> str:
        # Whoever deletes a person reads this; how he called his views is nobody else's business.
        return f"{self.typ} {self.pk}"


class ListSetting(models.Model):
    """How a person's list of a kind is: its columns, of which null means the usual ones, and the view it opens with."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="list_settings")
    typ = models.CharField(max_length=10)
    columns = models.JSONField(null=True, blank=True)
    start = models.ForeignKey(SavedView, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")

    objects: ClassVar[models.Manager[Any]]

    class Meta:
        verbose_name = _("setting of a list")
        verbose_name_plural = _("settings of lists")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["user", "typ"], name="listsetting_one_per_kind")]

    def __str__(self) -> str:
        return f"{self.typ} {self.pk}"
