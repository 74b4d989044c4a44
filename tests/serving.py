"""A real server for tests: `manage.py up` in a place of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from django.db import connection

ROOT = Path(__file__).parent.parent
MANAGE = [sys.executable, "manage.py"]
STOP_SECONDS = 10


class Place:
    """Where a server keeps its data: an empty folder, and on PostgreSQL an empty database."""

    def __init__(self, folder: Path) -> None:
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("BRAIN_")}
        self.environment |= {"BRAIN_DATA": str(folder / "data"), "BRAIN_WORKERS": "2"}
        self.log = folder / "log"
        if connection.vendor == "postgresql":
            given = urlsplit(os.environ["DATABASE_URL"])
            name = f"serving_{os.getpid()}_{time.monotonic_ns()}"
            with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
                server.execute(f"CREATE DATABASE {name}")
            self.environment["DATABASE_URL"] = urlunsplit(given._replace(path=f"/{name}"))

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The outcome of a command."""
        return subprocess.run(
            [*MANAGE, *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def key(self, *options: str) -> str:
        """A new access key."""
        made = self.manage("create_key", "anna", "--json", *options)
        assert made.returncode == 0, made.stderr
        told: dict[str, str] = json.loads(made.stdout)
        assert told["name"] == "anna"
        return told["key"]


class Server:
    """A running `manage.py up`."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        assert process.stdout is not None
        self.process = process
        self.port = port
        self.lines: list[str] = []
        for line in process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith(("Ready", "Not ready")):
                break

    def workers(self) -> list[int]:
        """The process IDs of all its descendants."""
        found, unseen = [], [self.process.pid]
        while unseen:
            with suppress(FileNotFoundError):
                pid = unseen.pop()
                for task in Path(f"/proc/{pid}/task").iterdir():
                    children = [int(child) for child in (task / "children").read_text().split()]
                    found += children
                    unseen += children
        return found

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and JSON of an answer, over a connection of its own."""
        http = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            http.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            response = http.getresponse()
            return response.status, json.loads(response.read())
        finally:
            http.close()

    def call(self, tool: str, key: str, body: Any = None, **inhalt: Any) -> tuple[int, Any]:
        """Status and JSON of a call; a body that is given is sent as it is, an iterable in chunks."""
        if body is None:
            body = json.dumps({"inhalt": {"nutzer": "anna", "agent": "planer", **inhalt}}).encode()
        headers = {"Authorization": f"Bearer {key}", "Content_Type": "application/json"}
        return self.request("POST", f"/api/tools/{tool}/", body, **headers)

    def stop(self) -> float:
        """Ask it to stop; the seconds that it took."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(STOP_SECONDS)
        return time.monotonic() - started


def runs(pid: int) -> bool:
    """Whether the process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


@contextmanager
def serving(place: Place, host: str = "127.0.0.1") -> Iterator[Server]:
    """Run `manage.py up` in this place until it is ready, and stop it in the end."""
    port = free_port()
    with (
        place.log.open("ab") as log,
        subprocess.Popen(
            [*MANAGE, "up", "--host", host, "--port", f"{port}"],
            cwd=ROOT,
            env=place.environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            server = Server(process, port)
            assert server.lines, "it ended at once"
            assert server.lines[-1].startswith("Ready"), server.lines
            yield server
            assert "Traceback" not in place.log.read_text()
        finally:
            if process.poll() is None:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(STOP_SECONDS)
                process.kill()
