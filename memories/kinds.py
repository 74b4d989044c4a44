"""The kinds of memory, each with its tables, and the IDs of the wire."""

import re
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from memories.errors import Invalid
from memories.models import (
    BrainMemory,
    BrainTag,
    BrainVersion,
    LongtermMemory,
    LongtermTag,
    LongtermVersion,
    ShorttermMemory,
    ShorttermTag,
    ShorttermVersion,
)

_ID = re.compile(r"(longterm|shortterm|brain)_([1-9][0-9]*)")
_LARGEST_KEY = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: its live rows, their versions, their tags."""

    typ: str
    memories: Any  # type[Memory], with the fields of the kind
    versions: Any  # type[Version], likewise
    links: Any  # type[TagLink]


LONGTERM = Kind("longterm", LongtermMemory, LongtermVersion, LongtermTag)
SHORTTERM = Kind("shortterm", ShorttermMemory, ShorttermVersion, ShorttermTag)
BRAIN = Kind("brain", BrainMemory, BrainVersion, BrainTag)
KINDS = (LONGTERM, SHORTTERM, BRAIN)


def parse_id(kennung: object, feld: str, *, only: Kind | None = None) -> tuple[Kind, int]:
    """The kind and primary key that an ID such as `longterm_41` means. Numbers that no row can have become 0."""
    found = _ID.fullmatch(kennung) if isinstance(kennung, str) else None
    if not found:
        raise Invalid(_("This is no ID. IDs look like longterm_41, shortterm_3 or brain_7."), feld)
    typ, digits = found.groups()
    kind = next(kind for kind in KINDS if kind.typ == typ)
    if only and kind is not only:
        raise Invalid(
            _("The ID %(id)s is of another kind; here it must begin with %(typ)s_.")
            % {"id": found[0][:60], "typ": only.typ},
            feld,
        )
    key = int(digits) if len(digits) <= len(str(_LARGEST_KEY)) else 0
    return kind, key if key <= _LARGEST_KEY else 0
