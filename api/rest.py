"""REST: a thin door over the envelope."""

import re
from typing import Any, cast

from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from api import envelope
from api.envelope import Via
from api.faults import answer_fault
from api.tool import Tool
from api.tools import TOOLS
from api.wire import body_size
from memories.errors import BrainError, Invalid
from memories.principal import Principal

_VERSION = re.compile("[1-9][0-9]{0,17}")


class _Door(APIView):
    """What the views of the tools have in common."""

    http_method_names = ["get", "head", "post"]

    def execute(self, name: str, arguments: Any, request: Request) -> Response:
        """Execute a call; a fault of the call becomes its answer here, where tool and references are known."""
        try:
            answer = envelope.handle(envelope.find(name), arguments, cast("Principal", request.user), _via(request))
        except BrainError as fault:
            return answer_fault(fault, name, envelope.references_of(arguments))
        return Response(answer)

    def define(self, name: str, request: Request) -> Response:
        """Tell what a tool is, to a key that may call it."""
        try:
            return Response(envelope.define(envelope.find(name), cast("Principal", request.user)))
        except BrainError as fault:
            return answer_fault(fault, name)


def _via(request: Request) -> Via:
    """What the headers say beside the call. Raises Invalid for a version that is none."""
    version = request.headers.get("If-Match", "").strip().removeprefix("W/").strip('"*')
    if version and not _VERSION.fullmatch(version):
        raise Invalid(_('The header holds a version, such as "3".'), "If-Match")
    return Via(
        "rest",
        idempotency_key=request.headers.get("Idempotency-Key"),
        erwartete_version=int(version) if version else None,
        size=body_size(request),
    )


class ToolsView(_Door):
    """All tools: GET lists those the key may call, POST executes one by its envelope."""

    def get(self, request: Request) -> Response:
        """The definitions of the tools."""
        tools = envelope.callable_by(cast("Principal", request.user))
        return Response({"tools": [envelope.definition(tool) for tool in tools]})

    def post(self, request: Request) -> Response:
        """Execute `{"tool": …, "arguments": {…}}`."""
        try:
            name, arguments = envelope.opened(request.data)
        except BrainError as fault:
            sent = request.data if isinstance(request.data, dict) else {}
            named = sent.get("tool")
            references = envelope.references_of(sent.get("arguments"))
            return answer_fault(fault, named if isinstance(named, str) else None, references)
        return self.execute(name, arguments, request)


class ToolView(_Door):
    """One tool: GET tells its definition, POST executes it with the arguments alone."""

    tool: Tool = TOOLS[0]  # each address has its own, see api.urls

    def get(self, request: Request) -> Response:
        """The tool's definition."""
        return self.define(self.tool.name, request)

    def post(self, request: Request) -> Response:
        """Execute the tool."""
        return self.execute(self.tool.name, request.data, request)


class UnknownToolView(_Door):
    """Names that no tool has."""

    def get(self, request: Request, name: str) -> Response:
        """404, with the nearest name."""
        return self.define(name, request)

    def post(self, request: Request, name: str) -> Response:
        """404, with the nearest name."""
        return self.execute(name, None, request)
