"""MCP over Streamable HTTP: one address, each POST a message, each answer plain JSON."""

from typing import Any, cast

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from api.faults import as_fault, status_of, with_headers
from api.mcp.protocol import Server, refused
from api.mcp.server import SERVER
from api.wire import body_size
from memories.errors import NotAllowed
from memories.principal import Principal


class McpView(APIView):
    """The address of MCP. There are no sessions and no streams, so that GET and DELETE are not taken."""

    http_method_names = ["post"]
    server: Server = SERVER

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse pages of other sites before anything else, then let in whoever has a key."""
        origin = request.headers.get("Origin", "")
        host, _port = split_domain_port(origin.partition("://")[2])
        if origin and not validate_host(host, settings.ALLOWED_HOSTS):
            raise NotAllowed(_("Pages of other sites may not call this address."))
        super().initial(request, *args, **kwargs)

    def post(self, request: Request) -> Response:
        """Answer a message."""
        portable = request.query_params.get("schema") == "portable"
        principal = cast("Principal", request.user)
        message = request.data
        reply = self.server.reply(
            message, principal, headers=request.headers, portable=portable, size=body_size(request)
        )
        response = Response(reply.message, status=reply.status)
        return with_headers(response, reply.fault) if reply.fault else response

    def handle_exception(self, exc: Exception) -> Response:
        """What went wrong around the message, in the protocol's form."""
        fault = as_fault(exc)
        if fault is None:
            return super().handle_exception(exc)
        response = with_headers(Response(refused(fault), status=status_of(fault)), fault)
        if isinstance(exc, exceptions.MethodNotAllowed):
            response.status_code = exc.status_code
        return response
