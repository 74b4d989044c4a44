"""The start page: what came in, from whom, what needs a look; each figure within what the viewer may see."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from memories import duplicates, figures
from memories.figures import Counted, Named
from memories.kinds import BRAIN, SHORTTERM
from memories.models import DuplicatePair, Grant
from memories.principal import SYSTEM, Principal, Reach
from memories.values import embedding
from tests.admincast import person, store
from tests.conftest import Agent

pytestmark = pytest.mark.django_db
MOST_STATEMENTS = 30
VECTOR = {"embedding": embedding([1.0, 2.0], "embedding"), "embedding_dimension": 2, "embedding_profil_hash": "p"}


@pytest.fixture
def stock() -> None:
    """Memories of every kind, of two nutzer, one about to expire, one whose vector is stale."""
    store(nutzer="anna")
    store(nutzer="ben", scope="projekt", kurzbeschreibung="Bens Notiz", **VECTOR, embedding_veraltet=True)
    store(SHORTTERM, nutzer="anna", gueltig_bis=timezone.now() + timedelta(days=2))
    store(SHORTTERM, nutzer="anna", gueltig_bis=timezone.now() + timedelta(days=20))
    store(BRAIN, nutzer="ben", memory_typ="arbeit", titel="Abnahme")


@pytest.mark.usefixtures("stock")
def test_the_figures_of_everything() -> None:
    told = figures.figures(SYSTEM)
    assert [(of.kind.typ, of.all.number, of.stale.number) for of in told.kinds] == [
        ("longterm", 2, 1),
        ("shortterm", 2, 0),
        ("brain", 1, 0),
    ]
    assert [of.expiring and of.expiring.number for of in told.kinds] == [None, 1, 0]
    assert told.days[-1].by_kind == (2, 2, 1)
    assert len(told.days) == figures.DAYS
    assert [(named.name, named.by_kind) for named in told.nutzer] == [("anna", (1, 2, 0)), ("ben", (1, 0, 1))]
    assert Named("projekt", (1, 0, 0)) in told.scopes
    assert len(told.latest) == 5
    assert not told.partly


@pytest.mark.usefixtures("stock")
def test_the_figures_are_those_of_what_one_may_see() -> None:
    told = figures.figures(Principal(reaches=(Reach(nutzer=frozenset({"ben"})),), sees_expired=True))
    assert [of.all.number for of in told.kinds] == [1, 0, 1]
    assert told.nutzer == [Named("ben", (1, 0, 1))]
    assert {version.nutzer for version in told.latest} == {"ben"}
    assert figures.figures(Principal()).kinds == []


def test_large_numbers_are_not_counted_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MOST", 2)
    monkeypatch.setattr(figures, "GROUPED", 3)
    for _memory in range(4):
        store()
    told = figures.figures(SYSTEM)
    assert told.kinds[0].all == Counted(2, more=True)
    assert told.days[-1].number == 3
    assert told.partly


def test_the_page(anna: Agent) -> None:
    store(kurzbeschreibung="<b>Frist</b>")
    anna.post("select_brain_longterm_memory", {"inhalt": {}})
    chief = person("chef", superuser=True)
    with CaptureQueriesContext(connection) as context:
        page = chief.get(reverse("admin:index")).content.decode()
    assert len(context) <= MOST_STATEMENTS, [query["sql"] for query in context.captured_queries]
    assert "<svg" in page
    assert "&lt;b&gt;Frist" in page
    assert f"{reverse('admin:memories_callrecord_changelist')}?failed=day" in page
    viewer = person("vera", ["view_longtermmemory"])
    page = viewer.get(reverse("admin:index")).content.decode()
    assert "Frist" in page
    assert "failed=day" not in page
    Grant.objects.all().delete()
    nobody = User.objects.get(username="vera")
    viewer.force_login(nobody)
    page = viewer.get(reverse("admin:index")).content.decode()
    assert "No grant" in page
    assert "Frist" not in page


def test_the_near_duplicates_that_wait_are_those_of_which_one_sees_both() -> None:
    for nutzer in ("anna", "anna", "wanda", "wanda"):
        store(nutzer=nutzer, memory="Derselbe Text")
    store(nutzer="anna", memory="Ein anderer")
    duplicates.find(0)
    assert figures.near_duplicates(SYSTEM).number == 6
    of_anna = Principal(reaches=(Reach(nutzer=frozenset({"anna"})),))
    assert figures.near_duplicates(of_anna).number == 1
    assert figures.near_duplicates(Principal()).number == 0
    pairs = DuplicatePair.objects.visible_to(of_anna)
    duplicates.dismiss(pairs.values_list("pk", flat=True), DuplicatePair.objects.all(), "anna")
    assert figures.near_duplicates(of_anna).number == 0


def test_the_near_duplicates_lead_to_their_list_for_whoever_may_see_it() -> None:
    store()
    store()
    duplicates.find(0)
    the_list = reverse("admin:memories_duplicatepair_changelist")
    figure = f'<p class="large"><a href="{the_list}">1</a></p>'
    viewer = person("vera", ["view_longtermmemory", "view_duplicatepair"])
    assert figure in viewer.get(reverse("admin:index")).content.decode()
    other = person("olga", ["view_longtermmemory"])
    assert the_list not in other.get(reverse("admin:index")).content.decode()


def test_every_figure_leads_to_its_list() -> None:
    store(kurzbeschreibung="frisch")
    store(kurzbeschreibung="veraltet", **VECTOR, embedding_veraltet=True)
    store(SHORTTERM, kurzbeschreibung="bald", gueltig_bis=timezone.now() + timedelta(days=2))
    store(SHORTTERM, kurzbeschreibung="spaeter", gueltig_bis=timezone.now() + timedelta(days=20))
    chief = person("chef", superuser=True)
    assert "/admin/memories/longtermmemory/?scope=modul" in chief.get(reverse("admin:index")).content.decode()
    stale = chief.get(reverse("admin:memories_longtermmemory_changelist"), {"vector": "stale"}).content.decode()
    assert ("veraltet" in stale, "frisch" in stale) == (True, False)
    soon = chief.get(reverse("admin:memories_shorttermmemory_changelist"), {"validity": "soon"}).content.decode()
    assert ("bald" in soon, "spaeter" in soon) == (True, False)
