"""The app of the project itself: it holds the command that serves."""

from django.apps import AppConfig


class BrainConfig(AppConfig):
    """Holds `manage.py up`."""

    name = "brain"
