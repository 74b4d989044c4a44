"""The app of the domain."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MemoriesConfig(AppConfig):
    """Memories, tags, history, access keys."""

    name = "memories"
    verbose_name = _("Memories")
