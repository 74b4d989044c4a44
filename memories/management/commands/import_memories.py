"""Take memories in from a file; run as often as you like, it changes only what the file says anew."""

import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.translation import gettext as _

from memories.errors import Unavailable
from memories.principal import SYSTEM, Origin
from memories.transfer.formats import FORMATS, format_of
from memories.transfer.importing import TOOL, Result, Verdict, take
from memories.transfer.rows import NewerFormat, rows

_TELL_EVERY = 1_000


class Command(BaseCommand):
    """`import_memories FILE`; with --dry-run it only says what would happen."""

    help = "Imports memories with their histories from an export (JSON lines), and says what became of each row."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The file, and whether to store anything."""
        parser.add_argument("file", help="the file, a folder of notes, or - for standard input")
        names = [each.name for each in FORMATS]
        parser.add_argument("--format", choices=names, default=names[0], help="what wrote the file")
        for name in ("nutzer", "agent", "scope"):
            parser.add_argument(f"--{name}", help="for rows that do not say it")
        parser.add_argument("--dry-run", action="store_true", help="store nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import row by row; faults and what was left out are told at once, the counts at the end."""
        origin = Origin(SYSTEM, nutzer="system", agent="", tuer="import", tool=TOOL)
        defaults = {name: options[name] for name in ("nutzer", "agent", "scope") if options[name]}
        counts: Counter[str] = Counter()
        try:
            lines = format_of(options["format"]).read(_files(options["file"]))
            for result in take(rows(lines, timezone.now(), defaults), origin, dry_run=options["dry_run"]):
                counts[result.verdict] += 1
                self._tell(result, counts.total())
        except OSError as error:
            raise CommandError(f"{options['file']}: {error.strerror}") from error
        except (NewerFormat, Unavailable) as fault:
            raise CommandError(str(fault.meldung)) from fault
        self.stdout.write(", ".join(f"{counts[verdict]} {verdict.label}" for verdict in Verdict))
        if counts[Verdict.FAULTY]:
            raise CommandError(_("Some rows were not imported."))

    def _tell(self, result: Result, number: int) -> None:
        if result.meldung or result.hinweise:
            told = {"number": result.number, "reason": result.meldung or result.hinweise}
            self.stderr.write(_("Line %(number)d: %(reason)s") % told)
        if number % _TELL_EVERY == 0:
            self.stdout.write(_("%(number)d lines read") % {"number": number})


def _files(name: str) -> Iterator[tuple[str, BinaryIO]]:
    """The file, or the notes of the folder by their path in it."""
    if name == "-":
        yield name, sys.stdin.buffer
        return
    path = Path(name)
    for each in sorted(path.rglob("*.md")) if path.is_dir() else [path]:
        with each.open("rb") as file:
            yield (each.relative_to(path).as_posix() if path.is_dir() else each.name), file
