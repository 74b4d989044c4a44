"""The app of the machines' doors."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """REST over the tool envelope."""

    name = "api"
