"""BRAIN_HTTPS: what changes when TLS ends at a proxy in front, in a process with the settings of an installation."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = """
import json, django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django.contrib.auth.models import User
from django.test import Client
User.objects.create_superuser("anna", password="a long password")
told = {}
def note(name, response):
    told[name] = {
        "status": response.status_code,
        "location": response.headers.get("Location"),
        "hsts": response.headers.get("Strict-Transport-Security"),
        "cookies": {each.key: each.OutputString() for each in response.cookies.values()},
    }
plain, secure = Client(), Client(headers={"X-Forwarded-Proto": "https", "Host": "testserver"}, enforce_csrf_checks=True)
for name, client in (("plain", plain), ("secure", secure)):
    for path in ("/healthz", "/readyz", "/admin/login/", "/api/tools/", "/mcp"):
        note(f"{name} {path}", client.get(path, headers={"Host": "localhost"}))
def token(path):
    page = secure.get(path).content.decode()
    return page.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
given = {"username": "anna", "password": "a long password", "csrfmiddlewaretoken": token("/admin/login/")}
origin = {"Origin": "https://testserver", "Referer": "https://testserver/admin/login/"}
note("signed in", secure.post("/admin/login/", given, headers=origin))
note("admin", secure.get("/admin/"))
given = {"language": "en", "csrfmiddlewaretoken": token("/admin/")}
note("language", secure.post("/i18n/setlang/", given, headers=origin))
print(json.dumps(told))
"""


def environment(folder: Path, **more: str) -> dict[str, str]:
    """That of an installation with otherwise default settings, on SQLite."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BRAIN_", "DATABASE_URL"))}
    return kept | {"BRAIN_DATA": str(folder), "DJANGO_SETTINGS_MODULE": "brain.settings"} | more


def run(arguments: list[str], given: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The outcome of Python."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=given, capture_output=True, text=True, check=False, timeout=120
    )


def told(folder: Path, **more: str) -> dict[str, Any]:
    """What the script saw."""
    done = run(["-c", SCRIPT], environment(folder, BRAIN_ALLOWED_HOSTS="testserver", **more))
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answers


@pytest.mark.parametrize("more", [{}, {"BRAIN_OAUTH": "https://brain.example.org"}], ids=["alone", "with OAuth"])
def test_the_deployment_check_finds_nothing(tmp_path: Path, more: dict[str, str]) -> None:
    if more and find_spec("oauth2_provider") is None:
        pytest.skip("Left out: OAuth, whose packages are not installed.")
    given = environment(tmp_path, BRAIN_HTTPS="1", **more)
    done = run(["manage.py", "check", "--deploy", "--fail-level", "WARNING"], given)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


def test_the_secret_is_made_once_and_kept_for_its_owner_alone(tmp_path: Path) -> None:
    show = ["-c", "import django; django.setup(); from django.conf import settings; print(settings.SECRET_KEY)"]
    first, second = (run(show, environment(tmp_path)).stdout.strip() for _time in range(2))
    other = run(show, environment(tmp_path / "other")).stdout.strip()
    assert first == second == (tmp_path / "secret_key").read_text()
    assert len(first) > 80
    assert other not in {"", first}
    assert (tmp_path / "secret_key").stat().st_mode & 0o777 == 0o600


def test_without_the_deployment_check_warns(tmp_path: Path) -> None:
    done = run(["manage.py", "check", "--deploy", "--fail-level", "WARNING"], environment(tmp_path))
    assert done.returncode == 1
    for code in ("W004", "W008", "W012", "W016"):
        assert f"security.{code}" in done.stderr


def test_with_it_everything_but_health_goes_over_https(tmp_path: Path) -> None:
    answers = told(tmp_path, BRAIN_HTTPS="1")
    assert [answers[f"plain {path}"]["status"] for path in ("/healthz", "/readyz")] == [200, 200]
    for path in ("/admin/login/", "/api/tools/", "/mcp"):
        assert answers[f"plain {path}"]["status"] == 301
        assert answers[f"plain {path}"]["location"] == f"https://localhost{path}"
        assert answers[f"plain {path}"]["cookies"] == {}
        assert answers[f"secure {path}"]["status"] in {200, 401, 405}
        assert answers[f"secure {path}"]["hsts"] == "max-age=31536000"
    assert answers["signed in"]["status"] == 302
    assert answers["admin"]["status"] == 200
    cookies = answers["signed in"]["cookies"] | answers["language"]["cookies"]
    assert set(cookies) == {"__Host-session", "__Host-csrf", "__Host-language"}
    for cookie in cookies.values():
        assert "Secure" in cookie
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        assert "Path=/" in cookie
        assert "Domain" not in cookie
    assert "Max-Age=43200" in cookies["__Host-session"]


def test_without_it_what_a_client_says_about_https_is_not_believed(tmp_path: Path) -> None:
    answers = told(tmp_path, BRAIN_SESSION_HOURS="2")
    for path in ("/admin/login/", "/healthz"):
        for name in ("plain", "secure"):
            assert answers[f"{name} {path}"]["status"] == 200
            assert answers[f"{name} {path}"]["hsts"] is None
    assert answers["signed in"]["status"] == 403  # an origin with https, which this is not


@pytest.mark.parametrize("value", ["ja", "2"])
def test_a_wrong_value_stops_the_start(tmp_path: Path, value: str) -> None:
    done = run(["manage.py", "check"], environment(tmp_path, BRAIN_HTTPS=value))
    assert done.returncode == 1
    assert "BRAIN_HTTPS must be 1 or 0" in done.stderr
