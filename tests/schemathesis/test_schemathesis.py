"""The OpenAPI document against a real server: schemathesis, with three keys and memories of others in the database."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from api.tools import TOOLS
from tests.matrix import ANNAS, WANDAS, Side, tool_part
from tests.serving import ROOT, Place, Server, serving

HERE = Path(__file__).parent
PACKAGES = ROOT / ".venv" / "schemathesis"
MISSING = "Left out: schemathesis; `make schemathesis` installs it."
WITHIN = 600  # seconds for a run
MEMORIES = 8  # of each kind and side, so that those of the second side are none that messages name, such as brain_7
WRITING = {tool.name for tool in TOOLS if tool.writes}
BY_ID = {tool.name for tool in TOOLS if tool.name.startswith(("update", "delete", "promote", "restore", "select"))}

# Every check it has, but for two that judge by status alone; checks of hooks.py stand in their places. The contract
# answers 200 to a call with a bad entry, whose row says what is wrong: see wrong_values_are_refused. And a schema does
# not say everything, such as which cursors were given out, and that the given ones, open by their letter, have no
# further names: see right_values_are_taken. The examples are right in every respect, and go through all checks.
BY_THE_CONTRACT = ("--exclude-checks", "negative_data_rejection,positive_data_acceptance")
FUZZING = ("--phases", "examples,fuzzing", "--max-examples")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Where the server keeps its data."""
    if not PACKAGES.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    return Place(tmp_path_factory.mktemp("schemathesis"))


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Server]:
    """The server that all runs use."""
    with serving(place) as running:
        yield running


@pytest.fixture
def own(server: Server, place: Place) -> list[str]:
    """The IDs of anna's memories, made anew: of each kind some of two versions, of which the last one is deleted."""
    return _stored(server, place.key(), ANNAS)


@pytest.fixture
def foreign(server: Server, place: Place) -> list[str]:
    """The same of wanda."""
    return _stored(server, place.key(), WANDAS)


def _stored(server: Server, key: str, side: Side) -> list[str]:
    found = []
    for kind in ("longterm", "shortterm", "brain"):
        entry = side.entry if kind != "brain" else side.brain
        text = f"{side.word} {side.secret} mit Kündigungsfrist"
        more = {"titel": side.secret} if kind == "brain" else {"kurzbeschreibung": side.secret, "tags": [side.tag]}
        for _each in range(MEMORIES):
            stored = _called(server, key, side, f"insert_brain_{tool_part(kind)}", entry(text, **more))
            changed = {
                "ID": stored,
                **more,
                **({"inhalt": side.secret} if kind == "brain" else {"memory": side.secret}),
            }
            found.append(_called(server, key, side, f"update_brain_{tool_part(kind)}", changed))
        _called(server, key, side, f"delete_brain_{tool_part(kind)}", None, IDs=[found[-1]])
    return found


def _called(server: Server, key: str, side: Side, tool: str, entry: Any, **inhalt: Any) -> str:
    within = entry if tool_part("brain") == tool.partition("_brain_")[2] else {"memories": [entry]}
    inhalt = inhalt or within
    body = {"inhalt": {**inhalt, "nutzer": side.nutzer, "agent": side.agent}, "referenzfelder": {"ticket": side.secret}}
    status, answer = server.call(tool, key, json.dumps(body).encode())
    assert (status, answer["erfolg"]) == (200, True), answer
    return str(answer["daten"][0]["ID"])


def _ran(server: Server, key: str, folder: Path, *options: str, **told: Any) -> list[dict[str, Any]]:
    """What a run of schemathesis reached, after a look at what it says: it found nothing."""
    told = {"own": [], "foreign": [], "secrets": [], "tools": [tool.name for tool in TOOLS]} | told
    told["words"] = ["Kündigungsfrist", "gemeinsam", ANNAS.tag, WANDAS.tag, ANNAS.word]
    folder.mkdir()
    (folder / "told.json").write_text(json.dumps(told))
    environment = {"PYTHONPATH": str(PACKAGES), "BRAIN_RUN": str(folder), "SCHEMATHESIS_HOOKS": str(HERE / "hooks.py")}
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml"), "run"]
    command += [f"http://127.0.0.1:{server.port}/api/schema/", "--header", f"Authorization: Bearer {key}"]
    run = subprocess.run(
        [*command, "--no-color", "--checks", "all", *options],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN,
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr
    assert "No issues found" in run.stdout
    return [json.loads(line) for line in (folder / "seen.jsonl").read_text().splitlines()]


def _kept(place: Place, nutzer: str | None = None) -> list[Any]:
    """Every memory and version in the database, or those of a nutzer."""
    rows: list[Any] = []
    with closing(sqlite3.connect(Path(place.environment["BRAIN_DATA"]) / "brain.sqlite3")) as database:
        for kind in ("longterm", "shortterm", "brain"):
            for table in (f"memories_{kind}memory", f"memories_{kind}version"):
                where = "" if nutzer is None else f" WHERE nutzer = '{nutzer}'"
                rows += database.execute(f"SELECT '{table}', * FROM {table}{where} ORDER BY id").fetchall()
    return rows


def test_a_key_of_anna_finds_nothing_of_wanda_and_changes_nothing(
    server: Server, place: Place, own: list[str], foreign: list[str], tmp_path: Path
) -> None:
    before = _kept(place, WANDAS.nutzer)
    assert len(before) == 3 * (MEMORIES - 1 + 2 * MEMORIES + 1)
    key = place.key("--nutzer", "anna")
    seen = _ran(
        server,
        key,
        tmp_path / "run",
        *BY_THE_CONTRACT,
        "--max-examples",
        "5",
        own=own,
        foreign=foreign,
        secrets=[WANDAS.secret],
    )
    assert _kept(place, WANDAS.nutzer) == before
    named = {call["operation"] for call in seen if call["sent"]}
    assert named >= BY_ID - {"select_brain_tags"}
    assert {call["operation"] for call in seen if "nicht_gefunden" in call["fremd"]} >= BY_ID & WRITING


def test_a_key_that_reads_changes_nothing(
    server: Server, place: Place, own: list[str], foreign: list[str], tmp_path: Path
) -> None:
    before = _kept(place)
    key = place.key("--read-only")
    seen = _ran(server, key, tmp_path / "run", *BY_THE_CONTRACT, *FUZZING, "5", own=own)
    assert _kept(place) == before
    assert {call["status"] for call in seen if call["operation"] in WRITING} <= {400, 401, 403}
    assert {call["operation"] for call in seen if call["erfolg"]} >= {tool.name for tool in TOOLS} - WRITING


def test_a_key_without_limits_finds_what_the_document_says(
    server: Server, place: Place, own: list[str], foreign: list[str], tmp_path: Path
) -> None:
    key = place.key()
    seen = _ran(server, key, tmp_path / "examples", "--phases", "examples", "--checks", "all", own=own)
    seen += _ran(server, key, tmp_path / "run", *BY_THE_CONTRACT, *FUZZING, "10", own=own)
    assert {call["operation"] for call in seen if call["erfolg"]} >= {tool.name for tool in TOOLS}
