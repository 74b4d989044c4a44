"""Drives the official Python SDK, 1.x."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from driving import Methods, Wish, drive
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.types import PromptReference


@asynccontextmanager
async def streams(wish: Wish) -> AsyncIterator[Any]:
    """What the client reads from and writes to."""
    if "command" in wish:
        server = StdioServerParameters(command=wish["command"], args=wish["args"], env=wish["env"], cwd=wish.get("cwd"))
        async with stdio_client(server) as pair:
            yield pair
    else:
        async with (
            create_mcp_http_client(headers=wish["headers"]) as http,
            streamable_http_client(wish["url"], http_client=http) as (read, write, _session_id),
        ):
            yield read, write


@asynccontextmanager
async def connected(wish: Wish) -> AsyncIterator[tuple[Any, Methods]]:
    """What the server said of itself, and what can be asked of it."""
    async with streams(wish) as (read, write), ClientSession(read, write) as session:
        told = await session.initialize()
        version = {"version": told.protocolVersion, "server": told.serverInfo.name, "instructions": told.instructions}
        yield (
            version,
            {
                "tools": lambda _wish: session.list_tools(),
                "call": lambda wish: session.call_tool(wish["name"], wish["arguments"]),
                "resources": lambda _wish: session.list_resources(),
                "read": lambda wish: session.read_resource(wish["uri"]),
                "prompt": lambda wish: session.get_prompt(wish["name"], wish["arguments"]),
                "complete": lambda wish: session.complete(
                    PromptReference(type="ref/prompt", name=wish["prompt"]),
                    {"name": wish["argument"], "value": wish["value"]},
                ),
            },
        )


if __name__ == "__main__":
    drive(connected)
