"""`manage.py mcp_stdio` as a client starts it: a process, a pipe, a key in the environment."""

import json
import os
import subprocess
import sys
from codecs import BOM_UTF8
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from api.mcp.protocol import LEGACY
from tests.serving import ROOT, Place

STDIO = [sys.executable, str(ROOT / "manage.py"), "mcp_stdio"]
LOUD = """
import logging, os, django
django.setup()
from django.core.management import call_command
from api.mcp.protocol import Method
from api.mcp.server import SERVER

def loud(request):
    print("printed")
    os.system("echo printed by another program")
    logging.getLogger("loud").warning("logged")
    return {"tools": []}

SERVER.methods["tools/list"] = Method(loud, cached=True)
call_command("mcp_stdio")
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Where Brain keeps its data, with everything migrated."""
    made = Place(tmp_path_factory.mktemp("data"))
    assert made.manage("migrate").returncode == 0
    return made


@pytest.fixture(scope="module")
def key(place: Place) -> str:
    """A key that may do everything."""
    return place.key()


def spoken(
    place: Place, lines: Sequence[Any], command: Sequence[str] = STDIO, **environment: str
) -> tuple["subprocess.CompletedProcess[bytes]", list[Any]]:
    """The process that was told these lines, started elsewhere, and its answers; what is no bytes is sent as JSON."""
    told = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    done = subprocess.run(
        command, input=told, env=place.environment | environment, cwd="/", capture_output=True, check=False, timeout=60
    )
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def request(method: str, number: int, **params: Any) -> dict[str, Any]:
    """A request of a legacy client."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


INITIALIZE = request("initialize", 1, protocolVersion=LEGACY[0], capabilities={}, clientInfo={"name": "c"})


def test_line_ends_and_byte_order_mark_of_windows_are_taken(place: Place, key: str) -> None:
    lines = [BOM_UTF8 + json.dumps(INITIALIZE).encode() + b"\r\n", b"\r\n", json.dumps(request("ping", 2)).encode()]
    _done, answers = spoken(place, lines, BRAIN_KEY=f" {key}\r")
    assert [answer["id"] for answer in answers] == [1, 2]
    assert "result" in answers[0]


def test_letters_travel_whatever_the_locale_says(place: Place, key: str) -> None:
    inhalt = {"nutzer": "anna", "agent": "planer", "suche": "Größe 🙂"}
    call = request("tools/call", 1, name="search_brain", arguments={"inhalt": inhalt, "referenzfelder": {"von": "𠮷"}})
    line = json.dumps(call, ensure_ascii=False).encode() + b"\n"
    _done, answers = spoken(place, [line], BRAIN_KEY=key, LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert answers[0]["result"]["structuredContent"]["referenzfelder"] == {"von": "𠮷"}


def test_nothing_but_answers_goes_to_standard_output(place: Place, key: str) -> None:
    environment = {"BRAIN_KEY": key, "DJANGO_SETTINGS_MODULE": "brain.settings", "PYTHONPATH": str(ROOT)}
    done, answers = spoken(place, [request("tools/list", 1)], [sys.executable, "-c", LOUD], **environment)
    assert answers == [{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}]
    assert all(word in done.stderr for word in (b"printed\n", b"another program", b"logged"))


def test_a_client_that_goes_away_ends_it_quietly(place: Place, key: str) -> None:
    reader, writer = os.pipe()
    with subprocess.Popen(
        STDIO, stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.PIPE, env=place.environment | {"BRAIN_KEY": key}
    ) as process:
        os.close(writer)
        os.close(reader)
        _out, told = process.communicate(json.dumps(request("ping", 1)).encode() + b"\n", timeout=60)
    assert (process.returncode, told) == (0, b"")


def test_schemas_with_one_type_are_given_to_those_who_wish(place: Place, key: str) -> None:
    _done, answers = spoken(place, [request("tools/list", 1)], [*STDIO, "--portable"], BRAIN_KEY=key)
    assert '"type": [' not in json.dumps(answers)


@pytest.mark.parametrize("given", ["", "brk_unknown.key", "Schlüssel"])
def test_a_key_that_is_missing_or_wrong_is_told_before_anything_else(place: Place, given: str) -> None:
    done, answers = spoken(place, [INITIALIZE], BRAIN_KEY=given)
    assert (done.returncode, answers) == (1, [])
    assert b"BRAIN_KEY" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_key_is_not_told_again(place: Place) -> None:
    done, _answers = spoken(place, [INITIALIZE], BRAIN_KEY="brk_secret.secret")
    assert b"secret" not in done.stderr


def test_a_database_without_migrations_is_told(tmp_path: Path) -> None:
    done, answers = spoken(Place(tmp_path), [INITIALIZE], BRAIN_KEY="brk_any.key")
    assert (done.returncode, answers) == (1, [])
    assert b"make run" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_database_that_cannot_be_reached_is_told(place: Place) -> None:
    nowhere = "postgres://nobody@127.0.0.1:9/nothing"
    done, answers = spoken(place, [INITIALIZE], BRAIN_KEY="brk_any.key", DATABASE_URL=nowhere)
    assert (done.returncode, answers) == (1, [])
    assert b"Traceback" not in done.stderr
