"""What this server tells about itself, and what clients tell about themselves in a document."""

import json
import socket
from io import BytesIO
from typing import Any

import pytest
import urllib3
from django.core.cache import cache
from oauth2_provider.cimd import CIMDError

from oauth.documents import Fetcher
from oauth.models import Client
from tests.oauth.connector import CALLBACK, ISSUER, RESOURCE, Connector, key, registered

pytestmark = pytest.mark.django_db
DOCUMENT = "https://claude.ai/oauth/mcp-oauth-client-metadata"


class Web:
    """A stand-in for the web: names with their addresses, and one document at each address."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.addresses = {"claude.ai": "160.79.104.10", "chatgpt.com": "104.18.32.47", "inside.example.org": "10.0.0.1"}
        self.documents: dict[str, Any] = {}
        self.fetched: list[str] = []
        patch.setattr(socket, "getaddrinfo", self._resolve)
        patch.setattr(urllib3.HTTPSConnectionPool, "urlopen", self._answer)

    def offer(self, address: str, **changes: Any) -> str:
        """Put a document at an address."""
        self.documents[address] = {
            "client_id": address,
            "client_name": "Claude",
            "redirect_uris": [CALLBACK],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        } | changes
        return address

    def _resolve(self, host: str, port: int, **_options: Any) -> Any:
        if host not in self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (self.addresses[host], port))]

    def _answer(self, _method: str, path: str, *, headers: dict[str, str], **options: Any) -> urllib3.HTTPResponse:
        assert options["redirect"] is False
        address = f"https://{headers['Host']}{path}"
        self.fetched.append(address)
        body = json.dumps(self.documents[address]).encode()
        return urllib3.HTTPResponse(
            BytesIO(body), status=200, headers={"Content-Type": "application/json"}, preload_content=False
        )


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Web:
    """The web, fresh."""
    cache.clear()
    return Web(monkeypatch)


def by_document(address: str = DOCUMENT) -> Connector:
    """A client that is known by its document alone."""
    return Connector(Client(client_id=address))


def test_a_refused_call_tells_the_way_in(client: Any) -> None:
    for path in ("/mcp", "/api/tools/"):
        response = client.post(path, {}, content_type="application/json")
        assert response.status_code == 401
        assert response["WWW-Authenticate"] == (
            'Bearer realm="brain", '
            f'resource_metadata="{ISSUER}/.well-known/oauth-protected-resource/mcp", scope="brain"'
        )


def test_the_resource_names_its_authorization_server(client: Any) -> None:
    for path in ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"):
        response = client.get(path)
        assert response["Access-Control-Allow-Origin"] == "*"
        assert response.json() == {
            "resource": RESOURCE,
            "resource_name": "Brain",
            "authorization_servers": [ISSUER],
            "scopes_supported": ["brain"],
            "bearer_methods_supported": ["header"],
        }


def test_the_authorization_server_tells_what_it_takes(client: Any) -> None:
    told = client.get("/.well-known/oauth-authorization-server").json()
    assert told["issuer"] == ISSUER
    assert told["authorization_endpoint"] == f"{ISSUER}/oauth/authorize"
    assert told["token_endpoint"] == f"{ISSUER}/oauth/token"
    assert told["code_challenge_methods_supported"] == ["S256"]
    assert told["response_types_supported"] == ["code"]
    assert told["grant_types_supported"] == ["authorization_code", "refresh_token"]
    # claude.ai uses its document only where both stand.
    assert told["client_id_metadata_document_supported"] is True
    assert "none" in told["token_endpoint_auth_methods_supported"]
    assert told["authorization_response_iss_parameter_supported"] is True
    assert "registration_endpoint" not in told


def test_what_there_is_not_is_not_found_in_json(client: Any) -> None:
    for path in ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server/mcp"):
        response = client.get(path)
        assert response.status_code == 404
        assert response.json()["fehler"]["code"] == "unbekannte_adresse"


def test_a_client_is_known_by_its_document(web: Web) -> None:
    web.offer(DOCUMENT)
    claude = by_document()
    page = claude.ask().content.decode()
    assert "<strong>claude.ai</strong>" in page
    assert claude.works(claude.connected(key())["access_token"])
    assert web.fetched == [DOCUMENT]


def test_chatgpt_says_that_it_can_do_without_a_key_of_its_own(web: Web) -> None:
    methods = {
        "token_endpoint_auth_method": "private_key_jwt",
        "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
    }
    address = web.offer("https://chatgpt.com/oauth/client.json", client_name="ChatGPT", **methods)
    chatgpt = by_document(address)
    assert chatgpt.works(chatgpt.connected(key())["access_token"])
    web.offer(DOCUMENT, token_endpoint_auth_method="private_key_jwt")
    chatgpt.client = Client(client_id=DOCUMENT)
    assert chatgpt.ask().status_code == 400


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "https://claude.ai/another"},
        {"client_secret": "x"},
        {"redirect_uris": []},
        {"redirect_uris": None},
        {"redirect_uris": [1]},
        {"redirect_uris": ["http://evil.example.org/"]},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"grant_types": ["implicit"]},
    ],
)
def test_a_document_that_is_not_right_is_no_client(web: Web, changes: Any) -> None:
    web.offer(DOCUMENT, **changes)
    claude = by_document()
    assert claude.ask().status_code == 400


def test_a_fault_does_not_redirect_to_where_a_document_says(web: Web) -> None:
    web.offer(DOCUMENT)
    response = by_document().ask(code_challenge=None)
    assert response.status_code == 400
    assert "invalid_request" in response.content.decode()


@pytest.mark.parametrize(
    "address",
    ["https://inside.example.org/c", "https://nowhere.example.org/c", "http://claude.ai/c", "https://claude.ai"],
)
def test_nothing_is_fetched_from_inside(web: Web, address: str) -> None:
    assert by_document(address).ask().status_code == 400
    assert web.fetched == []


def test_only_whoever_is_signed_in_has_documents_fetched(web: Web) -> None:
    web.offer(DOCUMENT)
    claude = by_document()
    claude.operator.logout()
    assert claude.ask().status_code == 302
    assert claude.redeem("x").json()["error"] == "invalid_client"
    assert claude.http.post("/oauth/revoke", {"token": "x", "client_id": DOCUMENT}).status_code == 401
    assert web.fetched == []
    assert not Client.objects.exists()


def test_a_document_does_not_take_the_place_of_a_client_that_was_entered(web: Web) -> None:
    web.offer(DOCUMENT, redirect_uris=["https://evil.example.org/"])
    entered = registered(client_id=DOCUMENT)
    assert Connector(entered).ask().status_code == 200
    assert web.fetched == []


def test_the_fetcher_of_the_toolkit_refuses_what_is_large(web: Web) -> None:
    web.offer(DOCUMENT, client_name="x" * 20_000)
    with pytest.raises(CIMDError):
        Fetcher().fetch(DOCUMENT)


def test_a_client_on_this_machine_may_listen_at_any_port(web: Web) -> None:
    web.offer(DOCUMENT, redirect_uris=["http://localhost/callback", "http://127.0.0.1/callback", "cursor://callback"])
    page = by_document().ask(redirect_uri="http://localhost:54321/callback")
    assert "http://localhost:54321" in page.content.decode()
    assert "http://localhost:54321" in page["Content-Security-Policy"]


def test_the_tools_are_described_as_ever(client: Any) -> None:
    described = client.get("/api/schema/", headers={"Accept": "application/json"}).json()
    assert described["components"]["securitySchemes"]["Zugangsschluessel"]["scheme"] == "bearer"
    assert described["paths"]["/api/tools/"]["post"]["security"] == [{"Zugangsschluessel": []}]
