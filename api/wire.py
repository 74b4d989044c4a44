"""How bodies are read and written: strict JSON in, JSON out, whatever a client says it accepts."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from api import jsonbody
from memories.errors import TooLarge
from memories.limits import limits

_DISCARDED = 3  # times the limit
_AT_ONCE = 1024 * 1024  # bytes


class BodyTooLarge(TooLarge):
    """The body passes the limit."""


class EnvelopeParser(BaseParser):
    """Reads JSON bodies, strictly and up to the limit."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        """The body's value. Raises NotJson or BodyTooLarge."""
        del media_type
        most = limits().body
        body = stream.read(most + 1)
        if len(body) > most:
            _discard(stream, _DISCARDED * most)
            raise BodyTooLarge(_("The body is larger than %(limit)d bytes.") % {"limit": most})
        if parser_context:
            parser_context["request"].body_size = len(body)
        return jsonbody.parse(body)


def _discard(stream: Any, most: int) -> None:
    """Read on, up to so many bytes: a client that is still sending does not hear why it should not."""
    for _part in range(0, most, _AT_ONCE):
        if not stream.read(_AT_ONCE):
            return


def body_size(request: Request) -> int:
    """How many bytes the request's body had."""
    size: int = getattr(request, "body_size", 0)
    return size


class EnvelopeRenderer(BaseRenderer):
    """Writes JSON."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        """The answer as bytes, none when there is nothing to say."""
        del accepted_media_type, renderer_context
        return b"" if data is None else jsonbody.write(data)


class AlwaysJson(BaseContentNegotiation):
    """JSON is all there is, whatever a client says it accepts."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """The parser, when the body says that it is JSON."""
        kind = (request.content_type or "").partition(";")[0].strip().lower()
        return parsers[0] if kind == "application/json" else None

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        """The renderer."""
        del request, format_suffix
        return renderers[0], renderers[0].media_type
