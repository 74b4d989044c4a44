"""The apps that the project sets up: its own, which holds the command that serves, and the admin."""

from django.apps import AppConfig
from django.contrib.admin import apps as admin


class BrainConfig(AppConfig):
    """Holds `manage.py up`."""

    default = True
    name = "brain"


class AdminConfig(admin.AdminConfig):
    """The admin with our site."""

    default = False
    default_site = "memories.site.BrainSite"
