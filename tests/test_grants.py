"""Rights as grants: what may be done, by kind, scope, record, agent and nutzer, for keys and for people."""

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from memories.filters import Filter
from memories.kinds import BRAIN, KINDS, LONGTERM, SHORTTERM
from memories.models import AccessKey, CallRecord, Grant, LongtermMemory
from memories.models.access import principal_of
from memories.principal import ALL_KINDS, Action, Principal, Reach
from memories.roles import ROLES, keep_roles
from memories.search.reach import groups
from tests.admincast import store, url
from tests.conftest import Agent, note

pytestmark = pytest.mark.django_db

MakeAgent = Callable[..., Agent]


def in_sight(agent: Agent) -> set[str]:
    """The short descriptions of what the agent's key sees by select; by search it must be the same."""
    selected = agent.call("select_brain_longterm_memory", limit=100)["daten"]
    found = agent.call("search_brain", suche="Frist", limit=100, typen=["longterm"])["daten"]
    assert {row["ID"] for row in found} == {row["ID"] for row in selected}
    return {row["kurzbeschreibung"] for row in selected}


@pytest.fixture
def stock() -> None:
    """Memories in two scopes with two records each."""
    for scope in ("modul", "projekt"):
        for record in ("1", "2"):
            store(kurzbeschreibung=f"Frist {scope} {record}", scope=scope, scope_vk=record)


@pytest.mark.usefixtures("stock")
def test_a_key_is_limited_to_records_of_its_scopes(agent_with: MakeAgent) -> None:
    assert in_sight(agent_with("a", scope_vk=["1"])) == {"Frist modul 1", "Frist projekt 1"}
    assert in_sight(agent_with("b", scope=["modul"], scope_vk=["1", "2"])) == {"Frist modul 1", "Frist modul 2"}
    agent = agent_with("c", scope=["modul"], scope_vk=["1"])
    answer = agent.call("insert_brain_longterm_memory", memories=[note(scope_vk="2"), note(scope_vk="1")])
    assert [row["erfolg"] for row in answer["daten"]] == [False, True]
    assert answer["daten"][0]["fehler"]["feld"] == "scope_vk"


def test_a_key_is_limited_to_kinds(agent_with: MakeAgent) -> None:
    agent = agent_with("a", typen=["brain"])
    listed = {tool["name"] for tool in agent.http.get("/api/tools/").json()["tools"]}
    assert "insert_brain_memory" in listed
    assert not any("longterm" in name or "shortterm" in name for name in listed)
    store()
    assert agent.call("search_brain", suche="Frist")["daten"] == []
    refused = agent.post("select_brain_longterm_memory", {"inhalt": {"nutzer": "a", "agent": "planer"}})
    assert refused.status_code == 403


def test_75_a_key_that_may_not_delete_or_restore_does_neither_on_any_door(agent_with: MakeAgent) -> None:
    agent = agent_with("anna", may_delete=False, may_restore=False)
    kennung = agent.store()
    listed = {tool["name"] for tool in agent.http.get("/api/tools/").json()["tools"]}
    assert not any(name.startswith(("delete_", "restore_")) for name in listed)
    caller = {"nutzer": "anna", "agent": "planer"}
    for name, inhalt in (
        ("delete_brain_longterm_memory", {"IDs": [kennung]}),
        ("restore_brain_memory", {"ID": kennung, "version": 1}),
    ):
        arguments = {"inhalt": {**caller, **inhalt}}
        assert agent.post(name, arguments).status_code == 403
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        answer = agent.http.post("/mcp", call, content_type="application/json").json()
        assert answer["error"]["code"] == -32602
    assert LongtermMemory.objects.count() == 1
    assert "update_brain_longterm_memory" in listed


def test_promoting_needs_both_kinds_and_the_place(agent_with: MakeAgent) -> None:
    key = store(SHORTTERM, scope="modul")
    for limits in ({"typen": ["shortterm"]}, {"scope": ["projekt"]}):
        answer = agent_with(str(limits), **limits).post(
            "promote_brain_shortterm_memory",
            {"inhalt": {"IDs": [f"shortterm_{key}"], "nutzer": "x", "agent": "planer"}},
        )
        assert not answer.json()["erfolg"]
    assert not LongtermMemory.objects.exists()


def test_create_key_names_all_limits(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("create_key", "k", "--typ", "brain", "--scope-vk", "7", "--no-delete", "--no-restore", "--portable")
    key = AccessKey.objects.get()
    assert (key.typen, key.scope_vk, key.may_write, key.may_delete, key.may_restore, key.portable) == (
        ["brain"],
        ["7"],
        True,
        False,
        False,
        True,
    )
    assert "brk_" in capsys.readouterr().out


# People


def person(name: str, *roles: str, **more: Any) -> User:
    """A staff member with these roles."""
    user = User.objects.create_user(name, password="a long password", is_staff=True, **more)
    user.groups.set(Group.objects.filter(name__in=roles))
    return user


def client_of(user: User) -> Client:
    """The person, signed in."""
    client = Client(headers={"Accept-Language": "en"})
    client.force_login(user)
    return client


@pytest.mark.usefixtures("stock")
def test_a_person_without_a_grant_sees_nothing() -> None:
    user = person("vera", "Betrachter")
    client = client_of(user)
    page = client.get(url("changelist"))
    assert page.status_code == 200
    assert "Frist" not in page.content.decode()
    assert "No grant" in page.content.decode()
    key = LongtermMemory.objects.first().pk
    assert client.get(url("change", key)).status_code == 302


@pytest.mark.usefixtures("stock")
def test_grants_of_a_person_and_of_his_groups_add_up() -> None:
    user = person("karl", "Kurator")
    Grant.objects.create(user=user, scope=["modul"], scope_vk=["1"])
    Grant.objects.create(group=Group.objects.get(name="Kurator"), scope=["projekt"], may_write=False)
    client = client_of(user)
    page = client.get(url("changelist")).content.decode()
    assert [name in page for name in ("modul 1", "modul 2", "projekt 1", "projekt 2")] == [True, False, True, True]
    principal = principal_of(User.objects.get(pk=user.pk))
    for kind in KINDS:
        assert kind.memories.objects.visible_to(principal, Action.DELETE).count() == 0
    writable = LongtermMemory.objects.visible_to(principal, Action.WRITE)
    assert [row.kurzbeschreibung for row in writable] == ["Frist modul 1"]
    readable = LongtermMemory.objects.get(kurzbeschreibung="Frist projekt 1")
    assert 'name="_save"' not in client.get(url("change", readable.pk)).content.decode()
    assert client.post(url("change", readable.pk), {"kurzbeschreibung": "x"}).status_code == 403
    assert 'name="_save"' in client.get(url("change", writable[0].pk)).content.decode()


def test_a_search_reaches_what_several_grants_reach_together() -> None:
    one, two = Reach(scope=frozenset({"modul"}), scope_vk=frozenset({"1"})), Reach(nutzer=frozenset({"ben"}))
    wanted = groups(Principal(reaches=(one, two)), KINDS, Filter())
    assert len(wanted) == 2
    assert all(len(group) == 2 for group in wanted)
    assert groups(Principal(reaches=(one, Reach())), KINDS, Filter()) == []
    only_brain = Reach(kinds=frozenset({"brain"}))
    assert len(groups(Principal(reaches=(only_brain,)), KINDS, Filter())) == 1
    assert groups(Principal(), [LONGTERM, BRAIN], Filter()) == [["z0"]]


def test_roles_are_made_and_kept_up_to_date() -> None:
    viewer = Group.objects.get(name="Betrachter")
    extra = Permission.objects.get(codename="delete_tag")
    viewer.permissions.set([extra])
    keep_roles(apps.get_app_config("auth"), using="default")
    assert set(viewer.permissions.values_list("codename", flat=True)) == {*ROLES["Betrachter"], "delete_tag"}
    for name, codenames in ROLES.items():
        held = set(Group.objects.get(name=name).permissions.values_list("codename", flat=True))
        assert held >= set(codenames), name


def test_what_the_roles_may_do() -> None:
    may = {}
    for name in ROLES:
        user = person(name.lower(), name)
        Grant.objects.create(user=user)
        principal = principal_of(user)
        may[name] = {action.value for action in Action if principal.kinds(action) == ALL_KINDS}
    assert may == {
        "Betrachter": {"read"},
        "Kurator": {"read", "insert", "write", "restore"},
        "Auditor": {"read"},
        "Administrator": {"read", "insert", "write", "delete", "restore"},
    }


def test_an_administrator_does_not_make_himself_a_superuser() -> None:
    boss = User.objects.create_superuser("boss", password="a long password")
    user = person("adam", "Administrator")
    Grant.objects.create(user=user, typen=["brain", "longterm"])
    client = client_of(user)
    page = client.get(reverse("admin:auth_user_change", args=[user.pk]))
    assert page.status_code == 200
    assert 'name="is_superuser"' not in page.content.decode()
    assert 'name="grants-TOTAL_FORMS"' in page.content.decode()
    assert client.post(reverse("admin:auth_user_change", args=[boss.pk]), {"username": "x"}).status_code == 403
    assert client.post(reverse("admin:auth_user_delete", args=[boss.pk]), {"post": "yes"}).status_code == 403
    form = {"username": "adam", "is_superuser": "on", "is_active": "on", "is_staff": "on", "user_permissions": ["1"]}
    grants = {"grants-TOTAL_FORMS": "1", "grants-INITIAL_FORMS": "0", "grants-0-typen": "brain", "grants-0-scope": ""}
    client.post(reverse("admin:auth_user_change", args=[user.pk]), form | grants)
    user = User.objects.get(pk=user.pk)
    assert not user.is_superuser
    assert not user.user_permissions.exists()
    assert [grant.typen for grant in user.grants.order_by("pk")] == [["brain", "longterm"], ["brain"]]


def test_pages_of_people_and_calls_open_for_those_who_may(anna: Agent) -> None:
    anna.call("select_brain_longterm_memory")
    CallRecord.objects.update(tool="=cmd()", agent="+1")
    auditor = person("otto", "Auditor")
    Grant.objects.create(user=auditor)
    client = client_of(auditor)
    page = client.get(reverse("admin:memories_callrecord_changelist"), {"code": "ok"})
    assert "anna" in page.content.decode()
    export = reverse("admin:memories_callrecord_export")
    assert export in page.content.decode()
    csv = b"".join(client.get(export, {"code": "ok"}).streaming_content).decode()
    assert "'=cmd()" in csv
    assert "'+1" in csv
    assert csv.count("\r\n") == 2
    assert client.get(reverse("admin:auth_user_changelist")).status_code == 403
    viewer = client_of(person("vera", "Betrachter"))
    assert viewer.get(export).status_code == 403
    assert viewer.get(reverse("admin:memories_callrecord_changelist")).status_code == 403
    admin = client_of(User.objects.create_superuser("boss", password="a long password"))
    for page_name in ("auth_user_changelist", "auth_user_add", "auth_group_changelist", "auth_group_add"):
        assert admin.get(reverse(f"admin:{page_name}")).status_code == 200


def test_calls_are_shown_to_whom_no_scope_or_record_limits(anna: Agent) -> None:
    anna.call("select_brain_longterm_memory")
    for reaches, seen in {
        (Reach(),): 1,
        (Reach(nutzer=frozenset({"anna"})),): 1,
        (Reach(nutzer=frozenset({"ben"})),): 0,
        (Reach(scope=frozenset({"modul"})),): 0,
        (Reach(scope_vk=frozenset({"1"})),): 0,
        (Reach(kinds=frozenset({"brain"})),): 1,
        (Reach(scope=frozenset({"modul"})), Reach(agent=frozenset({"planer"}))): 1,
    }.items():
        assert CallRecord.objects.visible_to(Principal(reaches=reaches)).count() == seen, reaches
