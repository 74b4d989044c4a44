"""What docs/clients.md says works: each block, taken from there, reaches the tools of a real server."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from typing import Any

import pytest

from api.tools import TOOLS
from tests.clients.conftest import PACKAGES, Client
from tests.serving import ROOT, Place, Server

TEXT = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8000"
KEY = "brk_…"
Lists = Callable[..., list[str]]


def block(client: str, language: str) -> str:
    """The one block in this language under the client's heading."""
    (found,) = re.findall(
        rf"^```{language}\n(.*?)^```",
        TEXT.split(f"\n## {client}\n")[1].split("\n## ")[0],
        flags=re.DOTALL | re.MULTILINE,
    )
    return str(found)


@pytest.fixture(scope="session")
def lists(python2: Client, server: Server, place: Place, key: str) -> Lists:
    """The tools that a client sees with these settings, once the blanks in them are filled in."""

    def ask(**settings: Any) -> list[str]:
        text = json.dumps(settings, ensure_ascii=False)
        text = text.replace(ADDRESS, f"http://127.0.0.1:{server.port}").replace("/path/to/brain/.venv", sys.prefix)
        settings = json.loads(text.replace("/path/to/brain", str(ROOT)).replace(KEY, key))
        if "env" in settings:
            settings["env"] = place.environment | settings["env"]
        python2.ask("connect", era="auto", **settings)
        return [tool["name"] for tool in python2.ask("tools")["tools"]]

    return ask


EVERYTHING = [tool.name for tool in TOOLS]


def test_the_command_for_claude_code(lists: Lists) -> None:
    command = shlex.split(block("Claude Code", "sh").replace("$BRAIN_KEY", KEY))
    assert command[:5] == ["claude", "mcp", "add", "--transport", "http"]
    name, url, option, header = command[5:]  # the option takes all that follows, so it stands last
    assert (name, option) == ("brain", "--header")
    assert lists(url=url, headers=dict([header.split(": ")])) == EVERYTHING


@pytest.mark.parametrize(
    ("client", "servers", "reference"),
    [
        ("Claude Code", "mcpServers", "${BRAIN_KEY}"),
        ("Cursor", "mcpServers", "${env:BRAIN_KEY}"),
        ("VS Code", "servers", "${input:brain-key}"),
    ],
)
def test_the_file_for_a_client_that_calls_the_address(lists: Lists, client: str, servers: str, reference: str) -> None:
    settings = json.loads(block(client, "json"))
    entry = settings[servers]["brain"]
    assert entry.pop("type", "http") == "http"
    assert [f"${{input:{asked['id']}}}" for asked in settings.get("inputs", [])] in ([], [reference])
    entry["headers"] = {name: value.replace(reference, KEY) for name, value in entry["headers"].items()}
    assert lists(**entry) == EVERYTHING


def test_the_file_for_claude_desktop(lists: Lists) -> None:
    entry = json.loads(block("Claude Desktop", "json"))["mcpServers"]["brain"]
    assert entry["env"] == {"BRAIN_KEY": KEY}
    assert lists(**entry, cwd="/") == EVERYTHING


def test_the_command_and_the_file_for_codex(lists: Lists) -> None:
    entry = tomllib.loads(block("Codex", "toml"))["mcp_servers"]["brain"]
    command = shlex.split(block("Codex", "sh"))
    assert command[3:] == ["brain", "--url", entry["url"], "--bearer-token-env-var", entry["bearer_token_env_var"]]
    assert entry["bearer_token_env_var"] == "BRAIN_KEY"
    assert lists(url=entry["url"], headers={"Authorization": f"Bearer {KEY}"}) == EVERYTHING


def test_the_address_for_gemini_models(python2: Client, lists: Lists) -> None:
    (url,) = re.findall(r"`(http://\S+\?\S+)`", TEXT)
    assert lists(url=url, headers={"Authorization": f"Bearer {KEY}"}) == EVERYTHING
    assert '"type": [' not in json.dumps(python2.ask("tools"))


@pytest.mark.usefixtures("lists")
def test_the_program_of_ones_own(server: Server, key: str) -> None:
    program = block("Programs of your own", "python").replace(ADDRESS, f"http://127.0.0.1:{server.port}")
    environment = os.environ | {"BRAIN_KEY": key, "PYTHONPATH": str(PACKAGES / "python2")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert "'tool': 'search_brain', 'erfolg': True" in done.stdout, done.stderr


def test_no_address_holds_a_key() -> None:
    for address in re.findall(r"https?://[^\s\"`]+", TEXT):
        assert "?" not in address or address.endswith("?schema=portable")
        assert "brk_" not in address
