"""The recall log: which search, by whom, gave which memory at which rank."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from memories.models import CallRecord, Recall, RecalledSearch
from memories.principal import SYSTEM, Principal, Reach
from tests.admincast import person, url
from tests.conftest import Agent

pytestmark = pytest.mark.django_db


def recalled() -> list[tuple[str, int, str, str, str]]:
    """What was recalled: ID, rank, searched text, nutzer and agent."""
    rows = Recall.objects.select_related("search__call").order_by("pk")
    return [(r.kennung, r.rang, r.search.suche, r.search.call.nutzer, r.search.call.agent) for r in rows]


def test_a_search_is_noted_with_what_it_returned(anna: Agent) -> None:
    first, second = anna.store(kurzbeschreibung="Frist Frist Frist"), anna.store(kurzbeschreibung="Frist")
    anna.store(kurzbeschreibung="Anderes", memory="Anderes")
    found = anna.call("search_brain", suche="Frist")["daten"]
    assert [row["ID"] for row in found] == [first, second]
    assert recalled() == [(first, 1, "Frist", "anna", "planer"), (second, 2, "Frist", "anna", "planer")]


def test_what_finds_nothing_or_executes_nothing_is_not_noted(anna: Agent) -> None:
    anna.store()
    anna.call("search_brain", suche="Zwetschgendatschi")
    anna.post("search_brain", {"help": 1})
    anna.post("search_brain", {"inhalt": {"nutzer": "anna", "agent": "planer"}})
    anna.call("select_brain_longterm_memory")
    assert not RecalledSearch.objects.exists()


def test_it_can_be_switched_off(anna: Agent, settings: Any) -> None:
    settings.BRAIN_RECALL_DAYS = 0
    anna.store()
    anna.call("search_brain", suche="Frist")
    assert not RecalledSearch.objects.exists()
    assert CallRecord.objects.count() == 2


def test_what_is_old_is_cleaned_up_and_the_call_stays(anna: Agent, settings: Any) -> None:
    anna.store()
    anna.call("search_brain", suche="Frist")
    anna.call("search_brain", suche="Frist")
    old = CallRecord.objects.filter(tool="search_brain").order_by("pk").first()
    CallRecord.objects.filter(pk=old.pk).update(
        zeitpunkt=timezone.now() - timedelta(days=settings.BRAIN_RECALL_DAYS, hours=1)
    )
    call_command("clean_up")
    assert Recall.objects.count() == RecalledSearch.objects.count() == 1
    assert CallRecord.objects.filter(tool="search_brain").count() == 2


def test_only_recalls_of_what_one_may_see_are_seen(anna: Agent, carla: Agent) -> None:
    anna.store()
    carla.store()
    anna.call("search_brain", suche="Frist")
    carla.call("search_brain", suche="Frist")
    assert Recall.objects.visible_to(SYSTEM).count() == 2
    limited = Principal(reaches=(Reach(nutzer=frozenset({"carla"})),), sees_expired=True)
    assert [recall.search.call.nutzer for recall in Recall.objects.visible_to(limited)] == ["carla"]
    assert not Recall.objects.visible_to(Principal()).exists()


def test_the_memory_and_the_list_tell_when_it_was_recalled(anna: Agent) -> None:
    kennung = anna.store()
    key = kennung.partition("_")[2]
    auditor = person("otto", ["view_longtermmemory", "view_callrecord", "view_recall"])
    assert "Not recalled" in auditor.get(url("change", key)).content.decode()
    anna.call("search_brain", suche="Frist")
    anna.call("search_brain", suche="Kündigungsfrist")
    page = auditor.get(url("change", key)).content.decode()
    assert "2 times" in page
    address = reverse("admin:memories_recall_changelist")
    assert f"{address}?memory={kennung}" in page
    listed = auditor.get(address, {"memory": kennung}).content.decode()
    assert "Kündigungsfrist" in listed
    assert "planer" in listed
    assert "Kündigungsfrist" not in auditor.get(address, {"memory": "longterm_999"}).content.decode()
    viewer = person("vera", ["view_longtermmemory"])
    assert address not in viewer.get(url("change", key)).content.decode()
    assert viewer.get(address).status_code == 403
