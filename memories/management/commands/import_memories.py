"""Take memories in from a file; run as often as you like, it changes only what the file says anew."""

import sys
from argparse import ArgumentParser
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.translation import gettext as _

from memories.principal import SYSTEM, Origin
from memories.transfer.importing import TOOL, Verdict, take
from memories.transfer.rows import NewerFormat, rows

_TELL_EVERY = 1_000


class Command(BaseCommand):
    """`import_memories FILE`; with --dry-run it only says what would happen."""

    help = "Imports memories with their histories from an export (JSON lines), and says what became of each row."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The file, and whether to store anything."""
        parser.add_argument("file", help="the file, or - for standard input")
        parser.add_argument("--dry-run", action="store_true", help="store nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import row by row; faults and what was left out are told at once, the counts at the end."""
        origin = Origin(SYSTEM, nutzer="system", agent="", tuer="import", tool=TOOL)
        counts: Counter[str] = Counter()
        file = options["file"]
        try:
            with nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as lines:
                for result in take(rows(lines, timezone.now()), origin, dry_run=options["dry_run"]):
                    counts[result.verdict] += 1
                    if result.meldung or result.hinweise:
                        told = {"number": result.number, "reason": result.meldung or result.hinweise}
                        self.stderr.write(_("Line %(number)d: %(reason)s") % told)
                    if counts.total() % _TELL_EVERY == 0:
                        self.stdout.write(_("%(number)d lines read") % {"number": counts.total()})
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}") from error
        except NewerFormat as fault:
            raise CommandError(str(fault.meldung)) from fault
        self.stdout.write(", ".join(f"{counts[verdict]} {verdict.label}" for verdict in Verdict))
        if counts[Verdict.FAULTY]:
            raise CommandError(_("Some rows were not imported."))
