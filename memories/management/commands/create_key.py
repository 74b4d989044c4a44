"""Make an access key and print it; it is shown at this moment only."""

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.translation import gettext as _

from memories.errors import BrainError
from memories.keys import make_key
from memories.principal import ALL_KINDS

_LONGEST = 36_500  # days


class Command(BaseCommand):
    """`create_key NAME`: without a limit named, the key may do and see everything."""

    help = "Makes an access key. Without --nutzer, --agent, --scope or --tools it may use all of them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The name, the limits, and the form of the output."""
        parser.add_argument("name", help="the key's name; the history shows it")
        parser.add_argument("--account", help="the service account it belongs to (default: one of the key's name)")
        parser.add_argument("--nutzer", action="append", help="a user it may speak for and see; may be repeated")
        parser.add_argument("--agent", action="append", help="an agent it may be and see; may be repeated")
        parser.add_argument("--scope", action="append", help="a scope it may see and write into; may be repeated")
        parser.add_argument("--scope-vk", action="append", help="a record of a scope it may see and write into")
        parser.add_argument("--typ", action="append", choices=sorted(ALL_KINDS), help="a kind of memory it may use")
        parser.add_argument("--tools", action="append", help="a tool it may call; may be repeated")
        parser.add_argument("--read-only", action="store_true", help="it may not change anything")
        parser.add_argument("--no-delete", action="store_true", help="it may not delete")
        parser.add_argument("--no-restore", action="store_true", help="it may not restore")
        parser.add_argument("--pruefpflicht", action="store_true", help="what it stores waits for a person's approval")
        parser.add_argument("--portable", action="store_true", help="tell it tools with one type for each field")
        parser.add_argument("--expires", type=int, metavar="DAYS", help="the days until it expires")
        parser.add_argument("--json", action="store_true", help='print {"name": …, "key": …}')

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the key and print it."""
        days = options["expires"]
        if days is not None and not 1 <= days <= _LONGEST:
            raise CommandError(_("--expires must be from 1 to %(limit)d days.") % {"limit": _LONGEST})
        try:
            key, text = make_key(
                name=options["name"],
                account=options["account"] or options["name"],
                only={limit: options[limit] for limit in ("nutzer", "agent", "scope", "scope_vk", "tools")}
                | {"typen": options["typ"]},
                may_write=not options["read_only"],
                may_delete=not options["no_delete"],
                may_restore=not options["no_restore"],
                pruefpflicht=options["pruefpflicht"],
                portable=options["portable"],
                expires_at=timezone.now() + timedelta(days=days) if days else None,
            )
        except BrainError as fault:
            raise CommandError(f"{fault.feld}: {fault.meldung}") from fault
        if options["json"]:
            self.stdout.write(json.dumps({"name": key.name, "key": text}, ensure_ascii=False))
        else:
            self.stdout.write(_("Access key %(name)s, shown this once:") % {"name": key.name})
            self.stdout.write(text)
