"""Brain's settings, with the suite's fixtures at the address of MCP."""

from brain.settings import *  # noqa: F403
from brain.settings import LOGGING

ROOT_URLCONF = "tests.conformance.urls"
LOGGING["loggers"]["django.security.DisallowedHost"] = {"level": "CRITICAL"}  # the suite sends foreign hosts on purpose
