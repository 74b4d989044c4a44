"""MCP over a pipe, for desktop clients that start a program of their own."""

import os
import sys
from argparse import ArgumentParser
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError
from django.db import Error, close_old_connections, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from django.utils.translation import gettext as _

from api import jsonbody
from api.faults import as_fault
from api.mcp.protocol import Message, id_of, refused
from api.mcp.server import SERVER
from memories.errors import NotSignedIn, TooLarge
from memories.limits import limits
from memories.models import AccessKey
from memories.principal import Principal

KEY = "BRAIN_KEY"


class Command(BaseCommand):
    """`mcp_stdio`: a message a line, in and out; the key is looked up anew for each, so that a revoked one is out."""

    help = "Speaks MCP over standard input and output; the access key comes from the environment variable BRAIN_KEY."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What a client can wish for."""
        parser.add_argument("--portable", action="store_true", help="one type for each property in the tools' schemas")

    def handle(self, *args: Any, **options: Any) -> None:
        """Answer messages until the input ends, or nobody reads the answers any more."""
        key = os.environ.get(KEY, "").strip()
        _check(key)
        answers = _standard_output_alone()
        with suppress(BrokenPipeError, KeyboardInterrupt):
            for line in _lines(sys.stdin.buffer):
                reply = _reply(line, key, portable=options["portable"])
                if reply is not None:
                    answers.write(jsonbody.write(reply) + b"\n")
                    answers.flush()


def _check(key: str) -> None:
    """Tell the person who set it up what is missing. Raises CommandError."""
    if not key:
        raise CommandError(
            _("%(name)s is not set. Make a key with manage.py create_key NAME and put it into this variable.")
            % {"name": KEY}
        )
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            raise CommandError(_("The database lacks migrations: start Brain with make run, or run manage.py migrate."))
        _principal(key)
    except Error as error:
        raise CommandError(_("The database cannot be used: %(reason)s") % {"reason": error}) from error
    except NotSignedIn as fault:
        raise CommandError(f"{KEY}: {fault.meldung}") from fault


def _standard_output_alone() -> BinaryIO:
    """Standard output for the protocol alone: whatever else is printed goes to standard error from here on."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = sys.stderr
    return answers


def _lines(source: BinaryIO) -> Iterator[bytes | None]:
    """The lines that hold something; None for one that is longer than a body may be, which is passed over.

    Some programs on Windows begin with a byte order mark, which is no JSON.
    """
    most = limits().body
    begun = False
    while line := source.readline(most + 1):
        line, begun = line if begun else line.removeprefix(BOM_UTF8), True
        if len(line) > most:
            while line and not line.endswith(b"\n"):
                line = source.readline(most)
            yield None
        elif line.strip():
            yield line


def _reply(line: bytes | None, key: str, *, portable: bool) -> Message | list[Message] | None:
    if line is None:
        return refused(TooLarge(_("The message is larger than %(limit)d bytes.") % {"limit": limits().body}))
    message = None
    close_old_connections()
    try:
        message = jsonbody.parse(line)
        principal = _principal(key)
        return SERVER.reply(message, principal, portable=portable, size=len(line)).message
    except Exception as error:
        fault = as_fault(error)
        if fault is None:
            raise
        return refused(fault, id_of(message))


def _principal(presented: str) -> Principal:
    key: AccessKey | None = AccessKey.objects.find(presented)
    if key is None:
        raise NotSignedIn(_("The access key is missing, unknown, expired or revoked."))
    key.note_use(timezone.now())
    return key.principal()
