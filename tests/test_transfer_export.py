"""Memories go out whole, as JSON lines with their histories, or as a table; each person takes out what he sees."""

import base64
import csv
import json
from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memories.kinds import BRAIN, LONGTERM, SHORTTERM
from memories.models import Grant, LongtermMemory
from memories.principal import SYSTEM, Origin
from memories.services import Change, delete, promote, restore, update
from memories.values import embedding
from tests.admincast import person, store, url

pytestmark = pytest.mark.django_db
VECTOR = [0.1, -1.25, 3.4e38]


def exported(*flags: str) -> list[dict[str, Any]]:
    """The lines of an export, but for its header."""
    out = StringIO()
    call_command("export_memories", *flags, stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()[1:]]


def origin(**values: Any) -> Origin:
    """An agent's change."""
    return Origin(SYSTEM, nutzer="ben", agent="planer", tuer="mcp", tool="test", **values)


def read(response: Any) -> str:
    """The body of a stream."""
    assert response.status_code == 200, response
    return b"".join(response.streaming_content).decode()


def test_a_memory_goes_out_with_all_it_holds_and_its_history() -> None:
    key = store(embedding=embedding(VECTOR, "embedding"), embedding_profil_hash="p")
    update(LONGTERM, [Change(key, {"memory": "neu", "tag_namen": ["Frist", "Büro"]})], origin(grund="Irrtum"))
    line = exported()[0]
    assert line["typ"] == "longterm"
    assert line["herkunft"]["ID"] == f"longterm_{key}"
    assert (line["memory"], line["tags"], line["embedding_veraltet"]) == ("neu", ["Frist", "Büro"], True)
    numbers = np.frombuffer(base64.b64decode(line["embedding"]), dtype="<f4")
    assert numbers.tobytes() == np.array(VECTOR, dtype="<f4").tobytes()
    first, second = line["versionen"]
    assert (first["version"], first["aktion"], first["tuer"]) == (1, "angelegt", "rest")
    assert first["referenzfelder"] == {"ticket": "T-17"}
    assert first["stand"]["memory"].startswith("Die Kündigungsfrist")
    assert (second["durch_nutzer"], second["tuer"], second["grund"]) == ("ben", "mcp", "Irrtum")
    assert second["zeitpunkt"] == line["aktualisiert_am"]


def test_the_first_line_names_the_format_and_the_version() -> None:
    out = StringIO()
    call_command("export_memories", stdout=out)
    assert json.loads(out.getvalue()) == {"brain_export": 1, "brain_version": "0.1.0"}


def test_deleted_memories_go_out_when_asked() -> None:
    key = store()
    delete(LONGTERM, [key], origin())
    assert exported() == []
    line = exported("--with-deleted")[0]
    assert line["geloescht"]
    assert [version["aktion"] for version in line["versionen"]] == ["angelegt", "geloescht"]
    restore(LONGTERM, key, 1, origin())
    assert not exported("--with-deleted")[0]["geloescht"]


def test_kinds_and_limits_narrow_an_export() -> None:
    store()
    store(nutzer="ben", scope="projekt")
    store(BRAIN, memory_typ="arbeit", titel="T", inhalt="", nutzer="ben", scope_typ="agent", scope_id="7")
    assert len(exported()) == 3
    assert len(exported("--nutzer", "ben")) == 2
    assert len(exported("--nutzer", "ben", "--nutzer", "anna")) == 3
    assert [line["typ"] for line in exported("--kind", "brain")] == ["brain"]
    assert [line["scope_ID"] for line in exported("--scope", "agent", "--scope-vk", "7")] == ["7"]
    assert len(exported("--scope", "projekt", "--with-deleted")) == 1


def test_a_promotion_names_the_other_memory() -> None:
    key = store(SHORTTERM, gueltig_bis=None)
    promote([key], origin())
    longterm, shortterm = exported("--with-deleted")
    assert longterm["versionen"][0]["verweis"] == shortterm["herkunft"]["ID"]
    assert shortterm["versionen"][-1]["verweis"] == longterm["herkunft"]["ID"]


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠a"])
def test_what_begins_like_a_formula_is_marked_as_text(text: str) -> None:
    store(kurzbeschreibung=text)
    out = StringIO()
    call_command("export_memories", "--csv", "--kind", "longterm", stdout=out)
    row = next(csv.DictReader(StringIO(out.getvalue().removeprefix("\ufeff"), newline="")))
    assert row["kurzbeschreibung"] == f"'{text}"


def test_an_identifier_is_asked_for_in_any_form_and_one_that_none_can_be_is_told() -> None:
    store(nutzer="jürgen", scope_vk="")
    assert [row["nutzer"] for row in exported("--nutzer", "ju\u0308rgen", "--scope-vk", "")] == ["jürgen"]
    for flags in (["--nutzer", " jürgen"], ["--agent", ""], ["--scope", "a\u200b"]):
        with pytest.raises(CommandError, match=flags[0].removeprefix("--")):
            exported(*flags)


def test_a_table_holds_no_formula_and_no_vector() -> None:
    store(kurzbeschreibung='=HYPERLINK("http://x")', memory="-1\n+2", tag_namen=["@a", "b"])
    out = StringIO()
    call_command("export_memories", "--csv", "--kind", "longterm", stdout=out)
    assert out.getvalue().startswith("\ufeffID,")
    row = next(csv.DictReader(StringIO(out.getvalue().removeprefix("\ufeff"), newline="")))
    assert row["kurzbeschreibung"] == '\'=HYPERLINK("http://x")'
    assert (row["memory"], row["tags"]) == ("'-1\n+2", "'@a, b")
    assert "embedding" not in row
    with pytest.raises(CommandError):
        call_command("export_memories", "--csv")


def test_statements_do_not_grow_with_the_memories() -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as found:
            exported()
        return len(found)

    store()
    exported()
    few = statements()
    for _ in range(30):
        store()
    assert statements() == few


def test_the_list_goes_out_as_it_is_filtered() -> None:
    store(memory="Miete")
    store(memory="Pacht", nutzer="ben")
    client = person("vera", ["view_longtermmemory", "export_longtermmemory"])
    lines = read(client.get(url("export_jsonl"))).splitlines()
    assert json.loads(lines[0])["brain_export"] == 1
    assert len(lines) == 3
    assert read(client.get(url("export_jsonl"), {"nutzer": "ben"})).count("Pacht") == 2
    assert "Miete" not in read(client.get(url("export_jsonl"), {"nutzer": "ben"}))
    assert "Miete" in read(client.get(url("export_csv"), {"q": "Miete"}))
    assert "Pacht" not in read(client.get(url("export_csv"), {"q": "Miete"}))
    assert url("export_jsonl") in client.get(url("changelist")).content.decode()


def test_a_person_takes_out_what_he_may_see() -> None:
    store(memory="Miete")
    store(memory="Pacht", nutzer="ben")
    client = person("vera", ["view_longtermmemory", "export_longtermmemory"])
    Grant.objects.filter(user=User.objects.get(username="vera")).update(nutzer=["ben"])
    for form in ("export_jsonl", "export_csv"):
        body = read(client.get(url(form)))
        assert "Pacht" in body
        assert "Miete" not in body


def test_versions_out_of_sight_stay_here() -> None:
    own = {"memory_typ": "arbeit", "titel": "T", "inhalt": "geheim", "scope_typ": "modul", "scope_id": "1"}
    key = store(BRAIN, **own)
    update(BRAIN, [Change(key, {"inhalt": "offen", "scope_typ": "global"})], origin())
    client = person("vera", ["view_brainmemory", "export_brainmemory"])
    Grant.objects.filter(user=User.objects.get(username="vera")).update(scope=["global"])
    body = read(client.get(url("export_jsonl", kind="brain")))
    assert "offen" in body
    assert "geheim" not in body
    assert json.loads(body.splitlines()[1])["versionen"] == []


def test_exporting_is_a_right_of_its_own() -> None:
    store()
    client = person("vera", ["view_longtermmemory", "view_brainmemory", "export_brainmemory"])
    assert client.get(url("export_jsonl")).status_code == 403
    assert client.get(url("export_csv")).status_code == 403
    assert url("export_jsonl") not in client.get(url("changelist")).content.decode()
    assert client.get(url("export_jsonl", kind="brain")).status_code == 200
    assert Client().get(url("export_jsonl")).status_code == 302
    assert LongtermMemory.objects.exists()
