"""Check the search index, or make it anew."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from memories.search import upkeep

_SHOWN = 20


class Command(BaseCommand):
    """`search_index --check`, `--rebuild` or `--pack`."""

    help = "Checks the search index, rebuilds it, or packs what writes left loose."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to do."""
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--check", action="store_true", help="ends with 1 when a memory is not found as it is")
        what.add_argument("--rebuild", action="store_true", help="makes all entries anew; searches go on meanwhile")
        what.add_argument(
            "--pack", action="store_true", help="puts vectors and words into pieces that are quick to look through"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it, and tell how far it is."""
        if options["rebuild"]:
            upkeep.rebuild(self._progress)
        elif options["pack"]:
            upkeep.pack(self._progress)
        else:
            self._check()
        self.stdout.write(_("Done."))

    def _check(self) -> None:
        found = list(upkeep.check(self._progress))
        for deviation in found[:_SHOWN]:
            self.stdout.write(f"{deviation.where}: {deviation.what}")
        if found:
            raise CommandError(_("%(number)d deviations; search_index --rebuild mends them.") % {"number": len(found)})

    def _progress(self, what: str, number: int) -> None:
        self.stdout.write(f"{what}: {number}")
