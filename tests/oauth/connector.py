"""A client from outside, as claude.ai is one: it has no key and sends a person to the page that asks."""

import base64
import hashlib
import secrets
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.test import Client as Http

from memories.keys import make_key
from memories.models import AccessKey
from oauth.models import Client
from tests.admincast import person

ISSUER = "https://brain.example.org"
RESOURCE = f"{ISSUER}/mcp"
CALLBACK = "https://claude.ai/api/mcp/auth_callback"
LENDING = ("view_accesskey", "change_accesskey")
# What a key without limits may do.
HAVING = tuple(
    f"{verb}_{kind}memory"
    for verb in ("view", "change", "delete", "restore")
    for kind in ("longterm", "shortterm", "brain")
)


def key(name: str = "planer", **limits: Any) -> AccessKey:
    """A new access key."""
    made, _text = make_key(name=name, account=name, only=limits, may_write=True, expires_at=None)
    return made


def registered(*, secret: str = "", redirect_uris: str = CALLBACK, **fields: Any) -> Client:
    """A client that an operator entered, with a secret or as one that keeps none."""
    kind = Client.CLIENT_CONFIDENTIAL if secret else Client.CLIENT_PUBLIC
    values = {"name": "Claude", "client_type": kind, "client_secret": secret, "redirect_uris": redirect_uris} | fields
    grant = Client.GRANT_AUTHORIZATION_CODE
    client: Client = Client.objects.create(**values, authorization_grant_type=grant)
    return client


class Connector:
    """A client in the middle of connecting. `operator` is the browser of the person whom it sends."""

    def __init__(self, client: Client, *, operator: Http | None = None, secret: str = "") -> None:
        self.client = client
        self.secret = secret
        self.operator = operator or person("olga", [*LENDING, *HAVING])
        self.http = Http(headers={"Accept-Language": "en"}, raise_request_exception=False)
        self.verifier = secrets.token_urlsafe(48)

    def question(self, **changes: Any) -> str:
        """The address that the person is sent to; None leaves a parameter out."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": self.client.client_id,
            "redirect_uri": CALLBACK,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "state": "what the client remembers",
            "resource": RESOURCE,
            "scope": " offline_access",
        } | changes
        return "/oauth/authorize?" + urlencode({k: v for k, v in asked.items() if v is not None}, doseq=True)

    def ask(self, **changes: Any) -> Any:
        """The page."""
        return self.operator.get(self.question(**changes))

    def answered(self, sent: dict[str, Any], **changes: Any) -> dict[str, str]:
        """What comes back to the client when the person sends the page's form."""
        return told(self.operator.post(self.question(**changes), sent))

    def allowed(self, key: AccessKey, **changes: Any) -> str:
        """The code, when the person lends this key's rights."""
        answer = self.answered({"key": key.pk, "allow": "Allow"}, **changes)
        assert answer["iss"] == ISSUER
        assert answer["state"] == "what the client remembers"
        return answer["code"]

    def token(self, **changes: Any) -> Any:
        """The response of the token endpoint; None leaves a parameter out."""
        sent = {"client_id": self.client.client_id, "resource": RESOURCE} | changes
        if self.secret:
            sent["client_secret"] = self.secret
        return self.http.post("/oauth/token", {k: v for k, v in sent.items() if v is not None})

    def redeem(self, code: str, **changes: Any) -> Any:
        """The response to a code."""
        sent = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
        return self.token(**sent | {"code_verifier": self.verifier} | changes)

    def renew(self, refresh_token: str, **changes: Any) -> Any:
        """The response to a refresh token."""
        return self.token(**{"grant_type": "refresh_token", "refresh_token": refresh_token} | changes)

    def connected(self, key: AccessKey) -> dict[str, Any]:
        """The tokens of a connection, made from beginning to end."""
        response = self.redeem(self.allowed(key))
        assert response.status_code == 200, response.content
        tokens: dict[str, Any] = response.json()
        return tokens

    def call(self, access_token: str, tool: str = "select_brain_tags", **inhalt: Any) -> Any:
        """The response of MCP to a call of a tool."""
        arguments = {"inhalt": {"nutzer": "anna", "agent": "planer", **inhalt}}
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }
        headers = {"Authorization": f"Bearer {access_token}", "Accept": "application/json, text/event-stream"}
        return self.http.post("/mcp", message, content_type="application/json", headers=headers)

    def works(self, access_token: str) -> bool:
        """Whether the token lets it in."""
        status = self.call(access_token).status_code
        assert status in {200, 401}
        return bool(status == 200)


def told(response: Any) -> dict[str, str]:
    """What a redirect tells the client."""
    assert response.status_code == 302, response.content
    assert response["Location"].startswith(f"{CALLBACK}?"), response["Location"]
    return dict(parse_qsl(urlsplit(response["Location"]).query))
