"""Embedding profiles: list them, send out texts to be embedded elsewhere, take vectors back, forget a profile."""

import sys
from argparse import ArgumentParser
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from memories import values
from memories.errors import BrainError
from memories.limits import limits
from memories.models import EmbeddingProfile
from memories.principal import SYSTEM
from memories.search import derived, exchange, profiles
from memories.search.derived import Filled
from memories.search.embedder import serving

_SHORTEST_BEGINNING = 6


class Command(BaseCommand):
    """`embeddings --list`, `--export`, `--import` or `--forget`; a profile goes by its hash, its beginning, or name."""

    help = "Lists embedding profiles; exports texts that need a vector and imports vectors (JSONL); forgets a profile."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to do, and with which profile."""
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--list", action="store_true", help="shows the profiles and how complete they are")
        what.add_argument("--export", metavar="PROFILE", help="writes the texts that lack a vector of the profile")
        what.add_argument("--import", nargs=2, metavar=("PROFILE", "FILE"), help="stores vectors from a file, or - ")
        what.add_argument("--forget", metavar="PROFILE", help="drops the profile and the vectors derived for it")
        parser.add_argument("--dimension", type=int, help="of a new profile: how many numbers its vectors have")
        parser.add_argument("--name", help="of a new profile: what people call it")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it."""
        new = (options["dimension"], options["name"])
        if options["list"]:
            self._list()
        elif options["export"] is not None:
            for line in exchange.texts(_profile(options["export"], *new)):
                self.stdout.write(line)
        elif options["import"]:
            self._import(_profile(options["import"][0], *new), options["import"][1])
        else:
            self._forget(_profile(options["forget"]))

    def _list(self) -> None:
        for state in profiles.states(SYSTEM):
            serves = _("serves") if state.serves else ""
            self.stdout.write(
                _("%(hash)s: %(dimension)d numbers, %(fresh)d fresh, %(stale)d stale, %(without)d without")
                % {
                    "hash": state.profil_hash,
                    "dimension": state.dimension,
                    "fresh": state.fresh,
                    "stale": state.stale,
                    "without": state.without,
                }
                + "".join(f" · {more}" for more in (state.name, serves) if more)
            )

    def _import(self, profile: EmbeddingProfile, file: str) -> None:
        try:
            with nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as lines:
                total = exchange.take(profile, lines, self._refused, self._progress)
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}") from error
        self.stdout.write(
            _("%(stored)d vectors stored, %(moved)d of texts that changed or are gone, %(refused)d lines refused")
            % {"stored": total.stored, "moved": total.moved_on, "refused": total.refused}
        )

    def _refused(self, number: int, reason: str) -> None:
        self.stderr.write(_("Line %(number)d: %(reason)s") % {"number": number, "reason": reason})

    def _progress(self, total: Filled) -> None:
        self.stdout.write(_("%(number)d lines read") % {"number": total.seen})

    def _forget(self, profile: EmbeddingProfile) -> None:
        embedder = serving()
        if embedder is not None and embedder.profil_hash == profile.profil_hash:
            raise CommandError(_("This profile serves. Set another BRAIN_EMBEDDER first."))
        dropped = derived.forget(profile)
        self.stdout.write(_("%(number)d vectors dropped") % {"number": dropped})


def _profile(wanted: str, dimension: int | None = None, name: str | None = None) -> EmbeddingProfile:
    """The profile of this hash, beginning of a hash, or name; a new one when its length and name are told."""
    rows = list(EmbeddingProfile.objects.all())
    found = [row for row in rows if wanted in {row.profil_hash, row.name}] or [
        row for row in rows if len(wanted) >= _SHORTEST_BEGINNING and row.profil_hash.startswith(wanted)
    ]
    if len(found) == 1:
        profile: EmbeddingProfile = found[0]
        if dimension not in {None, profile.dimension}:
            told = {"profile": profile, "dimension": profile.dimension}
            raise CommandError(_("Vectors of %(profile)s have %(dimension)d numbers.") % told)
        return profile
    if found:
        raise CommandError(_("Several profiles go by %(wanted)s; give the whole hash.") % {"wanted": wanted})
    if dimension is None or name is None:
        raise CommandError(
            _("There is no profile %(wanted)s. For a new one add --dimension and --name.") % {"wanted": wanted}
        )
    return _made(wanted, dimension, name)


def _made(profil_hash: str, dimension: int, name: str) -> EmbeddingProfile:
    """A new profile, which obeys the limits that hold for callers' vectors."""
    most = limits()
    if not 1 <= dimension <= most.embedding:
        raise CommandError(_("--dimension must be from 1 to %(limit)d.") % {"limit": most.embedding})
    try:
        made: EmbeddingProfile = EmbeddingProfile.objects.create(
            profil_hash=values.filled_text(profil_hash, "PROFILE", most.kennung),
            dimension=dimension,
            name=values.filled_text(name, "--name", most.kennung),
        )
    except BrainError as fault:
        raise CommandError(f"{fault.feld}: {fault.meldung}") from fault
    return made
