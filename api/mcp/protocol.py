"""The protocol: JSON-RPC messages in both eras, each request by itself, nothing remembered between two.

Modern requests (2026-07-28) carry their version and the client's abilities in `_meta`; legacy ones (2025-11-25 and
before) begin with `initialize`. Source: modelcontextprotocol.io/specification.
"""

import base64
import binascii
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from django.utils.translation import gettext as _

from api import envelope
from api.faults import as_fault, status_of
from memories.errors import BrainError, InternalFault, NotJson, TooMany, Unavailable
from memories.principal import Principal

log = logging.getLogger(__name__)

Message = dict[str, Any]
Headers = Mapping[str, str]

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
VERSIONS = (MODERN, *LEGACY)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

_META = "io.modelcontextprotocol/"
_LIVES = 60_000  # milliseconds: so long a client may keep a list
_MOST_IN_BATCH = 100
_METHOD_SHOWN = 80  # characters
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_CODES: tuple[tuple[type[BrainError], int], ...] = (
    (NotJson, PARSE_ERROR),
    (Unavailable, INTERNAL_ERROR),
    (InternalFault, INTERNAL_ERROR),
)
_ENCODED = ("=?base64?", "?=")


class ProtocolError(Exception):
    """A fault of the protocol, with its JSON-RPC code."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass(frozen=True, slots=True)
class Request:
    """What a method gets. `portable` wishes for schemas that name one type for each property."""

    method: str
    params: Mapping[str, Any]
    principal: Principal
    modern: bool
    portable: bool = False
    size: int = 0


@dataclass(frozen=True, slots=True)
class Method:
    """What answers a method; `cached`, whether its result says how long it may be kept."""

    answer: Callable[[Request], dict[str, Any]]
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The message that answers another, None when there is nothing to say, and the HTTP status that goes with it."""

    status: int
    message: Message | list[Message] | None
    fault: BrainError | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """What a server is and can do."""

    info: Mapping[str, str]
    instructions: Callable[[], str]
    capabilities: Mapping[str, Any]
    methods: Mapping[str, Method]

    def reply(
        self,
        message: Any,
        principal: Principal,
        *,
        headers: Headers | None = None,
        portable: bool = False,
        size: int = 0,
    ) -> Reply:
        """The reply to a message, or to a batch, which legacy clients may send. Over a pipe there are no headers."""
        if not isinstance(message, list):
            return self._one(message, principal, headers, portable=portable, size=size)
        if not 1 <= len(message) <= _MOST_IN_BATCH:
            told = _("A batch holds 1 to %(limit)d messages.") % {"limit": _MOST_IN_BATCH}
            return failed(ProtocolError(INVALID_REQUEST, told))
        share = size // len(message)
        replies = [self._one(each, principal, headers, portable=portable, size=share).message for each in message]
        said = [cast("Message", reply) for reply in replies if reply is not None]
        return Reply(200, said) if said else Reply(202, None)

    def _one(self, message: Any, principal: Principal, headers: Headers | None, *, portable: bool, size: int) -> Reply:
        known = id_of(message)
        modern = _is_modern_by_header(headers)
        try:
            method, params, is_answered = _opened(message)
            if not is_answered:
                return Reply(202, None)
            modern = modern or method == "server/discover" or f"{_META}protocolVersion" in params.get("_meta", {})
            if modern:
                _check_modern(method, params, headers)
            result = self._result(Request(method, params, principal, modern, portable or principal.portable, size))
        except ProtocolError as error:
            return failed(error, known, modern=modern)
        except Exception as error:
            fault = as_fault(error)
            if fault is None:
                log.exception("A method of MCP failed")
                fault = InternalFault(_("Something went wrong inside; the server's log has the details."))
            status = status_of(fault) if modern or isinstance(fault, TooMany) else 200
            return Reply(status, refused(fault, known, otherwise=INVALID_PARAMS), fault)
        return Reply(200, {"jsonrpc": "2.0", "id": known, "result": result})

    def _result(self, request: Request) -> dict[str, Any]:
        if not request.modern:
            if request.method == "initialize":
                return self._initialized(request.params)
            if request.method == "ping":
                return {}
        elif request.method == "server/discover":
            return self._modern(self._discovered(), cached=True)
        method = self.methods.get(request.method)
        if method is None:
            told = _("There is no such method here: %(name)s") % {"name": request.method[:_METHOD_SHOWN]}
            raise ProtocolError(METHOD_NOT_FOUND, told)
        result = method.answer(request)
        return self._modern(result, cached=method.cached) if request.modern else result

    def _initialized(self, params: Mapping[str, Any]) -> dict[str, Any]:
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in LEGACY else LEGACY[0],
            "capabilities": self.capabilities,
            "serverInfo": self.info,
            "instructions": self.instructions(),
        }

    def _discovered(self) -> dict[str, Any]:
        return {
            "supportedVersions": VERSIONS,
            "capabilities": self.capabilities,
            "instructions": self.instructions(),
        }

    def _modern(self, result: dict[str, Any], *, cached: bool) -> dict[str, Any]:
        meta = {**result.get("_meta", {}), f"{_META}serverInfo": self.info}
        kept = {"ttlMs": _LIVES, "cacheScope": "private"} if cached else {}
        return {"resultType": "complete", **kept, **result, "_meta": meta}


def failed(error: ProtocolError, known: Any = None, *, modern: bool = True) -> Reply:
    """The reply that tells of a fault; legacy clients get those of a request with status 200."""
    body = {"code": error.code, "message": error.message} | ({} if error.data is None else {"data": error.data})
    refusing = 404 if error.code == METHOD_NOT_FOUND else 400
    status = refusing if modern or known is None else 200
    return Reply(status, {"jsonrpc": "2.0", "id": known, "error": body})


def refused(fault: BrainError, known: Any = None, *, otherwise: int = INVALID_REQUEST) -> Message:
    """The message that tells of a fault that is not the protocol's: no JSON, no key, no database."""
    code = next((code for kind, code in _CODES if isinstance(fault, kind)), otherwise)
    return {
        "jsonrpc": "2.0",
        "id": known,
        "error": {"code": code, "message": str(fault.meldung), "data": envelope.told(fault)},
    }


def id_of(message: Any) -> str | int | None:
    """The id of a request; None when it has none that could be said again."""
    known = message.get("id") if isinstance(message, dict) else None
    if isinstance(known, str):
        return None if any("\ud800" <= letter <= "\udfff" for letter in known) else known
    return known if isinstance(known, int) and not isinstance(known, bool) else None


def _opened(message: Any) -> tuple[str, dict[str, Any], bool]:
    """Method, parameters, and whether the message wants an answer. What answers us is taken, and let be."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise ProtocolError(INVALID_REQUEST, _('A message is an object with "jsonrpc": "2.0".'))
    if "method" not in message and ("result" in message or "error" in message):
        return "", {}, False
    method = message.get("method")
    if not isinstance(method, str):
        raise ProtocolError(INVALID_REQUEST, _("A message names its method."))
    if "id" not in message:
        return method, {}, False
    if id_of(message) is None:
        raise ProtocolError(INVALID_REQUEST, _("The id of a request is a text or a whole number."))
    params = message.get("params")
    params = {} if params is None else params
    if isinstance(params, dict) and params.get("_meta") is None:  # some clients send null for what they do not give
        params = {name: value for name, value in params.items() if name != "_meta"}
    if not isinstance(params, dict) or not isinstance(params.get("_meta", {}), dict):
        raise ProtocolError(INVALID_PARAMS, _("params and its _meta are objects."))
    return method, params, True


def _is_modern_by_header(headers: Headers | None) -> bool:
    told = (headers or {}).get("MCP-Protocol-Version", "").strip()
    return bool(told) and told not in LEGACY


def _check_modern(method: str, params: Mapping[str, Any], headers: Headers | None) -> None:
    """What a modern request says of itself, in `_meta` and once more in its headers."""
    meta = params.get("_meta", {})
    version = meta.get(f"{_META}protocolVersion")
    if not isinstance(version, str):
        _check_supported((headers or {}).get("MCP-Protocol-Version", MODERN).strip())
        raise ProtocolError(INVALID_PARAMS, _("_meta lacks %(name)s.") % {"name": f"{_META}protocolVersion"})
    if headers is not None:
        _check_header(headers, "MCP-Protocol-Version", version)
    _check_supported(version)
    if not isinstance(meta.get(f"{_META}clientCapabilities"), dict):
        raise ProtocolError(INVALID_PARAMS, _("_meta lacks %(name)s.") % {"name": f"{_META}clientCapabilities"})
    if headers is not None:
        _check_header(headers, "Mcp-Method", method)
        if method in _NAMED_BY:
            _check_header(headers, "Mcp-Name", params.get(_NAMED_BY[method]))


def _check_supported(version: str) -> None:
    if version != MODERN:
        raise ProtocolError(
            UNSUPPORTED_VERSION,
            _("This version of the protocol is not supported in a request that stands alone."),
            {"supported": VERSIONS, "requested": version},
        )


def _check_header(headers: Headers, name: str, value: Any) -> None:
    told = headers.get(name)
    if told is None or _plain(told) != value:
        raise ProtocolError(HEADER_MISMATCH, _("The header %(name)s differs from the body.") % {"name": name})


def _plain(header: str) -> str | None:
    """A header's text, also one that is encoded as it is not plain ASCII; None when that cannot be read."""
    header = header.strip()
    before, after = _ENCODED
    if not (header.startswith(before) and header.endswith(after)):
        return header
    try:
        return base64.b64decode(header[len(before) : -len(after)], validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
