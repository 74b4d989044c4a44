"""The project's settings, with the plain view beside it that it is compared with."""

from brain.settings import *  # noqa: F403
from brain.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "taggit", "simple_history", "bench.plain"]
ROOT_URLCONF = "bench.urls"
TAGGIT_CASE_INSENSITIVE = True
