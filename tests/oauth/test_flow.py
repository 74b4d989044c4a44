"""A client connects, uses the rights of a key, and loses them."""

import base64
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.test import override_settings
from django.utils import timezone
from django.utils.html import escape
from django_otp.oath import TOTP
from oauth2_provider.models import AccessToken, Grant, RefreshToken

from memories.models import AccessKey, LongtermVersion
from memories.models import Grant as Reach
from oauth.models import Client, Connection
from oauth.validator import Validator
from tests.admincast import person
from tests.conftest import Agent, note
from tests.oauth.connector import CALLBACK, LENDING, RESOURCE, Connector, key, registered

pytestmark = pytest.mark.django_db


@pytest.fixture
def claude(db: None) -> Connector:
    """A client that keeps no secret."""
    return Connector(registered())


def test_a_client_gets_the_rights_of_the_chosen_key_and_no_more(claude: Connector) -> None:
    chosen, _other = key(nutzer=["anna"]), key("other")
    tokens = claude.connected(chosen)
    assert tokens["token_type"] == "Bearer"
    assert tokens["expires_in"] == 3600
    stored = claude.call(tokens["access_token"], "insert_brain_longterm_memory", memories=[note()]).json()["result"]
    assert stored["structuredContent"]["erfolg"], stored
    version = LongtermVersion.objects.get()
    assert (version.schluessel, version.tuer) == (chosen.name, "mcp")
    refused = claude.call(tokens["access_token"], nutzer="ben").json()["result"]
    assert refused["isError"]
    chosen.refresh_from_db()
    assert chosen.last_used_at is not None


def test_the_rights_are_those_that_the_key_has_now(claude: Connector) -> None:
    chosen = key()
    token = claude.connected(chosen)["access_token"]
    AccessKey.objects.filter(pk=chosen.pk).update(may_write=False)
    assert "error" in claude.call(token, "insert_brain_longterm_memory", memories=[note()]).json()


def test_a_client_with_a_secret_has_to_show_it(db: None) -> None:
    claude = Connector(registered(secret="a secret of the client"), secret="a secret of the client")
    code = claude.allowed(key())
    assert claude.redeem(code, client_secret=None).status_code == 200
    claude.secret = ""
    assert claude.redeem(claude.allowed(key("b"))).json()["error"] == "invalid_client"
    claude.secret = "another"
    assert claude.redeem(claude.allowed(key("c"))).json()["error"] == "invalid_client"


def test_nothing_that_lets_somebody_in_is_kept_as_it_is(claude: Connector) -> None:
    tokens = claude.connected(key())
    kept = str([*AccessToken.objects.values(), *RefreshToken.objects.values(), *Connection.objects.values()])
    assert tokens["access_token"] not in kept
    assert tokens["refresh_token"] not in kept
    assert not Grant.objects.exists()


def test_a_wrong_verifier_gets_nothing(claude: Connector) -> None:
    code = claude.allowed(key())
    assert claude.redeem(code, code_verifier="x" * 64).json()["error"] == "invalid_grant"
    assert claude.redeem(code, code_verifier=None).status_code == 400
    assert not AccessToken.objects.exists()


@pytest.mark.parametrize(
    "changes", [{"code_challenge": None}, {"code_challenge_method": "plain"}, {"code_challenge_method": None}]
)
def test_without_s256_nobody_is_asked(claude: Connector, changes: Any) -> None:
    answer = claude.answered({"key": key().pk, "allow": "1"}, **changes)
    assert answer["error"] == "invalid_request"
    assert answer["iss"] == "https://brain.example.org"
    assert answer["state"] == "what the client remembers"


def test_a_challenge_of_another_length_is_refused(claude: Connector) -> None:
    assert claude.answered({}, code_challenge="x" * 500)["error"] == "invalid_request"


@pytest.mark.parametrize(
    "resource", ["https://other.example.org/mcp", "https://brain.example.org/api/tools/", "x", "["]
)
def test_tokens_for_another_resource_are_not_given(claude: Connector, resource: str) -> None:
    assert claude.answered({"key": key().pk, "allow": "1"}, resource=resource)["error"] == "invalid_target"
    code = claude.allowed(key("b"))
    assert claude.redeem(code, resource=resource).json()["error"] == "invalid_target"
    assert claude.redeem(code, resource=[RESOURCE, resource]).json()["error"] == "invalid_target"
    tokens = claude.redeem(code).json()
    assert claude.renew(tokens["refresh_token"], resource=resource).json()["error"] == "invalid_target"


@pytest.mark.parametrize("resource", [None, RESOURCE + "/", "https://BRAIN.example.org/mcp"])
def test_a_client_may_write_our_resource_as_it_does(claude: Connector, resource: str | None) -> None:
    tokens = claude.redeem(claude.allowed(key(), resource=resource), resource=resource).json()
    assert claude.works(tokens["access_token"])
    assert [token.resource for token in AccessToken.objects.all()] == [[RESOURCE]]


def test_tokens_of_an_earlier_address_are_void(claude: Connector, settings: Any) -> None:
    token = claude.connected(key())["access_token"]
    settings.BRAIN_OAUTH = "https://moved.example.org"
    assert not claude.works(token)


def test_tokens_are_for_mcp_alone(claude: Connector) -> None:
    token = claude.connected(key())["access_token"]
    assert Agent(token, nutzer="anna").post("select_brain_tags", {"inhalt": {}}).status_code == 401


def test_keys_work_as_ever(claude: Connector, anna: Agent) -> None:
    assert anna.call("select_brain_tags")["erfolg"]
    assert claude.works(anna.key)


def test_a_code_that_is_sent_again_ends_the_connection(claude: Connector) -> None:
    code = claude.allowed(key())
    tokens = claude.redeem(code).json()
    assert claude.works(tokens["access_token"])
    assert claude.redeem(code).json()["error"] == "invalid_grant"
    assert not claude.works(tokens["access_token"])
    assert claude.renew(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert not Connection.objects.exists()


def test_a_code_lasts_a_minute_and_is_for_its_client(claude: Connector) -> None:
    code = claude.allowed(key())
    other = Connector(registered(name="Other"), operator=claude.operator)
    assert other.redeem(code, code_verifier=claude.verifier).json()["error"] == "invalid_grant"
    Grant.objects.update(expires=timezone.now())
    assert claude.redeem(code).json()["error"] == "invalid_grant"


def test_tokens_are_renewed_and_the_old_ones_end(claude: Connector) -> None:
    first = claude.connected(key())
    second = claude.renew(first["refresh_token"], scope="brain offline_access").json()
    assert claude.works(second["access_token"])
    assert not claude.works(first["access_token"])
    third = claude.renew(second["refresh_token"]).json()
    assert claude.works(third["access_token"])
    assert Connection.objects.count() == 1


def test_a_renewed_token_that_is_sent_again_ends_the_connection(claude: Connector) -> None:
    first = claude.connected(key())
    second = claude.renew(first["refresh_token"]).json()
    assert claude.renew(first["refresh_token"]).json()["error"] == "invalid_grant"
    assert claude.works(second["access_token"])  # two parts of a client may have been at it at once
    RefreshToken.objects.filter(revoked__isnull=False).update(revoked=timezone.now() - timedelta(seconds=31))
    assert claude.renew(first["refresh_token"]).json()["error"] == "invalid_grant"
    assert not claude.works(second["access_token"])
    assert claude.renew(second["refresh_token"]).json()["error"] == "invalid_grant"
    assert not Connection.objects.exists()


@pytest.mark.parametrize("step", ["validate_code", "confirm_redirect_uri", "validate_refresh_token"])
def test_of_two_requests_at_once_one_gets_tokens(claude: Connector, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    if step == "validate_refresh_token":
        send, secret = claude.renew, claude.connected(key())["refresh_token"]
    else:
        send, secret = claude.redeem, claude.allowed(key())
    judge, between = getattr(Validator, step), []

    def judge_then_be_overtaken(*args: Any, **options: Any) -> bool:
        verdict = judge(*args, **options)
        monkeypatch.setattr(Validator, step, judge)
        between.append(send(secret))
        return bool(verdict)

    monkeypatch.setattr(Validator, step, judge_then_be_overtaken)
    assert send(secret).json()["error"] == "invalid_grant"
    assert claude.works(between[0].json()["access_token"])
    assert AccessToken.objects.count() == 1


def test_another_client_cannot_renew_and_does_no_harm(claude: Connector) -> None:
    tokens = claude.connected(key())
    other = Connector(registered(name="Other"), operator=claude.operator)
    assert other.renew(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert claude.works(tokens["access_token"])


def test_tokens_end_in_time(claude: Connector) -> None:
    tokens = claude.connected(key())
    AccessToken.objects.update(expires=timezone.now())
    assert not claude.works(tokens["access_token"])
    assert claude.works(claude.renew(tokens["refresh_token"]).json()["access_token"])
    tokens = Connector(claude.client, operator=claude.operator).connected(key("b"))
    AccessToken.objects.update(expires=timezone.now() - timedelta(days=30))
    assert claude.renew(tokens["refresh_token"]).json()["error"] == "invalid_grant"


@pytest.mark.parametrize("end", ["revoked", "expired", "account", "deleted"])
def test_what_ends_the_key_ends_its_tokens(claude: Connector, end: str) -> None:
    chosen = key()
    tokens = claude.connected(chosen)
    if end == "revoked":
        chosen.revoke(timezone.now())
    elif end == "expired":
        AccessKey.objects.update(expires_at=timezone.now())
    elif end == "account":
        type(chosen.account).objects.update(is_active=False)
    else:
        chosen.delete()
    assert not claude.works(tokens["access_token"])
    assert claude.renew(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_key_that_ends_while_the_code_travels_gives_no_rights(claude: Connector) -> None:
    chosen = key()
    code = claude.allowed(chosen)
    chosen.revoke(timezone.now())
    tokens = claude.redeem(code).json()
    assert "access_token" not in tokens or not claude.works(tokens["access_token"])


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
def test_a_client_gives_its_rights_back(claude: Connector, which: str) -> None:
    tokens = claude.connected(key())
    other = Connector(registered(name="Other"), operator=claude.operator)
    for connector, works in ((other, True), (claude, False)):
        sent = {"token": tokens[which], "client_id": connector.client.client_id}
        assert connector.http.post("/oauth/revoke", sent).status_code == 200
        assert claude.works(tokens["access_token"]) is works
    assert not RefreshToken.objects.exists()
    assert not Connection.objects.exists()


@pytest.mark.parametrize(
    "grant", ["password", "client_credentials", "urn:ietf:params:oauth:grant-type:device_code", ""]
)
def test_there_are_no_other_grants(claude: Connector, grant: str) -> None:
    response = claude.token(grant_type=grant, username="olga", password="a long password")
    assert response.json()["error"] == "unsupported_grant_type"


def test_what_no_client_sends_is_refused(claude: Connector) -> None:
    assert claude.token(grant_type="authorization_code", code="a\0b").status_code == 400
    assert claude.http.post("/oauth/token?code=%zz", {}).status_code == 400
    basic = f"Basic {base64.b64encode(b'a%00b:c').decode()}"
    response = claude.http.post(
        "/oauth/token", {"grant_type": "authorization_code", "code": "a"}, headers={"Authorization": basic}
    )
    assert response.json()["error"] == "invalid_client"
    assert claude.http.post("/oauth/revoke", {"token": "\0"}).status_code == 400
    assert claude.http.get("/oauth/token").status_code == 405
    for query in ("%zz", "", "client_id=a%00b", "client_id=nobody", f"client_id={claude.client.client_id}&client_id=b"):
        assert claude.operator.get(f"/oauth/authorize?{query}").status_code == 400
    assert claude.call("a" * 5000).status_code == 401
    assert claude.call("é").status_code == 401


def test_clean_up_removes_what_nobody_can_use(claude: Connector) -> None:
    alive, revoked = key(), key("revoked")
    tokens = claude.connected(alive)
    claude.connected(revoked)
    claude.allowed(key("never taken"))
    call_command("clean_up")
    assert Connection.objects.count() == 3
    revoked.revoke(timezone.now())
    document = Client.RegistrationSource.CIMD
    registered(name="Seen once", client_id="https://x.example.org/c", registration_source=document)
    Connection.objects.update(granted_at=timezone.now() - timedelta(hours=2))
    Grant.objects.update(expires=timezone.now() - timedelta(hours=2))
    call_command("clean_up")
    assert [connection.key for connection in Connection.objects.all()] == [alive]
    assert not Grant.objects.exists()
    assert [client.name for client in Client.objects.all()] == ["Claude"]
    assert claude.works(tokens["access_token"])
    AccessToken.objects.update(expires=timezone.now() - timedelta(days=31))
    call_command("clean_up")
    assert not Connection.objects.exists()
    assert not AccessToken.objects.exists()
    assert not RefreshToken.objects.exists()


def test_whoever_may_not_change_keys_lends_none(claude: Connector) -> None:
    chosen = key()
    for permissions in ((), LENDING[:1], LENDING[1:]):
        claude.operator = person(f"person {len(permissions)} {permissions}", permissions)
        for response in (claude.ask(), claude.operator.post(claude.question(), {"key": chosen.pk, "allow": "1"})):
            assert response.status_code == 403
            assert chosen.name not in response.content.decode()
    claude.operator = claude.http
    response = claude.ask()
    assert response.status_code == 302
    assert response["Location"].startswith("/admin/login/?next=/oauth/authorize")
    assert not Connection.objects.exists()


def test_nobody_lends_a_key_that_may_do_more_than_he(claude: Connector) -> None:
    wide, own = key("wide"), key("own", nutzer=["anna"])
    Reach.objects.update(nutzer=["anna"])
    page = claude.ask().content.decode()
    assert f'value="{own.pk}"' in page
    assert "wide" not in page
    refused = claude.operator.post(claude.question(), {"key": wide.pk, "allow": "1"})
    assert refused.status_code == 200
    assert not Grant.objects.exists()
    assert claude.works(claude.connected(own)["access_token"])


def test_the_person_may_refuse(claude: Connector) -> None:
    key()
    answer = claude.answered({"deny": "Refuse"})
    assert answer == {
        "error": "access_denied",
        "state": "what the client remembers",
        "iss": "https://brain.example.org",
    }


def test_every_connection_is_asked_about(claude: Connector) -> None:
    claude.connected(key())
    for changes in ({}, {"approval_prompt": "auto"}, {"prompt": "none"}):
        assert claude.ask(**changes).status_code == 200


def test_a_client_cannot_choose_the_key_itself(claude: Connector) -> None:
    chosen = key()
    tricks = {"key": chosen.pk, "access_key": chosen.pk, "allow": "1", "scope": f"key:{chosen.prefix}"}
    assert claude.ask(**tricks).status_code == 200
    page = claude.operator.post(claude.question(**tricks), {"allow": "Allow"})
    assert page.status_code == 200
    assert "This field is required" in page.content.decode()
    assert not Connection.objects.exists()


def test_an_ended_key_cannot_be_chosen(claude: Connector) -> None:
    chosen = key()
    chosen.revoke(timezone.now())
    page = claude.operator.post(claude.question(), {"key": chosen.pk, "allow": "Allow"})
    assert page.status_code == 200
    assert "There is no usable access key" in page.content.decode()


@pytest.mark.parametrize(
    "address", ["https://evil.example.org/", f"{CALLBACK}/../x", f"{CALLBACK}?x=1", "javascript:alert(1)"]
)
def test_codes_go_to_registered_addresses_alone(claude: Connector, address: str) -> None:
    response = claude.operator.post(claude.question(redirect_uri=address), {"key": key().pk, "allow": "1"})
    assert response.status_code == 400
    assert not Connection.objects.exists()


@override_settings(BRAIN_TOTP_REQUIRED=True)
def test_whoever_has_to_set_up_a_second_factor_first_comes_back_to_the_page(claude: Connector) -> None:
    led = claude.ask()
    assert led.status_code == 302
    page = claude.operator.get(led["Location"]).content.decode()
    secret = page.partition('<code class="secret">')[2].partition("<")[0].replace(" ", "")
    code = f"{TOTP(base64.b32decode(secret)).token():06}"
    shown = claude.operator.post(led["Location"], {"otp_token": code, "switch_on": "x"}).content.decode()
    assert f'href="{escape(claude.question())}"' in shown
    assert claude.ask().status_code == 200
