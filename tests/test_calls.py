"""Every call is recorded, and counted against the limits of its key."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.utils import timezone

from memories.models import AccessKey, CallRecord, KeyUsage, LongtermMemory
from memories.principal import SYSTEM, Principal, Reach
from tests.conftest import Agent, note
from tests.doors import NAMES, inhalt_for
from tests.trouble import together

pytestmark = pytest.mark.django_db

SELECT = "select_brain_longterm_memory"
INSERT = "insert_brain_longterm_memory"
CALLER = {"nutzer": "anna", "agent": "planer"}


def mcp(agent: Agent, method: str, **params: Any) -> Any:
    """The response to a request over MCP, as a legacy client sends it."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return agent.http.post("/mcp", json.dumps(body), content_type="application/json")


@pytest.mark.parametrize("name", NAMES)
def test_a_call_of_every_tool_is_recorded_by_both_doors(anna: Agent, name: str) -> None:
    arguments = {"inhalt": inhalt_for(name)}
    answers = [
        anna.post(name, arguments).json(),
        mcp(anna, "tools/call", name=name, arguments=arguments).json()["result"]["structuredContent"],
    ]
    for answer, record, tuer in zip(answers, CallRecord.objects.order_by("pk"), ("rest", "mcp"), strict=True):
        assert (record.tuer, record.tool, record.nutzer, record.agent) == (tuer, name, "anna", "planer")
        assert (record.schluessel, record.konto, record.code) == ("anna", "anna", "ok")
        assert {k: getattr(record, k) for k in answer["anzahl"]} == answer["anzahl"]
        assert record.dauer_ms is not None
        assert record.bytes > 50


def test_no_text_is_recorded(anna: Agent) -> None:
    anna.store(memory="Geheimnis", kurzbeschreibung="Geheimnis", tags=["Geheimnis"])
    anna.call("search_brain", suche="Geheimnis")
    columns = [field.name for field in CallRecord._meta.concrete_fields]  # noqa: SLF001
    assert "Geheimnis" not in str(list(CallRecord.objects.values_list(*columns)))
    assert CallRecord.objects.count() == 2


def test_what_is_refused_is_recorded_with_its_code(anna: Agent, agent_with: Callable[..., Agent]) -> None:
    anna.post(SELECT, {"inhalt": {**CALLER, "nutzer": "carla"}})
    anna.post(SELECT, {"inhalt": {"nutzer": ["x"], "agent": "a\0b"}})
    agent_with("reader", may_write=False).post(INSERT, {"inhalt": {**CALLER, "memories": [note()]}})
    codes = [(record.code, record.nutzer, record.agent) for record in CallRecord.objects.order_by("pk")]
    assert codes == [
        ("nicht_erlaubt", "carla", "planer"),
        ("ungueltig", "", "a?b"),
        ("nicht_erlaubt", "anna", "planer"),
    ]


def test_reading_over_mcp_is_recorded_too(anna: Agent) -> None:
    anna.store()
    for method in ("resources/list", "resources/read", "completion/complete"):
        mcp(anna, method, uri="brain://longterm/1", ref={}, argument={})
    assert list(CallRecord.objects.order_by("pk").values_list("tool", flat=True)[1:]) == [
        "resources/list",
        "resources/read",
        "completion/complete",
    ]


@contextmanager
def no_record_can_be_stored() -> Iterator[None]:
    """The table of records takes nothing."""

    def refuse(execute: Any, sql: str, *arguments: Any) -> Any:
        if sql.startswith('INSERT INTO "memories_callrecord"'):
            raise OperationalError("disk full")
        return execute(sql, *arguments)

    with connection.execute_wrapper(refuse):
        yield


def test_a_write_that_cannot_be_recorded_is_refused(anna: Agent) -> None:
    with no_record_can_be_stored():
        response = anna.post(INSERT, {"inhalt": {**CALLER, "memories": [note()]}})
        assert anna.post(SELECT, {"inhalt": CALLER}).status_code == 200
    assert response.status_code == 503
    assert response.json()["fehler"]["code"] == "nicht_verfuegbar"
    assert not LongtermMemory.objects.exists()


def test_a_write_that_never_ended_shows_as_begun(anna: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.calls._end", lambda *_arguments: None)
    anna.store()
    record = CallRecord.objects.get()
    assert (record.code, record.dauer_ms, record.bytes > 50) == ("begonnen", None, True)


def limit(agent: Agent, **limits: int) -> None:
    """Limit the agent's key."""
    AccessKey.objects.filter(prefix=agent.key.partition(".")[0]).update(**limits)


def test_a_key_has_so_many_calls_a_minute_over_all_doors(anna: Agent, ben: Agent) -> None:
    limit(anna, calls_a_minute=3)
    assert anna.post(SELECT, {"inhalt": CALLER}).status_code == 200
    assert mcp(anna, "tools/call", name=SELECT, arguments={"inhalt": CALLER}).status_code == 200
    assert mcp(anna, "resources/list").status_code == 200
    refused = [
        anna.post(SELECT, {"inhalt": CALLER}),
        mcp(anna, "tools/call", name=SELECT, arguments={"inhalt": CALLER}),
    ]
    for response in refused:
        assert response.status_code == 429
        assert 0 < int(response["Retry-After"]) <= 60
    fault = refused[0].json()["fehler"]
    assert fault["code"] == "zu_viele"
    assert "3" in fault["meldung"]
    assert refused[1].json()["error"]["data"]["code"] == "zu_viele"
    assert refused[1].json()["id"] == 1
    assert ben.post(SELECT, {"inhalt": {**CALLER, "nutzer": "ben"}}).status_code == 200
    KeyUsage.objects.update(minute=0)
    assert anna.post(SELECT, {"inhalt": CALLER}).status_code == 200


def test_a_key_writes_so_many_entries_and_sends_so_many_bytes_a_day(anna: Agent) -> None:
    limit(anna, entries_a_day=3)
    assert anna.post(INSERT, {"inhalt": {**CALLER, "memories": [note(), note()]}}).status_code == 200
    refused = anna.post(INSERT, {"inhalt": {**CALLER, "memories": [note(), note()]}})
    assert refused.status_code == 429
    assert "1" in refused.json()["fehler"]["meldung"]
    assert anna.post(SELECT, {"inhalt": CALLER}).status_code == 200
    assert LongtermMemory.objects.count() == 2
    limit(anna, entries_a_day=100, bytes_a_day=KeyUsage.objects.get().bytes + 10)
    assert anna.post(SELECT, {"inhalt": CALLER}).status_code == 429
    KeyUsage.objects.update(day=0)
    limit(anna, bytes_a_day=1_000)
    assert anna.post(SELECT, {"inhalt": CALLER}).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_no_call_is_lost_when_several_count_at_once(anna: Agent) -> None:
    together([lambda: anna.post(SELECT, {"inhalt": CALLER}) for _caller in range(6)])
    assert CallRecord.objects.count() == 6
    used = KeyUsage.objects.get()
    assert used.calls == 6 or used.minute > int(CallRecord.objects.earliest("zeitpunkt").zeitpunkt.timestamp()) // 60


def test_old_records_are_cleaned_up(anna: Agent, settings: Any) -> None:
    anna.store()
    anna.store()
    old = CallRecord.objects.order_by("pk")[:1].values("pk")
    CallRecord.objects.filter(pk__in=old).update(
        zeitpunkt=timezone.now() - timedelta(days=settings.BRAIN_CALLS_DAYS + 1)
    )
    call_command("clean_up")
    assert CallRecord.objects.count() == 1


def test_an_auditor_sees_the_calls_of_those_whose_memories_he_sees(anna: Agent, carla: Agent) -> None:
    anna.call(SELECT)
    carla.call(SELECT)
    everything = CallRecord.objects.visible_to(SYSTEM)
    assert everything.count() == 2
    limited = Principal(reaches=(Reach(nutzer=frozenset({"anna"})), Reach(nutzer=frozenset({"x"}), agent=frozenset())))
    assert [record.nutzer for record in CallRecord.objects.visible_to(limited)] == ["anna"]
    assert not CallRecord.objects.visible_to(Principal()).exists()
