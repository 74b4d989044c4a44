"""Prove that histories have no gaps and agree with the live rows and the tags."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memories.drift import Deviation, deviations
from memories.kinds import KINDS

_SHOWN = 20


class Command(BaseCommand):
    """`check_history`: ends with code 1 when anything is wrong."""

    help = "Proves that each memory's history has no gaps and agrees with its live row and its tags."

    def handle(self, *args: Any, **options: Any) -> None:
        """Check kind by kind; at most 20 deviations are shown, all are counted."""
        shown: list[Deviation] = []
        total = 0
        for kind in KINDS:
            found = 0
            for deviation in deviations(kind):
                found += 1
                if len(shown) < _SHOWN:
                    shown.append(deviation)
            total += found
            self.stdout.write(
                _("%(typ)s: %(memories)d memories, %(versions)d versions, %(found)d deviations")
                % {
                    "typ": kind.typ,
                    "memories": kind.memories.objects.count(),
                    "versions": kind.versions.objects.count(),
                    "found": found,
                }
            )
        for deviation in shown:
            self.stdout.write(f"{deviation.kennung}: {deviation.flaw.label}")
        if total > len(shown):
            self.stdout.write(_("… and %(number)d more") % {"number": total - len(shown)})
        if total:
            raise CommandError(
                ngettext("There is %(number)d deviation.", "There are %(number)d deviations.", total)
                % {"number": total}
            )
