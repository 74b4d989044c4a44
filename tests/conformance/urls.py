"""The fixtures at the address of MCP, everything else as in Brain."""

from django.urls import re_path

from brain.urls import handler400, handler403, handler404, handler500, urlpatterns
from tests.conformance.view import FixturesView

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]

urlpatterns = [re_path(r"^mcp/?$", FixturesView.as_view()), *urlpatterns]
