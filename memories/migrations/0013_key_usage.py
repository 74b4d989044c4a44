"""What a key has used of its limits follows the records of calls by a trigger: one statement records and counts.

A record that says "begonnen" is of a write, whose `gesamt` are the entries that it brings.
"""

from django.db import migrations

_ADDED = (
    "{column} = CASE WHEN memories_keyusage.{window} = excluded.{window} "
    "THEN memories_keyusage.{column} + excluded.{column} ELSE excluded.{column} END"
)
_UPSERT = (
    "INSERT INTO memories_keyusage (key_id, minute, calls, day, entries, bytes) "
    "VALUES (NEW.schluessel_id, {seconds} / 60, 1, {seconds} / 86400, "
    "CASE WHEN NEW.code = 'begonnen' THEN NEW.gesamt ELSE 0 END, NEW.bytes) "
    "ON CONFLICT (key_id) DO UPDATE SET "
    + ", ".join(
        _ADDED.format(column=column, window=window)
        for column, window in (("calls", "minute"), ("entries", "day"), ("bytes", "day"))
    )
    + ", minute = excluded.minute, day = excluded.day;"
)
_WHEN = "WHEN (NEW.schluessel_id IS NOT NULL AND NEW.code <> 'zu_viele')"
_UNIX_SQLITE = "CAST(strftime('%s', NEW.zeitpunkt) AS INTEGER)"
_UNIX_POSTGRESQL = "floor(extract(epoch FROM NEW.zeitpunkt))::bigint"
_SQLITE = (
    f"CREATE TRIGGER memories_callrecord_used AFTER INSERT ON memories_callrecord {_WHEN} "
    f"BEGIN {_UPSERT.format(seconds=_UNIX_SQLITE)} END",
)
_POSTGRESQL = (
    "CREATE FUNCTION brain_used() RETURNS trigger LANGUAGE plpgsql AS $$ "
    f"BEGIN {_UPSERT.format(seconds=_UNIX_POSTGRESQL)} RETURN NULL; END $$",
    f"CREATE TRIGGER memories_callrecord_used AFTER INSERT ON memories_callrecord FOR EACH ROW {_WHEN} "
    "EXECUTE FUNCTION brain_used()",
)


def forwards(apps, schema_editor):
    for statement in _SQLITE if schema_editor.connection.vendor == "sqlite" else _POSTGRESQL:
        schema_editor.execute(statement, params=None)


def backwards(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute("DROP TRIGGER memories_callrecord_used", params=None)
    else:
        schema_editor.execute("DROP FUNCTION brain_used CASCADE", params=None)


class Migration(migrations.Migration):
    dependencies = [("memories", "0012_calls")]

    operations = [migrations.RunPython(forwards, backwards)]
