"""Who may do what in the admin: whoever may only look changes nothing, by any address and any method."""

import html
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import URLPattern, URLResolver, reverse
from django.utils import timezone

from memories.admin import ADMINS
from memories.keys import make_key
from memories.kinds import BRAIN, KINDS, LONGTERM
from memories.models import (
    AccessKey,
    CallRecord,
    DuplicatePair,
    EmbeddingProfile,
    Erasure,
    ImportJob,
    LongtermMemory,
    Recall,
    RecalledSearch,
    ServiceAccount,
)
from tests.admincast import form, person, store, url

pytestmark = pytest.mark.django_db
OWN_BUSINESS = {"login", "logout", "password_change", "password_change_done"}
MODELS = {model.__name__.lower() for model, _admin in ADMINS}
VIEW_EVERYTHING = [f"view_{name}" for name in sorted(MODELS)]


def addresses(patterns: Any = None) -> Iterator[tuple[str, dict[str, str]]]:
    """All named addresses of the admin and their parameters' names."""
    for pattern in admin.site.get_urls() if patterns is None else patterns:
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns)
        elif isinstance(pattern, URLPattern) and pattern.name:
            yield pattern.name, dict.fromkeys(pattern.pattern.regex.groupindex, "1")


def filled(name: str, parameters: dict[str, str], keys: dict[str, int]) -> str:
    """The address, with the keys of rows that exist."""
    values = {"content_type_id": "1", "object_id": "1", "app_label": "memories", "url": "x", "number": "1"}
    model = next((model for model in keys if f"_{model}_" in name), "")
    values["object_id"] = str(keys.get(model, 1))
    return reverse(f"admin:{name}", kwargs={parameter: values.get(parameter, "1") for parameter in parameters})


def everything() -> dict[str, list[Any]]:
    """All rows of all tables but the sessions."""
    models = [model for model in apps.get_models() if model is not Session]
    return {model.__name__: sorted(map(repr, model._base_manager.values_list())) for model in models}  # noqa: SLF001


@pytest.fixture
def keys() -> dict[str, int]:
    """A row of each model, by the model's name, of memories one with two versions and one that is deleted."""
    own = {"memory_typ": "arbeit", "titel": "T", "gueltig_bis": None}
    found = {f"{kind.typ}memory": store(kind, **own) for kind in KINDS}
    anna = person("anna", superuser=True)
    for kind in KINDS:
        address = url("change", found[f"{kind.typ}memory"], kind=kind.typ)
        anna.post(address, form(anna, address) | {"schlagworte": "neu"})
        found[f"{kind.typ}version"] = kind.versions.objects.first().pk
    key, _text = make_key(name="k", account="a", only={}, may_write=True, expires_at=None)
    profile = EmbeddingProfile.objects.create(profil_hash="p", dimension=2, name="n")
    search = RecalledSearch.objects.create(
        call=CallRecord.objects.create(zeitpunkt=timezone.now(), tuer="rest", tool="search_brain", code="ok"), suche="x"
    )
    recall = Recall.objects.create(search=search, typ="longterm", memory_id=found["longtermmemory"], rang=1)
    pair = DuplicatePair(typ="longterm", first_id=1, second_id=2, first_version=1, second_version=1, cosinus=1)
    pair.save()
    return found | {
        "duplicatepair": pair.pk,
        "accesskey": key.pk,
        "serviceaccount": key.account_id,
        "tag": 1,
        "embeddingprofile": profile.pk,
        "erasure": Erasure.objects.create(grund="g", gefunden=0).pk,
        "user": User.objects.create_user("ziel").pk,
        "group": Group.objects.create(name="Ziel").pk,
        "recall": recall.pk,
        "importjob": ImportJob.objects.create(user_id=0, dateiname="x", format="brain").pk,
        "callrecord": CallRecord.objects.create(zeitpunkt=timezone.now(), tuer="rest", tool="t", code="ok").pk,
    }


def sent(keys: dict[str, int], name: str) -> list[dict[str, Any]]:
    """What somebody might send to change something."""
    key = next((key for model, key in keys.items() if f"_{model}_" in name), 1)
    fields = {
        "kurzbeschreibung": "böse",
        "memory": "böse",
        "titel": "böse",
        "memory_typ": "arbeit",
        "scope_typ": "global",
        "relevanz": "1",
        "schlagworte": "böse",
        "scope": "s",
        "nutzer": "n",
        "agent": "a",
        "geladene_version": "2",
        "name": "böse",
        "account": str(keys["serviceaccount"]),
        "is_active": "",
    }
    action = {"action": "delete_selected", "_selected_action": [str(key)], "post": "yes"}
    return [{}, fields, fields | {"_saveasnew": "1"}, fields | {"_save": "1"}, action, action | {"index": "0"}]


@pytest.mark.parametrize(
    "permissions", [VIEW_EVERYTHING, []], ids=["whoever may only look", "staff without any permission"]
)
def test_nothing_changes_by_any_address(keys: dict[str, int], permissions: list[str]) -> None:
    client = person("vera", permissions)
    client.raise_request_exception = True
    before = everything()
    visited = 0
    for name, parameters in addresses():
        if name in OWN_BUSINESS:
            continue
        address = filled(name, parameters, keys)
        for method in (client.get, client.head, client.put, client.patch, client.delete):
            method(address)
        for data in sent(keys, name):
            client.post(address, data)
            visited += 1
    assert visited > 300
    assert everything() == before


def test_whoever_may_only_look_does_see_the_pages(keys: dict[str, int]) -> None:
    client = person("vera", VIEW_EVERYTHING)
    for name, parameters in addresses():
        looked_at = name.endswith(("_changelist", "memory_change", "memory_history", "memory_version"))
        if name.startswith("memories_") and looked_at:
            response = client.get(filled(name, parameters, keys))
            assert response.status_code == 200, name
            page = response.content.decode()
            assert 'name="_save"' not in page
            assert "restore/" not in page
            assert 'name="action"' not in page


def test_the_links_of_every_page_lead_somewhere(keys: dict[str, int]) -> None:
    boss = Client(headers={"Accept-Language": "en"})
    boss.force_login(User.objects.get(username="anna"))
    pages = [filled(name, parameters, keys) for name, parameters in addresses() if name.endswith("_change")]
    links: dict[str, str] = {}
    for page in pages:
        hrefs = re.findall(r'href="([^"#]+)"', boss.get(page, follow=True).content.decode())
        links |= {urljoin(page, html.unescape(href)): page for href in hrefs}
    inside = {link: page for link, page in links.items() if link.startswith("/admin/")}
    assert len(inside) > 50
    lost = {link: page for link, page in inside.items() if boss.get(link).status_code >= 400}
    assert lost == {}


def test_staff_without_permission_sees_nothing(keys: dict[str, int]) -> None:
    client = person("carla")
    for name, parameters in addresses():
        if name.startswith("memories_"):
            assert client.get(filled(name, parameters, keys)).status_code in {403, 404}, name
    assert "/admin/memories/" not in client.get("/admin/").content.decode()


def test_nobody_is_let_in_without_being_signed_in(keys: dict[str, int]) -> None:
    before = everything()
    for name, parameters in addresses():
        if name.startswith("memories_"):
            address = filled(name, parameters, keys)
            for response in (Client().get(address), Client().post(address, {"post": "yes"})):
                assert response.status_code == 302
                assert "/login/" in response["Location"]
    assert everything() == before


def test_a_form_from_another_site_is_refused(keys: dict[str, int]) -> None:
    client = Client(enforce_csrf_checks=True)
    person("ben", superuser=True)
    client.force_login(User.objects.get(username="ben"))
    before = everything()
    key = keys["longtermmemory"]
    for address in (url("change", key), url("restore", key, 1), url("delete", key), url("changelist")):
        assert client.post(address, {"post": "yes"}).status_code == 403
    revoke = reverse("admin:memories_accesskey_revoke", args=[keys["accesskey"]])
    assert client.post(revoke).status_code == 403
    assert everything() == before


def test_permission_for_one_kind_is_none_for_another(keys: dict[str, int]) -> None:
    client = person("ben", ["view_longtermmemory", "change_longtermmemory"])
    address = url("change", keys["longtermmemory"])
    client.post(address, form(client, address) | {"memory": "von Ben"})
    assert LongtermMemory.objects.get().memory == "von Ben"
    assert client.get(url("change", keys["brainmemory"], kind="brain")).status_code == 403
    assert client.get(url("delete", keys["longtermmemory"])).status_code == 403
    assert client.get(url("add")).status_code == 403
    assert client.get(reverse("admin:memories_brainversion_changelist")).status_code == 403


def test_deleting_is_a_right_of_its_own(keys: dict[str, int]) -> None:
    changer = person("carla", ["view_longtermmemory", "change_longtermmemory"])
    assert changer.post(url("delete", keys["longtermmemory"]), {"post": "yes"}).status_code == 403
    assert LongtermMemory.objects.count() == 1
    deleter = person("ben", ["view_longtermmemory", "delete_longtermmemory"])
    assert deleter.get(url("change", keys["longtermmemory"])).status_code == 200
    assert deleter.post(url("delete", keys["longtermmemory"]), {"post": "yes"}).status_code == 302
    assert not LongtermMemory.objects.exists()


def test_looking_at_keys_does_not_make_or_end_any(keys: dict[str, int]) -> None:
    client = person("vera", ["view_accesskey", "view_serviceaccount"])
    page = client.get(reverse("admin:memories_accesskey_change", args=[keys["accesskey"]])).content.decode()
    assert "revoke/" not in page
    assert AccessKey.objects.get().digest not in page
    assert client.get(reverse("admin:memories_accesskey_add")).status_code == 403
    assert ServiceAccount.objects.count() == AccessKey.objects.count() == 1


def test_the_fixtures_cover_every_model(keys: dict[str, int]) -> None:
    assert set(keys) == MODELS
    assert BRAIN.memories.objects.exists()
    assert LONGTERM.versions.objects.filter(version=2).exists()
