"""Nobody gives more than he has: grants, roles, keys, permissions, and the rights that he lends to a client."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.keys import make_key
from memories.models import AccessKey, Grant, ServiceAccount
from tests.admincast import form

pytestmark = pytest.mark.django_db

TOLD = "You can give no more than you have yourself"


def member(name: str, *roles: str, superuser: bool = False, **grant: Any) -> User:
    """Somebody with these roles, and with a grant if it is named."""
    user = User.objects.create_user(name, password="a long password", is_staff=True, is_superuser=superuser)
    user.groups.set(Group.objects.filter(name__in=roles))
    if grant:
        Grant.objects.create(user=user, **{key: value for key, value in grant.items() if key != "all"})
    return user


def browser(user: User) -> Client:
    """His browser, in English."""
    client = Client(headers={"Accept-Language": "en"})
    client.force_login(user)
    return client


@pytest.fixture
def adam(db: None) -> User:
    """Administrator of anna's long-term and brain memories."""
    return member("adam", "Administrator", nutzer=["anna"], typen=["longterm", "brain"])


@pytest.fixture
def ben(db: None) -> User:
    """Nobody yet."""
    return member("ben")


def page_of(owner: User | Group) -> str:
    """The address of a person's or a role's page."""
    return reverse(f"admin:auth_{type(owner).__name__.lower()}_change", args=[owner.pk])


def filled(client: Client, page: str, **more: Any) -> dict[str, Any]:
    """What the page's form would send, with other values in it."""
    kept = {name: value for name, value in form(client, page).items() if value or name.startswith("grants")}
    return kept | more


def granting(client: Client, page: str, **grant: str) -> Any:
    """The answer when a grant is added there."""
    first = {"grants-TOTAL_FORMS": "1", "grants-INITIAL_FORMS": "0"}
    return client.post(
        page, filled(client, page, **first, **{f"grants-0-{name}": text for name, text in grant.items()})
    )


WITHIN = [
    {"nutzer": "anna", "typen": "longterm"},
    {"nutzer": "anna", "typen": "longterm\nbrain", "may_write": "on", "may_delete": "on", "may_restore": "on"},
    {"nutzer": "anna", "typen": "brain", "scope": "modul", "agent": "planer", "scope_vk": "12"},
]
BEYOND = [
    {"typen": "longterm"},
    {"nutzer": "ben", "typen": "longterm"},
    {"nutzer": "anna\nben", "typen": "longterm"},
    {"nutzer": "anna"},
    {"nutzer": "anna", "typen": "shortterm"},
    {"agent": "anna", "typen": "longterm"},
]


@pytest.mark.parametrize("grant", WITHIN)
def test_a_grant_within_ones_own_can_be_given(adam: User, ben: User, grant: dict[str, str]) -> None:
    assert granting(browser(adam), page_of(ben), **grant).status_code == 302
    assert ben.grants.count() == 1


@pytest.mark.parametrize("grant", BEYOND)
@pytest.mark.parametrize("to_himself", [False, True])
def test_a_grant_beyond_ones_own_is_refused_and_the_form_says_why(
    adam: User, ben: User, grant: dict[str, str], to_himself: bool
) -> None:
    client, receiver = browser(adam), adam if to_himself else ben
    page = page_of(receiver)
    if to_himself:
        fields = {"grants-TOTAL_FORMS": "2", **{f"grants-1-{name}": text for name, text in grant.items()}}
        refused = client.post(page, filled(client, page, **fields))
    else:
        refused = granting(client, page, **grant)
    assert refused.status_code == 200
    assert TOLD in refused.content.decode()
    assert receiver.grants.count() == int(to_himself)


def test_what_one_may_not_do_oneself_one_does_not_give(adam: User, ben: User) -> None:
    Grant.objects.filter(user=adam).update(may_delete=False)
    place = {"nutzer": "anna", "typen": "longterm", "may_write": "on"}
    assert TOLD in granting(browser(adam), page_of(ben), **place, may_delete="on").content.decode()
    assert granting(browser(adam), page_of(ben), **place, may_restore="on").status_code == 302
    grant = ben.grants.get()
    assert (grant.may_write, grant.may_delete, grant.may_restore) == (True, False, True)


def test_the_own_grant_is_not_widened(adam: User) -> None:
    client = browser(adam)
    refused = client.post(page_of(adam), filled(client, page_of(adam), **{"grants-0-nutzer": ""}))
    assert TOLD in refused.content.decode()
    assert client.post(page_of(adam), filled(client, page_of(adam), first_name="Adam")).status_code == 302
    assert adam.grants.get().nutzer == ["anna"]


def test_a_superuser_gives_everything(ben: User) -> None:
    boss = browser(member("boss", superuser=True))
    assert granting(boss, page_of(ben), may_write="on").status_code == 302
    sent = filled(boss, page_of(ben), groups=[str(group.pk) for group in Group.objects.all()])
    assert boss.post(page_of(ben), sent).status_code == 302
    assert ben.groups.count() == Group.objects.count()


# Roles


def test_a_role_within_ones_own_can_be_given(adam: User, ben: User) -> None:
    client, role = browser(adam), Group.objects.get(name="Kurator")
    assert client.post(page_of(ben), filled(client, page_of(ben), groups=[str(role.pk)])).status_code == 302
    assert ben.groups.get() == role


@pytest.mark.parametrize("to_himself", [False, True])
@pytest.mark.parametrize("more", ["a permission", "a grant"])
def test_a_role_that_has_more_is_refused_and_named(adam: User, ben: User, more: str, to_himself: bool) -> None:
    role = Group.objects.create(name="Oberste")
    if more == "a grant":
        Grant.objects.create(group=role)
    else:
        role.permissions.set(Permission.objects.filter(codename="delete_group"))
    client, receiver = browser(adam), adam if to_himself else ben
    had = receiver.groups.count()
    chosen = [str(group.pk) for group in [*receiver.groups.all(), role]]
    refused = client.post(page_of(receiver), filled(client, page_of(receiver), groups=chosen))
    assert refused.status_code == 200
    assert "Oberste may do more than you" in refused.content.decode()
    assert receiver.groups.count() == had


def test_a_role_gets_no_more_than_its_giver_has(adam: User) -> None:
    adam.user_permissions.set(Permission.objects.filter(codename__in=("add_group", "change_group", "delete_group")))
    role = Group.objects.create(name="Team")
    client = browser(adam)
    foreign, own = (Permission.objects.get(codename=name) for name in ("add_logentry", "view_longtermmemory"))
    assert (
        TOLD
        in client.post(page_of(role), filled(client, page_of(role), permissions=[str(foreign.pk)])).content.decode()
    )
    assert TOLD in granting(client, page_of(role), typen="longterm").content.decode()
    assert client.post(page_of(role), filled(client, page_of(role), permissions=[str(own.pk)])).status_code == 302
    assert granting(client, page_of(role), typen="longterm", nutzer="anna").status_code == 302
    assert list(role.permissions.all()) == [own]


# Those who have more


def test_nobody_changes_somebody_or_a_role_that_has_more(adam: User, ben: User) -> None:
    adam.user_permissions.set(Permission.objects.filter(codename__in=("change_group", "delete_group")))
    client = browser(adam)
    wide = member("wide", "Kurator", all=True)
    dormant = member("dormant", all=True)
    dormant.is_active = False
    dormant.save()
    role = Group.objects.create(name="Team")
    wide.groups.add(role)
    password = {"password1": "another long password", "password2": "another long password", "usable_password": "true"}
    for person in (wide, dormant):
        assert client.post(page_of(person), {"username": "x", "is_active": "on"}).status_code == 403
        address = reverse("admin:auth_user_password_change", args=[person.pk])
        assert client.post(address, password).status_code == 403
        assert client.post(reverse("admin:auth_user_delete", args=[person.pk]), {"post": "yes"}).status_code == 403
        remove = reverse("admin:auth_user_remove_second_factor", args=[person.pk])
        assert client.post(remove).status_code == 403
        person.refresh_from_db()
        assert person.check_password("a long password")
    assert client.post(page_of(role), {"name": "x"}).status_code == 403
    assert client.post(reverse("admin:auth_group_delete", args=[role.pk]), {"post": "yes"}).status_code == 403
    assert not User.objects.get(username="dormant").is_active
    assert client.post(reverse("admin:auth_user_password_change", args=[ben.pk]), password).status_code == 302


# Keys


def test_a_key_does_no_more_than_whoever_makes_it(adam: User) -> None:
    client, account = browser(adam), ServiceAccount.objects.create(name="Planer")
    add = "/admin/memories/accesskey/add/"
    basis = form(client, add) | {"account": str(account.pk), "name": "k"}
    for name in ("may_write", "may_delete", "may_restore"):
        basis.pop(name, None)
    for grant in BEYOND:
        refused = client.post(add, basis | grant)
        assert TOLD in refused.content.decode(), grant
    assert not AccessKey.objects.exists()
    for grant in WITHIN:
        assert "text" in client.post(add, basis | grant).context, grant
    assert AccessKey.objects.count() == len(WITHIN)


def test_a_key_is_not_widened_and_one_that_does_more_not_changed_but_revoked(adam: User) -> None:
    client = browser(adam)
    key, _text = make_key(name="k", account="a", only={"nutzer": ["ben"]}, may_write=True, expires_at=None)
    own, _text = make_key(
        name="o", account="a", only={"nutzer": ["anna"], "typen": ["brain"]}, may_write=True, expires_at=None
    )
    for each, change in ((key, {"name": "neu"}), (own, {"nutzer": ""}), (own, {"typen": "shortterm"})):
        address = f"/admin/memories/accesskey/{each.pk}/change/"
        assert TOLD in client.post(address, form(client, address) | change).content.decode()
    assert {each.name for each in AccessKey.objects.all()} == {"k", "o"}
    assert client.post(reverse("admin:memories_accesskey_revoke", args=[key.pk])).status_code == 302
    key.refresh_from_db()
    assert key.revoked_at is not None


# Who was put to sleep


def account_page(account: ServiceAccount) -> str:
    """The address of an account's page."""
    return reverse("admin:memories_serviceaccount_change", args=[account.pk])


@pytest.mark.parametrize(
    "only",
    [{"nutzer": ["ben"]}, {"nutzer": ["anna", "ben"]}, {}, {"nutzer": ["anna"], "typen": ["shortterm"]}],
    ids=str,
)
def test_an_account_whose_key_may_do_more_is_not_made_active_again(adam: User, only: dict[str, list[str]]) -> None:
    make_key(name="eng", account="a", only={"nutzer": ["anna"], "typen": ["brain"]}, may_write=True, expires_at=None)
    _key, text = make_key(name="weit", account="a", only=only, may_write=True, expires_at=None)
    account = ServiceAccount.objects.get()
    client, page = browser(adam), account_page(account)
    assert client.post(page, {"name": "a"}).status_code == 302
    refused = client.post(page, {"name": "a", "is_active": "on"})
    assert TOLD in refused.content.decode()
    assert "weit (" in refused.content.decode()
    assert "eng (" not in refused.content.decode()
    assert AccessKey.objects.find(text) is None
    assert client.post(page, {"name": "neu"}).status_code == 302
    assert browser(member("boss", superuser=True)).post(page, {"name": "a", "is_active": "on"}).status_code == 302
    assert AccessKey.objects.find(text) is not None


def test_keys_that_ended_keep_no_account_asleep(adam: User) -> None:
    keys = [make_key(name=name, account="a", only={}, may_write=True, expires_at=None)[0] for name in "ab"]
    keys[0].revoke(timezone.now())
    AccessKey.objects.filter(pk=keys[1].pk).update(expires_at=timezone.now())
    _key, text = make_key(
        name="c", account="a", only={"nutzer": ["anna"], "typen": ["brain"]}, may_write=True, expires_at=None
    )
    client, page = browser(adam), account_page(ServiceAccount.objects.get())
    assert client.post(page, {"name": "a"}).status_code == 302
    assert AccessKey.objects.find(text) is None
    assert client.post(page, {"name": "a", "is_active": "on"}).status_code == 302
    assert AccessKey.objects.find(text) is not None


def test_an_active_account_may_be_renamed_whatever_its_keys_may_do(adam: User) -> None:
    make_key(name="weit", account="a", only={}, may_write=True, expires_at=None)
    account = ServiceAccount.objects.get()
    assert browser(adam).post(account_page(account), {"name": "neu", "is_active": "on"}).status_code == 302
    account.refresh_from_db()
    assert (account.name, account.is_active) == ("neu", True)


@pytest.mark.parametrize("more", ["a grant", "a role", "a permission", "superuser"])
def test_somebody_who_would_have_more_is_not_made_active_again(adam: User, ben: User, more: str) -> None:
    match more:
        case "a grant":
            Grant.objects.create(user=ben, nutzer=["ben"])
        case "a role":
            ben.groups.set([Group.objects.create(name="Oberste")])
            Grant.objects.create(group=ben.groups.get())
        case "a permission":
            ben.user_permissions.set(Permission.objects.filter(codename="delete_group"))
        case _:
            ben.is_superuser = True
    ben.is_active = False
    ben.save()
    client = browser(adam)
    assert client.post(page_of(ben), {"username": "ben", "is_active": "on"}).status_code == 403
    ben.refresh_from_db()
    assert not ben.is_active


def test_somebody_within_ones_own_rights_is_made_active_again(adam: User, ben: User) -> None:
    Grant.objects.create(user=ben, nutzer=["anna"], typen=["brain"])
    User.objects.filter(pk=ben.pk).update(is_active=False)
    client = browser(adam)
    assert client.post(page_of(ben), filled(client, page_of(ben), is_active="on")).status_code == 302
    ben.refresh_from_db()
    assert ben.is_active
