"""These tests run with OAuth on; tests/test_oauth.py sees to that."""

from django.conf import settings

collect_ignore_glob = [] if settings.BRAIN_OAUTH else ["test_*.py"]
