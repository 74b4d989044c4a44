"""MCP over a pipe, for desktop clients that start a program of their own."""

import os
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError
from django.db import close_old_connections
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

    def handle(self, *args: Any, **options: Any) -> None:
        """Answer messages until the input ends."""
        key = os.environ.get(KEY, "")
        try:
            _principal(key)
        except NotSignedIn as fault:
            raise CommandError(f"{KEY}: {fault.meldung}") from fault
        answers = _standard_output_alone()
        for line in _lines(sys.stdin.buffer):
            reply = _reply(line, key)
            if reply is not None:
                answers.write(jsonbody.write(reply) + b"\n")
                answers.flush()


def _standard_output_alone() -> BinaryIO:
    """Standard output for the protocol alone: whatever else is printed goes to standard error from here on."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = sys.stderr
    return answers


def _lines(source: BinaryIO) -> Iterator[bytes | None]:
    """The lines that hold something; None for one that is longer than a body may be, which is passed over."""
    most = limits().body
    while line := source.readline(most + 1):
        if len(line) > most:
            while line and not line.endswith(b"\n"):
                line = source.readline(most)
            yield None
        elif line.strip():
            yield line


def _reply(line: bytes | None, key: str) -> Message | list[Message] | None:
    if line is None:
        return refused(TooLarge(_("The message is larger than %(limit)d bytes.") % {"limit": limits().body}))
    message = None
    close_old_connections()
    try:
        message = jsonbody.parse(line)
        return SERVER.reply(message, _principal(key)).message
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
