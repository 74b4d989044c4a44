"""The full-text index, the vocabulary and the past entries follow the search entries by triggers of the database.

SQLite: FTS5 tables over the entries' `stamm` and `geltung`, and one of trigrams over the vocabulary.
PostgreSQL: a generated tsvector with a GIN index, and pg_trgm over the vocabulary. What is from `geltung` begins with
"=" there, which no stem can.
"""

from django.db import migrations

_COLUMNS = (
    "typ, memory_id, teil, version, seit, erstellt_am, gueltig_bis, "
    "profil_hash, dimension, veraltet, vektor, stamm, geltung"
)


def _old(prefix):
    return ", ".join(f"{prefix}.{column.strip()}" for column in _COLUMNS.split(","))


_SAME = "typ = OLD.typ AND memory_id = OLD.memory_id AND teil = OLD.teil"
# Stems hold letters and digits alone, so a list of them becomes JSON by putting quotes between them.
_WORDS = """json_each('["' || replace({row}.stamm, ' ', '","') || '"]')"""


def _sqlite_fulltext(table, name):
    values = "{row}.id, {row}.stamm, {row}.geltung"
    gone = f"INSERT INTO {name}({name}, rowid, stamm, geltung) VALUES ('delete', {values.format(row='OLD')});"
    made = f"INSERT INTO {name}(rowid, stamm, geltung) VALUES ({values.format(row='NEW')});"
    return [
        f"CREATE VIRTUAL TABLE {name} USING fts5(stamm, geltung, content='{table}', content_rowid='id', "
        "tokenize='unicode61 remove_diacritics 0')",
        f"CREATE TRIGGER {name}_insert AFTER INSERT ON {table} BEGIN {made} END",
        f"CREATE TRIGGER {name}_delete AFTER DELETE ON {table} BEGIN {gone} END",
        f"CREATE TRIGGER {name}_update AFTER UPDATE OF stamm, geltung ON {table} BEGIN {gone} {made} END",
    ]


def _sqlite():
    live, past, word = "memories_searchentry", "memories_pastentry", "memories_word"
    counted = (
        f"INSERT INTO {word}(stamm, df) SELECT DISTINCT value, 1 FROM {_WORDS.format(row='NEW')} WHERE value <> '' "
        "ON CONFLICT (stamm) DO UPDATE SET df = df + 1;"
    )
    uncounted = f"UPDATE {word} SET df = df - 1 WHERE stamm IN (SELECT value FROM {_WORDS.format(row='OLD')});"
    keep = f"INSERT INTO {past}({_COLUMNS}, bis) VALUES ({_old('OLD')}, {{bis}});"
    return [
        *_sqlite_fulltext(live, "memories_fulltext"),
        *_sqlite_fulltext(past, "memories_pastfulltext"),
        f"CREATE TRIGGER {live}_words_insert AFTER INSERT ON {live} BEGIN {counted} END",
        f"CREATE TRIGGER {live}_words_delete AFTER DELETE ON {live} BEGIN {uncounted} END",
        f"CREATE TRIGGER {live}_words_update AFTER UPDATE OF stamm ON {live} WHEN NEW.stamm <> OLD.stamm "
        f"BEGIN {uncounted} {counted} END",
        f"CREATE TRIGGER {live}_past_update AFTER UPDATE OF version ON {live} WHEN NEW.version <> OLD.version "
        f"BEGIN {keep.format(bis='NEW.seit')} END",
        f"CREATE TRIGGER {live}_past_delete AFTER DELETE ON {live} WHEN OLD.bis IS NOT NULL BEGIN {keep.format(bis='OLD.bis')} END",
        f"CREATE VIRTUAL TABLE memories_wordtrigram USING fts5(stamm, content='{word}', content_rowid='id', "
        "tokenize='trigram')",
        f"CREATE TRIGGER memories_wordtrigram_insert AFTER INSERT ON {word} BEGIN "
        "INSERT INTO memories_wordtrigram(rowid, stamm) VALUES (NEW.id, NEW.stamm); END",
        f"CREATE TRIGGER memories_wordtrigram_delete AFTER DELETE ON {word} BEGIN INSERT INTO "
        "memories_wordtrigram(memories_wordtrigram, rowid, stamm) VALUES ('delete', OLD.id, OLD.stamm); END",
    ]


def _postgresql():
    live, past, word = "memories_searchentry", "memories_pastentry", "memories_word"
    tsvector = """
        CREATE FUNCTION brain_tsvector(stamm text, geltung text) RETURNS tsvector
        LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT array_to_tsvector(string_to_array('=' || replace(geltung, ' ', ' ='), ' ')) || coalesce(
                (SELECT string_agg(quote_literal(w) || ':' || least(n, 16383), ' ')::tsvector
                 FROM unnest(string_to_array(stamm, ' ')) WITH ORDINALITY AS t(w, n) WHERE w <> ''),
                ''::tsvector)
        $$"""
    words = f"""
        CREATE FUNCTION brain_words() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO {word}(stamm, df)
            SELECT w, 0 FROM (
                SELECT DISTINCT unnest(string_to_array(stamm, ' ')) AS w FROM changed
            ) AS fresh WHERE w <> '' ORDER BY w
            ON CONFLICT (stamm) DO NOTHING;
            RETURN NULL;
        END $$"""
    keep = f"""
        CREATE FUNCTION brain_past() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO {past}({_COLUMNS}, bis)
            VALUES ({_old("OLD")}, CASE TG_OP WHEN 'UPDATE' THEN NEW.seit ELSE OLD.bis END);
            RETURN NULL;
        END $$"""
    column = "sd tsvector GENERATED ALWAYS AS (brain_tsvector(stamm, geltung)) STORED"
    # Of most matches nothing but the key is read, so that all that is large lies elsewhere.
    outside = ("vektor", "stamm", "geltung", "sd")
    narrow = [
        statement
        for table in (live, past)
        for statement in (
            f"ALTER TABLE {table} SET (toast_tuple_target = 256)",
            f"ALTER TABLE {table} " + ", ".join(f"ALTER COLUMN {name} SET STORAGE EXTERNAL" for name in outside),
        )
    ]
    # What an index puts off, every search would read through.
    at_once = "WITH (fastupdate = off)"
    return [
        "CREATE EXTENSION IF NOT EXISTS pg_trgm",
        tsvector,
        words,
        keep,
        f"ALTER TABLE {live} ADD COLUMN {column}",
        f"ALTER TABLE {live} ALTER COLUMN sd SET STATISTICS 1000",
        f"CREATE INDEX {live}_fulltext ON {live} USING gin(sd) {at_once}",
        f"ALTER TABLE {past} ADD COLUMN {column}",
        f"CREATE INDEX {past}_fulltext ON {past} USING gin(sd)",
        *narrow,
        f"CREATE INDEX {word}_trigram ON {word} USING gin(stamm gin_trgm_ops) {at_once}",
        f"CREATE TRIGGER {live}_words_insert AFTER INSERT ON {live} REFERENCING NEW TABLE AS changed "
        "FOR EACH STATEMENT EXECUTE FUNCTION brain_words()",
        f"CREATE TRIGGER {live}_words_update AFTER UPDATE ON {live} REFERENCING NEW TABLE AS changed "
        "FOR EACH STATEMENT EXECUTE FUNCTION brain_words()",
        f"CREATE TRIGGER {live}_past_update AFTER UPDATE ON {live} FOR EACH ROW "
        "WHEN (NEW.version <> OLD.version) EXECUTE FUNCTION brain_past()",
        f"CREATE TRIGGER {live}_past_delete AFTER DELETE ON {live} FOR EACH ROW "
        "WHEN (OLD.bis IS NOT NULL) EXECUTE FUNCTION brain_past()",
    ]


def forwards(apps, schema_editor):
    connection = schema_editor.connection
    statements = {"sqlite": _sqlite, "postgresql": _postgresql}[connection.vendor]()
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def backwards(apps, schema_editor):
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for name in ("memories_fulltext", "memories_pastfulltext", "memories_wordtrigram"):
                cursor.execute(f"DROP TABLE {name}")
        else:
            for table in ("memories_searchentry", "memories_pastentry"):
                cursor.execute(f"ALTER TABLE {table} DROP COLUMN sd")
            cursor.execute("DROP INDEX memories_word_trigram")
            for name in ("brain_words", "brain_past"):
                cursor.execute(f"DROP FUNCTION {name} CASCADE")
            cursor.execute("DROP FUNCTION brain_tsvector")


class Migration(migrations.Migration):
    dependencies = [("memories", "0004_search")]

    operations = [migrations.RunPython(forwards, backwards)]
