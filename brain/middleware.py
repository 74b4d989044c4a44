"""What holds for every request: the headers of its answer, and how long it may keep the database busy."""

import logging
from collections.abc import Callable, Iterable, Iterator

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

from api import faults
from memories import deadline

log = logging.getLogger(__name__)

_NOT_NEEDED = ("camera", "display-capture", "geolocation", "microphone", "midi", "payment", "usb")
_PERMISSIONS_POLICY = ", ".join(f"{feature}=()" for feature in _NOT_NEEDED)


def permissions_policy(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """No page of ours uses the machine's devices, so no script in it may."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response["Permissions-Policy"] = _PERMISSIONS_POLICY
        return response

    return answer


def broken_streams(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """What breaks off while it is sent is told by our log; the server's would quote the fault's text."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if isinstance(response, StreamingHttpResponse):
            response.streaming_content = _guarded(response.streaming_content)
        return response

    return answer


def _guarded(parts: Iterable[bytes]) -> Iterator[bytes]:
    try:
        yield from parts
    except Exception:
        log.exception("An answer broke off")
        raise ConnectionAbortedError from None


def readable_cookies(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """A cookie that holds a NUL is none of ours, and no database can look for it."""

    def answer(request: HttpRequest) -> HttpResponse:
        for name in [name for name, value in request.COOKIES.items() if "\0" in value]:
            del request.COOKIES[name]
        return get_response(request)

    return answer


class DeadlineMiddleware:
    """Ends what keeps the database busy for too long, and tells people when the database does not answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """The answer, or what a view makes of the fault."""
        with deadline.limited(settings.BRAIN_REQUEST_SECONDS):
            return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """A page for people; machines get theirs from the views. None leaves all else to others."""
        if not isinstance(exception, OperationalError | InterfaceError):
            return None
        return faults.unavailable(request, exception)
