"""Faults become answers here: the status of each, and JSON for machines wherever it arises."""

import logging
from collections.abc import Mapping
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views import defaults
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.settings import api_settings

from api import envelope, jsonbody
from api.wire import BodyTooLarge
from memories import deadline
from memories.errors import (
    BrainError,
    InternalFault,
    Invalid,
    KeyReused,
    NoSuchAddress,
    NotAllowed,
    NotJson,
    NotSignedIn,
    TooMany,
    Unavailable,
    UnknownTool,
)

log = logging.getLogger(__name__)

JSON_PATHS = ("/api", "/mcp", "/healthz", "/readyz", "/.well-known/")
_RETRY_AFTER = "5"  # seconds

_STATUS: tuple[tuple[type[BrainError], int], ...] = (
    (NotSignedIn, 401),
    (NotAllowed, 403),
    (UnknownTool, 404),
    (NoSuchAddress, 404),
    (BodyTooLarge, 413),
    (KeyReused, 409),
    (TooMany, 429),
    (InternalFault, 500),
    (Unavailable, 503),
)


def answer_exception(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """The answer to whatever a view raises; None leaves a bug to Django, which logs it and calls `server_error`."""
    del context
    fault = as_fault(error)
    if fault is None:
        return None
    response = answer_fault(fault, None)
    if isinstance(error, exceptions.MethodNotAllowed):
        response.status_code = error.status_code
    return response


def as_fault(error: Exception) -> BrainError | None:
    """The anticipated fault that an exception is; None for a bug."""
    match error:
        case BrainError():
            return error
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return NotSignedIn(_("Send the access key as: Authorization: Bearer <key>."))
        case exceptions.MethodNotAllowed():
            return NoSuchAddress(_("This address does not take this method."))
        case exceptions.UnsupportedMediaType():
            return NotJson(_("The body must be JSON: send Content-Type: application/json."))
        case OperationalError() | InterfaceError():
            if deadline.passed():
                log.error("A request was ended, since it kept the database busy for too long.")
                return Unavailable(deadline.TOLD)
            log.error("The database is not available: %s", type(error).__name__)
            return Unavailable(_("The database cannot be reached at the moment; try again a little later."))
        case _:
            return None


def answer_fault(fault: BrainError, name: str | None, references: object = None) -> Response:
    """The answer to a call that was not executed."""
    return with_headers(Response(envelope.refusal(name, fault, references), status=status_of(fault)), fault)


def status_of(fault: BrainError) -> int:
    """The HTTP status of a call that was not executed."""
    return next((status for kind, status in _STATUS if isinstance(fault, kind)), 400)


def with_headers(response: Response, fault: BrainError) -> Response:
    """The response with the headers that the fault calls for: the way in, or when to try again."""
    if isinstance(fault, NotSignedIn):
        ways_in: Any = api_settings.DEFAULT_AUTHENTICATION_CLASSES
        response["WWW-Authenticate"] = ways_in[0]().authenticate_header(None)
    if isinstance(fault, (Unavailable, TooMany)):
        response["Retry-After"] = str(fault.retry_after) if isinstance(fault, TooMany) else _RETRY_AFTER
    return response


def _plain(fault: BrainError, status: int) -> HttpResponse:
    body = jsonbody.write(envelope.refusal(None, fault))
    return HttpResponse(body, status=status, content_type="application/json")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400 outside the views, such as for a host that is not ours."""
    if request.path_info.startswith(JSON_PATHS):
        return _plain(Invalid(_("The request cannot be understood.")), 400)
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403 outside the views."""
    if request.path_info.startswith(JSON_PATHS):
        return _plain(NotAllowed(_("This is not allowed.")), 403)
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404 for machines as JSON, for people as a page."""
    if request.path_info.startswith(JSON_PATHS):
        return _plain(NoSuchAddress(_("There is nothing at this address.")), 404)
    return defaults.page_not_found(request, exception)


def unavailable(request: HttpRequest, error: Exception) -> HttpResponse:
    """503 outside the API: the database is away, or a request kept it busy for too long."""
    fault = as_fault(error)
    if fault is None:
        raise error
    if request.path_info.startswith(JSON_PATHS):
        response = _plain(fault, status_of(fault))
    else:
        response = render(request, "503.html", {"fault": fault}, status=status_of(fault))
    response["Retry-After"] = _RETRY_AFTER
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    """500: a bug; the log has the traceback, the caller learns nothing of it."""
    if request.path_info.startswith(JSON_PATHS):
        return _plain(InternalFault(_("Something went wrong inside; the server's log has the details.")), 500)
    return defaults.server_error(request)
