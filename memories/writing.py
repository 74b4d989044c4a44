"""How a batch is stored: a transaction a group, halved for a refused row, repeated when nobody is at fault."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    transaction,
)
from django.utils.translation import gettext_lazy as _

from memories.errors import BrainError, Refused, Unavailable

Item = TypeVar("Item")
Result = TypeVar("Result")

log = logging.getLogger(__name__)

_ROW_FAULTS = (DataError, IntegrityError, ValueError, OverflowError, TypeError)
_NOBODYS_FAULTS = (OperationalError, InterfaceError)
_PAUSES = (0.05, 0.2, 0.8)  # seconds before each repetition
_ONE_BY_ONE_AFTER = 10  # refused rows
_sqlite_turn = threading.Lock()


def write_in_groups(
    items: Sequence[Item],
    write: Callable[[Sequence[Item]], Sequence[Result | BrainError]],
    landed: Callable[[Sequence[Result | BrainError]], bool],
) -> list[Result | BrainError]:
    """What became of each item, in order. Whatever is returned as a result is committed.

    `write` stores a group inside a transaction and gives an outcome for each of its items; `landed` says, after a
    connection was lost during the commit, whether those results are in the database. When nothing at all could be
    stored since the database is away, Unavailable is raised; when a part was stored before, the rest is Unavailable.
    """
    outcomes: list[Result | BrainError] = [Refused(_("Not stored.")) for _item in items]
    stored = False
    refused = 0
    groups = [range(len(items))] if items else []
    while groups:
        group = groups.pop()
        part = items[group.start : group.stop]
        try:
            done = _commit(part, write, landed)
            stored = True
        except _ROW_FAULTS as fault:
            if len(group) > 1:
                groups.extend(reversed(_smaller(group, one_by_one=refused >= _ONE_BY_ONE_AFTER)))
                continue
            refused += 1
            # A database's message can quote the row's text, which no log may hold; Python's own has the place.
            log.warning("A row was refused: %s", type(fault).__name__, exc_info=not isinstance(fault, DatabaseError))
            done = [Refused(_("The database would not take these values."))]
        except Unavailable as fault:
            if not stored:
                raise
            done = [fault] * len(group)
        outcomes[group.start : group.stop] = done
    return outcomes


def _smaller(group: range, *, one_by_one: bool) -> list[range]:
    if one_by_one:
        return [range(place, place + 1) for place in group]
    middle = (group.start + group.stop) // 2
    return [range(group.start, middle), range(middle, group.stop)]


def _commit(
    part: Sequence[Item],
    write: Callable[[Sequence[Item]], Sequence[Result | BrainError]],
    landed: Callable[[Sequence[Result | BrainError]], bool],
) -> Sequence[Result | BrainError]:
    """Write one group in its own transaction, repeated for what is not the rows' fault."""
    for pause in (*_PAUSES, None):
        done: Sequence[Result | BrainError] | None = None
        try:
            with _turn(), transaction.atomic():
                done = write(part)
        except _NOBODYS_FAULTS as fault:
            log.warning("The database was not available for a write: %s", type(fault).__name__)
            if not connection.in_atomic_block:
                connection.close_if_unusable_or_obsolete()
            if done is not None and _landed(done, landed):
                return done
        else:
            return done
        if pause is None:
            break
        time.sleep(pause)
    raise Unavailable(_("The database cannot be reached at the moment; try again a little later."))


def _landed(done: Sequence[Result | BrainError], landed: Callable[[Sequence[Result | BrainError]], bool]) -> bool:
    """Whether a commit whose answer was lost took place after all; without this a repetition would store it twice."""
    for pause in (0.0, *_PAUSES):
        time.sleep(pause)
        try:
            return landed(done)
        except _NOBODYS_FAULTS:
            connection.close()
    raise Unavailable(
        _("The connection to the database was lost while it stored this; look whether it is there before you repeat.")
    )


@contextmanager
def _turn() -> Iterator[None]:
    """On SQLite one write of this process at a time: its threads queue here instead of polling the file's lock."""
    if connection.vendor == "sqlite":
        with _sqlite_turn:
            yield
    else:
        yield
