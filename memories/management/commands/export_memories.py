"""Write memories out: as JSON lines with their whole histories, or as a table for spreadsheets."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from memories.errors import BrainError
from memories.kinds import KINDS
from memories.principal import SYSTEM
from memories.transfer.exporting import Selection, lines
from memories.transfer.table import memory_table
from memories.values import asked_identifier


class Command(BaseCommand):
    """`export_memories > file`, limited by flags that may each be given several times."""

    help = "Writes memories to standard output: JSON lines with their histories, or CSV for spreadsheets."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which memories, and how."""
        kinds = [kind.typ for kind in KINDS]
        parser.add_argument("--kind", action="append", choices=kinds, help="the kind; may be repeated")
        for limit in ("nutzer", "agent", "scope", "scope-vk"):
            parser.add_argument(f"--{limit}", action="append", default=[], help="may be repeated; none means all")
        parser.add_argument("--with-deleted", action="store_true", help="deleted memories, too")
        parser.add_argument("--csv", action="store_true", help="a table of one kind, what its memories hold now")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write them, line by line."""
        wanted = [kind for kind in KINDS if kind.typ in (options["kind"] or [kind.typ])]
        limits = {name: _identifiers(name, options[name]) for name in ("nutzer", "agent", "scope", "scope_vk")}
        selection = Selection(kinds=wanted, with_deleted=options["with_deleted"], **limits)
        if options["csv"] and (len(wanted) > 1 or options["with_deleted"]):
            raise CommandError(_("A table holds one --kind, and no deleted memories."))
        if options["csv"]:
            rows = memory_table(wanted[0], selection.keys(wanted[0], SYSTEM), SYSTEM)
        else:
            rows = lines(selection, SYSTEM)
        for row in rows:
            self.stdout.write(row, ending="")


def _identifiers(name: str, given: list[str]) -> list[str]:
    try:
        return [asked_identifier(value, name, may_be_empty=name == "scope_vk") for value in given]
    except BrainError as fault:
        raise CommandError(f"{fault.feld}: {fault.meldung}") from fault
