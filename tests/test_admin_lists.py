"""The lists of the admin: what they show, find and filter, at the same number of queries for any number of rows."""

import re
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from api.faults import server_error
from memories.admin import filters
from memories.kinds import BRAIN, LONGTERM, SHORTTERM, Kind
from memories.models import LongtermMemory, ShorttermMemory
from memories.principal import SYSTEM, Origin
from memories.services import insert
from tests.admincast import NOTE, messages, person, store, url

pytestmark = pytest.mark.django_db
BRAIN_OWN = {"memory_typ": "arbeit", "titel": "T"}
MOST_QUERIES = 12


@pytest.fixture
def anna() -> Client:
    """Administrator."""
    return person("anna", superuser=True)


def shown(client: Client, kind: str = "longterm", **parameters: str) -> set[str]:
    """The IDs that the list shows."""
    response = client.get(url("changelist", kind=kind), parameters)
    assert response.status_code == 200, response
    return {row.kennung for row in response.context["cl"].result_list}


def test_the_list_shows_what_matters_newest_first(anna: Client) -> None:
    first, second = store(memory="lang " * 1000), store(kurzbeschreibung="x" * 500, tag_namen=["Eins", "Zwei"])
    response = anna.get(url("changelist"))
    page = response.content.decode()
    assert [row.pk for row in response.context["cl"].result_list] == [second, first]
    for text in (f"longterm_{first}", "modul 12", "Eins, Zwei", "anna", "planer", "none"):
        assert text in page
    assert f"{'x' * 79}…<" in page


@pytest.mark.parametrize("kind", [LONGTERM, SHORTTERM, BRAIN], ids=lambda kind: kind.typ)
@pytest.mark.parametrize("page", ["memory", "version"])
def test_a_list_costs_the_same_queries_for_any_number_of_rows(kind: Kind, page: str) -> None:
    client = person("carla", [f"view_{kind.typ}memory", f"change_{kind.typ}memory", f"delete_{kind.typ}memory"])
    counts = []
    for _round in range(2):
        origin = Origin(SYSTEM, nutzer="anna", agent="planer", tuer="rest", tool="test")
        drafts = [NOTE | BRAIN_OWN | {"gueltig_bis": None, "tag_namen": [f"t{n}", "u"]} for n in range(30)]
        insert(kind, drafts, origin)
        with CaptureQueriesContext(connection) as queries:
            response = client.get(f"/admin/memories/{kind.typ}{page}/", {"tag": "u"} if page == "memory" else {})
        assert response.status_code == 200
        counts.append(len(queries))
    print(f"{kind.typ} {page}: {counts} queries")
    assert counts[0] == counts[1] <= MOST_QUERIES


def test_the_pages_of_one_memory_cost_the_same_queries_for_any_number_of_versions(anna: Client) -> None:
    key = store()
    counts = []
    for text in ("eins", "zwei", "drei"):
        fields = {"kurzbeschreibung": "k", "memory": text, "schlagworte": text, "grund": "", "geladene_version": ""}
        fields["geladene_version"] = str(LongtermMemory.objects.get(pk=key).version)
        anna.post(url("change", key), fields)
        with CaptureQueriesContext(connection) as queries:
            anna.get(url("history", key))
        counts.append(len(queries))
    print(f"history: {counts} queries")
    assert counts[0] == counts[-1] <= MOST_QUERIES


def test_the_search_finds_words_in_the_texts_and_ids(anna: Client) -> None:
    one, two = store(memory="Der Vertrag läuft aus"), store(kurzbeschreibung="Vertrag", memory="Lieferant")
    assert shown(anna, q="vertrag") == {f"longterm_{one}", f"longterm_{two}"}
    assert shown(anna, q="vertrag -lieferant") == {f"longterm_{one}"}
    assert shown(anna, q=f"longterm_{one}") == {f"longterm_{one}"}
    assert shown(anna, q="brain_1") == set()
    assert "200" in messages(anna.get(url("changelist"), {"q": "x" * 201}))


def test_filters_narrow_the_list_and_keep_each_other(anna: Client) -> None:
    wanted = store(tag_namen=["Übung"], scope="kunde", nutzer="ben", agent="leser")
    store(tag_namen=["Übung"], scope="kunde", nutzer="ben")
    store()
    parameters = {"tag": "übung", "scope": "kunde", "nutzer": "ben", "agent": "leser"}
    assert shown(anna, **parameters) == {f"longterm_{wanted}"}
    for name, value in parameters.items():
        assert len(shown(anna, **{name: value})) == (1 if name == "agent" else 2)
    page = anna.get(url("changelist"), {"tag": "übung", "age": "today", "q": "frist"}).content.decode()
    assert '<input type="hidden" name="age" value="today">' in page
    assert '<input type="hidden" name="q" value="frist">' in page
    assert shown(anna, tag="gibt es nicht") == set()


def test_a_tag_keeps_the_lists_order(anna: Client) -> None:
    first, second = store(tag_namen=["A"]), store(tag_namen=["A"])
    store(tag_namen=["B"])

    def keys(**more: str) -> list[int]:
        page = anna.get(url("changelist"), {"tag": "a"} | more)
        return [row.pk for row in page.context["cl"].result_list]

    assert keys() == [second, first]
    assert keys(o="8") == [first, second]


def test_brain_memories_are_filtered_by_their_own_values(anna: Client) -> None:
    key = store(BRAIN, **BRAIN_OWN, scope_typ="room")
    store(BRAIN, memory_typ="agent", titel="U")
    assert shown(anna, "brain", scope_typ="room") == {f"brain_{key}"}
    assert shown(anna, "brain", memory_typ="arbeit", validity="valid") == {f"brain_{key}"}


@pytest.mark.parametrize(
    "parameters",
    [
        {"memory__regex": "(a+)+$"},
        {"kurzbeschreibung__contains": "a"},
        {"tag_links__tag__name": "a"},
        {"nutzer__in": "anna"},
        {"unknown": "1"},
        {"scope": "a\0b"},
        {"tag": "\u200b"},
        {"age": "tomorrow"},
        {"p": "99"},
    ],
    ids=str,
)
def test_undeclared_and_senseless_filters_are_answered_by_the_plain_list(anna: Client, parameters: Any) -> None:
    for _ in range(60 if "p" in parameters else 1):
        store()
    with CaptureQueriesContext(connection) as queries:
        response = anna.get(url("changelist"), parameters)
    assert (response.status_code, response["Location"]) == (302, f"{url('changelist')}?e=1")
    assert "REGEX" not in str(queries.captured_queries).upper()


def test_days_begin_at_midnight_in_the_servers_time_zone(monkeypatch: pytest.MonkeyPatch, anna: Client) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    now = datetime(2026, 3, 30, 0, 30, tzinfo=berlin)  # after the night with 23 hours
    monkeypatch.setattr(timezone, "now", lambda: now)
    assert filters.start_of_day(0) == datetime(2026, 3, 30, tzinfo=berlin)
    assert filters.start_of_day(1) == datetime(2026, 3, 29, tzinfo=berlin)
    ages = [timedelta(minutes=29), timedelta(minutes=31), timedelta(days=8), timedelta(days=31), timedelta(days=366)]
    keys = [store() for _ in ages]
    for key, age in zip(keys, ages, strict=True):
        LongtermMemory.objects.filter(pk=key).update(erstellt_am=now - age)
    names = [f"longterm_{key}" for key in keys]
    monkeypatch.undo()
    monkeypatch.setattr(filters.timezone, "localdate", lambda **_options: now.date())
    assert shown(anna, age="today") == set(names[:1])
    assert shown(anna, age="week") == set(names[:2])
    assert shown(anna, age="month") == set(names[:3])
    assert shown(anna, age="old") == set(names[4:])
    assert shown(anna) == set(names)


def test_what_is_no_longer_valid_is_shown_and_can_be_filtered(anna: Client) -> None:
    old, new = store(SHORTTERM, gueltig_bis=None), store(SHORTTERM, gueltig_bis=None)
    ShorttermMemory.objects.filter(pk=old).update(gueltig_bis=timezone.now() - timedelta(days=1))
    names = f"shortterm_{old}", f"shortterm_{new}"
    assert shown(anna, "shortterm") == set(names)
    assert shown(anna, "shortterm", validity="expired") == {names[0]}
    assert shown(anna, "shortterm", validity="valid") == {names[1]}


def test_the_history_list_tells_who_changed_what(anna: Client) -> None:
    key, other = store(), store(tag_namen=[])
    anna.post(url("delete", key), {"post": "yes", "grund": "doppelt"})
    address = "/admin/memories/longtermversion/"

    def found(**parameters: str) -> set[tuple[int, int]]:
        response = anna.get(address, parameters)
        assert response.status_code == 200
        return {(row.memory_id, row.version) for row in response.context["cl"].result_list}

    everything = {(key, 1), (key, 2), (other, 1)}
    assert found() == everything
    assert found(q="doppelt") == {(key, 2)}
    assert found(q="T-17") == {(key, 1), (other, 1)}
    assert found(q=f"longterm_{key}") == {(key, 1), (key, 2)}
    assert found(aktion="geloescht", tuer="admin", age="today") == {(key, 2)}
    assert found(tuer="rest") == everything - {(key, 2)}
    page = anna.get(address).content.decode()
    assert url("history", key) in page
    assert url("version", key, 2) in page


def test_tags_are_listed_with_their_counts(anna: Client) -> None:
    store(tag_namen=["Übung"])
    store(tag_namen=["Übung", "Straße"])
    store(BRAIN, **BRAIN_OWN, tag_namen=["Übung"])
    with CaptureQueriesContext(connection) as queries:
        response = anna.get("/admin/memories/tag/", {"q": "übung"})
    rows = {tag.name: (tag.longterm, tag.shortterm, tag.brain) for tag in response.context["cl"].result_list}
    assert rows == {"Übung": (2, 0, 1)}
    assert len(queries) <= MOST_QUERIES
    assert "STRASSE".lower() not in response.content.decode()
    assert {tag.name for tag in anna.get("/admin/memories/tag/", {"q": "STRASSE"}).context["cl"].result_list} == {
        "Straße"
    }


def test_a_person_sees_only_tags_of_kinds_in_sight() -> None:
    store(tag_namen=["Langzeit"])
    store(BRAIN, **BRAIN_OWN, tag_namen=["Brain"])
    client = person("vera", ["view_tag", "view_brainmemory"])
    page = client.get("/admin/memories/tag/").content.decode()
    assert "Langzeit" not in page
    assert "Brain</t" in page


def test_the_language_is_switched_in_the_header(anna: Client) -> None:
    assert '<html lang="en"' in anna.get("/admin/").content.decode()
    response = anna.post("/i18n/setlang/", {"language": "de", "next": "/admin/"}, follow=True)
    page = response.content.decode()
    assert '<html lang="de"' in page
    assert "Abmelden" in page
    assert "<title>" in page
    assert "Brain" in page


def test_the_language_is_switched_before_signing_in() -> None:
    client = Client(headers={"Accept-Language": "en"})
    assert 'value="de"' in client.get("/admin/login/").content.decode()
    page = client.post("/i18n/setlang/", {"language": "de", "next": "/admin/login/"}, follow=True).content.decode()
    assert "Anmelden" in page


def test_lists_and_forms_explain_themselves(anna: Client) -> None:
    for model in ("longtermmemory", "shorttermmemory", "brainmemory", "accesskey", "serviceaccount"):
        for page in ("", "add/"):
            assert b'<p class="explanation">' in anna.get(f"/admin/memories/{model}/{page}").content, (model, page)
    for model in ("longtermversion", "shorttermversion", "brainversion", "tag"):
        assert b'<p class="explanation">' in anna.get(f"/admin/memories/{model}/").content, model


def test_a_moment_has_one_form_on_all_pages_and_no_month_that_could_be_a_day(anna: Client) -> None:
    store()
    german = Client(headers={"Accept-Language": "de"})
    german.force_login(User.objects.get(username="anna"))
    for page in (reverse("admin:index"), url("changelist")):
        assert re.search(r">\s*\d{1,2} [A-Z][a-z]{2} 20\d\d, \d\d:\d\d<", anna.get(page).content.decode()), page
        assert re.search(r">\s*\d\d\.\d\d\.20\d\d \d\d:\d\d<", german.get(page).content.decode()), page


def test_long_identifiers_leave_room_for_the_others(anna: Client) -> None:
    store(scope="s" * 255, scope_vk="v" * 255, nutzer="n" * 255, agent="a" * 255)
    store(BRAIN, memory_typ="arbeit", titel="T", scope_typ="modul", scope_id="s" * 255)
    for page in (reverse("admin:index"), url("changelist"), url("changelist", kind="brain")):
        cells = re.findall(r">([^<>]*sss[^<>]*)</t[dh]>", anna.get(page).content.decode())
        assert cells, page
        assert max(map(len, cells)) <= 60, page


def test_a_page_that_is_not_there_is_said_in_the_readers_language(client: Client) -> None:
    page = client.get("/admin-nowhere/", headers={"Accept-Language": "de"})
    assert page.status_code == 404
    assert "Seite nicht gefunden" in page.content.decode()


def test_a_fault_of_the_program_is_a_page_without_its_details(rf: RequestFactory) -> None:
    page = server_error(rf.get("/admin/"))
    assert page.status_code == 500
    assert "Protokoll" in page.content.decode()
