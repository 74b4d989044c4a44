"""Delete the short-term memories whose validity is over; the history keeps their last state."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.translation import gettext as _

from memories import calls, repeats, services
from memories.errors import BrainError
from memories.principal import SYSTEM, Origin


class Command(BaseCommand):
    """`clean_up`: meant to be run every day; running it twice or while others write does no harm."""

    help = "Deletes the short-term memories whose validity is over; the history keeps their last state."

    def handle(self, *args: Any, **options: Any) -> None:
        """Delete, and tell how many."""
        origin = Origin(SYSTEM, nutzer="system", agent="", tuer="command", tool="clean_up", grund=_("no longer valid"))
        try:
            deleted = services.clean_up(origin, self._progress)
        except BrainError as fault:
            raise CommandError(str(fault.meldung)) from fault
        self.stdout.write(_("Deleted: %(number)d") % {"number": deleted})
        records = calls.forget(timezone.now())
        self.stdout.write(_("Records of calls removed: %(number)d") % {"number": records})
        forgotten = repeats.forget(timezone.now())
        self.stdout.write(_("Answers for repeated calls forgotten: %(number)d") % {"number": forgotten})

    def _progress(self, deleted: int) -> None:
        self.stdout.write(_("%(number)d so far") % {"number": deleted})
        self.stdout.flush()
