"""What a database keeps of rows that are gone: free pages, deleted words of the full-text index, dead rows."""

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memories.models import Erasure
from memories.search import engine

NOT_YET = _(
    "Somebody was reading meanwhile, so the write-ahead log still holds what was deleted. Run clean_up again, best "
    "while the server does not run."
)


def pending() -> bool:
    """Whether an erasure has ended since the storage was cleaned last."""
    return bool(_uncleaned().exists())


def _uncleaned() -> Any:
    return Erasure.objects.filter(beendet_am__isnull=False, gereinigt_am__isnull=True)


def clean(progress: Callable[[str], None] = lambda _what: None) -> bool:
    """Rewrite what is there without what was; False when somebody held on to an older state, so that it is not over.

    SQLite: no byte of what was deleted stays in the database's file, nor in its write-ahead log. PostgreSQL: indexes,
    graphs of vectors and statistics are without it, and the space is free to be overwritten.
    """
    if connection.vendor == "sqlite":
        for table in engine.FTS5_TABLES:
            progress(table)
            engine.rows(f"INSERT INTO {table}({table}) VALUES ('optimize')")  # noqa: S608 - a name of ours
        progress("VACUUM")
        engine.rows("VACUUM")
        busy = engine.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]
        if busy:
            return False
    else:
        for table in connection.introspection.django_table_names(only_existing=True):
            progress(f"VACUUM {table}")
            engine.rows(f"VACUUM (ANALYZE) {connection.ops.quote_name(table)}")
    _uncleaned().update(gereinigt_am=timezone.now())
    return True
