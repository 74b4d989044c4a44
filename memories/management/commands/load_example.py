"""Fill an installation with the example: some 300 memories of an invented company, with their histories."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from memories.example import already_loaded, load


class Command(BaseCommand):
    """`load_example`, once an installation."""

    help = "Loads the example: about 300 German and English memories with histories, spread over the last year."

    def handle(self, *args: Any, **options: Any) -> None:
        """Load the example unless it is there already."""
        if already_loaded():
            self.stdout.write(_("The example is already loaded; nothing was changed."))
            return
        memories, changes, faults = load(self._progress)
        if faults:
            raise CommandError("\n".join(faults))
        self.stdout.write(
            _("Loaded %(memories)d memories with %(changes)d later changes.")
            % {"memories": memories, "changes": changes}
        )

    def _progress(self, done: int, total: int) -> None:
        self.stdout.write(_("%(done)d of %(total)d steps") % {"done": done, "total": total})
