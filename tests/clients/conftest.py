"""A server and the clients that people use with it, each in a process of its own."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.node import NPM, node
from tests.serving import ROOT, Place, Server, serving

DRIVERS = Path(__file__).parent / "drivers"
PACKAGES = ROOT / ".venv"
WITHIN = 60  # seconds; an answer that takes longer does not come


class Failed(Exception):
    """What a client raised; `code` is that of the protocol, if it has one."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(told["failed"])
        self.code = told["code"]


class Client:
    """A client in its process: a wish a line in, what came of it a line out."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def ask(self, do: str, **wish: Any) -> Any:
        """What came of the wish. Raises Failed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": do, **wish}).encode() + b"\n")
        self.process.stdin.flush()
        assert select.select([self.process.stdout], [], [], WITHIN)[0], "it does not answer"
        line = self.process.stdout.readline()
        assert line, "it ended"
        told = json.loads(line)
        if isinstance(told, dict) and "failed" in told:
            raise Failed(told)
        return told

    def call(self, name: str, **inhalt: Any) -> Any:
        """The result of a call that anna's planner makes."""
        arguments = {"inhalt": {"nutzer": "anna", "agent": "planer", **inhalt}}
        result = self.ask("call", name=name, arguments=arguments)
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result

    def answer(self, name: str, **inhalt: Any) -> Any:
        """The envelope's answer to a call that is executed."""
        result = self.call(name, **inhalt)
        assert not result.get("isError"), result
        return result["structuredContent"]


class Way(NamedTuple):
    """A client, how it reaches the server, and what it is to do about the eras; `version` is what comes of it."""

    client: str
    transport: str
    era: str
    version: str

    def __str__(self) -> str:
        return "-".join(self[:3])


LEGACY, MODERN = "2025-11-25", "2026-07-28"
OF_OLD, OF_BOTH = [("legacy", LEGACY)], [("legacy", LEGACY), ("auto", MODERN), (MODERN, MODERN)]
ERAS = {"python1": OF_OLD, "python2": OF_BOTH, "typescript1": OF_OLD, "typescript2": OF_BOTH}
WAYS = [
    Way(client, transport, era, version)
    for client, eras in ERAS.items()
    for transport in ("http", "stdio")
    for era, version in eras
]


def _command(client: str) -> tuple[list[str], dict[str, str]]:
    """What starts a client's driver, and its environment. Leaves the test out where the client is not installed."""
    if client.startswith("typescript"):
        return [node(), str(NPM / "drivers" / f"{client}.js")], {}
    packages = PACKAGES / client
    if not packages.exists():
        told = f"Left out: the client {client} of MCP; `make clients` installs it."
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)
    return [sys.executable, str(DRIVERS / f"{client}.py")], {"PYTHONPATH": str(packages)}


@pytest.fixture(scope="session")
def started() -> Iterator[Callable[[str], Client]]:
    """Starts a client, once."""
    running: dict[str, Client] = {}

    def start(client: str) -> Client:
        if client not in running:
            command, environment = _command(client)
            running[client] = Client(
                subprocess.Popen(
                    command, env=os.environ | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/"
                )
            )
        return running[client]

    yield start
    for client in running.values():
        client.process.communicate(timeout=WITHIN)


@pytest.fixture(scope="session")
def python2(started: Callable[[str], Client]) -> Client:
    """The newest client of all."""
    return started("python2")


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Where the server keeps its data."""
    return Place(tmp_path_factory.mktemp("clients"))


@pytest.fixture(scope="session")
def server(place: Place) -> Iterator[Server]:
    """The one server that all clients use."""
    with serving(place) as running:
        yield running


@pytest.fixture(scope="session")
def key(server: Server, place: Place) -> str:
    """A key that may do everything."""
    return place.key()


@pytest.fixture(scope="session")
def reading_key(server: Server, place: Place) -> str:
    """A key that may read."""
    return place.key("--read-only")


@pytest.fixture(scope="session")
def reach(server: Server, place: Place) -> Callable[[Way, str], dict[str, Any]]:
    """Tells a client how to reach the server on its way, with a key."""

    def told(way: Way, key: str) -> dict[str, Any]:
        if way.transport == "http":
            headers = {"Authorization": f"Bearer {key}"}
            return {"url": f"http://127.0.0.1:{server.port}/mcp", "headers": headers, "era": way.era}
        return {
            "command": sys.executable,
            "args": [str(ROOT / "manage.py"), "mcp_stdio"],
            "env": place.environment | {"BRAIN_KEY": key},
            "era": way.era,
        }

    return told


@pytest.fixture(scope="session", params=WAYS, ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    """A client that is installed, a transport and an era, of all that there are."""
    found: Way = request.param
    _command(found.client)
    return found


@pytest.fixture(scope="session")
def client(way: Way, started: Callable[[str], Client], reach: Callable[..., dict[str, Any]], key: str) -> Client:
    """The client, connected on its way."""
    connected = started(way.client)
    told = connected.ask("connect", **reach(way, key))
    assert told.get("version", way.version) == way.version  # one of them does not tell it
    if way.era != MODERN or told.get("server"):  # a client that is bound to an era does not ask
        assert told["server"] == "brain"
        assert "search_brain" in told["instructions"]
    return connected
