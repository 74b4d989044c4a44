"""Clients and connections in the admin: what an operator sees, enters and ends."""

import re
from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client as Http
from django.utils import timezone
from oauth2_provider.models import AccessToken, RefreshToken

from oauth.models import Client, Connection
from tests.admincast import form, person
from tests.oauth.connector import CALLBACK, ISSUER, Connector, key, registered

pytestmark = pytest.mark.django_db
CLIENTS = "/admin/oauth/client/"
CONNECTIONS = "/admin/oauth/connection/"


@pytest.fixture
def anna() -> Http:
    """Administrator."""
    return person("anna", superuser=True)


def enter(anna: Http, **changes: Any) -> Any:
    """The page after a client was entered."""
    sent = form(anna, f"{CLIENTS}add/") | {"name": "ChatGPT", "redirect_uris": f"{CALLBACK}\r\nhttps://b.example/x"}
    return anna.post(f"{CLIENTS}add/", sent | {"with_secret": "on"} | changes)


def test_a_secret_is_shown_once_and_works(anna: Http) -> None:
    page = enter(anna)
    client = Client.objects.get()
    secret = page.context["client"].text
    shown = page.content.decode()
    assert secret in shown
    assert client.client_id in shown
    assert "no-store" in page["Cache-Control"]
    for address in (CLIENTS, f"{CLIENTS}{client.pk}/change/", f"{CLIENTS}{client.pk}/history/", "/admin/"):
        shown = anna.get(address).content.decode()
        assert secret not in shown
        assert client.client_secret not in shown
    assert not any(secret in str(session.get_decoded()) for session in Session.objects.all())
    assert not any(secret in str(entry.__dict__) for entry in LogEntry.objects.all())
    chatgpt = Connector(client, operator=anna, secret=secret)
    assert chatgpt.works(chatgpt.connected(key())["access_token"])


def test_a_client_without_a_secret(anna: Http) -> None:
    page = enter(anna, with_secret="")
    assert page.context["client"].text == ""
    local = Connector(Client.objects.get(), operator=anna)
    assert local.works(local.connected(key())["access_token"])


@pytest.mark.parametrize("address", ["http://evil.example.org/x", "javascript:alert(1)", "x", "https://", ""])
def test_addresses_that_codes_must_not_go_to_are_refused(anna: Http, address: str) -> None:
    assert "errorlist" in enter(anna, redirect_uris=address).content.decode()
    assert not Client.objects.exists()


def test_a_changed_client_keeps_its_secret(anna: Http) -> None:
    secret = enter(anna).context["client"].text
    client = Client.objects.get()
    address = f"{CLIENTS}{client.pk}/change/"
    fields = form(anna, address)
    assert fields["redirect_uris"].split() == [CALLBACK, "https://b.example/x"]
    assert anna.post(address, fields | {"name": "Neu", "redirect_uris": CALLBACK}).status_code == 302
    client.refresh_from_db()
    assert (client.name, client.redirect_uris) == ("Neu", CALLBACK)
    chatgpt = Connector(client, operator=anna, secret=secret)
    assert chatgpt.works(chatgpt.connected(key())["access_token"])


def test_what_a_document_says_is_not_changed(anna: Http) -> None:
    known = registered(client_id="https://x.example.org/c", registration_source=Client.RegistrationSource.CIMD)
    page = anna.get(f"{CLIENTS}{known.pk}/change/").content.decode()
    assert 'name="redirect_uris"' not in page
    assert "its document" in page


def test_the_operator_sees_who_has_what_and_ends_it(anna: Http) -> None:
    claude = Connector(registered())
    first, second = key(), key("second")
    tokens, others = claude.connected(first), claude.connected(second)
    claude.allowed(key("third"))
    page = anna.get(CONNECTIONS).content.decode()
    for told in ("Claude", "planer", "second", "third", "olga", "active", "allowed, not yet taken up"):
        assert told in page
    connection = Connection.objects.get(key=first)
    assert LogEntry.objects.filter(user__username="olga", object_id=str(connection.pk), action_flag=ADDITION).exists()
    for secret in (connection.code_checksum, tokens["access_token"], str(connection.family)):
        assert secret not in anna.get(f"{CONNECTIONS}{connection.pk}/change/").content.decode()
    address = f"{CONNECTIONS}{connection.pk}/delete/"
    assert claude.works(tokens["access_token"])
    assert anna.get(address).status_code == 200
    assert anna.post(address, {"post": "yes"}).status_code == 302
    assert not claude.works(tokens["access_token"])
    assert claude.renew(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert claude.works(others["access_token"])
    rest = [str(pk) for pk in Connection.objects.values_list("pk", flat=True)]
    sent = {"action": "delete_selected", "_selected_action": rest, "post": "yes"}
    assert anna.post(CONNECTIONS, sent).status_code == 302
    assert not claude.works(others["access_token"])
    assert not AccessToken.objects.exists()
    assert not RefreshToken.objects.exists()
    assert not Connection.objects.exists()


def test_a_connection_whose_tokens_are_gone_says_so(anna: Http) -> None:
    Connector(registered()).connected(key())
    User.objects.get(username="olga").delete()
    assert "expired" in anna.get(CONNECTIONS).content.decode()


def test_a_connection_of_an_ended_key_says_so(anna: Http) -> None:
    chosen = key()
    Connector(registered()).connected(chosen)
    chosen.revoke(timezone.now())
    assert "access key not usable" in anna.get(CONNECTIONS).content.decode()


def test_a_code_under_way_is_worth_nothing_when_its_connection_was_ended(anna: Http) -> None:
    claude = Connector(registered())
    code = claude.allowed(key())
    anna.post(f"{CONNECTIONS}{Connection.objects.get().pk}/delete/", {"post": "yes"})
    assert claude.redeem(code).json()["error"] == "invalid_grant"
    assert not AccessToken.objects.exists()


def test_deleting_a_client_ends_its_connections(anna: Http) -> None:
    claude = Connector(registered())
    token = claude.connected(key())["access_token"]
    assert anna.post(f"{CLIENTS}{claude.client.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not claude.works(token)
    assert not Connection.objects.exists()


def test_whoever_may_only_look_ends_nothing() -> None:
    claude = Connector(registered())
    token = claude.connected(key())["access_token"]
    viewer = person("viewer", ["view_connection", "view_client"])
    assert viewer.get(CONNECTIONS).status_code == 200
    connection = Connection.objects.get()
    assert viewer.post(f"{CONNECTIONS}{connection.pk}/delete/", {"post": "yes"}).status_code == 403
    viewer.post(CONNECTIONS, {"action": "delete_selected", "_selected_action": [connection.pk], "post": "yes"})
    assert claude.works(token)


def test_the_toolkits_own_pages_are_not_there(anna: Http) -> None:
    page = anna.get("/admin/").content.decode()
    assert "oauth2_provider" not in page
    assert CONNECTIONS in page
    for table in ("accesstoken", "refreshtoken", "grant", "application", "idtoken"):
        assert anna.get(f"/admin/oauth2_provider/{table}/").status_code == 404


def test_the_page_that_asks_tells_all_and_follows_the_strict_rules() -> None:
    claude = Connector(registered(name="<b>Claude</b>"))
    key(nutzer=["anna"])
    response = claude.ask()
    page = response.content.decode()
    assert "&lt;b&gt;Claude&lt;/b&gt;" in page
    assert "https://claude.ai" in page
    assert "reads, writes, deletes, restores; nutzer: anna" in page
    assert "checked" not in page.split("<form method")[1]
    assert not re.search(r"<script(?![^>]*src=)|style=|\son[a-z]+=", page.split('id="content-main"')[1])
    assert "form-action 'self' https://claude.ai" in response["Content-Security-Policy"]
    assert "claude.ai" not in claude.operator.get("/admin/password_change/")["Content-Security-Policy"]
    assert "no-store" in response["Cache-Control"]
    assert response["X-Frame-Options"] == "DENY"


def test_the_page_speaks_german() -> None:
    claude = Connector(registered())
    key()
    page = claude.operator.get(claude.question(), headers={"Accept-Language": "de"}).content.decode()
    for word in ("Verbindung erlauben", "Ablehnen", "Zugangsschlüssel", "liest, schreibt, löscht, stellt wieder her"):
        assert word in page, word


def test_a_form_from_behind_a_proxy_is_ours_and_from_elsewhere_is_not() -> None:
    claude = Connector(registered())
    chosen = key()
    strict = Http(enforce_csrf_checks=True)
    strict.cookies = claude.operator.cookies
    claude.operator = strict
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', claude.ask().content.decode())
    assert token
    sent = {"key": chosen.pk, "allow": "Allow", "csrfmiddlewaretoken": token[1]}
    for origin, status in ((ISSUER, 302), ("https://evil.example.org", 403)):
        headers = {"Origin": origin, "Host": "brain.example.org"}
        assert strict.post(claude.question(), sent, headers=headers).status_code == status
