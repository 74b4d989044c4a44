"""MCP over HTTP: the protocol in both eras, and everything that can be wrong with a message."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from api.mcp import server as offered
from memories.limits import Limits
from tests.conftest import Agent
from tests.mcp import (
    ERAS,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LEGACY,
    META,
    METHOD_NOT_FOUND,
    MODERN,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    Mcp,
    answer_of,
    error_of,
    message,
    meta,
)
from tests.test_hostile_input import VALUES as HOSTILE
from tests.trouble import database_away

MISSING = [(name, value) for name in ("protocolVersion", "clientCapabilities") for value in (None, 5)]
INVALID_IDS = ["null", "true", "1.5", "1.0", "[]", "{}", r'"\ud800"']


@pytest.fixture
def modern(anna: Agent) -> Mcp:
    """Anna's client of 2026-07-28."""
    return Mcp(anna)


@pytest.fixture
def legacy(anna: Agent) -> Mcp:
    """Anna's client of the revisions before."""
    return Mcp(anna, "legacy")


# The legacy era


@pytest.mark.parametrize("version", LEGACY)
def test_initialize_answers_a_version_that_it_knows_with_the_same(legacy: Mcp, version: str) -> None:
    result = legacy.ask("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "t"})
    assert result["protocolVersion"] == version
    assert result["serverInfo"]["name"] == "brain"
    assert result["capabilities"].keys() == {"tools", "resources", "prompts", "completions"}
    assert 0 < len(result["instructions"]) <= 2048


@pytest.mark.parametrize("version", ["1999-01-01", "2027-01-01", MODERN, "", None, 7, {}])
def test_initialize_answers_any_other_version_with_the_newest_legacy_one(legacy: Mcp, version: Any) -> None:
    assert legacy.ask("initialize", protocolVersion=version)["protocolVersion"] == LEGACY[0]


def test_a_legacy_client_may_ping_and_say_its_version_in_the_header(legacy: Mcp) -> None:
    assert legacy.ask("ping") == {}
    for version in LEGACY:
        response = legacy.send("ping", headers={"MCP-Protocol-Version": version})
        assert (response.status_code, answer_of(response)["result"]) == (200, {})


def test_a_legacy_client_may_send_null_for_what_it_does_not_give(legacy: Mcp) -> None:
    params = {
        "name": "select_brain_tags",
        "_meta": None,
        "arguments": {"inhalt": {"nutzer": "anna", "agent": "planer"}},
    }
    assert answer_of(legacy.post(message("tools/call", params)))["result"]["isError"] is False
    assert answer_of(legacy.post(message("tools/list", {"_meta": None, "cursor": None})))["result"]["tools"]


def test_no_session_is_begun(legacy: Mcp) -> None:
    response = legacy.send("initialize", {"protocolVersion": LEGACY[0]})
    assert "Mcp-Session-Id" not in response.headers
    assert legacy.send("tools/list", headers={"Mcp-Session-Id": "of another server"}).status_code == 200


def test_a_batch_is_answered_message_by_message(legacy: Mcp) -> None:
    response = legacy.post(
        [
            message("ping", id_="a"),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            message("nothing", id_=2),
            5,
            {"jsonrpc": "2.0", "id": 9, "result": {}},
            message("tools/call", {"name": "select_brain_tags", "arguments": {"help": 1}}, id_=3),
            [message("ping")],
        ]
    )
    assert response.status_code == 200
    told = json.loads(response.content)
    assert [each["id"] for each in told] == ["a", 2, None, 3, None]
    assert [each.get("error", {}).get("code") for each in told] == [
        None,
        METHOD_NOT_FOUND,
        INVALID_REQUEST,
        None,
        INVALID_REQUEST,
    ]


def test_a_batch_with_half_a_surrogate_pair_beside_a_call_is_answered(legacy: Mcp) -> None:
    call = message("tools/call", {"name": "select_brain_tags", "arguments": {"help": 1}})
    response = legacy.post(json.dumps([call, message("\ud800", id_=2)]).encode())
    first, second = json.loads(response.content)
    assert first["result"]["isError"] is False
    assert second["error"]["code"] == METHOD_NOT_FOUND


@pytest.mark.parametrize("count", [0, 101])
def test_a_batch_of_none_or_too_many_is_refused(legacy: Mcp, count: int) -> None:
    assert error_of(legacy.post([message("ping")] * count), 400, id_=None)["code"] == INVALID_REQUEST


def test_a_batch_of_notifications_is_taken_in_silence(legacy: Mcp) -> None:
    response = legacy.post([{"jsonrpc": "2.0", "method": "notifications/initialized"}] * 2)
    assert (response.status_code, response.content) == (202, b"")


# The modern era


def test_discover_tells_versions_and_abilities(modern: Mcp) -> None:
    result = modern.ask("server/discover")
    assert result["supportedVersions"] == [MODERN, *LEGACY]
    assert result["capabilities"].keys() == {"tools", "resources", "prompts", "completions"}
    assert result["instructions"]
    assert result["_meta"][f"{META}serverInfo"]["name"] == "brain"


def test_lists_may_be_kept_by_their_client_alone_and_calls_not_at_all(modern: Mcp) -> None:
    for method in ("server/discover", "tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        result = modern.ask(method)
        assert (result["resultType"], result["cacheScope"]) == ("complete", "private")
        assert result["ttlMs"] > 0
    assert "ttlMs" not in modern.call("select_brain_tags", {"help": 1})


@pytest.mark.parametrize(("missing", "value"), [*MISSING, ("clientCapabilities", "x"), ("clientCapabilities", [])])
def test_a_modern_request_must_say_version_and_abilities(modern: Mcp, missing: str, value: Any) -> None:
    response = modern.send("tools/list", {"_meta": meta(**{missing: value})})
    error = error_of(response, 400)
    assert (error["code"], f"{META}{missing}" in error["message"]) == (INVALID_PARAMS, True)


@pytest.mark.parametrize("params", [{}, {"_meta": {}}, {"_meta": None}, [], "x"])
def test_a_modern_request_without_its_meta_is_refused(modern: Mcp, params: Any) -> None:
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
    assert error_of(modern.post(message("tools/list", params), headers), 400)["code"] == INVALID_PARAMS


def test_who_the_client_is_need_not_be_told(modern: Mcp) -> None:
    assert modern.send("tools/list", {"_meta": meta(clientInfo=None)}).status_code == 200


@pytest.mark.parametrize("version", ["2099-01-01", "2025-11-25", "v999", ""])
def test_an_unknown_version_is_told_the_supported_ones(modern: Mcp, version: str) -> None:
    params = {"_meta": meta(protocolVersion=version)}
    error = error_of(modern.send("tools/list", params, {"MCP-Protocol-Version": version}), 400)
    assert error["code"] == UNSUPPORTED_VERSION
    assert error["data"] == {"supported": [MODERN, *LEGACY], "requested": version}


def test_an_unknown_version_in_the_header_alone_is_told_the_supported_ones(legacy: Mcp) -> None:
    error = error_of(legacy.send("tools/list", headers={"MCP-Protocol-Version": "2099-01-01"}), 400)
    assert (error["code"], error["data"]["requested"]) == (UNSUPPORTED_VERSION, "2099-01-01")


def _encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "prompts/get", "resources/read", "nothing"])
@pytest.mark.parametrize("name", ["MCP-Protocol-Version", "Mcp-Method"])
@pytest.mark.parametrize("value", ["2025-11-25", "TOOLS/LIST", "", _encoded("x"), "=?base64?%?="])
def test_a_header_that_differs_from_the_body_is_refused(modern: Mcp, method: str, name: str, value: str) -> None:
    response = modern.send(method, {"name": "x", "uri": "x"}, {name: value})
    assert error_of(response, 400)["code"] == HEADER_MISMATCH


NAMED = [
    ("tools/call", "name", "select_brain_tags"),
    ("prompts/get", "name", "tidy_topic"),
    ("resources/read", "uri", "brain://longterm/1"),
]


@pytest.mark.parametrize(("method", "field", "name"), NAMED)
@pytest.mark.parametrize("header", [None, "", "other", "=?base64?%%%?=", "=?base64?/w==?=", _encoded("other")])
def test_a_name_in_the_header_that_differs_is_refused(
    modern: Mcp, method: str, field: str, name: str, header: str | None
) -> None:
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method} | ({} if header is None else {"Mcp-Name": header})
    response = modern.post(message(method, {"_meta": meta(), field: name}), headers)
    error = error_of(response, 400)
    assert (error["code"], "Mcp-Name" in error["message"]) == (HEADER_MISMATCH, True)


@pytest.mark.parametrize("method", ["tools/list", "prompts/list"])
def test_headers_that_a_modern_request_needs_must_be_there(modern: Mcp, method: str) -> None:
    both = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    for missing in both:
        headers = {name: value for name, value in both.items() if name != missing}
        response = modern.post(message(method, {"_meta": meta()}), headers)
        assert error_of(response, 400)["code"] == HEADER_MISMATCH


@pytest.mark.parametrize("name", ["select_brain_tags", " select_brain_tags\t", _encoded("select_brain_tags")])
def test_a_name_in_the_header_may_have_blanks_around_it_or_be_encoded(modern: Mcp, name: str) -> None:
    params = {"name": "select_brain_tags", "arguments": {"help": 1}}
    assert modern.send("tools/call", params, {"Mcp-Name": name}).status_code == 200


def test_a_name_beyond_ascii_comes_encoded(modern: Mcp) -> None:
    error = error_of(modern.send("tools/call", {"name": "Größe"}, {"Mcp-Name": _encoded("Größe")}), 400)
    assert error["code"] == INVALID_PARAMS


# Both eras


@pytest.mark.parametrize("method", ["nothing", "", "tools/List", "resources/subscribe", "logging/setLevel", "x" * 9999])
def test_an_unknown_method_is_404_for_modern_clients_and_200_for_legacy_ones(
    modern: Mcp, legacy: Mcp, method: str
) -> None:
    for client, status in ((modern, 404), (legacy, 200)):
        error = error_of(client.send(method), status)
        assert error["code"] == METHOD_NOT_FOUND
        assert len(error["message"]) < 200


@pytest.mark.parametrize("method", ["initialize", "ping"])
def test_what_the_modern_era_has_dropped_is_unknown_in_it(modern: Mcp, method: str) -> None:
    assert error_of(modern.send(method), 404)["code"] == METHOD_NOT_FOUND


def test_discover_belongs_to_the_modern_era(legacy: Mcp) -> None:
    assert error_of(legacy.send("server/discover"), 400)["code"] == INVALID_PARAMS


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled", "nothing", "tools/call"])
def test_a_notification_is_taken_in_silence(anna: Agent, era: str, method: str) -> None:
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method} if era == "modern" else {}
    response = Mcp(anna, era).post({"jsonrpc": "2.0", "method": method, "params": {}}, headers)
    assert (response.status_code, response.content) == (202, b"")


def test_an_answer_of_the_client_is_taken_in_silence(legacy: Mcp) -> None:
    for answer in ({"result": {}}, {"error": {"code": 1, "message": "x"}}):
        response = legacy.post({"jsonrpc": "2.0", "id": 1, **answer})
        assert (response.status_code, response.content) == (202, b"")


@pytest.mark.parametrize("id_", INVALID_IDS)
@pytest.mark.parametrize("era", ERAS)
def test_an_id_that_is_neither_text_nor_whole_number_is_refused(anna: Agent, era: str, id_: str) -> None:
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"} if era == "modern" else {}
    body = json.dumps(message("tools/list", {"_meta": meta()} if era == "modern" else {})).replace(
        '"id": 1', f'"id": {id_}'
    )
    assert error_of(Mcp(anna, era).post(body.encode(), headers), 400, id_=None)["code"] == INVALID_REQUEST


@pytest.mark.parametrize("id_", [0, -1, 2**80, "", "ä🙂", "1"])
def test_an_id_comes_back_as_it_was_sent(legacy: Mcp, id_: Any) -> None:
    assert answer_of(legacy.post(message("ping", id_=id_))) == {"jsonrpc": "2.0", "id": id_, "result": {}}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"NaN",
        5,
        None,
        "x",
        True,
        {},
        {"jsonrpc": "2.0"},
        {"jsonrpc": "1.0", "method": "ping"},
        {"method": "ping"},
        {"jsonrpc": "2.0", "method": 5},
        {"jsonrpc": 2.0, "method": "ping"},
    ],
)
def test_what_is_no_message_is_refused(legacy: Mcp, body: Any) -> None:
    assert error_of(legacy.post(body), 400, id_=None)["code"] == INVALID_REQUEST


@pytest.mark.parametrize(
    "body",
    [
        b" ",
        b"{",
        b"\xff",
        b'{"a": "\xe4"}',
        b'{"jsonrpc": "2.0", "jsonrpc": "2.0", "id": 1, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": 1, "\\u0061": 2}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping"} x',
    ],
)
def test_what_is_no_json_is_refused(legacy: Mcp, body: bytes) -> None:
    error = error_of(legacy.post(body), 400, id_=None)
    assert (error["code"], error["data"]["code"]) == (PARSE_ERROR, "kein_json")


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 65 + b"]" * 65])
def test_deeply_nested_json_is_refused(legacy: Mcp, body: bytes) -> None:
    assert error_of(legacy.post(body), 400, id_=None)["data"]["code"] in {"kein_json", "zu_gross"}


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_the_calls_fault(legacy: Mcp, value: str) -> None:
    call = message("tools/call", {"name": "select_brain_tags", "arguments": {"inhalt": "X"}})
    response = legacy.post(json.dumps(call).replace('"X"', f'{{"nutzer": "anna", "agent": {value}}}').encode())
    result = answer_of(response)["result"]
    assert (result["isError"], result["structuredContent"]["fehler"]["code"]) == (True, "ungueltig")


def test_a_body_over_the_limit_is_413_with_the_limit(legacy: Mcp, settings: Any) -> None:
    settings.BRAIN_LIMITS = Limits(body=1_000)
    error = error_of(legacy.post(message("ping", {"x": "x" * 1_000})), 413, id_=None)
    assert error["data"]["code"] == "zu_gross"
    assert "1000" in error["message"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_that_does_not_say_that_it_is_json_is_refused(anna: Agent, kind: str) -> None:
    response = anna.http.generic("POST", "/mcp", json.dumps(message("ping")), content_type=kind)
    assert error_of(response, 400, id_=None)["code"] == PARSE_ERROR


# The door


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize("accept", ["*/*", "application/json", "text/event-stream", "text/html", "", None])
def test_case_10_any_accept_and_both_spellings_of_the_address_are_answered_in_json(
    anna: Agent, path: str, accept: str | None
) -> None:
    headers = {} if accept is None else {"Accept": accept}
    for era, method in (("legacy", "initialize"), ("modern", "server/discover")):
        response = Mcp(anna, era, path).send(method, {"protocolVersion": LEGACY[0]} if era == "legacy" else {}, headers)
        assert response.status_code == 200
        assert "capabilities" in answer_of(response)["result"]


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"])
def test_another_method_is_405_with_a_key_and_401_without(anna: Agent, path: str, method: str) -> None:
    response = anna.http.generic(method, path)
    assert (response.status_code, response["Allow"]) == (405, "POST")
    assert response["Content-Type"] == "application/json"
    response = Client().generic(method, path)
    assert (response.status_code, response["Content-Type"]) == (401, "application/json")
    assert response["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer x", "Basic YTpi", "Bearer brain_aaaa_bbbb"])
def test_without_a_usable_key_the_answer_is_401(db: None, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    for body in (json.dumps(message("initialize")), "no json", "[]"):
        response = Client().post("/mcp", body, content_type="application/json", headers=headers)
        error = error_of(response, 401, id_=None)
        assert (error["code"], error["data"]["code"]) == (INVALID_REQUEST, "nicht_angemeldet")
        assert response["WWW-Authenticate"].startswith("Bearer")


def test_a_key_in_the_address_or_elsewhere_is_not_taken(anna: Agent) -> None:
    for address, headers in (
        (f"/mcp?key={anna.key}&access_token={anna.key}&token={anna.key}&api_key={anna.key}", {}),
        ("/mcp", {"X-Api-Key": anna.key, "Cookie": f"key={anna.key}"}),
    ):
        body = message("ping", {"_meta": {"key": anna.key}})
        response = Client().post(address, body, content_type="application/json", headers=headers)
        assert response.status_code == 401


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost.evil.example", "http://[", "x", "file://", "http://"]
)
def test_a_page_of_another_site_is_refused(anna: Agent, origin: str) -> None:
    for headers in ({"Origin": origin}, {"Origin": origin, "Authorization": ""}):
        error = error_of(Mcp(anna).send("server/discover", headers=headers), 403, id_=None)
        assert error["data"]["code"] == "nicht_erlaubt"


@pytest.mark.parametrize(
    "origin", ["http://localhost", "http://localhost:6274", "http://127.0.0.1:8000", "http://[::1]:1"]
)
def test_a_page_of_this_machine_may_call(anna: Agent, origin: str) -> None:
    assert Mcp(anna).send("server/discover", headers={"Origin": origin}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil.example", "[::"])
def test_a_host_that_is_not_ours_is_400_as_json(anna: Agent, host: str) -> None:
    response = Mcp(anna).send("server/discover", headers={"Host": host})
    assert (response.status_code, response["Content-Type"]) == (400, "application/json")
    json.loads(response.content)


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/mcp/.well-known/openid-configuration",
        "/mcp/x",
    ],
)
def test_what_clients_look_for_and_do_not_find_is_404_as_json(db: None, path: str) -> None:
    for response in (Client().get(path), Client().post(path, {}, content_type="application/json")):
        assert (response.status_code, response["Content-Type"]) == (404, "application/json")
        assert json.loads(response.content)["fehler"]["code"] == "unbekannte_adresse"


# Whatever is sent

PLACES = {
    "message": "X",
    "in a batch": "[X, X]",
    "jsonrpc": '{"jsonrpc": X, "id": 1, "method": "ping"}',
    "id": '{"jsonrpc": "2.0", "id": X, "method": "ping"}',
    "method": '{"jsonrpc": "2.0", "id": 1, "method": X}',
    "params": '{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": X}',
    "_meta": '{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": X}}',
    "version": f'{{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {{"_meta": {{"{META}protocolVersion": X}}}}}}',
    "initialize": '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": X}}',
    "tool": '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": X}}',
    "arguments": '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", '
    '"params": {"name": "select_brain_tags", "arguments": X}}',
    "a field": '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "select_brain_tags", '
    '"arguments": {"inhalt": {"nutzer": "anna", "agent": "planer", "praefix": X}}}}',
    "idempotencyKey": '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", '
    '"params": {"name": "insert_brain_memory", "_meta": {"idempotencyKey": X}}}',
    "uri": '{"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": X}}',
    "prompt": '{"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": X}}',
    "topic": '{"jsonrpc": "2.0", "id": 1, "method": "prompts/get", '
    '"params": {"name": "tidy_topic", "arguments": {"topic": X}}}',
    "ref": '{"jsonrpc": "2.0", "id": 1, "method": "completion/complete", '
    '"params": {"ref": X, "argument": {"name": "tag", "value": ""}}}',
    "beginning": '{"jsonrpc": "2.0", "id": 1, "method": "completion/complete", '
    '"params": {"ref": {"type": "ref/prompt", "name": "tidy_topic"}, "argument": {"name": "scope", "value": X}}}',
}


@pytest.mark.parametrize("place", PLACES)
def test_whatever_is_sent_is_answered_in_json_and_is_no_fault_of_the_program(
    anna: Agent, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in HOSTILE.items():
        for headers in ({}, {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}):
            response = Mcp(anna).post(PLACES[place].replace("X", value).encode(), headers)
            assert response.status_code in {200, 202, 400, 404}, (name, response.content)
            if response.status_code != 202:
                assert response["Content-Type"] == "application/json"
                assert "interner_fehler" not in json.dumps(json.loads(response.content)), name
    assert "Traceback" not in caplog.text


HEADERS = ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Origin", "Accept", "Content-Type", "Accept-Language"]


@pytest.mark.parametrize("name", [*HEADERS, "Authorization", "Idempotency-Key"])
def test_whatever_a_header_says_is_answered_in_json(anna: Agent, name: str, caplog: pytest.LogCaptureFixture) -> None:
    params = {"name": "select_brain_tags", "arguments": {"help": 1}}
    for value in (
        "",
        " ",
        "x" * 5_000,
        "\xff\xfe",
        "=?base64?gICA?=",
        "=?base64??=",
        "=?base64?=",
        "\0",
        "http://[",
        "%",
        "7",
    ):
        response = Mcp(anna).send("tools/call", params, {name: value})
        assert response.status_code in {200, 400, 401, 403}, (value, response.content)
        assert response["Content-Type"] == "application/json"
        json.loads(response.content)
    assert "Traceback" not in caplog.text


# Faults inside


@pytest.mark.parametrize("era", ERAS)
def test_a_bug_in_a_method_is_told_without_its_inside_and_logged(
    anna: Agent, era: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(request: Any) -> Any:
        raise RuntimeError("a secret of the inside")

    methods = {"prompts/list": offered.Method(broken)}
    monkeypatch.setattr("api.mcp.http.McpView.server", _with(methods))
    response = Mcp(anna, era).send("prompts/list")
    error = error_of(response, 500 if era == "modern" else 200)
    assert (error["code"], error["data"]["code"]) == (INTERNAL_ERROR, "interner_fehler")
    assert b"secret" not in response.content
    assert "a secret of the inside" in caplog.text


def _with(methods: dict[str, offered.Method]) -> offered.Server:
    known = offered.SERVER
    return offered.Server(known.info, known.instructions, known.capabilities, {**known.methods, **methods})


@pytest.mark.django_db(transaction=True)
def test_without_the_database_the_answer_is_503_and_when_to_try_again(agent_with: Callable[..., Agent]) -> None:
    client = Mcp(agent_with("anna"), "legacy")
    client.agent.call("select_brain_tags")
    with database_away():
        response = client.send("tools/list")
        if response.status_code == 200:  # SQLite can be read meanwhile
            return
        error = error_of(response, 503, id_=None)
        assert (error["code"], error["data"]["code"]) == (INTERNAL_ERROR, "nicht_verfuegbar")
        assert int(response["Retry-After"]) > 0
    assert client.ask("ping") == {}
