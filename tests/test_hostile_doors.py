"""Hostile requests beside the values of calls: headers, methods, addresses, cookies, protocol. No door breaks."""

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import Client
from django.urls import reverse

from brain.wsgi import application
from memories.admin.base import BrainAdmin
from memories.kinds import LONGTERM
from memories.models import BrainMemory
from tests.admincast import form, person, store, url
from tests.conftest import Agent
from tests.doors import ENVELOPE, inhalt_for
from tests.mcp import message
from tests.test_hostile_input import BODIES, VALUES

pytestmark = pytest.mark.django_db

DIGITS = "9" * 5_000
CALLS = {
    "/api/tools/select_brain_tags/": json.dumps({"inhalt": inhalt_for("select_brain_tags")}),
    "/api/tools/update_brain_longterm_memory/": json.dumps({"inhalt": inhalt_for("update_brain_longterm_memory")}),
    "/mcp": json.dumps(message("tools/list")),
}
HEADERS = dict.fromkeys(
    (
        "Accept",
        "Accept-Encoding",
        "Accept-Language",
        "Content-Encoding",
        "Content-Length",
        "Expect",
        "Idempotency-Key",
        "If-Match",
        "If-Modified-Since",
        "Mcp-Method",
        "MCP-Protocol-Version",
        "Range",
        "Transfer-Encoding",
        "X-Forwarded-Host",
        "X-HTTP-Method-Override",
    ),
    ("", "\x00", "\xff\xfe", "a" * 10_000, "-1", DIGITS, f'"{DIGITS}"', "²", '"1"', "W/", "a\r\nB: c", "gzip"),
) | {
    "Host": ("", "evil", "localhost:99999999", "a" * 300, "[::1", "локал", "localhost, evil", "@", "127.0.0.1:x"),
    "Origin": ("null", "http://", "://", "http://[::1", "http://localhost:x", "\xff", "javascript:1"),
    "Cookie": (
        'sessionid="abcdefgh\\000ijkl"',
        "sessionid=" + "a" * 5_000,
        'messages="\\000"',
        'csrftoken="\\000"',
        'django_language="\\000de"',
    ),
}
CHARSETS = (
    "base64",
    "hex",
    "rot13",
    "zlib",
    "undefined",
    "idna",
    "punycode",
    "unicode_escape",
    "utf-16",
    "utf-7",
    "x" * 999,
)
TYPES = (
    "",
    "text/plain",
    "text/html",
    "application/xml",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "multipart/form-data",
    "application/json-rpc",
    "application/json,text/plain",
    ";",
    "\xff",
)
PATHS = (
    "/api/tools/%00/",
    "/api/tools/%ff/",
    "/api/tools/a%2fb/",
    "/api/tools/..%2f..%2fadmin/",
    "/api/tools/select_brain_tags/%0a",
    "/api/tools/%0d%0aX:%20y/",
    "/api/tools//select_brain_tags/",
    "/api/%00",
    "/api/schema/x",
    "/mcp%00",
    "/mcp/x",
    "/healthz/%00",
)
METHODS = ("GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW", "get", "POST")
# What stands in each place of a JSON-RPC message: its method, and its parameters with a place for the value.
TOPIC = '{"type": "ref/prompt", "name": "tidy_topic"}'
PLACES = (
    ("tools/list", "%s"),
    ("tools/list", '{"_meta": %s}'),
    ("initialize", '{"protocolVersion": %s}'),
    ("tools/call", '{"name": %s, "arguments": {}}'),
    ("tools/call", '{"name": "search_brain", "arguments": %s}'),
    ("tools/call", '{"name": "search_brain", "_meta": {"idempotencyKey": %s}}'),
    ("resources/read", '{"uri": %s}'),
    ("prompts/get", '{"name": %s}'),
    ("prompts/get", '{"name": "tidy_topic", "arguments": {"topic": %s}}'),
    ("completion/complete", '{"ref": %s, "argument": {"name": "tag", "value": ""}}'),
    ("completion/complete", f'{{"ref": {TOPIC}, "argument": {{"name": "tag", "value": %s}}}}'),
    ("completion/complete", f'{{"ref": {TOPIC}, "argument": {{"name": "scope", "value": %s}}}}'),
)
MESSAGES = (
    '{"jsonrpc": "2.0", "id": %s, "method": "tools/list"}',
    '{"jsonrpc": %s, "id": 1, "method": "tools/list"}',
    '{"jsonrpc": "2.0", "id": 1, "method": %s}',
    "[%s]",
    *(f'{{"jsonrpc": "2.0", "id": 1, "method": "{method}", "params": {params}}}' for method, params in PLACES),
)
SYNTAX = (
    "'; DROP TABLE memories_longtermmemory; --",
    '" OR "1"="1',
    "a & | ! ( ) :* <-> b",
    "a:*",
    "<->",
    "!!a",
    "NEAR(a b, 5)",
    "a AND OR NOT b",
    "^a* (b",
    '"unclosed',
    "-",
    "- -a",
    "*",
    "%_\\",
    "[a-z",
    "(?P<x>a+)+$",
    "\\Q\\E\\d+",
    "a\\",
    "$1 ${x} %s %(a)s",
    "\u0640\u0640",
    "ﬀﬀ",
    "ẞß",
    "İı",
    "a" * 1_000,
    " ".join("abc" for _ in range(500)),
    "x\u202e\u2066",
    "🏳️‍🌈" * 50,
)


def machine(response: Any) -> dict[str, Any] | list[Any] | None:
    """The JSON of an answer to a machine, in the shape of an envelope, a definition or JSON-RPC, if there is any."""
    assert response.status_code < 500, response.content
    if not response.content:
        return None
    assert response["Content-Type"].startswith("application/json"), response.content
    told: Any = json.loads(response.content)
    for each in told if isinstance(told, list) else [told]:
        assert each.keys() >= ENVELOPE or each.get("jsonrpc") == "2.0" or {"inputSchema", "tools"} & each.keys(), each
    return told  # type: ignore[no-any-return]


@pytest.fixture
def everybody(agent_with: Callable[..., Agent]) -> Agent:
    """An agent whose key may do everything."""
    return agent_with("everybody")


@pytest.fixture
def boss() -> Client:
    """A superuser, signed in; a bug shows as status 500."""
    client = person("boss", superuser=True)
    client.raise_request_exception = False
    return client


def key_of(header: str) -> str:
    """The name of a header in the environment of WSGI."""
    name = header.upper().replace("-", "_")
    return name if name == "CONTENT_LENGTH" else f"HTTP_{name}"


@pytest.mark.parametrize("header", HEADERS)
def test_no_header_breaks_a_door(everybody: Agent, boss: Client, header: str) -> None:
    for value in HEADERS[header]:
        for path, body in CALLS.items():
            kind = "application/json"
            machine(everybody.http.generic("POST", path, body, content_type=kind, **{key_of(header): value}))
        assert boss.get("/admin/memories/tag/", **{key_of(header): value}).status_code < 500
        assert Client().get("/admin/login/", **{key_of(header): value}).status_code < 500


def over_wsgi(method: str, address: str, body: bytes, kind: str, **more: str) -> tuple[int, str, bytes]:
    """Status, type and body of an answer of the server: its requests differ from those of a test client."""
    path, _mark, query = address.partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_TYPE": kind,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": BytesIO(body),
        "HTTP_HOST": "localhost",
        **more,
    }
    setup_testing_defaults(environ)
    told: dict[str, Any] = {}

    def start(status: str, headers: list[tuple[str, str]], _info: Any = None) -> Any:
        told.update(status=int(status.split(maxsplit=1)[0]), kind=dict(headers).get("Content-Type", ""))

    for signal in (request_started, request_finished):  # as the test client: they would end the test's transaction
        signal.disconnect(close_old_connections)
    try:
        content = b"".join(application(environ, start))
    finally:
        for signal in (request_started, request_finished):
            signal.connect(close_old_connections)
    return told["status"], told["kind"], content


@pytest.mark.parametrize("kind", [*(f"application/json; charset={name}" for name in CHARSETS), *TYPES])
def test_no_content_type_breaks_a_door(everybody: Agent, kind: str) -> None:
    for path, text in CALLS.items():
        for method in ("GET", "POST"):
            key = f"Bearer {everybody.key}"
            status, answered, content = over_wsgi(
                method, f"{path}?schema=port%ffable", text.encode(), kind, HTTP_AUTHORIZATION=key
            )
            assert (status < 500, answered) == (True, "application/json"), content
            assert json.loads(content)
    for form_kind in (kind, kind.replace("application/json", "application/x-www-form-urlencoded")):
        for method in ("GET", "POST"):
            assert over_wsgi(method, "/admin/login/?next=%ff", b"username=%ff", form_kind)[0] < 500


def test_a_body_is_utf8_whatever_charset_it_names(everybody: Agent) -> None:
    body = json.dumps({"inhalt": inhalt_for("insert_brain_memory", titel="Büro")}, ensure_ascii=False).encode()
    for charset in CHARSETS:
        path, kind = "/api/tools/insert_brain_memory/", f"application/json; charset={charset}"
        over_wsgi("POST", path, body, kind, HTTP_AUTHORIZATION=f"Bearer {everybody.key}")
    assert set(BrainMemory.objects.values_list("titel", flat=True)) == {"Büro"}
    assert BrainMemory.objects.count() == len(CHARSETS)


@pytest.mark.parametrize("path", PATHS)
def test_no_address_and_no_method_breaks_a_door(everybody: Agent, path: str) -> None:
    for method in METHODS:
        machine(everybody.http.generic(method, path, b"{}", content_type="application/json"))


@pytest.mark.parametrize("path", CALLS)
def test_a_method_that_is_not_taken_is_refused_in_shape(everybody: Agent, path: str) -> None:
    for method in METHODS:
        if method.upper() not in {"GET", "POST"}:
            response = everybody.http.generic(method, path, CALLS[path], content_type="application/json")
            machine(response)
            assert response.status_code == 405


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_no_value_in_any_place_of_a_message_breaks_mcp(everybody: Agent, value: str) -> None:
    for text in MESSAGES:
        told = machine(everybody.http.generic("POST", "/mcp", text % value, content_type="application/json"))
        for each in told if isinstance(told, list) else [told]:
            assert each is None or each.get("error", {}).get("code") != -32603, (text, each)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_no_body_breaks_mcp(everybody: Agent, body: bytes) -> None:
    response = everybody.http.generic("POST", "/mcp", body, content_type="application/json")
    told = machine(response)
    assert told
    assert all(each["error"]["code"] in {-32700, -32600} for each in (told if isinstance(told, list) else [told]))


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_hostile_value_may_be_repeated_and_expect_a_version(everybody: Agent, value: str) -> None:
    for name in ("insert_brain_longterm_memory", "update_brain_memory"):
        body = f'{{"inhalt": {json.dumps(inhalt_for(name))}, "referenzfelder": {{"a": {value}}}}}'
        for _time in range(3):
            response = everybody.http.generic(
                "POST",
                f"/api/tools/{name}/",
                body,
                content_type="application/json",
                headers={"Idempotency-Key": name, "If-Match": '"3"'},
            )
            machine(response)


@pytest.mark.parametrize("text", SYNTAX)
def test_a_text_is_never_taken_for_syntax(everybody: Agent, boss: Client, text: str) -> None:
    kennung = everybody.store(memory=text, kurzbeschreibung=text[:900], tags=[])
    assert everybody.call("select_brain_longterm_memory", IDs=[kennung])["daten"][0]["memory"] == text
    select = "select_brain_longterm_memory"
    questions: list[tuple[str, dict[str, Any]]] = [
        ("search_brain", {"suche": text, "limit": 5}),
        ("search_brain", {"suche": "Frist", "stand": text}),
        *((select, {name: text}) for name in ("suche", "scope", "scope_vk", "agent_filter", "nutzer_filter", "von")),
        (select, {"tags": [text]}),
        (select, {"tags_eines": [text]}),
        (select, {"weiter": text}),
        ("select_brain_history", {"ID": kennung, "weiter": text}),
        ("select_brain_tags", {"praefix": text}),
        ("select_brain_tags", {"weiter": text}),
    ]
    for tool, inhalt in questions:
        machine(everybody.post(tool, {"inhalt": {"nutzer": "anna", "agent": "planer", **inhalt}}))
    for name in ("longtermmemory", "longtermversion", "tag", "accesskey", "callrecord"):
        assert boss.get(f"/admin/memories/{name}/", {"q": text}).status_code < 500


def test_a_cursor_that_was_touched_is_refused(everybody: Agent) -> None:
    for _time in range(3):
        everybody.store()
    select = "select_brain_longterm_memory"
    cursor = everybody.call(select, limit=1)["weiter"]
    spoilt = [cursor[1:], cursor[:-1], cursor + "x", cursor.swapcase(), cursor.replace(":", ""), cursor * 2, "::", ":"]
    others = [(select, {"weiter": each, "limit": 1}) for each in spoilt]
    others += [(select, {"weiter": cursor, "limit": 1, "scope": "modul"}), ("select_brain_tags", {"weiter": cursor})]
    for tool, inhalt in others:
        response = everybody.post(tool, {"inhalt": {"nutzer": "anna", "agent": "planer", **inhalt}})
        machine(response)
        assert (response.status_code, response.json()["fehler"]["feld"]) == (400, "inhalt.weiter"), inhalt


# The admin

HOSTILE = ("\0", "-1", DIGITS, "a" * 300, "'\"", "1,2")


def lists() -> list[tuple[str, Any]]:
    """The addresses of all lists, and what makes them."""
    found = admin.site._registry.items()  # noqa: SLF001
    return [(reverse(f"admin:{m._meta.app_label}_{m._meta.model_name}_changelist"), made) for m, made in found]  # noqa: SLF001


def test_no_parameter_breaks_a_list(boss: Client) -> None:
    store()
    for address, model_admin in lists():
        own = [each.parameter_name for each in getattr(model_admin, "list_filter", ()) if isinstance(each, type)]
        for value in HOSTILE:
            asked: list[dict[str, str]] = [
                {"q": value},
                {"p": value, "o": value},
                dict.fromkeys(own, value),
                {value: value},
            ]
            for query in asked:
                assert boss.get(address, query).status_code < 500, (address, query)


@pytest.mark.parametrize("path", ["longtermmemory/export/csv/", "longtermmemory/export/jsonl/", "callrecord/export/"])
def test_an_export_refuses_filters_that_the_list_does_not_take(boss: Client, path: str) -> None:
    for query in ({"age": "x"}, {"nutzer": "\0"}, {"x": "1"}, {"nutzer": DIGITS}):
        assert boss.get(f"/admin/memories/{path}", query).status_code == 400
    assert boss.get(f"/admin/memories/{path}", {"nutzer": "anna"}).status_code == 200


@pytest.mark.parametrize("key", ["a%00b", DIGITS, "-1", "%ff", "1%2f1", "_5F"])
def test_no_key_breaks_a_page(boss: Client, key: str) -> None:
    for address, _model_admin in lists():
        for page in ("change", "delete", "history", "revoke", f"history/{DIGITS}"):
            assert boss.get(f"{address}{key}/{page}/").status_code < 500, (address, page)
    for path in (f"/admin/r/{key}/1/", f"/admin/r/1/{key}/", f"/admin/jsi18n/?language={key}", f"/static/{key}"):
        assert boss.get(path).status_code < 500, path


def test_no_term_breaks_the_completion_of_a_field(boss: Client) -> None:
    good = {"app_label": "memories", "model_name": "accesskey", "field_name": "account"}
    for name in ("app_label", "model_name", "field_name", "term", "page"):
        for value in HOSTILE:
            assert boss.get("/admin/autocomplete/", good | {name: value}).status_code < 500, (name, value)


def forms(client: Client) -> list[str]:
    """The addresses of all forms that the person is shown."""
    key = store()
    some = [url("change", key), url("add"), url("add", kind="shortterm"), url("add", kind="brain"), url("delete", key)]
    some += [f"{address}add/" for address, _model_admin in lists()] + [
        f"/admin/auth/user/{User.objects.first().pk}/password/"
    ]
    some += [f"/admin/auth/user/{User.objects.first().pk}/change/", "/admin/login/", "/admin/password_change/"]
    return [address for address in dict.fromkeys(some) if client.get(address).status_code == 200]


def test_no_value_breaks_a_form(boss: Client) -> None:
    shown = forms(boss)
    assert len(shown) > 8
    for address in shown:
        fields = form(boss, address)
        for value in ("\0", "\ufffe", DIGITS, "-1", "a" * 300, "2026-02-30\r\n"):
            spoilt = {name: value for name in fields if name != "csrfmiddlewaretoken"}
            assert boss.post(address, spoilt).status_code < 500, (address, value)


def test_no_selection_breaks_an_action(boss: Client) -> None:
    store()
    for address, model_admin in lists():
        if not isinstance(model_admin, BrainAdmin):
            continue  # an extension's own page
        for value in HOSTILE if model_admin.actions else HOSTILE[:2]:
            for data in ({"action": "delete_selected", "_selected_action": value}, {"action": value, "index": value}):
                assert boss.post(address, data).status_code < 500, (address, data)
    assert LONGTERM.memories.objects.count() == 1
