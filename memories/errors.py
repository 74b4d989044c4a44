"""What can go wrong: one base, one class for each stable code. No HTTP here; the doors translate."""

from collections.abc import Sequence
from typing import ClassVar

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class BrainError(Exception):
    """An anticipated fault: a stable `code`, the `feld` it sits in, and a sentence a person understands."""

    code: ClassVar[str]
    meaning: ClassVar[str | Promise]
    times: int = 1  # in a row that the same call has failed, as far as that is counted

    def __init__(self, meldung: str | Promise, feld: str | None = None, faults: Sequence["BrainError"] = ()) -> None:
        """`feld` is a path such as `tags[3]`; `faults` are all faults of one entry, this one the first of them."""
        super().__init__(meldung)
        self.meldung = meldung
        self.feld = feld
        self.faults = tuple(faults) or (self,)


class Invalid(BrainError):
    """A value of the wrong type or form, or one that makes no sense there."""

    code = "ungueltig"
    meaning = _("A value has the wrong type or form, or makes no sense there.")


class Missing(BrainError):
    """A required field was not given."""

    code = "pflichtfeld"
    meaning = _("A required field was not given.")


class UnknownField(BrainError):
    """A field that does not exist here; nothing that was sent is dropped in silence."""

    code = "unbekanntes_feld"
    meaning = _("There is no field of this name here.")


class TooLarge(BrainError):
    """A limit was passed; the message names it."""

    code = "zu_gross"
    meaning = _("A limit was passed; the message names it.")


class HoldsSecret(BrainError):
    """A text that would be stored holds a credential; the message says of which kind, and quotes nothing."""

    code = "geheimnis"
    meaning = _("The text holds a credential, such as an API key; nothing of it is stored.")


class NotFound(BrainError):
    """What was named is not there, or may not be seen: both read the same."""

    code = "nicht_gefunden"
    meaning = _("What was named does not exist, or this key may not see it.")


class Conflict(BrainError):
    """Somebody else changed or made the same thing at the same time; `version` is the present one, if there is one."""

    code = "konflikt"
    meaning = _("The same thing was changed or made by somebody else at the same time.")

    def __init__(self, meldung: str | Promise, feld: str | None = None, *, version: int | None = None) -> None:
        super().__init__(meldung, feld)
        self.version = version


class KeyReused(BrainError):
    """An idempotency key came again with another call."""

    code = "schluessel_wiederverwendet"
    meaning = _("The idempotency key was used for another call in the last 24 hours.")


class Refused(BrainError):
    """The database would not take this row."""

    code = "abgelehnt"
    meaning = _("The database would not take these values.")


class NotAllowed(BrainError):
    """The key or person may not do this."""

    code = "nicht_erlaubt"
    meaning = _("The access key may not do this.")


class NotSignedIn(BrainError):
    """No access key, or one that is not valid (any more)."""

    code = "nicht_angemeldet"
    meaning = _("No access key was sent, or it is unknown, expired or revoked.")


class UnknownTool(BrainError):
    """There is no tool of this name."""

    code = "unbekanntes_tool"
    meaning = _("There is no tool of this name.")


class NotJson(BrainError):
    """The body is not strict JSON (RFC 8259, no duplicate keys)."""

    code = "kein_json"
    meaning = _("The body is not valid JSON (UTF-8, no duplicate keys).")


class NoSuchAddress(BrainError):
    """There is nothing at this address, or not for this method."""

    code = "unbekannte_adresse"
    meaning = _("There is nothing at this address, or not for this method.")


class TooMany(BrainError):
    """A limit of the key is reached; `retry_after` is the number of seconds until it is lifted."""

    code = "zu_viele"
    meaning = _("A limit of the key is reached; the header Retry-After says when to try again.")

    def __init__(self, meldung: str | Promise, feld: str | None = None, *, retry_after: int) -> None:
        super().__init__(meldung, feld)
        self.retry_after = retry_after


class Unavailable(BrainError):
    """The database is away or too busy; the same call may succeed a little later."""

    code = "nicht_verfuegbar"
    meaning = _("The database cannot be reached at the moment; try again a little later.")


class InternalFault(BrainError):
    """A fault of the program itself; the log has the details."""

    code = "interner_fehler"
    meaning = _("A fault of the program itself; the server's log has the details.")


ERRORS: tuple[type[BrainError], ...] = (
    Invalid,
    Missing,
    UnknownField,
    TooLarge,
    HoldsSecret,
    NotFound,
    Conflict,
    KeyReused,
    Refused,
    NotAllowed,
    NotSignedIn,
    UnknownTool,
    NotJson,
    NoSuchAddress,
    TooMany,
    Unavailable,
    InternalFault,
)
