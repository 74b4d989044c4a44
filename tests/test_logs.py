"""What leaves the server: neither log nor error page holds what is stored, a key, or what somebody typed."""

import io
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest
from django.conf import settings
from django.db import IntegrityError, connection
from django.http import HttpRequest, StreamingHttpResponse
from django.test import Client

from api import envelope
from brain import logs
from brain.middleware import broken_streams
from memories.models import LongtermMemory
from tests.admincast import form, person, store, url
from tests.conftest import Agent, note
from tests.doors import fault_of

TEXT = "Zitronenkuchen backt Ottilie mit 4711 Eiern"
TAG = "Quittengelee"
NAME = "Rhabarberbarbara"
FORMAT = settings.LOGGING["formatters"]["line"]["fmt"]
# The same complaint that quotes the row, made by each database.
REFUSING = {
    "sqlite": f"""CREATE TRIGGER quoting BEFORE INSERT ON memories_longtermmemory WHEN NEW.kurzbeschreibung = 'verboten'
        BEGIN SELECT RAISE(ABORT, 'Failing row contains ({TEXT}, {TAG})'); END""",
    "postgresql": """ALTER TABLE memories_longtermmemory
        ADD CONSTRAINT quoting CHECK (kurzbeschreibung <> 'verboten') NOT VALID""",
}
ALLOWING = {
    "sqlite": "DROP TRIGGER quoting",
    "postgresql": "ALTER TABLE memories_longtermmemory DROP CONSTRAINT quoting",
}


@contextmanager
def log_of_all() -> Iterator[io.StringIO]:
    """What all loggers would write from INFO on, as the server writes it."""
    told = io.StringIO()
    handler = logging.StreamHandler(told)
    handler.setFormatter(logs.Formatter(FORMAT, style="{"))
    found = [each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    tops = [logging.root, *(each for each in found if not each.propagate)]
    quiet = {each: each.level for each in [logging.root, *found]}
    for each in tops:
        each.addHandler(handler)
    for each in quiet:
        each.setLevel(logging.INFO)
    try:
        yield told
    finally:
        for each, level in quiet.items():
            each.setLevel(level)
        for each in tops:
            each.removeHandler(handler)


def broken(*_args: Any, **_more: Any) -> Any:
    """A bug whose message quotes what it worked on, and whose cause does."""
    try:
        {}[TAG]
    except KeyError as error:
        raise ValueError(f"could not convert {TEXT!r}", TEXT, [NAME]) from error


def broken_database(*_args: Any, **_more: Any) -> Any:
    """A fault of the database that quotes the row."""
    raise IntegrityError(f"DETAIL: Failing row contains ({TEXT}, {TAG}, {NAME}).")


def silent(told: str, *secrets: str) -> None:
    """None of it is there."""
    for text in (TEXT, TEXT[:14], TAG, NAME, *secrets):
        assert text not in told, (text, told)


def use(agent: Agent) -> None:
    """Successes and failures of all kinds."""
    kennung = agent.store(memory=TEXT, tags=[TAG], kurzbeschreibung=NAME)
    agent.call("search_brain", suche=TEXT)
    agent.call("select_brain_longterm_memory", tags=[TAG], suche=TEXT)
    agent.call("select_brain_tags", praefix=TAG)
    changed = {"ID": kennung, "kurzbeschreibung": NAME, "memory": f"{TEXT}!", "tags": [TAG, f"{TAG}2"]}
    agent.call("update_brain_longterm_memory", memories=[changed])
    agent.call("insert_brain_longterm_memory", memories=[note(memory=TEXT, tags=[TAG], **{NAME: TEXT}), {NAME: TEXT}])
    agent.call("insert_brain_longterm_memory", memories=[note(kurzbeschreibung="verboten", memory=TEXT, tags=[TAG])])
    agent.call("delete_brain_longterm_memory", IDs=[kennung, TEXT])
    for tool, arguments in ((TEXT, {}), ("select_brain_longterm_memory", {"inhalt": {NAME: TEXT}})):
        agent.post(tool, arguments)
    for body in (f'{{"tool": "{TEXT}', f'["{TEXT}", "{agent.key}"]'):
        agent.http.post("/api/tools/", body, content_type="application/json")
    agent.http.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": TEXT}, content_type="application/json")
    agent.http.get("/api/tools/nichts/", {"q": TEXT})
    Client(headers={"Authorization": f"Bearer {agent.key}x"}).get("/api/tools/")
    Client(headers={"Authorization": f"Basic {agent.key}"}).get("/api/tools/")


@pytest.mark.parametrize("path", ["/admin/", "/api/tools/", "/mcp", "/healthz", "/nothing"])
def test_what_a_foreign_host_calls_itself_stays_out_of_the_log(path: str) -> None:
    refused = 0
    with log_of_all() as told:
        for host in (f"{NAME}.example", f"{NAME} x", f"{NAME}:99999999", "\u00e4" * 9):
            response = Client(raise_request_exception=False).get(path, headers={"Host": host})
            refused += response.status_code == 400
        headers = {"Origin": f"https://{NAME}.example", "Referer": f"https://{NAME}.example/{TAG}"}
        foreign = Client(enforce_csrf_checks=True).post("/admin/login/", {}, headers=headers)
    assert foreign.status_code == 403
    assert told.getvalue().count("django.security.DisallowedHost: A request was refused") == refused
    assert told.getvalue().count("django.security.csrf: A request was refused") == 1
    silent(told.getvalue(), NAME.lower(), "\u00e4", "\\xe4")


@pytest.mark.django_db(transaction=True)
def test_calls_that_succeed_and_calls_that_fail_leave_no_text_in_the_log(anna: Agent) -> None:
    with connection.cursor() as cursor:
        cursor.execute(REFUSING[connection.vendor])
    try:
        with log_of_all() as told:
            use(anna)
    finally:
        with connection.cursor() as cursor:
            cursor.execute(ALLOWING[connection.vendor])
    assert "A row was refused: IntegrityError" in told.getvalue()
    silent(told.getvalue(), anna.key, anna.key[-20:], "verboten")


@pytest.mark.django_db
@pytest.mark.parametrize("bug", [broken, broken_database])
def test_a_bug_inside_a_tool_is_told_without_its_texts(
    anna: Agent, monkeypatch: pytest.MonkeyPatch, bug: Callable[..., Any]
) -> None:
    monkeypatch.setattr(envelope, "_executed", bug)
    call = {"inhalt": {"nutzer": "anna", "agent": "planer", "memories": [note(memory=TEXT, tags=[TAG])]}}
    params = {"name": "insert_brain_longterm_memory", "arguments": call}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    with log_of_all() as told:
        rest = anna.post("insert_brain_longterm_memory", call)
        mcp = anna.http.post("/mcp", message, content_type="application/json")
    assert fault_of(rest, 500)["code"] == "interner_fehler"
    assert mcp.json()["result"]["structuredContent"]["fehler"]["code"] == "interner_fehler"
    silent(told.getvalue() + rest.content.decode() + mcp.content.decode(), anna.key)
    assert told.getvalue().count("Traceback (most recent call last)") >= 2
    assert f"in {bug.__name__}" in told.getvalue()
    assert {"broken": "ValueError", "broken_database": "django.db.utils.IntegrityError"}[
        bug.__name__
    ] in told.getvalue()


@pytest.mark.django_db
@pytest.mark.parametrize("bug", [broken, broken_database])
def test_a_bug_in_the_admin_is_told_without_its_texts(monkeypatch: pytest.MonkeyPatch, bug: Callable[..., Any]) -> None:
    client = person("vera", superuser=True)
    client.raise_request_exception = False
    key = store(memory=TEXT, tag_namen=[TAG], kurzbeschreibung=NAME)
    with log_of_all() as told:
        assert client.get(url("changelist"), {"q": TEXT, "tag": TAG, "memory__regex": TEXT}).status_code < 400
        given = form(client, url("change", key))
        client.post(url("change", key), given | {"relevanz": TEXT})
        client.post(url("change", key), given | {"geladene_version": "0"})
        monkeypatch.setattr("django.contrib.admin.sites.AdminSite.each_context", bug)
        page = client.post(url("change", key), given | {"kurzbeschreibung": ""})
    assert page.status_code == 500
    assert LongtermMemory.objects.get().version == 1
    silent(told.getvalue() + page.content.decode(), str(client.session.session_key))
    assert f"in {bug.__name__}" in told.getvalue()


def test_an_answer_that_breaks_off_is_told_without_its_texts() -> None:
    def parts() -> Iterator[bytes]:
        yield b"first"
        broken()

    def view(request: HttpRequest) -> Any:
        return StreamingHttpResponse(parts())

    answered = broken_streams(view)
    with log_of_all() as told:
        content = iter(answered(HttpRequest()))
        assert next(content) == b"first"
        with pytest.raises(ConnectionAbortedError) as caught:
            next(content)
    assert caught.value.args == ()
    assert caught.value.__suppress_context__
    assert "An answer broke off" in told.getvalue()
    silent(told.getvalue())


def test_a_thread_that_ends_is_told_without_its_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threading.excepthook", None)
    logs.tell_of_threads()
    with log_of_all() as told:
        thread = Thread(target=broken)
        thread.start()
        thread.join()
    assert "A thread has ended" in told.getvalue()
    silent(told.getvalue())


def test_tracebacks_name_places_classes_and_causes() -> None:
    record = logging.LogRecord("x", logging.ERROR, __file__, 1, "Something", (), None)
    try:
        broken()
    except ValueError as error:
        record.exc_info = (type(error), error, error.__traceback__)
    record.exc_text = TEXT  # as another handler's formatter left it
    lines = logs.Formatter("{message}", style="{").format(record).splitlines()
    assert lines[0] == "Something"
    assert lines.index("KeyError") < lines.index("ValueError")
    assert "The above exception was the direct cause of the following exception:" in lines
    assert any(line.startswith("  File ") and line.endswith("in broken") for line in lines)
    assert record.exc_text == TEXT


def test_the_server_logs_by_this_formatter_alone() -> None:
    assert {each["formatter"] for each in settings.LOGGING["handlers"].values()} == {"line"}
    assert settings.LOGGING["formatters"]["line"]["()"] == "brain.logs.Formatter"
