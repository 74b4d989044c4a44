"""What the text filters of the lists offer while somebody types: values of memories in sight, found by an index."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from memories import suggestions
from memories.kinds import BRAIN, KINDS, LONGTERM, SHORTTERM, Kind
from memories.models import Grant
from tests.admincast import person, store, url
from tests.test_admin_plans import Statements, known_to_the_planner, many, read_whole

pytestmark = pytest.mark.django_db
OWN = {"titel": "T", "memory_typ": "arbeit", "gueltig_bis": None}
MOST_QUERIES = 8  # five say who asks


@pytest.fixture
def anna() -> Client:
    """Administrator."""
    return person("anna", superuser=True)


def limited(**only: list[str]) -> Client:
    """Somebody with one grant of these limits."""
    client = person("vera", [f"view_{kind.typ}memory" for kind in KINDS])
    vera = User.objects.get(username="vera")
    vera.grants.all().delete()
    Grant.objects.create(user=vera, **only)
    return client


def offered(client: Client, name: str, beginning: str = "", kind: Kind = LONGTERM, **more: str) -> list[str]:
    """The values that are offered."""
    response = client.get(url("suggest", kind=kind.typ), {"filter": name, "beginn": beginning} | more)
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    found: list[str] = response.json()["values"]
    return found


def test_values_that_exist_are_offered_in_order_and_in_any_case(anna: Client) -> None:
    for nutzer in ("anna", "Anton", "anja", "Ben", "Übel", "anna"):
        store(nutzer=nutzer, agent=f"{nutzer}s", scope="kunde", scope_vk=nutzer)
    assert offered(anna, "nutzer", "an") == offered(anna, "nutzer", "AN") == ["anja", "anna", "Anton"]
    assert offered(anna, "agent", "be") == ["Bens"]
    assert offered(anna, "nutzer", "üb") == ["Übel"]
    assert offered(anna, "scope", "k") == ["kunde"]
    assert sorted(offered(anna, "nutzer")) == ["Anton", "Ben", "anja", "anna", "Übel"]
    assert offered(anna, "nutzer", "x") == []


def test_no_more_than_ten_are_offered(anna: Client) -> None:
    for number in range(30):
        store(nutzer=f"n{number:02}", tag_namen=[f"t{number:02}"])
    assert offered(anna, "nutzer", "n") == [f"n{number:02}" for number in range(10)]
    assert offered(anna, "tag", "t1") == [f"t{number}" for number in range(10, 20)]


def test_records_are_offered_of_the_chosen_scope_or_of_all(anna: Client) -> None:
    store(scope="kunde", scope_vk="K-1")
    store(scope="modul", scope_vk="K-2")
    assert offered(anna, "scope_vk", "k-", scope="kunde") == ["K-1"]
    assert offered(anna, "scope_vk", "k") == ["K-1", "K-2"]
    page = anna.get(url("changelist"), {"scope": "kunde"}).content.decode()
    assert 'data-suggest="/admin/memories/longtermmemory/suggest/?filter=scope_vk&amp;scope=kunde"' in page
    store(BRAIN, **OWN, scope_typ="room", scope_id="R7")
    assert offered(anna, "scope_vk", "r", BRAIN, scope="room") == ["R7"]
    assert offered(anna, "scope_vk", "r", BRAIN, scope="agent") == []


def test_tags_are_offered_of_the_kind_by_their_spelling(anna: Client) -> None:
    store(tag_namen=["Übung", "ÜBERGABE"])
    store(SHORTTERM, tag_namen=["Überfall"], gueltig_bis=None)
    assert offered(anna, "tag", "üb") == ["ÜBERGABE", "Übung"]
    assert offered(anna, "tag", "üb", SHORTTERM) == ["Überfall"]


@pytest.mark.parametrize("only", [{"nutzer": ["ben", "bea"]}, {"agent": ["a"]}, {"scope_vk": ["1"]}], ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.typ)
def test_what_somebody_may_not_see_is_not_offered(kind: Kind, only: Any) -> None:
    more = OWN | {"scope_typ": "room"}
    store(kind, **more, nutzer="ben", agent="a", scope="s", scope_vk="1", scope_id="1", tag_namen=["Tor"])
    store(kind, **more, nutzer="bert", agent="b", scope="t", scope_vk="2", scope_id="2", tag_namen=["Tür"])
    client = limited(**only)
    names = {"nutzer": "ben", "agent": "a", "scope_vk": "1", "tag": "Tor"} | ({} if kind is BRAIN else {"scope": "s"})
    for name, value in names.items():
        assert offered(client, name, "", kind) == [value], name
        assert offered(client, name, value[:1], kind) == [value], name
    assert offered(client, "scope_vk", "", kind, scope="room" if kind is BRAIN else "s") == ["1"]
    assert offered(client, "scope_vk", "", kind, scope="global" if kind is BRAIN else "t") == []


def test_several_grants_add_up_and_without_one_nothing_is_offered() -> None:
    for name in ("a", "b", "c"):
        store(nutzer=name, agent=f"{name}x")
    client = limited(nutzer=["a"])
    vera = User.objects.get(username="vera")
    Grant.objects.create(user=vera, agent=["bx"])
    assert offered(client, "nutzer") == ["a", "b"]
    assert offered(client, "agent") == ["ax", "bx"]
    vera.grants.all().delete()
    assert offered(client, "nutzer") == []


@pytest.mark.parametrize("beginning", ["a\0", "\ud800", "x" * 300, "%", "_", "'"], ids=ascii)
@pytest.mark.parametrize("name", ["nutzer", "tag", "scope_vk"])
def test_senseless_beginnings_are_answered_by_nothing(anna: Client, name: str, beginning: str) -> None:
    store()
    assert offered(anna, name, beginning.encode("utf-8", "surrogatepass").decode("utf-8", "replace")) == []
    assert offered(anna, name, "", scope="a\0b") == []


def test_only_whoever_sees_the_list_is_answered_and_only_a_question(anna: Client) -> None:
    address = url("suggest")
    assert anna.post(address, {"filter": "nutzer"}).status_code == 405
    for wrong in ("memory", "", "validity"):
        assert anna.get(address, {"filter": wrong}).status_code == 404
    assert person("nobody").get(address, {"filter": "nutzer"}).status_code == 403
    assert Client().get(address, {"filter": "nutzer"}).status_code == 302


def test_no_offer_reads_a_whole_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggestions, "LOOKED_THROUGH", 60)
    clients = {"anna": person("anna", superuser=True), "vera": limited(nutzer=["n1", "n2"])}
    for kind in KINDS:
        many(kind)
    known_to_the_planner()
    vera = User.objects.get(username="vera")
    for only in ({}, {"agent": ["a5"], "scope": ["s5", "global"]}, {"scope_vk": ["12"]}):
        if only:
            vera.grants.update(nutzer=None, **dict.fromkeys(("agent", "scope", "scope_vk")) | only)
        for who, client in clients.items():
            for kind in KINDS:
                for name in ("nutzer", "agent", "scope_vk", "tag", *(() if kind is BRAIN else ("scope",))):
                    for more in ({}, {"scope": "global" if kind is BRAIN else "s5"}):
                        check(client, kind, name, more, who)


def check(client: Client, kind: Kind, name: str, more: dict[str, str], who: str) -> None:
    """A few statements, of which none reads a whole table."""
    statements = Statements()
    with connection.execute_wrapper(statements):
        offered(client, name, "", kind, **more)
    asked = [(sql, params) for sql, params in statements.asked if sql.startswith(("SELECT", "WITH"))]
    asked = [(sql, params) for sql, params in asked if "set_config" not in sql]
    assert len(asked) <= MOST_QUERIES, asked
    whole = {sql: steps for sql, params in asked if (steps := read_whole(sql, params))}
    assert not whole, (who, kind.typ, name, more, whole)
