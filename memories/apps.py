"""The app of the domain."""

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class MemoriesConfig(AppConfig):
    """Memories, tags, history, access keys."""

    name = "memories"
    verbose_name = _("Memories")

    def ready(self) -> None:
        """Stop the start when the embedder of the settings cannot be one: its package is missing, or its address."""
        from memories.roles import keep_roles  # noqa: PLC0415 - models are there only now
        from memories.search import embedder  # noqa: PLC0415

        embedder.serving()
        # The app of people comes after this one, so the permissions for memories are there by then.
        post_migrate.connect(keep_roles, sender=apps.get_app_config("auth"))
