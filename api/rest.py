"""REST: a thin door over the envelope."""

from typing import Any, cast

from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from api import envelope
from api.checking import MOST_FAULTS
from api.faults import answer_fault
from api.tool import Tool
from api.tools import TOOLS
from memories.errors import BrainError, Invalid, Missing, UnknownTool
from memories.principal import Principal


class _Door(APIView):
    """What the views of the tools have in common."""

    http_method_names = ["get", "post", "options"]

    def execute(self, tool: Tool, arguments: Any, request: Request) -> Response:
        """Execute a call; a fault of the call becomes its answer here, where tool and references are known."""
        try:
            answer = envelope.handle(tool, arguments, cast("Principal", request.user), "rest")
        except BrainError as fault:
            references = arguments.get("referenzfelder") if isinstance(arguments, dict) else None
            return answer_fault(fault, tool.name, references)
        return Response(answer)


class ToolsView(_Door):
    """All tools: GET lists those the key may call, POST executes one by its envelope."""

    def get(self, request: Request) -> Response:
        """The definitions of the tools."""
        tools = envelope.callable_by(cast("Principal", request.user))
        return Response({"tools": [envelope.definition(tool) for tool in tools]})

    def post(self, request: Request) -> Response:
        """Execute `{"tool": …, "arguments": {…}}`."""
        frame = request.data
        if not isinstance(frame, dict):
            raise Invalid(_("The body must be an object with tool and arguments."))
        unknown = sorted(frame.keys() - {"tool", "arguments"})[:MOST_FAULTS]
        if unknown:
            raise Invalid(_("Besides tool and arguments there is no %(names)s.") % {"names": ", ".join(unknown)})
        for name in ("tool", "arguments"):
            if name not in frame:
                raise Missing(_("This field is required."), name)
        return self.execute(envelope.find(frame["tool"]), frame["arguments"], request)


class ToolView(_Door):
    """One tool: GET tells its definition, POST executes it with the arguments alone."""

    tool: Tool = TOOLS[0]  # each address has its own, see api.urls

    def get(self, request: Request) -> Response:
        """The tool's definition."""
        del request
        return Response(envelope.definition(self.tool))

    def post(self, request: Request) -> Response:
        """Execute the tool."""
        return self.execute(self.tool, request.data, request)


class UnknownToolView(_Door):
    """Names that no tool has."""

    def get(self, request: Request, name: str) -> Response:
        """404, with the nearest name."""
        del request
        return answer_fault(_unknown(name), name)

    def post(self, request: Request, name: str) -> Response:
        """404, with the nearest name."""
        return self.get(request, name)


def _unknown(name: str) -> BrainError:
    try:
        envelope.find(name)
    except UnknownTool as fault:
        return fault
    raise AssertionError(name)
