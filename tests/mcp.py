"""A client of MCP for tests, of either era: what it sends is written out, so that the protocol can be broken, too."""

import json
from typing import Any

from tests.conftest import Agent

MODERN = "2026-07-28"
LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
META = "io.modelcontextprotocol/"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
ERAS = ["modern", "legacy"]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022


def message(method: str, params: Any = None, *, id_: Any = 1) -> dict[str, Any]:
    """A request; without parameters when they are None."""
    return {"jsonrpc": "2.0", "id": id_, "method": method} | ({} if params is None else {"params": params})


def meta(**more: Any) -> dict[str, Any]:
    """What a modern request says of itself; a value of None leaves the member out."""
    told = {"protocolVersion": MODERN, "clientCapabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
    return {f"{META}{name}": value for name, value in (told | more).items() if value is not None}


class Mcp:
    """An agent that speaks MCP."""

    def __init__(self, agent: Agent, era: str = "modern", path: str = "/mcp") -> None:
        self.agent = agent
        self.is_modern = era == "modern"
        self.path = path

    def post(self, body: Any, headers: dict[str, str] | None = None) -> Any:
        """The response to a body; bytes are sent as they are, everything else as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.agent.http.generic("POST", self.path, data, content_type="application/json", headers=headers or {})

    def send(self, method: str, params: dict[str, Any] | None = None, headers: dict[str, str] | None = None) -> Any:
        """The response to a request as a client of this era sends it, `headers` over its own."""
        if not self.is_modern:
            return self.post(message(method, params), headers)
        params = {"_meta": meta(), **(params or {})}
        own = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if method in NAMED_BY and isinstance(params.get(NAMED_BY[method]), str):
            own["Mcp-Name"] = params[NAMED_BY[method]]
        return self.post(message(method, params), own | (headers or {}))

    def ask(self, method: str, /, **params: Any) -> dict[str, Any]:
        """The result of a request."""
        response = self.send(method, params)
        assert response.status_code == 200, response.content
        told = answer_of(response)
        assert "error" not in told, told
        assert ("resultType" in told["result"]) is self.is_modern
        result: dict[str, Any] = told["result"]
        return result

    def fails(self, method: str, /, **params: Any) -> dict[str, Any]:
        """The error that a request is answered with."""
        response = self.send(method, params)
        if not self.is_modern:
            assert response.status_code == 200
        return error_of(response, response.status_code)

    def call(self, tool: str, arguments: Any) -> dict[str, Any]:
        """The result of a call, whose two forms say the same."""
        result = self.ask("tools/call", name=tool, arguments=arguments)
        (content,) = result["content"]
        assert content["type"] == "text"
        assert json.loads(content["text"]) == result["structuredContent"]
        return result


def answer_of(response: Any) -> dict[str, Any]:
    """The message in a response."""
    assert response["Content-Type"] == "application/json"
    told: dict[str, Any] = json.loads(response.content)
    assert told["jsonrpc"] == "2.0"
    return told


def error_of(response: Any, status: int, *, id_: Any = 1) -> dict[str, Any]:
    """The error in a response of this status."""
    assert response.status_code == status, response.content
    told = answer_of(response)
    assert told.keys() == {"jsonrpc", "id", "error"}
    assert told["id"] == id_
    error: dict[str, Any] = told["error"]
    assert error["message"]
    return error
