"""Rename and merge tags, or remove those that no memory carries."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from memories import tagging
from memories.errors import BrainError
from memories.limits import limits
from memories.models import Tag
from memories.principal import SYSTEM, Origin
from memories.values import asked_tag, limited_text, tag_key


class Command(BaseCommand):
    """`tags --rename OLD NEW`, `--merge TAG INTO` or `--remove-unused`; call it again when it was broken off."""

    help = "Renames or merges tags, with a version for each memory that carries one, or removes unused ones."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to do."""
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--rename", nargs=2, metavar=("OLD", "NEW"), help="another name, or another spelling")
        what.add_argument("--merge", nargs=2, metavar=("TAG", "INTO"), help="replaces the first tag by the second")
        what.add_argument("--remove-unused", action="store_true", help="removes the tags that no memory carries")
        parser.add_argument("--reason", default="", help="written into the histories")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it, and tell how far it is."""
        try:
            grund = limited_text(options["reason"], "grund", limits().grund)
            origin = Origin(SYSTEM, nutzer="system", agent="", tuer="command", tool="tags", grund=grund)
            if options["rename"]:
                old, new = options["rename"]
                tagging.rename(_key(old), new, origin, self._progress)
            elif options["merge"]:
                tag, into = options["merge"]
                tagging.merge([_key(tag)], _key(into), origin, self._progress)
            else:
                self.stdout.write(_("Tags removed: %(number)d") % {"number": tagging.remove_unused()})
        except BrainError as fault:
            raise CommandError(str(fault.meldung)) from fault

    def _progress(self, changed: int) -> None:
        self.stdout.write(_("Memories changed: %(number)d") % {"number": changed})
        self.stdout.flush()


def _key(name: str) -> int:
    """The key of the tag of this name, however it is spelled; 0 when there is none."""
    return Tag.objects.filter(schluessel=tag_key(asked_tag(name, "name"))).values_list("pk", flat=True).first() or 0
