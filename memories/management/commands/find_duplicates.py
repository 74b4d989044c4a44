"""Look for memories that may say the same; the admin lists the pairs."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils.translation import gettext as _

from memories import duplicates
from memories.models import DuplicatePair

_VECTORS = 5_000


class Command(BaseCommand):
    """`find_duplicates`: meant to be run every hour or day; it compares what changed since the last time."""

    help = "Finds pairs of memories with the same text or close vectors. They are hints: nothing is changed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How much is done at once."""
        told = f"memories whose vectors are compared in this run, the newest first; the rest next time ({_VECTORS})"
        parser.add_argument("--vectors", type=int, default=_VECTORS, help=told)

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it, and tell how far it is."""
        duplicates.find(options["vectors"], self._progress)
        pairs = DuplicatePair.objects.filter(abgelehnt=False).count()
        self.stdout.write(_("Pairs that may be duplicates: %(number)d") % {"number": pairs})

    def _progress(self, compared: int) -> None:
        self.stdout.write(_("Texts compared: %(number)d") % {"number": compared})
        self.stdout.flush()
