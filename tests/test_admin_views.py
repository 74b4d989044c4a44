"""Each person's own views of the lists, and the columns that he chose: kept, opened, changed, and nobody else's."""

import re
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memories.admin.saved import MOST_VIEWS
from memories.kinds import BRAIN, KINDS, LONGTERM, Kind
from memories.models import ListSetting, SavedView
from memories.principal import SYSTEM, Origin
from memories.services import insert
from tests.admincast import NOTE, messages, person, store, url

pytestmark = pytest.mark.django_db
FILTERED = "nutzer=ben&tag=vertrag&q=Frist&o=-8"


@pytest.fixture
def anna() -> Client:
    """Administrator."""
    return person("anna", superuser=True)


def listed(client: Client, query: str = "sicht=0", kind: str = "longterm") -> Any:
    """The page of the list."""
    response = client.get(f"{url('changelist', kind=kind)}?{query}")
    assert response.status_code == 200, response.get("Location")
    return response


def saved(client: Client, query: str = FILTERED, name: str = "Bens Fristen") -> SavedView:
    """A view, saved from the list as it is shown with this query."""
    sent = {"query": listed(client, query).context["query_now"], "bezeichnung": name}
    response = client.post(url("views"), sent, follow=True)
    assert "is saved" in messages(response)
    found: SavedView = SavedView.objects.get(user__username=response.context["user"].username, name=name)
    return found


def columns(response: Any) -> list[str]:
    """The columns of the table, by name."""
    return [str(name) for name in response.context["cl"].list_display]


def links(response: Any) -> dict[str, str]:
    """The addresses of the views above the list, by name."""
    return {name: f"?{address}" for name, address, _open in response.context["views"]}


# Views


def test_a_view_opens_with_what_was_saved(anna: Client) -> None:
    wanted = store(nutzer="ben")
    store()
    view = saved(anna)
    address = links(listed(anna))["Bens Fristen"]
    assert parse_qs(address[1:]) == parse_qs(f"{FILTERED}&sicht={view.pk}")
    page = listed(anna, address[1:])
    assert [row.pk for row in page.context["cl"].result_list] == [wanted]
    assert re.search(rf'href="\?[^"]*sicht={view.pk}" aria-current="page">Bens Fristen<', page.content.decode())
    assert links(listed(anna, kind="brain")) == {}


def test_only_declared_filters_are_saved(anna: Client) -> None:
    sent = "nutzer=ben&memory__regex=x&p=3&weiter=y&all=&_popup=1"
    anna.post(url("views"), {"query": sent, "bezeichnung": "A"})
    assert SavedView.objects.get().query == "nutzer=ben"


def test_a_known_name_is_saved_anew(anna: Client) -> None:
    first, again = saved(anna, "nutzer=ben"), saved(anna, "nutzer=anna")
    assert first.pk == again.pk
    assert again.query == "nutzer=anna"


def test_a_view_keeps_its_sorting_when_its_columns_change(anna: Client) -> None:
    view = saved(anna, "o=-8")
    assert view.query == "o=-aktualisiert_am"
    query = f"o=-8&sicht={view.pk}"
    response = anna.post(url("columns"), {"query": query, "spalte": ["aktualisiert_am", "nutzer"]}, follow=True)
    assert columns(response) == ["action_checkbox", "kennung", "nutzer", "aktualisiert_am"]
    assert response.context["cl"].queryset.query.order_by == ("-aktualisiert_am", "-pk")
    assert links(response)["Bens Fristen"] == f"?o=-3&sicht={view.pk}"
    viewer = person("vera", ["view_longtermmemory"])  # whose list has no boxes to tick
    assert columns(listed(viewer))[0] == "kennung"
    assert saved(viewer, "o=7").query == "o=aktualisiert_am"


def test_views_are_renamed_and_deleted(anna: Client) -> None:
    view, other = saved(anna), saved(anna, name="Andere")
    page = anna.get(url("views"))
    assert "Bens Fristen" in page.content.decode()
    assert "already" in messages(anna.post(url("view", view.pk), {"bezeichnung": "Andere"}, follow=True))
    anna.post(url("view", view.pk), {"bezeichnung": "  Neu  ", "rename": ""})
    assert set(SavedView.objects.values_list("name", flat=True)) == {"Neu", "Andere"}
    anna.post(url("view", other.pk), {"bezeichnung": "Andere", "delete": ""})
    assert SavedView.objects.get().name == "Neu"


def test_one_view_opens_with_the_list(anna: Client) -> None:
    view = saved(anna)
    anna.post(url("view", view.pk), {"start": ""})
    response = anna.get(url("changelist"))
    assert (response.status_code, response["Location"]) == (
        302,
        url("changelist") + links(listed(anna))["Bens Fristen"],
    )
    assert listed(anna).context["cl"].params == {"sicht": "0"}
    without_filters = listed(anna, f"{FILTERED}&sicht={view.pk}").context["cl"].clear_all_filters_qs
    assert parse_qs(without_filters[1:]) == {"q": ["Frist"], "o": ["-8"], "sicht": [str(view.pk)]}
    anna.post(url("view", view.pk), {"start": ""})
    assert anna.get(url("changelist")).status_code == 200
    anna.post(url("view", view.pk), {"start": ""})
    anna.post(url("view", view.pk), {"delete": ""})
    assert anna.get(url("changelist")).status_code == 200


def test_a_view_that_makes_no_sense_any_more_says_so(anna: Client) -> None:
    view = saved(anna)
    for query in ("age=yesterday", "gone=1", "validity=valid"):
        SavedView.objects.filter(pk=view.pk).update(query=query)
        response = anna.get(url("changelist") + links(listed(anna))["Bens Fristen"], follow=True)
        assert response.status_code == 200
        assert "“Bens Fristen” asks for what this list does not know" in messages(response)
    SavedView.objects.filter(pk=view.pk).update(query="o=-gone", columns=["gone", 7, "agent"])
    assert columns(listed(anna, f"sicht={view.pk}")) == ["action_checkbox", "kennung", "agent"]


def test_views_are_nobody_elses(anna: Client) -> None:
    view = saved(anna)
    anna.post(url("view", view.pk), {"start": ""})
    ben = person("ben", superuser=True)
    assert links(listed(ben)) == {}
    assert ben.get(url("changelist")).status_code == 200
    assert columns(listed(ben, f"sicht={view.pk}")) == columns(listed(ben))
    assert listed(ben, f"sicht={view.pk}").context["view"] is None
    assert "Bens Fristen" not in ben.get(url("views")).content.decode()
    for change in ({"bezeichnung": "x"}, {"delete": ""}, {"start": ""}):
        assert ben.post(url("view", view.pk), change).status_code == 404
        assert ben.post(url("view", view.pk, kind="brain"), change).status_code == 404
        assert anna.post(url("view", view.pk, kind="brain"), change).status_code == 404
    saved(ben, "nutzer=anna")
    view.refresh_from_db()
    assert (view.name, SavedView.objects.count()) == ("Bens Fristen", 2)


def test_deleting_a_person_deletes_his_views_and_tells_no_names(anna: Client) -> None:
    ben = person("ben", superuser=True)
    view = saved(ben, name="Geheim")
    ben.post(url("view", view.pk), {"start": ""})
    key = User.objects.get(username="ben").pk
    assert "Geheim" not in anna.get(f"/admin/auth/user/{key}/delete/").content.decode()
    anna.post(f"/admin/auth/user/{key}/delete/", {"post": "yes"})
    assert not User.objects.filter(username="ben").exists()
    assert (SavedView.objects.count(), ListSetting.objects.count()) == (0, 0)


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\0b", "\u200b"], ids=ascii)
def test_a_senseless_name_is_refused(anna: Client, name: str) -> None:
    response = anna.post(url("views"), {"query": "nutzer=ben", "bezeichnung": name}, follow=True)
    assert "1 to 100 characters" in messages(response)
    assert response.context["cl"].params == {"nutzer": "ben"}
    assert not SavedView.objects.exists()


def test_there_are_not_too_many_views(anna: Client) -> None:
    for number in range(MOST_VIEWS):
        anna.post(url("views"), {"query": "", "bezeichnung": f"V{number}"})
    response = anna.post(url("views"), {"query": "", "bezeichnung": "Zu viel"}, follow=True)
    assert "delete one first" in messages(response)
    assert SavedView.objects.count() == MOST_VIEWS
    assert len(listed(anna).content) < 80_000


@pytest.mark.parametrize("page", ["views", "columns", "view"])
def test_changes_need_a_sent_form_and_the_right_to_see_the_list(anna: Client, page: str) -> None:
    address = url(page, *([saved(anna).pk] if page == "view" else []))
    assert Client(enforce_csrf_checks=True).post(address).status_code in {302, 403}
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="anna"))
    assert strict.post(address, {"bezeichnung": "x"}).status_code == 403
    assert person("nobody").post(address, {"bezeichnung": "x"}).status_code == 403
    assert anna.get(address).status_code == (200 if page == "views" else 405)


# Columns


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.typ)
def test_somebody_chooses_the_columns_of_a_list(anna: Client, kind: Kind) -> None:
    usual = columns(listed(anna, kind=kind.typ))
    sent = {"query": "nutzer=anna", "spalte": ["erstellt_am", "nutzer", "memory", "embedding", "kennung__x"]}
    response = anna.post(url("columns", kind=kind.typ), sent, follow=True)
    assert columns(response) == ["action_checkbox", "kennung", "nutzer", "erstellt_am"]
    assert response.context["cl"].params == {"nutzer": "anna", "sicht": "0"}
    assert columns(anna.get(url("changelist", kind=kind.typ))) == columns(response)
    assert columns(listed(person("ben", superuser=True), kind=kind.typ)) == usual
    others = {each.typ: columns(listed(anna, kind=each.typ)) for each in KINDS if each is not kind}
    assert all(len(shown) > 4 for shown in others.values())
    assert "at least one" in messages(anna.post(url("columns", kind=kind.typ), {"spalte": "memory"}, follow=True))
    assert columns(anna.post(url("columns", kind=kind.typ), {"usual": ""}, follow=True)) == usual


def test_the_list_can_be_sorted_by_creation(anna: Client) -> None:
    first, second = store(), store()
    page = anna.post(url("columns"), {"spalte": ["kurz", "erstellt_am"]}, follow=True)
    assert 'title="Toggle sorting"' in page.content.decode() or "?o=3" in page.content.decode()
    assert [row.pk for row in listed(anna, "o=3").context["cl"].result_list] == [first, second]


@pytest.mark.parametrize("kind", [LONGTERM, BRAIN], ids=lambda kind: kind.typ)
def test_a_list_with_all_columns_and_some_views_is_light_and_asks_little(anna: Client, kind: Kind) -> None:
    draft = NOTE | {"memory_typ": "entscheidung", "gueltig_bis": None, "titel": "Eine Frist, die wichtig ist " * 30}
    draft |= {
        "kurzbeschreibung": "Eine Frist, die wichtig ist " * 30,
        "tag_namen": [f"Schlagwort {n}" for n in range(12)],
    }
    insert(kind, [draft] * 60, Origin(SYSTEM, "anna", "planer", "rest", "test"))
    for number in range(10):
        anna.post(url("views", kind=kind.typ), {"query": FILTERED, "bezeichnung": f"Eine Ansicht {number}"})
    page = listed(anna, kind=kind.typ)
    every = [name for name, _title, _shown in page.context["columns"]]
    anna.post(url("columns", kind=kind.typ), {"query": "", "spalte": every})
    with CaptureQueriesContext(connection) as queries:
        page = listed(anna, "nutzer=anna&agent=planer&age=week", kind=kind.typ)
    assert len(page.context["cl"].result_list) == 50
    assert columns(page) == ["action_checkbox", "kennung", *every]
    print(f"{kind.typ}: {len(page.content)} bytes, {len(queries)} queries")
    assert len(page.content) <= 80_000
    assert len(queries) <= 12
