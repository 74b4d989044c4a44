"""Embed the texts that have no vector of an embedder's profile yet."""

import time
from argparse import ArgumentParser
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from memories.search import derived
from memories.search.derived import Filled
from memories.search.embedder import NAMES, EmbedderFault, by_name

_TOLD_EVERY = 5.0  # seconds


class Command(BaseCommand):
    """`embed_pending`: may be ended at any time and run again; servers may go on meanwhile."""

    help = "Embeds the texts that have no vector yet, of the embedder that serves or of one that shall serve next."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which embedder, and how many texts."""
        parser.add_argument("--embedder", choices=NAMES, help="the embedder (default: BRAIN_EMBEDDER)")
        parser.add_argument("--limit", type=int, help="embed at most so many texts")

    def handle(self, *args: Any, **options: Any) -> None:
        """Go on until nothing is pending; texts that change meanwhile come up again."""
        name, left = options["embedder"] or settings.BRAIN_EMBEDDER, options["limit"]
        if not name:
            raise CommandError(_("No embedder is set: name one with --embedder, or set BRAIN_EMBEDDER."))
        self._told_at = time.monotonic()
        total = Filled()
        try:
            embedder = by_name(name)
            profile = derived.profile_of(embedder)
            while left is None or left > 0:
                filled = derived.fill(embedder, profile, limit=left, progress=self._progress)
                # Those that were refused come up each time; the last time tells how many they are.
                total = replace(total + filled, refused=filled.refused)
                left = None if left is None else left - filled.seen
                if not filled.stored:
                    break
        except (EmbedderFault, ImproperlyConfigured) as fault:
            raise CommandError(str(fault)) from fault
        self.stdout.write(
            _("%(name)s: %(stored)d texts embedded, %(moved)d changed meanwhile, %(refused)d refused")
            % {"name": embedder.name, "stored": total.stored, "moved": total.moved_on, "refused": total.refused}
        )

    def _progress(self, filled: Filled) -> None:
        if time.monotonic() - self._told_at >= _TOLD_EVERY:
            self._told_at = time.monotonic()
            self.stdout.write(_("%(number)d texts embedded so far") % {"number": filled.stored})
            self.stdout.flush()
