"""Set up what is missing and serve: migrations, the first administrator, the server, one ready line."""

import multiprocessing
import os
import secrets
import socket
import threading
import time
import urllib.error
import urllib.request
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from granian import Granian
from granian.constants import Interfaces
from granian.log import LogLevels

from brain.logs import tell_of_threads
from memories.search import embedder, upkeep
from memories.search.worker import Worker

_READY_WITHIN = 60.0  # seconds
_ASK_EVERY = 0.1
_STOPPED_WITHIN = 5  # seconds; then workers that still wait for a client are ended


class Command(BaseCommand):
    """Run as often as you like: what is there already stays as it is."""

    help = "Migrates, makes the first administrator, and serves."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Where to listen."""
        parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="the port to listen on (default: 8000)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Set up, then serve until the process is told to stop."""
        host, port = options["host"], options["port"]
        self._refuse_taken_port(host, port)
        self._say(f"Database: {connection.vendor}, {connection.settings_dict['NAME']}")
        call_command("migrate", verbosity=0, interactive=False)
        self._say("Migrations: all applied")
        if upkeep.is_missing():
            self._say("Search index: making it, since this installation is older than the search")
            call_command("search_index", rebuild=True, stdout=self.stdout)
        self._first_administrator()
        self._start_embedding()
        connection.close()
        self._allow(host)
        # Forked workers would share this process's connections to the database and read each other's answers.
        multiprocessing.set_start_method("spawn", force=True)
        threading.Thread(target=self._tell_when_ready, args=(host, port), daemon=True).start()
        Granian(
            "brain.wsgi:application",
            address=host,
            port=port,
            interface=Interfaces.WSGI,
            workers=settings.BRAIN_WORKERS,
            blocking_threads=settings.BRAIN_THREADS,
            respawn_failed_workers=True,
            workers_kill_timeout=_STOPPED_WITHIN,
            log_access=False,
            log_level=LogLevels.warning,
        ).serve()

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _refuse_taken_port(self, host: str, port: int) -> None:
        """Two servers could listen on one port without noticing, and each would answer some of the calls."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except (OSError, OverflowError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                raise CommandError(f"Cannot listen on {host}:{port}: {reason}. Choose another --port.") from error

    def _first_administrator(self) -> None:
        """When nobody can sign in yet, make `admin`; a password that was not given is printed this once."""
        people = get_user_model().objects
        if people.filter(is_superuser=True).exists():
            self._say("Administrator: there is one already")
            return
        given = os.environ.get("BRAIN_ADMIN_PASSWORD", "")
        password = given or secrets.token_urlsafe(12)
        try:
            validate_password(password)
        except ValidationError as error:
            raise CommandError(f"BRAIN_ADMIN_PASSWORD: {' '.join(error.messages)}") from error
        people.create_superuser("admin", password=password)
        shown = "as given in BRAIN_ADMIN_PASSWORD" if given else f"{password}   (shown this once)"
        self._say(f"Administrator: admin, password: {shown}")

    def _start_embedding(self) -> None:
        """Have a thread of this process embed what comes without a vector; the workers have calls to answer."""
        serving = embedder.serving()
        if serving is not None:
            tell_of_threads()
            self._say(f"Embedder: {serving.name}")
            Worker(serving).start()

    def _allow(self, host: str) -> None:
        """Workers read the settings anew: the address that is listened on is one they may be called by."""
        if host not in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
            allowed = [*filter(None, os.environ.get("BRAIN_ALLOWED_HOSTS", "").split(",")), host]
            os.environ["BRAIN_ALLOWED_HOSTS"] = ",".join(dict.fromkeys(allowed))

    def _tell_when_ready(self, host: str, port: int) -> None:
        """Print the ready line once a worker really answers."""
        reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
        address = f"http://{reachable}:{port}"
        ask = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy cannot reach this machine's own
        until = time.monotonic() + _READY_WITHIN
        while time.monotonic() < until:
            try:
                with ask.open(f"{address}/readyz", timeout=5):
                    break
            except (urllib.error.URLError, OSError):
                time.sleep(_ASK_EVERY)
        else:
            self._say(f"Not ready after {_READY_WITHIN:.0f} seconds; the log above says why.")
            return
        self._say(
            f"Ready: admin {address}/admin/ (sign in as admin) · tools {address}/api/tools/ · docs {address}/api/docs/ "
            "· a key for an agent: python manage.py create_key NAME"
        )
