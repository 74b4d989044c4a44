"""How long the database may work for a request of the server: commands and threads of the program have no limit.

Each database ends a statement itself: PostgreSQL by `statement_timeout`, SQLite by asking, while it works, whether the
request's time is over. Either raises OperationalError and rolls back, as when the database goes away.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.utils.translation import gettext_lazy as _

TOLD = _("This took the database too long and was ended; what was not stored before is not stored.")
_FAILED = 3  # psycopg's TransactionStatus.INERROR
_ASK_EVERY = 50_000  # instructions of SQLite's virtual machine: about a millisecond


class _Here(threading.local):
    """What holds in this thread."""

    until: float | None = None  # when the request's time is over
    prepared: tuple[Any, float] | None = None  # the connection that knows of limits, and PostgreSQL's


_here = _Here()


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Within, statements that make the whole longer than so many seconds are ended."""

    def prepared(execute: Callable[..., Any], *args: Any) -> Any:
        _prepare(seconds)
        return execute(*args)

    _here.until = time.monotonic() + seconds
    try:
        with connection.execute_wrapper(prepared):
            yield
    finally:
        _here.until = None


def passed() -> bool:
    """Whether this is within a request whose time is over."""
    return _here.until is not None and time.monotonic() >= _here.until


def _prepare(seconds: float) -> None:
    """Tell the database connection of this thread, once."""
    raw: Any = connection.connection
    if _here.prepared is not None and _here.prepared[0] is raw and _here.prepared[1] == seconds:
        return
    if connection.vendor == "sqlite":
        raw.set_progress_handler(passed, _ASK_EVERY)
    elif raw.info.transaction_status == _FAILED:
        return  # everything is refused but the rollback, which must get through
    else:
        # In a transaction, which may be rolled back with all that was set, it is set for that transaction alone.
        local = "LOCAL " if connection.in_atomic_block else ""
        with connection.wrap_database_errors:
            raw.execute(f"SET {local}statement_timeout = {round(seconds * 1_000)}")
        if local:
            return
    _here.prepared = (raw, seconds)
