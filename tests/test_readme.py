"""What the README says is true: its calls work as they stand there, and its tables name what there is."""

import json
import re
from dataclasses import fields
from pathlib import Path

from api.mcp.prompts import PROMPTS
from api.mcp.protocol import LEGACY, MODERN
from api.tools import TOOLS
from memories.errors import ERRORS
from memories.limits import Limits
from tests.conftest import Agent

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def _section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def _first_column(title: str) -> list[str]:
    return re.findall(r"^\| `([a-z_]+)`", _section(title), flags=re.MULTILINE)


def test_the_calls_of_the_readme_work_in_their_order(anna: Agent) -> None:
    bodies = re.findall(r"-d '(\{.*?\})'\n```", README, flags=re.DOTALL)
    made = [json.loads(body) for body in bodies]
    assert len(made) == 7
    # Numbers begin where this database stands; the README's is fresh.
    answers = []
    first = ""
    for body in made:
        text = json.dumps(body).replace("longterm_1", first or "longterm_1")
        answer = anna.http.post("/api/tools/", text, content_type="application/json").json()
        first = first or answer["daten"][0]["ID"]
        answers.append(answer)
    assert [row["erfolg"] for row in answers[0]["daten"]] == [True, False, True]
    assert answers[0]["daten"][1]["fehler"] == {
        "code": "pflichtfeld",
        "feld": "memory",
        "meldung": answers[0]["daten"][1]["fehler"]["meldung"],
    }
    assert all(answer["erfolg"] for answer in answers[1:])
    assert answers[2]["daten"][0]["name"] == "insert_brain_longterm_memory"
    assert [row["version"] for row in answers[4]["daten"]] == [2, 1]


def test_the_tables_name_every_tool_and_every_code() -> None:
    assert _first_column("Tools") == [tool.name for tool in TOOLS]
    assert _first_column("Fault codes") == [error.code for error in ERRORS]


def test_the_section_on_mcp_names_every_prompt_and_version() -> None:
    section = _section("MCP")
    (row,) = re.findall(r"^\| prompts \| (.*) \|$", section, flags=re.MULTILINE)
    assert re.findall(r"`([a-z_]+)`", row) == list(PROMPTS)
    assert MODERN in section
    assert LEGACY[0] in section


def test_the_settings_table_has_every_limit_with_its_default() -> None:
    rows = dict(re.findall(r"\| `BRAIN_LIMIT_([A-Z_]+)` \| ([0-9]+) \|", _section("Settings")))
    assert rows == {field.name.upper(): str(field.default) for field in fields(Limits)}


def test_every_setting_that_is_read_is_in_the_table() -> None:
    root = Path(__file__).parent.parent
    read = {
        name
        for folder in ("brain", "api")
        for file in (root / folder).rglob("*.py")
        for name in re.findall(r'"(BRAIN_[A-Z_]+|DATABASE_URL)"', file.read_text(encoding="utf-8"))
        if name != "BRAIN_LIMIT_"
    }
    assert read
    for name in read:
        assert f"`{name}`" in _section("Settings"), name
