"""Access keys in the admin: made and shown once, limited, revoked, and what that means at the API."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.keys import make_key
from memories.models import AccessKey, ServiceAccount
from tests.admincast import Fields, form, messages, person
from tests.conftest import Agent

pytestmark = pytest.mark.django_db
LIST = "/admin/memories/accesskey/"


@pytest.fixture
def anna() -> Client:
    """Administrator."""
    return person("anna", superuser=True)


def make(client: Client, **fields: Any) -> Any:
    """The page after a key was made in the admin."""
    account, _made = ServiceAccount.objects.get_or_create(name="Planer")
    sent = form(client, f"{LIST}add/") | {"account": str(account.pk), "name": "k", "may_write": "on"} | fields
    return client.post(f"{LIST}add/", sent)


def test_a_key_is_shown_once_and_works(anna: Client) -> None:
    response = make(anna, nutzer="anna\r\n ben \r\nanna", tools="select_brain_tags")
    text = response.context["text"]
    assert text in response.content.decode()
    assert "no-store" in response["Cache-Control"]
    key = AccessKey.objects.get()
    assert (key.nutzer, key.agent, key.tools) == (["anna", "ben"], None, ["select_brain_tags"])
    agent = Agent(text, nutzer="anna")
    assert agent.call("select_brain_tags")["erfolg"]
    for page in (LIST, f"{LIST}{key.pk}/change/", f"{LIST}{key.pk}/history/", "/admin/"):
        shown = anna.get(page).content.decode()
        assert text.partition(".")[2] not in shown
        assert key.digest not in shown
    secret = text.partition(".")[2]
    assert not any(secret in str(session.get_decoded()) for session in Session.objects.all())
    assert not any(secret in str(entry.__dict__) for entry in LogEntry.objects.all())


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"tools": "search_brain\r\nserach_brain"}, "There is no tool serach_brain."),
        ({"tools": "*"}, "There is no tool *."),
        ({"name": "k\x1b[31m"}, "control or invisible"),
        ({"name": "k\u200b"}, "control or invisible"),
    ],
)
def test_a_misspelt_tool_and_a_name_that_hides_something_are_refused(
    anna: Client, fields: dict[str, str], told: str
) -> None:
    assert told in str(make(anna, **fields).context["errors"])
    assert not AccessKey.objects.exists()


def test_a_revoked_key_is_refused_from_the_next_call_on(anna: Client) -> None:
    agent = Agent(make(anna).context["text"], nutzer="anna")
    assert agent.call("select_brain_tags")["erfolg"]
    key = AccessKey.objects.get()
    address = reverse("admin:memories_accesskey_revoke", args=[key.pk])
    assert b"Revoke the key" in anna.get(address).content
    key.refresh_from_db()
    assert key.revoked_at is None
    assert "is revoked" in messages(anna.post(address, follow=True))
    assert agent.post("select_brain_tags", {"inhalt": {}}).status_code == 401
    key.refresh_from_db()
    first = key.revoked_at
    key.revoke(timezone.now() + timedelta(days=1))
    key.refresh_from_db()
    assert key.revoked_at == first
    assert LogEntry.objects.filter(object_id=str(key.pk)).count() == 2
    assert b"revoked" in anna.get(LIST).content


def test_a_revoked_key_stays_as_it_is(anna: Client) -> None:
    key, _text = make_key(name="k", account="a", only={}, may_write=True, expires_at=None)
    fields = form(anna, f"{LIST}{key.pk}/change/")
    key.revoke(timezone.now())
    assert anna.post(f"{LIST}{key.pk}/change/", fields | {"name": "neu"}).status_code == 403
    assert AccessKey.objects.get().name == "k"


def test_limits_can_be_changed_and_nothing_else_is_overwritten(anna: Client) -> None:
    key, text = make_key(name="k", account="a", only={"scope": ["x"]}, may_write=True, expires_at=None)
    address = f"{LIST}{key.pk}/change/"
    fields = form(anna, address) | {"may_write": "on", "scope": "x\r\ny", "prefix": "z", "digest": "z"}
    AccessKey.objects.filter(pk=key.pk).update(last_used_at=timezone.now())
    anna.post(address, fields)
    changed = AccessKey.objects.get()
    assert (changed.scope, changed.nutzer, changed.prefix, changed.digest) == (["x", "y"], None, key.prefix, key.digest)
    assert changed.last_used_at is not None
    assert AccessKey.objects.find(text) is not None


def test_limits_in_no_canonical_form_are_told_at_their_field(anna: Client) -> None:
    response = make(anna, agent="a\u200bb", name=" ", expires_at_0="2020-01-01", expires_at_1="00:00")
    assert set(response.context["adminform"].form.errors) == {"agent", "name", "expires_at"}
    assert not AccessKey.objects.exists()
    assert Fields(response.content.decode()).values["agent"] == "a\u200bb"


def test_keys_and_accounts_are_never_deleted(anna: Client) -> None:
    make(anna)
    key = AccessKey.objects.get()
    for address in (f"{LIST}{key.pk}/delete/", f"/admin/memories/serviceaccount/{key.account_id}/delete/"):
        assert anna.post(address, {"post": "yes"}).status_code == 403
    anna.post(LIST, {"action": "delete_selected", "_selected_action": [key.pk], "post": "yes"})
    assert AccessKey.objects.count() == ServiceAccount.objects.count() == 1


def test_an_account_that_is_not_active_cannot_use_its_keys(anna: Client) -> None:
    agent = Agent(make(anna).context["text"], nutzer="anna")
    account = ServiceAccount.objects.get()
    address = f"/admin/memories/serviceaccount/{account.pk}/change/"
    anna.post(address, {"name": " Planer 2 "})
    account.refresh_from_db()
    assert (account.name, account.is_active) == ("Planer 2", False)
    assert agent.post("select_brain_tags", {"inhalt": {}}).status_code == 401
    assert b"account not active" in anna.get(LIST).content
    anna.post(address, {"name": "Planer 2", "is_active": "on"})
    assert agent.call("select_brain_tags")["erfolg"]
