"""What SQLite's planner should know of the tables. It gathers nothing by itself, as PostgreSQL does."""

from django.db import connection

from memories.kinds import KINDS


def gather() -> None:
    """Count how many rows have the same values in each index of memories and tag links; a second a million.

    Without that, somebody who may see one nutzer of many and filters by the one agent of all waits until every memory
    of that agent has been looked at.
    """
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        for kind in KINDS:
            for model in (kind.memories, kind.links):
                cursor.execute(f"ANALYZE {connection.ops.quote_name(model._meta.db_table)}")  # noqa: SLF001 - Django's own public-by-custom API
