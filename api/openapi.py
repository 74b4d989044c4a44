"""OpenAPI: every tool is an operation of its own, with its real request schema and the schema of its answers."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

from api.schemas import ENVELOPE, Schema, answer, text
from api.tool import Tool
from memories.models.repeat import KEY_LENGTH

_FAULT_STATUS = {
    "400": "Fehler des Aufrufs; nichts wurde gespeichert",
    "401": "Kein oder kein gültiger Zugangsschlüssel",
    "403": "Der Zugangsschlüssel erlaubt das nicht",
    "404": "Unbekanntes Werkzeug",
    "409": "Der Schlüssel für Wiederholungen wurde für einen anderen Aufruf benutzt",
    "413": "Der Aufruf ist zu groß",
    "429": "Eine Grenze des Zugangsschlüssels ist erreicht",
    "503": "Die Datenbank ist nicht erreichbar",
}
_DEFINITION: Schema = {
    "type": "object",
    "properties": {
        "name": text(),
        "titel": text(),
        "beschreibung": text(),
        "parameter": {"type": "array", "items": {"type": "object"}},
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object"},
        "grenzen": {"type": "object"},
        "spalten": {"type": "object"},
        "beispiel": {"type": ["object", "null"]},
    },
    "required": ["name", "titel", "beschreibung", "parameter", "inputSchema", "outputSchema", "grenzen", "spalten"],
}
_REFUSED = {"$ref": "#/components/schemas/Ablehnung"}  # api.schemas.REFUSAL, see settings

_IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": KEY_LENGTH, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description="Derselbe Aufruf unter demselben Schlüssel wirkt in 24 Stunden einmal",
)
_IF_MATCH = OpenApiParameter(
    "If-Match",
    {"type": "string", "pattern": '^"[1-9][0-9]{0,17}"$'},
    OpenApiParameter.HEADER,
    description="Nur ändern, wenn die eine Erinnerung des Aufrufs noch diese Version hat",
)


class ToolSchema(AutoSchema):
    """Describes the views of the tools; everything is read from the tool itself."""

    @property
    def _tool(self) -> Tool | None:
        return getattr(self.view, "tool", None)

    def get_operation_id(self) -> str:
        """The tool's name for its call, and words for the rest."""
        name = self._tool.name if self._tool else "tools"
        if self.method == "POST":
            return name if self._tool else "call_tool"
        return f"define_{name}" if self._tool else "list_tools"

    def get_tags(self) -> list[str]:
        """Calls apart from definitions."""
        return ["Werkzeuge" if self.method == "POST" else "Definitionen"]

    def get_summary(self) -> str:
        """The tool's title."""
        if self._tool:
            return self._tool.titel if self.method == "POST" else f"Definition: {self._tool.titel}"
        return "Ein Werkzeug aufrufen" if self.method == "POST" else "Alle Werkzeuge, die der Schlüssel aufrufen darf"

    def get_description(self) -> str:  # type: ignore[override]
        """The tool's description."""
        if self._tool and self.method == "POST":
            return self._tool.beschreibung
        return "Der Umschlag: tool und arguments." if self.method == "POST" else "Was help: 1 erzählt."

    def get_request_serializer(self) -> Any:
        """The tool's input schema."""
        if self.method != "POST":
            return None
        return {"application/json": self._tool.input_schema if self._tool else ENVELOPE}

    def get_override_parameters(self) -> list[Any]:
        """The headers that say something about a call."""
        if self.method != "POST" or (self._tool and not self._tool.writes):
            return []
        return [_IDEMPOTENCY_KEY, _IF_MATCH] if self._tool is None or self._tool.versioned else [_IDEMPOTENCY_KEY]

    def _get_request_body(self, direction: str = "request") -> Any:
        body = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        if body:
            body["required"] = True
            if self._tool and self._tool.beispiel:
                body["content"]["application/json"]["example"] = self._tool.beispiel["arguments"]
        return body

    def get_response_serializers(self) -> Any:
        """The tool's output schema, and the answer to a call that was not executed."""
        if self.method == "POST":
            done = self._tool.output_schema if self._tool else answer({})
        else:
            listed = {"type": "object", "properties": {"tools": {"type": "array", "items": _DEFINITION}}}
            done = _DEFINITION if self._tool else listed
        return {"200": done, **dict.fromkeys(_FAULT_STATUS, _REFUSED)}

    def _get_response_for_code(self, serializer: Any, status_code: str, *args: Any, **options: Any) -> Any:
        response = super()._get_response_for_code(  # type: ignore[no-untyped-call]
            serializer, status_code, *args, **options
        )
        return response | {"description": _FAULT_STATUS.get(status_code, "Ausgeführt")}


class AccessKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the document names the access key."""

    target_class = "api.authentication.AccessKeyAuthentication"
    match_subclasses = True
    name = "Zugangsschluessel"  # OpenAPI allows ASCII alone here

    def get_security_definition(self, auto_schema: AutoSchema) -> Schema:
        """A bearer token."""
        del auto_schema
        return {"type": "http", "scheme": "bearer"}
