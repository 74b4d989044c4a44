"""What other programs exported comes in: mem0, the MCP memory server, basic-memory; what has no place is told."""

import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from memories.models import ImportJob, ImportLine, LongtermMemory, LongtermVersion, ShorttermMemory
from tests.admincast import person
from tests.test_transfer_admin import IMPORTING, finish, page
from tests.transferring import assert_sound, run_import

pytestmark = pytest.mark.django_db
DEFAULTS = ("--nutzer", "anna", "--agent", "planer", "--scope", "global")

# As in https://docs.mem0.ai/api-reference/memory/get-memory
MEM0 = {
    "id": "3c90c3cc-0d44-4b50-8888-8dd25736052a",
    "memory": "Dev works at TechCorp as a senior engineer",
    "user_id": "dev",
    "agent_id": None,
    "app_id": None,
    "run_id": "trip",
    "hash": "e7",
    "metadata": {"type": "professional"},
    "categories": ["work", "Work", "career"],
    "created_at": "2023-11-07T05:31:56Z",
    "updated_at": "2024-07-26T08:44:41.039788-07:00",
}
# As in https://github.com/modelcontextprotocol/servers/blob/main/src/memory/README.md
GRAPH = [
    {
        "type": "entity",
        "name": "John_Smith",
        "entityType": "person",
        "observations": ["Speaks fluent Spanish", "Graduated in 2019"],
    },
    {"type": "relation", "from": "John_Smith", "to": "Anthropic", "relationType": "works_at"},
    {"type": "entity", "name": "Anthropic", "entityType": "organization", "observations": []},
    {"type": "relation", "from": "Nobody", "to": "Anthropic", "relationType": "likes"},
]
# As in https://docs.basicmemory.com/concepts/knowledge-format
NOTE = """---
title: Coffee Brewing Methods
type: note
tags: [coffee, brewing]
permalink: coffee-brewing-methods
created: 2024-01-15
status: active
---

# Coffee Brewing Methods

## Observations
- [method] Pour over provides more flavor clarity than French press
- [technique] Water temperature at 205°F extracts optimal compounds #brewing #heat
- [x] a task
- [00:11] a line of a transcript

## Relations
- relates_to [[Coffee Bean Origins]]
"""


def written(folder: Path, name: str, content: str) -> Path:
    """A file."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize("whole", [[MEM0], {"count": 1, "results": [MEM0]}], ids=["a list", "an answer of the API"])
def test_mem0(tmp_path: Path, whole: Any) -> None:
    path = written(tmp_path, "mem0.json", json.dumps(whole))
    flags = ("--format", "mem0", "--agent", "planer", "--scope", "global")
    counts, told = run_import(path, *flags)
    assert counts["neu"] == 1, told
    memory = LongtermMemory.objects.get()
    assert (memory.memory, memory.kurzbeschreibung) == (MEM0["memory"], MEM0["memory"])
    assert (memory.nutzer, memory.agent, memory.scope) == ("dev", "planer", "global")
    assert memory.tag_namen == ["work", "career"]
    assert memory.erstellt_am.isoformat() == "2023-11-07T05:31:56+00:00"
    for name in ("metadata", "professional", "run_id", "updated_at"):
        assert name in told
    assert "hash" not in told
    assert run_import(path, *flags)[0]["gleich"] == 1
    assert_sound()


def test_what_expires_in_mem0_is_a_short_term_memory(tmp_path: Path) -> None:
    other = MEM0 | {"id": "2", "memory": "x" * 500, "expiration_date": "2999-12-31"}
    path = written(tmp_path, "mem0.json", json.dumps([other, {"id": "3"}, 4]))
    counts, told = run_import(path, "--format", "mem0", *DEFAULTS)
    assert (counts["neu"], counts["fehlerhaft"]) == (1, 2), told
    memory = ShorttermMemory.objects.get()
    assert memory.gueltig_bis.year == 2999
    assert len(memory.kurzbeschreibung) == 120


@pytest.mark.parametrize(("content", "why"), [(b"[", "es endet zu früh"), (b"[\xff]", "kein UTF-8 ab Byte 1")])
def test_why_a_file_is_no_json_is_told_in_one_language(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "brain.json"
    path.write_bytes(content)
    for flags in (("--format", "mem0"), ()):
        _counts, told = run_import(path, *flags, *DEFAULTS)
        assert f"kein gültiges JSON: {why}" in told


@pytest.mark.parametrize("text", ["{", "3", '{"results": 3}'])
def test_what_is_no_export_of_mem0_is_told(tmp_path: Path, text: str) -> None:
    counts, told = run_import(written(tmp_path, "mem0.json", text), "--format", "mem0", *DEFAULTS)
    assert counts["fehlerhaft"] == 1
    assert "mem0.json" in told


def test_the_graph_of_the_mcp_memory_server(tmp_path: Path) -> None:
    lines = [*map(json.dumps, GRAPH), "{", json.dumps({"type": "entity", "name": 3}), json.dumps(GRAPH[0]), "", "[]"]
    path = written(tmp_path, "memory.jsonl", "\n".join(lines))
    counts, told = run_import(path, "--format", "mcp-memory", *DEFAULTS)
    assert (counts["neu"], counts["fehlerhaft"]) == (2, 5), told
    john, anthropic = LongtermMemory.objects.order_by("pk")
    assert (john.kurzbeschreibung, john.tag_namen) == ("John_Smith", ["person"])
    assert john.memory == "Speaks fluent Spanish\nGraduated in 2019\n\nworks_at: Anthropic"
    assert (anthropic.memory, anthropic.nutzer) == ("Anthropic", "anna")
    assert "Nobody" in told
    changed = GRAPH[0] | {"observations": ["Speaks fluent Spanish"]}
    path = written(tmp_path, "memory.jsonl", json.dumps(changed))
    assert run_import(path, "--format", "mcp-memory", *DEFAULTS)[0]["geaendert"] == 1
    assert LongtermVersion.objects.filter(memory_id=john.pk).count() == 2
    assert_sound()


def test_notes_of_basic_memory(tmp_path: Path) -> None:
    written(tmp_path, "kaffee/Coffee.md", NOTE)
    written(tmp_path, "kaffee/Ohne Kopf.md", "Nur Text\n")
    written(tmp_path, "kaffee/schlecht.md", "---\na: [\n---\nText")
    written(tmp_path, "kaffee/bombe.md", "---\na: &a [1]\nb: *a\n---\nText")
    written(tmp_path, "kaffee/bild.png", "nichts")
    counts, told = run_import(tmp_path / "kaffee", "--format", "basic-memory", *DEFAULTS)
    assert (counts["neu"], counts["fehlerhaft"]) == (2, 2), told
    coffee, plain = LongtermMemory.objects.order_by("pk")
    assert coffee.kurzbeschreibung == "Coffee Brewing Methods"
    assert coffee.memory == NOTE.partition("status: active\n---\n")[2].strip("\n")
    assert coffee.tag_namen == ["coffee", "brewing", "method", "technique", "heat"]
    assert coffee.erstellt_am.date().isoformat() in {"2024-01-14", "2024-01-15"}
    assert (plain.kurzbeschreibung, plain.memory) == ("Ohne Kopf", "Nur Text")
    assert "status" in told
    assert "schlecht.md" in told
    assert run_import(tmp_path / "kaffee", "--format", "basic-memory", *DEFAULTS)[0]["gleich"] == 2
    assert_sound()


def test_rows_need_what_the_file_does_not_say(tmp_path: Path) -> None:
    path = written(tmp_path, "memory.jsonl", json.dumps(GRAPH[0]))
    counts, told = run_import(path, "--format", "mcp-memory")
    assert counts["fehlerhaft"] == 1
    for name in ("nutzer", "agent", "scope"):
        assert f"{name}: " in told


def test_an_archive_of_notes_in_the_admin() -> None:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/Coffee.md", NOTE)
        archive.writestr("b.txt", "nichts")
    file.seek(0)
    file.name = "notes.zip"
    client = person("anna", IMPORTING)
    data = {"datei": file, "format": "basic-memory", "nutzer": "anna", "agent": "planer", "scope": "global"}
    assert client.post(page("add"), data).status_code == 302
    assert finish(client)["neu"] == 1
    client.post(page("start", ImportJob.objects.get().pk))
    assert finish(client)["neu"] == 1
    assert LongtermMemory.objects.get().kurzbeschreibung == "Coffee Brewing Methods"
    assert "status" in ImportLine.objects.get().hinweise


def test_what_is_no_archive_is_told_in_the_report() -> None:
    file = BytesIO(b"nichts")
    file.name = "notes.zip"
    client = person("anna", IMPORTING)
    client.post(page("add"), {"datei": file, "format": "basic-memory"})
    assert finish(client)["fehlerhaft"] == 1
    assert "notes.zip" in ImportLine.objects.get().meldung
