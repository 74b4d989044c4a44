"""The tools for long-term memories. The schemas of insert and update are given from outside."""

from api.fields import EMBEDDING, PROFILE, TAGS, filled, identifier, memory_id, translated
from api.schemas import GIVEN, answer, call, changed_row, embedding_fields, memories, names, note_fields, text
from api.tool import Shape, Tool
from api.tools.changes import deleting, help_example, inserting, updating
from api.tools.selects import selecting
from memories.kinds import LONGTERM
from memories.principal import Action

LIMITS = ("kurzbeschreibung", "memory", "tag_name", "embedding")
COLUMNS = {"embedding_profil_hash": "embedding_profil_hash", "ebedding_profil_haash": "embedding_profil_hash"}
REQUIRED = ["kurzbeschreibung", "memory", "tags", "scope", "scope_vk", "agent", "nutzer"]
CHANGED = (filled("kurzbeschreibung"), filled("memory"), TAGS, EMBEDDING, PROFILE)
STORED = (
    *CHANGED,
    identifier("scope"),
    identifier("scope_vk", may_be_empty=True),
    identifier("agent"),
    identifier("nutzer"),
)
ID_SCHEMA = {"type": "string", "pattern": "^(shortterm|longterm)_[1-9][0-9]*$"}

INSERT = Tool(
    name="insert_brain_longterm_memory",
    titel="Langzeit-Erinnerungen anlegen",
    beschreibung=(
        "Legt 1 bis 100 Langzeit-Erinnerungen an, Eintrag für Eintrag: was gelingt, ist gespeichert, auch "
        "wenn andere Einträge fehlschlagen. Zu wiederholen sind nur die fehlgeschlagenen. Tags sind Namen und "
        "werden bei Bedarf angelegt; Groß- und Kleinschreibung macht kein neues Tag. nutzer und agent im "
        "Eintrag sind die Eigentümer, unter inhalt sagen sie, wer aufruft."
    ),
    shape=Shape.MEMORIES,
    input_schema=call(memories(note_fields(GIVEN), REQUIRED, GIVEN), ["memories"], GIVEN),
    output_schema=answer(changed_row()),
    read=lambda entry: translated(entry, STORED),
    handler=inserting(LONGTERM),
    action=Action.INSERT,
    typ=LONGTERM.typ,
    grenzen=LIMITS,
    spalten=COLUMNS,
    beispiel=help_example("insert_brain_longterm_memory"),
)

UPDATE = Tool(
    name="update_brain_longterm_memory",
    titel="Langzeit-Erinnerungen ändern",
    beschreibung=(
        "Ändert 1 bis 100 Langzeit-Erinnerungen, Eintrag für Eintrag. kurzbeschreibung, memory und tags "
        "werden ganz ersetzt; [] entfernt alle Tags. scope, scope_vk, agent und nutzer ändern sich nie. Der "
        "Stand davor bleibt in der Historie. Ändert sich der Text ohne neues Embedding, gilt das alte als "
        "veraltet."
    ),
    shape=Shape.MEMORIES,
    input_schema=call(
        memories(
            {
                "ID": ID_SCHEMA,
                "kurzbeschreibung": text(),
                "memory": text(),
                "tags": names(),
                **embedding_fields(GIVEN),
            },
            ["ID", "kurzbeschreibung", "memory", "tags"],
            GIVEN,
        ),
        ["memories"],
        GIVEN,
    ),
    output_schema=answer(changed_row()),
    read=lambda entry: translated(entry, (memory_id(LONGTERM), *CHANGED)),
    handler=updating(LONGTERM),
    action=Action.WRITE,
    destructive=True,
    versioned=True,
    typ=LONGTERM.typ,
    grenzen=LIMITS,
    spalten=COLUMNS,
    beispiel=help_example("update_brain_longterm_memory"),
)

SELECT = selecting(
    LONGTERM,
    name="select_brain_longterm_memory",
    titel="Langzeit-Erinnerungen lesen",
    was="Langzeit-Erinnerungen",
)

DELETE = deleting(
    LONGTERM,
    name="delete_brain_longterm_memory",
    titel="Langzeit-Erinnerungen löschen",
    was="Langzeit-Erinnerungen",
)
