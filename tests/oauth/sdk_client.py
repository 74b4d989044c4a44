"""Connects with the OAuth client of the official Python SDK: `sdk_client.py <address of MCP> <client ID> <callback>`.

Writes the address that a person is sent to, reads where the person comes back to, and writes the tags that it then
finds: once, and once more when its token is no longer good and it has to renew it.
"""

import asyncio
import json
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mcp.client import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken


class Storage:
    """What the client keeps."""

    def __init__(self, client: OAuthClientInformationFull) -> None:
        self.client = client
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens."""
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull:
        """Who it is."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep who it is."""
        self.client = client_info


async def _send(address: str) -> None:
    print(address, flush=True)


async def _come_back() -> AuthorizationCodeResult:
    line = await asyncio.to_thread(sys.stdin.readline)
    answer = {name: values[0] for name, values in parse_qs(urlsplit(line.strip()).query).items()}
    return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer["iss"])


async def _connect(url: str, client_id: str, callback: str) -> None:
    metadata: dict[str, Any] = {"redirect_uris": [callback], "token_endpoint_auth_method": "none"}
    storage = Storage(OAuthClientInformationFull(client_id=client_id, **metadata))
    provider = OAuthClientProvider(url, OAuthClientMetadata(**metadata), storage, _send, _come_back)
    arguments = {"inhalt": {"nutzer": "anna", "agent": "planer"}}
    async with (
        create_mcp_http_client(auth=provider) as http,
        Client(streamable_http_client(url, http_client=http)) as mcp,
    ):
        for _time in range(2):
            result = await mcp.call_tool("select_brain_tags", arguments)
            token = storage.tokens.access_token if storage.tokens else None
            print(json.dumps({"answer": result.structured_content, "token": token}), flush=True)
            provider.context.token_expiry_time = 1  # long ago


if __name__ == "__main__":
    asyncio.run(_connect(*sys.argv[1:]))
