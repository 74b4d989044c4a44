"""The WSGI application that the server runs."""

import os
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "brain.settings")


class Utf8Request(WSGIRequest):
    """A request in UTF-8, whatever charset it names: Python knows some, such as base64, that are no charset of texts.

    Django reads the address by it, before anything could catch what comes of that.
    """

    @property
    def encoding(self) -> str | None:
        """None, which stands for UTF-8."""
        return None

    @encoding.setter
    def encoding(self, value: str | None) -> None:
        """Nothing."""


_django = get_wsgi_application()
_django.request_class = Utf8Request
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Django, for bodies sent in chunks as well.

    They come without a length, and Django takes such a body for empty. The server ends the stream where the body ends,
    so any length will do; this one is too large, which is what a body that really has it must be called, and leaves
    room to read what is beyond the limit.
    """
    if environ.get("wsgi.input_terminated") and environ["REQUEST_METHOD"] in _WITH_BODY:
        environ.setdefault("CONTENT_LENGTH", str(4 * settings.BRAIN_LIMITS.body))
    return _django(environ, start_response)
