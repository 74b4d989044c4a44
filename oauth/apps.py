"""The app; it is installed when BRAIN_OAUTH is set."""

from django.apps import AppConfig


class OAuthConfig(AppConfig):
    """OAuth."""

    name = "oauth"
    verbose_name = "OAuth"
