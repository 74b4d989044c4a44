"""The official Inspector, on its command line: what it finds strange, a client may refuse."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from api.tools import TOOLS
from tests.conftest import note
from tests.node import MODULES, node
from tests.serving import ROOT, Place, Server

PROGRAM = MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
INSERT = "insert_brain_longterm_memory"
Inspect = Callable[..., Any]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs it, with a home of its own."""
    program, home = [node(), str(PROGRAM), "--cli"], tmp_path_factory.mktemp("home")

    def outcome(*arguments: str, method: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*program, *arguments, "--method", method],
            env={"HOME": str(home)},
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return outcome


@pytest.fixture(params=["http-legacy", "http-modern", "stdio-legacy", "stdio-modern"])
def inspect(request: pytest.FixtureRequest, run: Callable[..., Any], server: Server, place: Place, key: str) -> Inspect:
    """What a method told it, by either way and in either era."""
    transport, _dash, era = request.param.partition("-")
    if transport == "http":
        url = f"http://127.0.0.1:{server.port}/mcp"
        way = ["--transport", "http", "--server-url", url, "--header", f"Authorization: Bearer {key}"]
    else:
        names = ("BRAIN_DATA", "DATABASE_URL")
        given = {"BRAIN_KEY": key} | {name: place.environment[name] for name in names if name in place.environment}
        way = [sys.executable, str(ROOT / "manage.py"), "mcp_stdio"]
        way += [part for name, value in given.items() for part in ("-e", f"{name}={value}")]

    def told(method: str, *arguments: str) -> Any:
        done = run(*way, "--protocol-era", era, *arguments, method=method)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return told


def test_it_lists_and_calls_the_tools(inspect: Inspect) -> None:
    assert [tool["name"] for tool in inspect("tools/list")["tools"]] == [tool.name for tool in TOOLS]
    inhalt = {"nutzer": "anna", "agent": "planer", "memories": [note(memory="Größe 🙂 𠮷")]}
    result = inspect("tools/call", "--tool-name", INSERT, "--tool-arg", f"inhalt={json.dumps(inhalt)}")
    assert result["structuredContent"]["erfolg"] is True


def test_the_portable_schemas_give_it_nothing_to_warn_of(run: Callable[..., Any], server: Server, key: str) -> None:
    url = f"http://127.0.0.1:{server.port}/mcp?schema=portable"
    way = ["--transport", "http", "--server-url", url, "--header", f"Authorization: Bearer {key}"]
    done = run(*way, "--strict", method="tools/list")
    assert (done.returncode, done.stderr.strip()) == (0, "")


def test_a_wrong_key_makes_it_say_that_a_key_is_needed(run: Callable[..., Any], server: Server) -> None:
    way = ["--transport", "http", "--server-url", f"http://127.0.0.1:{server.port}/mcp"]
    done = run(*way, "--header", "Authorization: Bearer brk_wrong.key", "--stored-auth-only", method="tools/list")
    assert done.returncode != 0
    assert "auth_required" in done.stderr
