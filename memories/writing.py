"""How a batch is stored: a transaction a group, halved for a refused row, repeated when nobody is at fault."""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, TypeVar

from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    transaction,
)
from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from memories import deadline
from memories.errors import BrainError, Refused, Unavailable
from memories.principal import Once

Item = TypeVar("Item")
Result = TypeVar("Result")

log = logging.getLogger(__name__)

_ROW_FAULTS = (DataError, IntegrityError, OperationalError, ValueError, OverflowError, TypeError)
_MAY_PASS = (OperationalError, InterfaceError)
_PROGRAM_LIMIT_EXCEEDED = "54"  # the class; PostgreSQL, appendix A
_PAUSES = (0.05, 0.2, 0.8)  # seconds before each repetition
_REPEATED_WITHIN = 10.0  # seconds; a caller does not wait for ever
_ONE_BY_ONE_AFTER = 10  # refused rows
_AWAY = _("The database cannot be reached at the moment; try again a little later.")
_sqlite_turn = threading.Lock()


def write_in_groups(
    items: Sequence[Item],
    write: Callable[[Sequence[Item]], Sequence[Result | BrainError]],
    landed: Callable[[Sequence[Result | BrainError]], bool],
    *,
    apart: Callable[[Item], Hashable] = id,
    once: Once | None = None,
) -> list[Result | BrainError]:
    """What became of each item, in order. Whatever is returned as a result is committed.

    `write` stores a group inside a transaction and gives an outcome for each of its items; `landed` says, after a
    connection was lost during the commit, whether those results are in the database. Items for which `apart` gives the
    same are written one after the other, in the order sent. When nothing at all could be stored since the database is
    away, Unavailable is raised; when a part was stored before, the rest is Unavailable. What `once` knows as stored is
    not written again.
    """
    outcomes: list[Result | BrainError] = [Refused(_("Not stored.")) for _item in items]
    stored = False
    refused = 0
    groups = _waves([apart(item) for item in items])
    while groups:
        group = groups.pop()
        try:
            done = _commit(group, _writing(items, write, once), landed)
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
            group = [*group, *chain.from_iterable(groups)]
            groups = []
            done = [fault] * len(group)
        for place, outcome in zip(group, done, strict=True):
            outcomes[place] = outcome
    return outcomes


def _writing(
    items: Sequence[Item], write: Callable[[Sequence[Item]], Sequence[Result | BrainError]], once: Once | None
) -> Callable[[Sequence[int]], Sequence[Result | BrainError]]:
    """What writes the items of these places, leaving out those that are stored already."""

    def write_places(places: Sequence[int]) -> Sequence[Result | BrainError]:
        handled = once.handled(places) if once else {}
        fresh = [place for place in places if place not in handled]
        done = dict(zip(fresh, write([items[place] for place in fresh]), strict=True))
        if once:
            once.keep(done)
        return [handled[place] if place in handled else done[place] for place in places]

    return write_places


def _waves(keys: Sequence[Hashable]) -> list[list[int]]:
    """The places of the keys in groups, the first one last: each key once a group, a repeated one in the next."""
    waves: list[list[int]] = []
    seen: dict[Hashable, int] = {}
    for place, key in enumerate(keys):
        number = seen[key] = seen.get(key, -1) + 1
        if number == len(waves):
            waves.append([])
        waves[number].append(place)
    return waves[::-1]


def _smaller(group: list[int], *, one_by_one: bool) -> list[list[int]]:
    if one_by_one:
        return [[place] for place in group]
    middle = len(group) // 2
    return [group[:middle], group[middle:]]


def _commit(
    part: Sequence[Item],
    write: Callable[[Sequence[Item]], Sequence[Result | BrainError]],
    landed: Callable[[Sequence[Result | BrainError]], bool],
) -> Sequence[Result | BrainError]:
    """Write one group in its own transaction, repeated for what is not the rows' fault; raises what is."""
    until = time.monotonic() + _REPEATED_WITHIN
    for pause in (*_PAUSES, None):
        done: Sequence[Result | BrainError] | None = None
        try:
            with turn(), transaction.atomic():
                done = write(part)
        except _MAY_PASS as fault:
            if not _may_pass(fault):
                raise
            log.warning("The database was not available for a write: %s", type(fault).__name__)
            if not connection.in_atomic_block:
                connection.close_if_unusable_or_obsolete()
            if done is not None and _landed(done, landed):
                return done
        else:
            return done
        if pause is None or time.monotonic() > until or deadline.passed():
            break
        time.sleep(pause)
    raise Unavailable(deadline.TOLD if deadline.passed() else _AWAY)


def _may_pass(fault: DatabaseError | InterfaceError) -> bool:
    """Whether the same group can succeed a moment later.

    A limit of the server's, which psycopg counts among the operational errors, is passed by the row's size, so it will
    be again.
    """
    state = getattr(fault.__cause__, "sqlstate", None) or ""
    return not state.startswith(_PROGRAM_LIMIT_EXCEEDED)


def _landed(done: Sequence[Result | BrainError], landed: Callable[[Sequence[Result | BrainError]], bool]) -> bool:
    """Whether a commit whose answer was lost took place after all; without this a repetition would store it twice.

    The server may still be busy with it when it is asked, so "no" is believed only when it is the last answer.
    """
    answer: bool | None = None
    for pause in (0.0, *_PAUSES):
        time.sleep(pause)
        try:
            answer = landed(done)
        except (OperationalError, InterfaceError):
            answer = None
            connection.close()
        if answer:
            return True
    if answer is None:
        raise Unavailable(
            _(
                "The connection to the database was lost while it stored this; look whether it is there before you "
                "repeat."
            )
        )
    return False


@contextmanager
def turn() -> Iterator[None]:
    """On SQLite one write of this process at a time: its threads queue here instead of polling the file's lock."""
    if connection.vendor == "sqlite":
        with _sqlite_turn:
            yield
    else:
        yield


def insert_rows(model: type[Model], rows: Sequence[Mapping[str, Any]], *, returning: bool = False) -> int:
    """Store rows of these columns; the key of one row, when it is asked for.

    By hand, for what every call does: the ORM takes several times as long.
    """
    quote = connection.ops.quote_name
    marks = f"({', '.join(['%s'] * len(rows[0]))})"
    with connection.cursor() as cursor:
        cursor.execute(
            # Names of tables and columns come from the models; every value is a parameter.
            f"INSERT INTO {quote(model._meta.db_table)} ({', '.join(map(quote, rows[0]))}) "  # noqa: S608, SLF001
            f"VALUES {', '.join([marks] * len(rows))}{' RETURNING id' if returning else ''}",
            [value for row in rows for value in row.values()],
        )
        return int(cursor.fetchone()[0]) if returning else 0
