"""Pages that miss and repeat nothing while others write: each begins right after the last row of the one before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.core import signing
from django.db.models import Q
from django.utils.translation import gettext as _

from memories.errors import Invalid

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows, and the cursor that the next page starts from; None at the end."""

    rows: Sequence[Row]
    weiter: str | None


def cursor(query: object, place: Sequence[Any]) -> str:
    """The cursor of a place in the results of this query; moments and numbers only."""
    return signing.dumps(
        [part.isoformat() if isinstance(part, datetime) else part for part in place], salt=f"weiter {query!r}"
    )


def place_of(weiter: str, query: object) -> list[Any]:
    """The place that a cursor of this very query names. Invalid for any other text, or another query's cursor."""
    try:
        place: list[Any] = signing.loads(weiter, salt=f"weiter {query!r}")
    except signing.BadSignature as error:
        raise Invalid(
            _("This cursor does not belong to this query. Send it with the same filters, or begin without it."),
            "weiter",
        ) from error
    return place


def after(column: str, value: object, key: int, *, descending: bool) -> Q:
    """The rows behind (value, key) when sorted by the column and then by primary key, both in one direction."""
    way = "lt" if descending else "gt"
    return Q(**{f"{column}__{way}e": value}) & (Q(**{f"{column}__{way}": value}) | Q(**{f"pk__{way}": key}))
