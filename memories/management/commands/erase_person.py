"""Erase a person: all her memories with their histories and traces; a proof stays."""

import unicodedata
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from memories import erasure, vacuum, values
from memories.errors import BrainError
from memories.limits import limits
from memories.models import Erasure
from memories.principal import SYSTEM, Origin


class Command(BaseCommand):
    """`erase_person NUTZER --reason TEXT`; call it again when it was broken off."""

    help = "Erases all memories of a person (nutzer) with their histories and traces, for good. A proof stays."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Who and why."""
        parser.add_argument("nutzer", help="the owner of the memories")
        parser.add_argument("--reason", default="", help="kept with the proof; do not name the person in it")
        parser.add_argument("--yes", action="store_true", help="do not ask")
        parser.add_argument("--dry-run", action="store_true", help="only say how much there is")
        parser.add_argument(
            "--no-vacuum", action="store_true", help="leave cleaning the storage to clean_up, which may take long"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Say what there is, ask, erase step by step, clean the storage."""
        try:
            nutzer = values.asked_identifier(options["nutzer"], "nutzer")
            self._tell(erasure.find(nutzer, SYSTEM))
            if options["dry_run"]:
                return
            if not options["yes"] and not self._confirmed(nutzer):
                raise CommandError(_("That is another name. Nothing was erased."))
            grund = values.limited_text(options["reason"], "grund", limits().grund)
            origin = Origin(SYSTEM, nutzer="system", agent="", tuer="command", tool="erase_person", grund=grund)
            begun = erasure.begin(nutzer, origin)
            self._erase(begun, nutzer)
        except BrainError as fault:
            raise CommandError(str(fault.meldung)) from fault
        self._clean(wanted=not options["no_vacuum"])
        self._tell_left(nutzer)

    def _confirmed(self, nutzer: str) -> bool:
        try:
            typed = input(_("Type the name again to erase all this for good: "))
        except EOFError:  # nobody is there to type it
            return False
        return unicodedata.normalize("NFC", typed) == nutzer

    def _tell(self, found: erasure.Found) -> None:
        for typ, (memories, versions) in found.anzahl.items():
            told = {"typ": typ, "memories": memories, "versions": versions}
            self.stdout.write(_("%(typ)s: %(memories)d memories, %(versions)d versions") % told)
        if found.begun:
            self.stdout.write(_("An earlier erasure of this person was broken off; this one completes it."))

    def _erase(self, begun: Erasure, nutzer: str) -> None:
        told = begun.total("erinnerungen")
        while not erasure.step(begun, nutzer, SYSTEM):
            begun.refresh_from_db()
            if begun.total("erinnerungen") > told:
                told = begun.total("erinnerungen")
                self.stdout.write(_("Memories erased: %(number)d") % {"number": told})
                self.stdout.flush()
        numbers = {"memories": begun.total("erinnerungen"), "versions": begun.total("versionen")}
        self.stdout.write(_("Erased: %(memories)d memories with %(versions)d versions.") % numbers)
        self.stdout.write(_("Proof: no. %(number)d, digest %(digest)s") % {"number": begun.pk, "digest": begun.digest})

    def _clean(self, *, wanted: bool) -> None:
        if not wanted:
            told = _("The database's files still hold traces of what was erased, until clean_up has cleaned them.")
            self.stdout.write(told)
        elif not vacuum.clean(lambda what: self.stdout.write(_("Cleaning the storage: %(what)s") % {"what": what})):
            self.stdout.write(str(vacuum.NOT_YET))
        self.stdout.write(_("Backups and exports made before still hold everything; so may logs of the database."))

    def _tell_left(self, nutzer: str) -> None:
        """Some may have been stored while it ended."""
        try:
            found = erasure.find(nutzer, SYSTEM)
        except BrainError:
            return
        told = _(
            "Stored for this person meanwhile: %(number)d memories. Limit the keys that do so, and run this again."
        )
        raise CommandError(told % {"number": found.memories})
