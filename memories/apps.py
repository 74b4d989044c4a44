"""The app of the domain."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MemoriesConfig(AppConfig):
    """Memories, tags, history, access keys."""

    name = "memories"
    verbose_name = _("Memories")

    def ready(self) -> None:
        """Stop the start when the embedder of the settings cannot be one: its package is missing, or its address."""
        from memories.search import embedder  # noqa: PLC0415 - models are there only now

        embedder.serving()
