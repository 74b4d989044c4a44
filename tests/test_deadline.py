"""A request that keeps the database busy for too long is ended, and leaves nothing half-done."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, OperationalError, connection, transaction
from django.test import Client, override_settings

from memories import deadline
from memories.drift import deviations
from memories.kinds import LONGTERM
from memories.models import CallRecord, LongtermMemory
from tests.admincast import form, person, store, url
from tests.conftest import Agent, note
from tests.doors import fault_of

pytestmark = pytest.mark.django_db(transaction=True)
SECONDS = 0.3
SLOW = {
    "sqlite": "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 300000000) SELECT count(*) FROM c",
    "postgresql": "SELECT pg_sleep(20)",
}
# Inserting or changing a memory of this name takes for ever.
TRIGGERS = {
    "sqlite": [
        f"""CREATE TRIGGER slow_{verb} AFTER {verb} ON memories_longtermmemory WHEN NEW.kurzbeschreibung = 'langsam'
        BEGIN SELECT count(*) FROM pragma_function_list a, pragma_function_list b, pragma_function_list c,
        pragma_function_list d; END"""
        for verb in ("INSERT", "UPDATE")
    ],
    "postgresql": [
        """CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.kurzbeschreibung = 'langsam' THEN PERFORM pg_sleep(20); END IF; RETURN NEW; END $$""",
        "CREATE TRIGGER slow BEFORE INSERT OR UPDATE ON memories_longtermmemory FOR EACH ROW EXECUTE FUNCTION slow()",
    ],
}
REMOVED = {
    "sqlite": ["DROP TRIGGER slow_INSERT", "DROP TRIGGER slow_UPDATE"],
    "postgresql": ["DROP TRIGGER slow ON memories_longtermmemory", "DROP FUNCTION slow"],
}


@pytest.fixture(autouse=True)
def _short() -> Iterator[None]:
    """A short deadline, and afterwards a connection that knows of none."""
    with override_settings(BRAIN_REQUEST_SECONDS=SECONDS):
        yield
    connection.close()


def execute(statements: list[str]) -> None:
    """Run them."""
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture
def _slow_writes() -> Iterator[None]:
    execute(TRIGGERS[connection.vendor])
    yield
    connection.close()
    execute(REMOVED[connection.vendor])


def slow() -> None:
    """A statement that takes long."""
    with connection.cursor() as cursor:
        cursor.execute(SLOW[connection.vendor])
        cursor.fetchall()


@contextmanager
def slow_reads() -> Iterator[None]:
    """As if each look at the long-term memories took long."""

    def slowed(run: Any, sql: str, *more: Any) -> Any:
        if 'FROM "memories_longtermmemory"' in sql:
            run(SLOW[connection.vendor], None, False, more[-1])
            more[-1]["cursor"].fetchall()
        return run(sql, *more)

    with connection.execute_wrapper(slowed):
        yield


@contextmanager
def soon() -> Iterator[None]:
    """It takes a little more than the deadline."""
    began = time.monotonic()
    yield
    assert SECONDS <= time.monotonic() - began < SECONDS + 3


def test_a_slow_question_of_a_machine_is_answered_in_the_form_of_the_contract(anna: Agent) -> None:
    anna.store()
    with slow_reads(), soon():
        response = anna.post("select_brain_longterm_memory", {"inhalt": {"nutzer": "anna", "agent": "planer"}})
    fault = fault_of(response, 503)
    assert fault["code"] == "nicht_verfuegbar"
    assert "zu lange" in fault["meldung"]
    assert response["Retry-After"] == "5"
    record = CallRecord.objects.latest("pk")
    assert (record.tool, record.code) == ("select_brain_longterm_memory", "nicht_verfuegbar")
    assert anna.call("select_brain_longterm_memory")["anzahl"]["gesamt"] == 1


def test_a_slow_question_over_mcp_too(anna: Agent) -> None:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "select_brain_longterm_memory",
            "arguments": {"inhalt": {"nutzer": "anna", "agent": "planer"}},
        },
    }
    with slow_reads(), soon():
        response = anna.http.post("/mcp", message, content_type="application/json")
    fault = response.json()["result"]["structuredContent"]["fehler"]
    assert fault["code"] == "nicht_verfuegbar"


def test_a_slow_page_is_a_page_that_says_so() -> None:
    client = person("vera", superuser=True)
    store()
    with slow_reads(), soon():
        response = client.get(url("changelist"))
    assert response.status_code == 503
    assert response["Retry-After"] == "5"
    assert "This took the database too long" in response.content.decode()
    assert client.get(url("changelist")).status_code == 200


@pytest.mark.usefixtures("_slow_writes")
def test_a_slow_batch_stores_nothing_and_is_not_repeated(anna: Agent) -> None:
    memories = [note(), note(kurzbeschreibung="langsam"), note()]
    with soon():
        response = anna.post(
            "insert_brain_longterm_memory", {"inhalt": {"nutzer": "anna", "agent": "planer", "memories": memories}}
        )
    assert fault_of(response, 503)["code"] == "nicht_verfuegbar"
    assert not LongtermMemory.objects.exists()
    assert not LONGTERM.versions.objects.exists()
    assert list(deviations(LONGTERM)) == []
    assert CallRecord.objects.latest("pk").code == "nicht_verfuegbar"
    assert anna.call("insert_brain_longterm_memory", memories=[note()])["erfolg"] is True


@pytest.mark.usefixtures("_slow_writes")
def test_a_slow_change_in_the_admin_changes_nothing() -> None:
    client = person("vera", superuser=True)
    key = store()
    given = form(client, url("change", key)) | {"kurzbeschreibung": "langsam"}
    with soon():
        response = client.post(url("change", key), given)
    assert response.status_code in {200, 503}
    memory = LongtermMemory.objects.get()
    assert (memory.kurzbeschreibung, memory.version) == ("Frist", 1)
    assert list(deviations(LONGTERM)) == []


def test_commands_and_threads_have_no_deadline(anna: Agent) -> None:
    anna.store()
    anna.call("select_brain_longterm_memory")
    assert not deadline.passed()
    time.sleep(SECONDS)
    call_command("search_index", check=True)
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(SLOW["sqlite"].replace("300000000", "3000000"))
            assert cursor.fetchone() == (3_000_000,)

    outcome: list[Any] = []

    def work() -> None:
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SHOW statement_timeout")
                outcome.append(cursor.fetchone())
        outcome.append(deadline.passed())
        connection.close()

    with deadline.limited(0.0):
        thread = Thread(target=work)
        thread.start()
        thread.join()
    assert outcome == ([("0",), False] if connection.vendor == "postgresql" else [False])


def test_a_limit_that_was_set_in_a_transaction_holds_after_its_end() -> None:
    with soon(), deadline.limited(SECONDS):
        with transaction.atomic():
            LongtermMemory.objects.count()
            transaction.set_rollback(True)
        with pytest.raises(OperationalError):
            slow()
    connection.close()
    with soon(), deadline.limited(SECONDS), pytest.raises(OperationalError), transaction.atomic():
        slow()


def test_a_savepoint_is_rolled_back_after_a_refusal_within_a_deadline() -> None:
    key = store()
    with deadline.limited(20), transaction.atomic():
        with pytest.raises(IntegrityError), transaction.atomic():
            LongtermMemory.objects.filter(pk=key).update(scope=None)
        LongtermMemory.objects.filter(pk=key).update(scope_vk="7")
    assert LongtermMemory.objects.get(pk=key).scope_vk == "7"


def test_health_is_quick_to_say_that_the_database_is_slow() -> None:
    def slowed(run: Any, sql: str, *more: Any) -> Any:
        run(SLOW[connection.vendor], None, False, more[-1])
        more[-1]["cursor"].fetchall()
        return run(sql, *more)

    with connection.execute_wrapper(slowed), soon():
        assert Client().get("/readyz").json()["checks"]["database"] is False
    assert Client().get("/readyz").json()["checks"]["database"] is True
