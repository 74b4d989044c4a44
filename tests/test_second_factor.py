"""The second factor: switching it on and off, what the sign-in asks from then on, and what happens when it is lost."""

import logging
import re
import time
from base64 import b32decode
from typing import Any
from urllib.parse import urlencode

import pytest
from axes.models import AccessAttempt
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.test import Client, override_settings
from django.urls import reverse
from django_otp.oath import TOTP
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from memories import second_factor
from memories.admin.signing_in import Backend

pytestmark = pytest.mark.django_db
PASSWORD = "a long password"
PAGE = "/admin/auth/user/second-factor/"
ENGLISH = {"Accept-Language": "en"}


def code_of(secret: bytes, steps: int = 0) -> str:
    """What the app shows, now or some steps of 30 seconds later."""
    totp = TOTP(secret, drift=steps)
    return f"{totp.token():06d}"


def shown_secret(page: str) -> bytes:
    """The secret that the page shows."""
    found = re.search(r'<code class="secret">([A-Z2-7 ]+)</code>', page)
    assert found, page
    return b32decode(found[1].replace(" ", ""))


def switched_on(client: Client) -> tuple[bytes, list[str]]:
    """Switch it on as a person does: the secret and the recovery codes."""
    secret = shown_secret(client.get(PAGE).content.decode())
    page = client.post(PAGE, {"otp_token": code_of(secret), "switch_on": "x"}).content.decode()
    codes = re.findall(r"<li><code>([a-z2-7]{8})</code></li>", page)
    assert len(codes) == second_factor.RECOVERY_CODES, page
    return secret, codes


def later() -> None:
    """As if some time had passed: no throttling, and the code of this moment was not used."""
    TOTPDevice.objects.update(last_t=-1, throttling_failure_count=0, throttling_failure_timestamp=None)
    StaticDevice.objects.update(throttling_failure_count=0, throttling_failure_timestamp=None)


def sign_in(code: str = "", password: str = PASSWORD, name: str = "anna", client: Client | None = None) -> Any:
    """The response to a sign-in."""
    client = client or Client(headers=ENGLISH)
    return client.post("/admin/login/", {"username": name, "password": password, "otp_token": code})


@pytest.fixture
def user() -> User:
    """Anna, who may change nobody."""
    return User.objects.create_user("anna", password=PASSWORD, is_staff=True)


@pytest.fixture
def anna(user: User) -> Client:
    """She is signed in."""
    client = Client(headers=ENGLISH)
    client.force_login(user)
    return client


def test_the_page_shows_the_secret_a_link_and_a_picture(anna: Client) -> None:
    response = anna.get(PAGE)
    page = response.content.decode()
    secret = re.search(r'class="secret">([A-Z2-7 ]+)<', page)
    assert secret
    assert f"otpauth://totp/Brain%3Aanna?secret={secret[1].replace(' ', '')}" in page
    picture = re.search(r"<svg[^>]*>.*?</svg>", page[page.index('class="qr"') :], re.DOTALL)
    assert picture
    assert "style" not in picture[0]
    assert "script" not in picture[0]
    assert "no-store" in response["Cache-Control"]
    assert anna.get(PAGE).content.decode().count(secret[1]) == 1
    assert not TOTPDevice.objects.exists()


def test_from_then_on_the_sign_in_asks_for_the_code(anna: Client) -> None:
    secret, _codes = switched_on(anna)
    assert anna.get("/admin/").status_code == 200
    later()
    assert sign_in().status_code == 200
    assert sign_in("000000").status_code == 200
    later()
    assert sign_in(code_of(secret), password="wrong").status_code == 200
    client = Client()
    assert sign_in(f" {code_of(secret)[:3]} {code_of(secret)[3:]} ", client=client).status_code == 302
    assert client.get("/admin/").status_code == 200


def test_a_code_is_good_once(anna: Client) -> None:
    secret = shown_secret(anna.get(PAGE).content.decode())
    code = code_of(secret)
    anna.post(PAGE, {"otp_token": code, "switch_on": "x"})
    assert sign_in(code).status_code == 200
    later()
    assert sign_in(code).status_code == 302
    assert sign_in(code).status_code == 200


def test_the_page_does_not_tell_which_of_the_three_is_wrong(anna: Client) -> None:
    secret, _codes = switched_on(anna)
    later()
    told = {
        re.findall(r'class="errornote">([^<]*)<', sign_in(*given).content.decode())[0]
        for given in (("",), ("000000",), (code_of(secret), "wrong"), ("", "wrong", "nobody"))
    }
    assert len(told) == 1


def test_wrong_codes_are_throttled_and_lock(anna: Client) -> None:
    secret, _codes = switched_on(anna)
    later()
    assert sign_in("000000").status_code == 200
    TOTPDevice.objects.update(throttling_failure_count=8)  # a wait that outlasts the check of a password
    assert sign_in(code_of(secret)).status_code == 200, "the right one comes too soon after a wrong one"
    assert [sign_in("000000").status_code for _time in range(3)] == [200, 200, 429]
    later()
    assert sign_in(code_of(secret)).status_code == 429


def test_each_recovery_code_signs_in_once(anna: Client) -> None:
    _secret, codes = switched_on(anna)
    assert sign_in(codes[0].upper()).status_code == 302
    assert sign_in(codes[0]).status_code == 200
    later()
    client = Client(headers=ENGLISH)
    assert sign_in(codes[1], client=client).status_code == 302
    assert "8 recovery codes are unused" in client.get(PAGE).content.decode()


def test_mistyped_codes_of_the_app_do_not_throttle_recovery_codes(anna: Client) -> None:
    _secret, codes = switched_on(anna)
    for _time in range(3):
        sign_in("000000")
    assert sign_in(codes[0]).status_code == 302


def test_nothing_secret_is_shown_again(anna: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        secret, codes = switched_on(anna)
        page = anna.get(PAGE).content.decode()
        again = anna.post(PAGE, {"otp_token": code_of(secret), "switch_on": "x"})
    assert again.status_code == 302
    device = TOTPDevice.objects.get()
    spelled = second_factor.spelled(device.key)
    boss = User.objects.create_superuser("chefin")
    admin = Client()
    admin.force_login(boss)
    person = f"/admin/auth/user/{device.user_id}"
    addresses = ("/admin/", "/admin/auth/user/", f"{person}/change/", f"{person}/history/", f"{person}/delete/")
    pages = [page, caplog.text, *(admin.get(address).content.decode() for address in addresses)]
    pages += [str(list(LogEntry.objects.values())), *(str(each.get_decoded()) for each in Session.objects.all())]
    for text in (device.key, spelled, spelled.replace(" ", ""), *codes):
        assert not any(text in each for each in pages)
    for name in ("otp_totp_totpdevice", "otp_static_staticdevice"):
        assert admin.get(f"/admin/{name.replace('_', '/', 1)}/").status_code == 404
    assert StaticToken.objects.count() == len(codes)


def test_a_wrong_code_switches_nothing_on_and_keeps_the_secret(anna: Client) -> None:
    secret = shown_secret(anna.get(PAGE).content.decode())
    for code in ("", "abc", "１２３４５６", code_of(secret, 5)):
        page = anna.post(PAGE, {"otp_token": code, "switch_on": "x"}).content.decode()
        assert shown_secret(page) == secret
    assert not TOTPDevice.objects.exists()
    assert not StaticDevice.objects.exists()


def test_other_sessions_end_when_it_is_switched_on(anna: Client, user: User) -> None:
    other = Client()
    other.force_login(user)
    assert other.get("/admin/").status_code == 200
    switched_on(anna)
    response = other.get("/admin/")
    assert (response.status_code, response["Location"]) == (302, "/admin/login/?next=/admin/")
    assert "_auth_user_id" not in other.session
    assert anna.get("/admin/").status_code == 200


def test_switching_off_takes_password_and_code_and_counts_failures(anna: Client) -> None:
    secret, codes = switched_on(anna)
    later()
    for given in ({"password": "wrong", "otp_token": code_of(secret)}, {"password": PASSWORD, "otp_token": "000000"}):
        assert "not right" in anna.post(PAGE, given | {"switch_off": "x"}).content.decode()
    assert AccessAttempt.objects.get().failures_since_start == 2
    off = anna.post(PAGE, {"password": PASSWORD, "otp_token": codes[0], "switch_off": "x"})
    assert off.status_code == 302
    assert not TOTPDevice.objects.exists()
    assert not StaticToken.objects.exists()
    assert anna.get("/admin/").status_code == 200
    assert sign_in().status_code == 302


def test_guessing_in_an_open_session_locks_too(anna: Client) -> None:
    switched_on(anna)
    given = {"password": "wrong", "otp_token": "000000", "switch_off": "x"}
    assert [anna.post(PAGE, given).status_code for _time in range(5)] == [200, 200, 200, 200, 429]


def test_what_became_of_it_stands_in_the_record(anna: Client, user: User) -> None:
    _secret, codes = switched_on(anna)
    anna.post(PAGE, {"password": PASSWORD, "otp_token": codes[0], "switch_off": "x"})
    entries = LogEntry.objects.filter(object_id=str(user.pk)).order_by("pk")
    assert [(entry.user, entry.change_message) for entry in entries] == [
        (user, "Second factor switched on."),
        (user, "Second factor switched off."),
    ]


@pytest.fixture
def administrator() -> Client:
    """Of the role, but no superuser."""
    boss = User.objects.create_user("chefin", password=PASSWORD, is_staff=True)
    boss.groups.add(Group.objects.get(name="Administrator"))
    client = Client(headers=ENGLISH)
    client.force_login(boss)
    return client


def test_an_administrator_removes_what_somebody_lost(anna: Client, user: User, administrator: Client) -> None:
    switched_on(anna)
    change = reverse("admin:auth_user_change", args=[user.pk])
    remove = reverse("admin:auth_user_remove_second_factor", args=[user.pk])
    assert remove in administrator.get(change).content.decode()
    assert "anna" in administrator.get(remove).content.decode()
    assert TOTPDevice.objects.exists()
    assert administrator.post(remove).status_code == 302
    assert not TOTPDevice.objects.exists()
    entry = LogEntry.objects.latest("pk")
    assert (entry.user.username, entry.object_id, entry.change_message) == (
        "chefin",
        str(user.pk),
        "Second factor removed.",
    )
    assert remove not in administrator.get(change).content.decode()
    assert sign_in().status_code == 302


def test_only_superusers_remove_a_superusers(anna: Client, user: User, administrator: Client) -> None:
    switched_on(anna)
    remove = reverse("admin:auth_user_remove_second_factor", args=[user.pk])
    User.objects.filter(pk=user.pk).update(is_superuser=True)
    for client in (administrator, _signed_in("ben"), Client()):
        assert client.get(remove).status_code in {302, 403}
        assert client.post(remove).status_code in {302, 403}
    assert TOTPDevice.objects.exists()
    User.objects.create_superuser("root")
    root = Client()
    root.force_login(User.objects.get(username="root"))
    root.post(remove)
    assert not TOTPDevice.objects.exists()


def test_nobody_removes_the_own_one_without_password_and_code(administrator: Client) -> None:
    switched_on(administrator)
    own = User.objects.get(username="chefin")
    remove = reverse("admin:auth_user_remove_second_factor", args=[own.pk])
    for response in (administrator.get(remove), administrator.post(remove)):
        assert response["Location"] == PAGE
    assert TOTPDevice.objects.exists()


def _signed_in(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.create_user(name, is_staff=True))
    return client


def test_the_machine_gives_out_a_recovery_code(anna: Client, capsys: pytest.CaptureFixture[str]) -> None:
    switched_on(anna)
    call_command("addstatictoken", "anna")
    assert sign_in(capsys.readouterr().out.strip()).status_code == 302


@override_settings(BRAIN_TOTP_REQUIRED=True)
def test_where_it_is_required_people_are_led_to_the_page_first(anna: Client) -> None:
    for address in ("/admin/", "/admin/memories/longtermmemory/", "/admin/password_change/"):
        response = anna.get(address)
        assert (response.status_code, response["Location"]) == (302, f"{PAGE}?next={address}")
    posted = anna.post("/admin/password_change/", {})
    assert (posted.status_code, posted["Location"]) == (302, PAGE)
    assert "everybody needs a second factor" in anna.get(PAGE).content.decode()
    assert anna.post("/i18n/setlang/", {"language": "de"}).status_code == 302
    switched_on(anna)
    assert anna.get("/admin/").status_code == 200


@override_settings(BRAIN_TOTP_REQUIRED=True)
def test_where_it_is_required_machines_and_strangers_notice_nothing() -> None:
    assert Client().get("/healthz").status_code == 200
    assert Client().get("/api/tools/").status_code == 401
    assert Client().get("/admin/login/").status_code == 200


def test_no_way_of_asking_for_the_password_goes_around_the_code(anna: Client, user: User, rf: Any) -> None:
    switched_on(anna)
    assert Backend().authenticate(rf.post("/"), "anna", PASSWORD) is None
    assert Backend().authenticate(None, "anna", PASSWORD, otp_token="") is None


def test_clocks_may_differ_by_half_a_minute(anna: Client) -> None:
    secret = shown_secret(anna.get(PAGE).content.decode())
    while time.time() % 30 > 25:  # the step must not change between here and there
        time.sleep(0.5)
    page = anna.post(PAGE, {"otp_token": code_of(secret, -1), "switch_on": "x"}).content.decode()
    assert "recovery-codes" in page
    assert sign_in(code_of(secret, -1)).status_code == 200


@override_settings(BRAIN_TOTP_REQUIRED=True)
@pytest.mark.parametrize(
    ("wanted", "goes_on"),
    [
        ("/admin/memories/tag/?q=a&p=2", "/admin/memories/tag/?q=a&amp;p=2"),
        *((foreign, "/admin/") for foreign in ("https://evil.example/", "//evil.example/", "javascript:alert(1)", "")),
    ],
)
def test_whoever_was_led_to_the_page_goes_on_where_he_wanted_but_nowhere_else(
    anna: Client, wanted: str, goes_on: str
) -> None:
    address = f"{PAGE}?{urlencode({'next': wanted})}"
    if goes_on != "/admin/":
        address = anna.get(wanted)["Location"]
    secret = shown_secret(anna.get(address).content.decode())
    page = anna.post(address, {"otp_token": code_of(secret), "switch_on": "x"}).content.decode()
    assert f'<a class="button" href="{goes_on}">' in page
    assert not re.search("""(href|action)="[^"/]*(//|:)[^"]*(evil|alert)""", page)
    assert anna.get("/admin/").status_code == 200
