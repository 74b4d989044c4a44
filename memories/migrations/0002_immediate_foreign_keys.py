"""PostgreSQL: check the tag links' foreign keys at each statement, not at commit.

Django makes them deferred. Then one tag that vanished would take a whole batch down at commit, when nobody can say
any more which memory it was.
"""

from django.db import migrations


def _set(apps, schema_editor, timing):
    connection = schema_editor.connection
    if connection.vendor != "postgresql":
        return
    for name in ("LongtermTag", "ShorttermTag", "BrainTag"):
        table = apps.get_model("memories", name)._meta.db_table
        with connection.cursor() as cursor:
            constraints = connection.introspection.get_constraints(cursor, table)
        for constraint, facts in constraints.items():
            if facts["foreign_key"]:
                schema_editor.execute(
                    f"ALTER TABLE {schema_editor.quote_name(table)} "
                    f"ALTER CONSTRAINT {schema_editor.quote_name(constraint)} {timing}"
                )


def forwards(apps, schema_editor):
    _set(apps, schema_editor, "NOT DEFERRABLE")


def backwards(apps, schema_editor):
    _set(apps, schema_editor, "DEFERRABLE INITIALLY DEFERRED")


class Migration(migrations.Migration):
    dependencies = [("memories", "0001_initial")]

    operations = [migrations.RunPython(forwards, backwards)]
