"""Drives the official Python SDK, 2.x, in the era of the protocol that is wished for."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from driving import Methods, Wish, drive
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp_types import PromptReference


@asynccontextmanager
async def connected(wish: Wish) -> AsyncIterator[tuple[Any, Methods]]:
    """What the server said of itself, and what can be asked of it."""
    async with AsyncExitStack() as stack:
        if "command" in wish:
            server: Any = StdioServerParameters(
                command=wish["command"], args=wish["args"], env=wish["env"], cwd=wish.get("cwd")
            )
        else:
            http = await stack.enter_async_context(create_mcp_http_client(headers=wish["headers"]))
            server = streamable_http_client(wish["url"], http_client=http)
        client = await stack.enter_async_context(Client(server, mode=wish["era"]))
        info = client.server_info
        told = {
            "version": client.protocol_version,
            "server": info.name if info else None,
            "instructions": client.instructions,
        }
        yield (
            told,
            {
                "tools": lambda _wish: client.list_tools(),
                "call": lambda wish: client.call_tool(wish["name"], wish["arguments"]),
                "resources": lambda _wish: client.list_resources(cache_mode="bypass"),
                "read": lambda wish: client.read_resource(wish["uri"]),
                "prompt": lambda wish: client.get_prompt(wish["name"], wish["arguments"]),
                "complete": lambda wish: client.complete(
                    PromptReference(type="ref/prompt", name=wish["prompt"]),
                    {"name": wish["argument"], "value": wish["value"]},
                ),
            },
        )


if __name__ == "__main__":
    drive(connected)
