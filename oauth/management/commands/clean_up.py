"""What `clean_up` does where OAuth is on: short-term memories as ever, then tokens and connections."""

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from oauth2_provider.models import clear_expired

from memories.management.commands import clean_up
from oauth.models import Client, Connection


class Command(clean_up.Command):
    """`clean_up`: this app comes first among the installed ones, so that its command is the one that runs."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Delete, and tell how many."""
        super().handle(*args, **options)
        clear_expired()
        dead = Connection.objects.dead(timezone.now())
        number = dead.count()
        dead.end()
        # A document is fetched anew when its client comes again.
        Client.objects.filter(registration_source=Client.RegistrationSource.CIMD).exclude(
            pk__in=Connection.objects.values("client")
        ).delete()
        self.stdout.write(_("Connections removed: %(number)d") % {"number": number})
