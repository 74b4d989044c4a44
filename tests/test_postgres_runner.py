"""What `python -m tests.postgres` promises: a server while the command runs, nothing of it afterwards."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RUNNER = [sys.executable, "-m", "tests.postgres"]
LOOK = """
import json, os, psycopg
with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    ask = lambda query: connection.execute(query).fetchone()[0]
    seen = {"version": ask("SELECT version()"), "data": ask("SHOW data_directory"), "upper": ask("SELECT upper('ä')")}
with open(seen["data"] + "/postmaster.pid") as file:
    print(json.dumps(seen | {"server": int(file.readline()), "command": os.getpid()}), flush=True)
"""
WAIT = "import time; time.sleep(60)"


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command beside a PostgreSQL; the variables given here come on top of our own."""
    return subprocess.run(
        [*RUNNER, *command],
        cwd=Path(__file__).parent.parent,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def finished() -> subprocess.CompletedProcess[str]:
    """Return a run whose command looked around and left with code 7; without PostgreSQL the test is skipped."""
    outcome = run(sys.executable, "-c", f"{LOOK}\nraise SystemExit(7)")
    if outcome.returncode == 0 and outcome.stderr.startswith("Left out"):
        pytest.skip("PostgreSQL is not installed")
    return outcome


def assert_nothing_is_left(seen: dict[str, Any]) -> None:
    """Check that the server and the command ended and that the temporary folder is gone."""
    for process in (seen["server"], seen["command"]):
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
    assert not Path(seen["data"]).parent.exists()


def test_the_exit_code_of_the_command_is_passed_on(finished: subprocess.CompletedProcess[str]) -> None:
    assert finished.returncode == 7, finished.stderr


def test_the_command_reaches_a_postgresql_that_knows_umlauts(finished: subprocess.CompletedProcess[str]) -> None:
    seen = json.loads(finished.stdout)
    assert int(seen["version"].removeprefix("PostgreSQL ").split(".")[0]) >= 15
    assert seen["upper"] == "Ä"


def test_a_failing_command_leaves_nothing_behind(finished: subprocess.CompletedProcess[str]) -> None:
    assert_nothing_is_left(json.loads(finished.stdout))


@pytest.mark.parametrize(
    ("number", "send"),
    [
        pytest.param(signal.SIGTERM, os.kill, id="SIGTERM"),
        pytest.param(signal.SIGINT, os.killpg, id="SIGINT-as-from-a-terminal"),
    ],
)
@pytest.mark.usefixtures("finished")
def test_a_signal_leaves_nothing_behind(number: signal.Signals, send: Callable[[int, int], None]) -> None:
    with subprocess.Popen(
        [*RUNNER, sys.executable, "-c", f"{LOOK}\n{WAIT}"],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as runner:
        assert runner.stdout is not None
        seen = json.loads(runner.stdout.readline())
        send(runner.pid, number)
        assert runner.wait(30) == 128 + number
    assert_nothing_is_left(seen)


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_without_postgresql_it_says_so_and_fails_only_in_ci(tmp_path: Path, ci: str, code: int) -> None:
    outcome = run(sys.executable, "-c", "print('ran')", BRAIN_TEST_POSTGRES_BIN=str(tmp_path), CI=ci)
    assert (outcome.returncode, outcome.stdout) == (code, "")
    assert outcome.stderr.startswith("Left out: no PostgreSQL 15 or newer was found")
