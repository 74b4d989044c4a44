"""MCP over a pipe: a real process, a message a line."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from memories.models import AccessKey
from tests.conftest import Agent
from tests.doors import BRAIN, NAMES, inhalt_for
from tests.mcp import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MODERN,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    message,
    meta,
)
from tests.trouble import database_url

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).parent.parent
COMMAND = [sys.executable, "manage.py", "mcp_stdio"]
INSERT = "insert_brain_longterm_memory"
LIMIT = 20_000


def environment(key: str) -> dict[str, str]:
    """What the process knows: the tests' database and this key. Its own locale is no UTF-8."""
    known = {name: value for name, value in os.environ.items() if name != "BRAIN_KEY"}
    return known | {"DATABASE_URL": database_url(), "BRAIN_KEY": key, "BRAIN_LIMIT_BODY": f"{LIMIT}", "LC_ALL": "C"}


class Pipe:
    """A running `manage.py mcp_stdio`."""

    def __init__(self, key: str) -> None:
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen(COMMAND, cwd=ROOT, env=environment(key), **pipes)

    def write(self, line: bytes) -> None:
        """Send a line as it is."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> Any:
        """The next line that comes."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline().decode("utf-8"))

    def ask(self, body: Any) -> Any:
        """The line that answers this one; bytes are sent as they are, everything else as JSON."""
        self.write(body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode())
        return self.read()

    def end(self) -> tuple[bytes, bytes]:
        """What is left in both outputs when the input ends; it ends in order then."""
        rest = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, rest
        return rest


@pytest.fixture
def pipe(agent_with: Callable[..., Agent]) -> Iterator[Pipe]:
    """A pipe of anna's."""
    running = Pipe(agent_with("anna").key)
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.communicate()


def test_both_eras_are_answered_on_one_pipe_and_nothing_else_is_written(
    pipe: Pipe, agent_with: Callable[..., Agent]
) -> None:
    agent = agent_with("anna")
    told = pipe.ask(message("server/discover", {"_meta": meta()}, id_="ä"))
    assert (told["id"], told["result"]["supportedVersions"][0]) == ("ä", MODERN)
    told = pipe.ask(message("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}}))
    assert told["result"]["protocolVersion"] == "2025-06-18"
    pipe.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
    pipe.write(b"")
    told = pipe.ask(message("tools/list"))
    assert [tool["name"] for tool in told["result"]["tools"]] == NAMES
    assert "resultType" not in told["result"]
    assert pipe.ask(message("tools/list", {"_meta": meta()}))["result"]["cacheScope"] == "private"
    call = {"name": "insert_brain_memory", "arguments": {"inhalt": {**inhalt_for("insert_brain_memory"), **BRAIN}}}
    call["arguments"]["inhalt"]["inhalt"] = "Zeile eins\nGrüße 中文 🙂"
    result = pipe.ask(message("tools/call", call))["result"]
    assert result["isError"] is False
    kennung = result["structuredContent"]["daten"][0]["ID"]
    (row,) = agent.call("select_brain_memory", IDs=[kennung])["daten"]
    assert row["inhalt"] == "Zeile eins\nGrüße 中文 🙂"
    (version,) = agent.call("select_brain_history", ID=kennung)["daten"]
    assert (version["tuer"], version["schluessel"]) == ("mcp", "anna")
    (read,) = pipe.ask(message("resources/read", {"uri": kennung.replace("_", "://brain/")}))["result"]["contents"]
    assert "Grüße 中文 🙂" in read["text"]
    assert pipe.end() == (b"", b"")


def test_faults_are_answered_and_end_nothing(pipe: Pipe) -> None:
    for line, code in (
        (b"{", PARSE_ERROR),
        (b"\xff", PARSE_ERROR),
        (b'{"jsonrpc": "2.0", "jsonrpc": "2.0", "id": 1, "method": "ping"}', PARSE_ERROR),
        (b"NaN", INVALID_REQUEST),
        (b"[]", INVALID_REQUEST),
        (b"[" * 10_000, INVALID_REQUEST),
        (b"x" * (LIMIT + 1), INVALID_REQUEST),
        (b"x" * (3 * LIMIT), INVALID_REQUEST),
        (json.dumps(message("nothing")).encode(), METHOD_NOT_FOUND),
        (json.dumps(message("tools/call", {"name": "nothing"})).encode(), INVALID_PARAMS),
        (json.dumps(message("tools/list", {"_meta": meta(protocolVersion="x")})).encode(), UNSUPPORTED_VERSION),
        (json.dumps(message("\ud800")).encode(), METHOD_NOT_FOUND),
    ):
        told = pipe.ask(line)
        assert told["error"]["code"] == code, line[:80]
    batch = pipe.ask([message("ping", id_=1), {"jsonrpc": "2.0", "method": "x"}, message("ping", id_=2)])
    assert [each["id"] for each in batch] == [1, 2]
    assert pipe.ask(message("ping")) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert b"Traceback" not in pipe.end()[1]


def test_a_key_that_is_revoked_meanwhile_is_out_at_once(pipe: Pipe) -> None:
    assert "result" in pipe.ask(message("ping"))
    AccessKey.objects.get(name="anna").revoke(timezone.now())
    told = pipe.ask(message("ping"))
    assert (told["id"], told["error"]["data"]["code"]) == (1, "nicht_angemeldet")
    assert pipe.end() == (b"", b"")


def test_a_key_may_wish_for_portable_schemas(pipe: Pipe) -> None:
    assert '"type": ["string", "integer"]' in json.dumps(pipe.ask(message("tools/list")))
    AccessKey.objects.update(portable=True)
    assert '"type": [' not in json.dumps(pipe.ask(message("tools/list")))


@pytest.mark.parametrize("key", ["", "brain_nothing", "ä"])
def test_without_a_usable_key_it_does_not_start(db: None, key: str) -> None:
    ended = subprocess.run(
        COMMAND, cwd=ROOT, env=environment(key), input=b"{}\n", capture_output=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert b"BRAIN_KEY" in ended.stderr
    assert b"Traceback" not in ended.stderr
