"""OAuth: not there unless it is switched on; the tests with it on, in tests/oauth, run in a process of their own."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from brain import env

ROOT = Path(__file__).parent.parent
IN_CI = os.environ.get("CI") == "true"
INSTALLED = find_spec("oauth2_provider") is not None


@pytest.mark.django_db
def test_nothing_of_it_is_there(client: Client) -> None:
    assert not apps.is_installed("oauth")
    assert not apps.is_installed("oauth2_provider")
    for path in ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"):
        response = client.get(path)
        assert response.status_code == 404
        assert response.json()["fehler"]["code"] == "unbekannte_adresse"
    assert client.get("/oauth/authorize").status_code == 404
    assert client.post("/mcp", {}, content_type="application/json")["WWW-Authenticate"] == 'Bearer realm="brain"'


@pytest.mark.parametrize(
    "address",
    ["1", "brain.example.org", "http://brain.example.org", "https://brain.example.org/x", "https://a b", "https://a?b"],
)
def test_an_address_that_cannot_be_reached_stops_the_start(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAIN_OAUTH", address)
    with pytest.raises(ImproperlyConfigured, match="BRAIN_OAUTH must be like"):
        env.public_address("BRAIN_OAUTH")


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("", ""),
        (" https://Brain.example.org/ ", "https://brain.example.org"),
        ("https://brain.example.org:8443", "https://brain.example.org:8443"),
        ("http://localhost:8000", "http://localhost:8000"),
    ],
)
def test_the_address_in_its_one_form(given: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAIN_OAUTH", given)
    assert env.public_address("BRAIN_OAUTH") == address


def test_what_is_missing_is_said_at_the_start() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"BRAIN_OAUTH needs more packages: pip install '\.\[oauth\]'"):
        env.needs("BRAIN_OAUTH", "no_such_module", "oauth")


@pytest.mark.skipif(not INSTALLED and not IN_CI, reason="django-oauth-toolkit is not installed")
@pytest.mark.parametrize(
    "command",
    [
        ["-m", "pytest", "-p", "tests.oauth.environment", "tests/oauth"],
        ["manage.py", "check", "--fail-level", "WARNING"],
        ["manage.py", "makemigrations", "--check", "--dry-run"],
    ],
    ids=["tests", "check", "migrations"],
)
def test_with_oauth_on(command: list[str], tmp_path: Path) -> None:
    environment = os.environ | {"BRAIN_OAUTH": "https://brain.example.org", "BRAIN_DATA": str(tmp_path)}
    if environment.get("DATABASE_URL"):
        # The database of these tests is not the one that is in use for the others.
        given = urlsplit(environment["DATABASE_URL"])
        environment["DATABASE_URL"] = given._replace(path=f"{given.path}_oauth").geturl()
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
