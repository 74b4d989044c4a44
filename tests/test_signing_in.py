"""Signing in: after some failures it is locked for a while, and nobody learns more than he must."""

import logging
import re
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client, override_settings
from django.utils import timezone, translation

from memories.admin.signing_in import address_of

pytestmark = pytest.mark.django_db
PASSWORD = "a long password"
LOGIN = "/admin/login/"


@pytest.fixture(autouse=True)
def _anna() -> None:
    User.objects.create_superuser("anna", password=PASSWORD)


def attempt(password: str = "wrong", name: str = "anna", client: Client | None = None, **more: Any) -> Any:
    """The response to somebody who tries to sign in."""
    client = client or Client(headers={"Accept-Language": "en"})
    return client.post(LOGIN, {"username": name, "password": password}, **more)


def fail(times: int, **more: Any) -> None:
    """Fail that often."""
    for _time in range(times):
        assert attempt(**more).status_code == 200


def test_the_fifth_failure_locks_for_a_quarter_of_an_hour() -> None:
    fail(4)
    locked = attempt()
    page = locked.content.decode()
    assert locked.status_code == 429
    assert "Try again in 15 minutes" in page
    until = timezone.localtime(AccessAttempt.objects.get().attempt_time + timedelta(minutes=15))
    assert f"Signing in is locked until {until:%H:%M}." in page
    assert 880 <= int(locked["Retry-After"]) <= 900
    assert "no-store" in locked["Cache-Control"]
    assert attempt(PASSWORD).status_code == 429
    german = attempt(PASSWORD, client=Client())
    assert "Die Anmeldung ist bis" in german.content.decode()


def test_it_opens_again_and_an_attempt_while_it_is_locked_does_not_prolong_it() -> None:
    fail(4)
    assert attempt().status_code == 429
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=14))
    assert attempt(PASSWORD).status_code == 429
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=16))
    assert attempt(PASSWORD).status_code == 302


def test_success_forgets_the_failures() -> None:
    fail(4)
    assert attempt(PASSWORD).status_code == 302
    assert not AccessAttempt.objects.exists()
    fail(4)


def test_the_lock_is_for_one_name_from_one_address() -> None:
    User.objects.create_superuser("ben", password=PASSWORD)
    fail(4)
    assert attempt().status_code == 429
    assert attempt(PASSWORD, name="ben").status_code == 302
    assert attempt(PASSWORD, REMOTE_ADDR="10.1.2.3").status_code == 302


def test_another_browser_counts_with_the_first() -> None:
    fail(2)
    fail(2, headers={"User-Agent": "another"})
    assert attempt(headers={"User-Agent": "a third"}).status_code == 429


@override_settings(AXES_FAILURE_LIMIT=2, AXES_COOLOFF_TIME=timedelta(minutes=3))
def test_both_numbers_are_settings() -> None:
    fail(1)
    assert "Try again in 3 minutes" in attempt().content.decode()


def test_names_that_nobody_has_are_locked_like_others() -> None:
    fail(4, name="nobody")
    assert attempt(name="nobody").status_code == 429


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "1.2.3.4", "10.0.0.9"),
        (1, "1.2.3.4", "1.2.3.4"),
        (1, "6.6.6.6, 1.2.3.4", "1.2.3.4"),
        (2, "6.6.6.6, 1.2.3.4, 10.0.0.8", "1.2.3.4"),
        (2, "1.2.3.4", "10.0.0.9"),
        (1, "", "10.0.0.9"),
        (1, "unknown", "10.0.0.9"),
        (1, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        (1, "::ffff:1.2.3.4", "1.2.3.4"),
    ],
)
def test_the_address_is_the_one_that_the_nearest_trusted_proxies_tell(
    rf: Any, proxies: int, forwarded: str, address: str
) -> None:
    with override_settings(BRAIN_PROXIES=proxies):
        assert address_of(rf.get("/", REMOTE_ADDR="10.0.0.9", HTTP_X_FORWARDED_FOR=forwarded)) == address


def test_neither_log_nor_table_holds_what_was_typed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        for _time in range(5):
            attempt("geheimnis-im-kopf", HTTP_USER_AGENT="agent-im-kopf")
        attempt(PASSWORD, REMOTE_ADDR="10.1.2.3")
    told = caplog.text
    assert "login failure by somebody" in told
    for text in ("anna", "127.0.0.1", "10.1.2.3", "agent-im-kopf", "geheimnis", PASSWORD):
        assert text not in told
    (row,) = AccessAttempt.objects.values()
    assert "geheimnis" not in str(row)
    assert re.search(r"csrf\w*=(?!\*+$)", row["post_data"]) is None


def test_the_operator_can_unlock_and_clean_up(capsys: pytest.CaptureFixture[str]) -> None:
    fail(4)
    assert attempt().status_code == 429
    call_command("axes_reset_username", "anna")
    assert attempt(PASSWORD).status_code == 302
    fail(1)
    call_command("clean_up")
    assert AccessAttempt.objects.exists()
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=16))
    with translation.override("en"):
        call_command("clean_up")
    assert not AccessAttempt.objects.exists()
    assert "sign in forgotten: 1" in capsys.readouterr().out


def test_signing_in_gives_a_new_session_whose_cookie_scripts_cannot_read() -> None:
    client = Client()
    client.cookies["sessionid"] = "chosenbysomebodyelse0000000000000"
    client.get(LOGIN)
    session = client.session
    session["before"] = 1
    session.save()
    before = session.session_key
    client.cookies["sessionid"] = before or ""
    response = client.post(LOGIN, {"username": "anna", "password": PASSWORD})
    cookie = response.cookies["sessionid"]
    assert cookie.value not in {before, "chosenbysomebodyelse0000000000000", ""}
    assert (cookie["httponly"], cookie["samesite"], cookie["max-age"]) == (True, "Lax", 12 * 60 * 60)
    other = Client()
    other.cookies["sessionid"] = before or ""
    assert other.get("/admin/").status_code == 302
