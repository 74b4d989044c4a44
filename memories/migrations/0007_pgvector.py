"""A column of float16 numbers beside the entries' vectors, on a PostgreSQL server that has pgvector 0.8 or newer.

Where the extension may not be made by the database's user, an administrator makes it before this migration:
CREATE EXTENSION vector.
"""

import numpy as np
from django.db import ProgrammingError, migrations, transaction

_OLDEST = (0, 8)
_AT_ONCE = 1_000


def forwards(apps, schema_editor):
    connection = schema_editor.connection
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        if _made(connection, cursor):
            cursor.execute("ALTER TABLE memories_searchentry ADD COLUMN naehe halfvec")
            # In the row, where comparing many does not have to fetch each from elsewhere.
            cursor.execute("ALTER TABLE memories_searchentry ALTER COLUMN naehe SET STORAGE MAIN")
            _fill(cursor)


def _made(connection, cursor):
    """Whether the extension is there, new enough; it is made when the user may."""
    cursor.execute(
        "SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = 'vector'"
    )
    found = cursor.fetchone()
    if found is None or tuple(int(part) for part in found[0].split(".")[:2]) < _OLDEST:
        return False
    try:
        with transaction.atomic(using=connection.alias):
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except ProgrammingError:
        return False
    return True


def _fill(cursor):
    last = 0
    while True:
        cursor.execute(
            "SELECT id, vektor FROM memories_searchentry WHERE vektor IS NOT NULL AND id > %s ORDER BY id LIMIT %s",
            [last, _AT_ONCE],
        )
        rows = cursor.fetchall()
        if not rows:
            return
        last = rows[-1][0]
        cursor.execute(
            "UPDATE memories_searchentry e SET naehe = v.naehe::halfvec "
            f"FROM (VALUES {', '.join(['(%s, %s)'] * len(rows))}) AS v(id, naehe) WHERE e.id = v.id",
            [value for key, vektor in rows for value in (key, _written(vektor))],
        )


def _written(vektor):
    """Whole numbers that float16 holds exactly: a cosine does not depend on a vector's length."""
    numbers = np.frombuffer(vektor, dtype="<f4")
    return str(np.rint(numbers * (2_047 / np.abs(numbers).max())).astype(int).tolist())


def backwards(apps, schema_editor):
    connection = schema_editor.connection
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE memories_searchentry DROP COLUMN IF EXISTS naehe")


class Migration(migrations.Migration):
    dependencies = [("memories", "0006_embedding_profiles")]

    operations = [migrations.RunPython(forwards, backwards)]
