"""MCP without a key, and one answer as a stream: Brain itself has no tool that would tell of its progress."""

import time
from collections.abc import Iterator
from typing import Any

from django.http import HttpResponseBase, StreamingHttpResponse
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from api import jsonbody
from api.mcp.http import McpView
from memories.principal import SYSTEM, Principal
from tests.conformance.fixtures import PROGRESS, SERVER


class Anybody(BaseAuthentication):
    """Lets everybody in."""

    def authenticate(self, request: Request) -> tuple[Principal, None]:
        """The program itself."""
        del request
        return SYSTEM, None


class FixturesView(McpView):
    """The door of Brain before another server."""

    authentication_classes = [Anybody]
    server = SERVER

    def post(self, request: Request) -> HttpResponseBase:
        """Answer a message, with its progress when the client asks for that."""
        response = super().post(request)
        params = request.data.get("params") or {}
        token = params.get("_meta", {}).get("progressToken")
        if params.get("name") != PROGRESS or token is None:
            return response
        return StreamingHttpResponse(_stream(token, response.data), content_type="text/event-stream")


def _stream(token: Any, answer: Any) -> Iterator[bytes]:
    for done in (0, 50, 100):
        params = {"progressToken": token, "progress": done, "total": 100}
        yield _event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        time.sleep(0.05)
    yield _event(answer)


def _event(message: Any) -> bytes:
    return b"event: message\ndata: " + jsonbody.write(message) + b"\n\n"
