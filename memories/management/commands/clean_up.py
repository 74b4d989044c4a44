"""Remove what is over: short-term memories, whose last state the history keeps, and what was kept for a time only."""

from typing import Any

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.translation import gettext as _

from memories import calls, planning, repeats, services, vacuum
from memories.errors import BrainError
from memories.principal import SYSTEM, Origin
from memories.search import engine
from memories.transfer import jobs


class Command(BaseCommand):
    """`clean_up`: meant to be run every day; running it twice or while others write does no harm."""

    help = "Removes what is over: short-term memories (the history keeps them), old records, imports and sessions."

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
        now = timezone.now()
        imports = jobs.forget(now)
        self.stdout.write(_("Imports removed that were over: %(number)d") % {"number": imports})
        attempts, _tables = AccessAttempt.objects.filter(attempt_time__lt=now - settings.AXES_COOLOFF_TIME).delete()
        self.stdout.write(_("Failed attempts to sign in forgotten: %(number)d") % {"number": attempts})
        sessions, _tables = Session.objects.filter(expire_date__lt=now).delete()
        self.stdout.write(_("Sessions removed that were over: %(number)d") % {"number": sessions})
        if vacuum.pending() and not vacuum.clean():
            self.stdout.write(str(vacuum.NOT_YET))
        engine.merge()
        planning.gather()

    def _progress(self, deleted: int) -> None:
        self.stdout.write(_("%(number)d so far") % {"number": deleted})
        self.stdout.flush()
