"""What tests of export and import share: files, other installations, and the proofs that nothing drifted."""

import json
import uuid
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import CommandError, call_command
from django.utils import translation

from memories.drift import deviations
from memories.kinds import KINDS
from memories.models import ImportedMemory, Installation, OpenReference, PastEntry, SearchEntry, Tag
from memories.search import upkeep


def export(*flags: str) -> str:
    """The text of an export."""
    out = StringIO()
    call_command("export_memories", *(flags or ["--with-deleted"]), stdout=out)
    return out.getvalue()


def lines_of(text: str) -> list[dict[str, Any]]:
    """The lines of an export, but for its header."""
    return [json.loads(line) for line in text.splitlines()[1:]]


def file_of(folder: Path, *lines: Any) -> Path:
    """A file of these lines: texts, or values to be written as JSON."""
    path = folder / f"{uuid.uuid4()}.jsonl"
    text = "\n".join(line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines)
    path.write_text(text, encoding="utf-8")
    return path


def run_import(path: Path, *flags: str) -> tuple[dict[str, int], str]:
    """How many rows became what (neu, geaendert, gleich, fehlerhaft), and what was told of single lines."""
    out, err = StringIO(), StringIO()
    try:
        with translation.override("de"):
            call_command("import_memories", str(path), *flags, stdout=out, stderr=err)
    except CommandError as error:
        err.write(str(error))
    counts = out.getvalue().splitlines()[-1].split(", ") if out.getvalue() else []
    return dict(
        zip(("neu", "geaendert", "gleich", "fehlerhaft"), (int(count.split()[0]) for count in counts), strict=False)
    ), err.getvalue()


def become_another_installation() -> None:
    """Forget everything, as a new and empty Brain would."""
    for kind in KINDS:
        for model in (kind.links, kind.memories, kind.versions):
            model.objects.all()._raw_delete("default")  # noqa: SLF001
    for model in (Tag, ImportedMemory, OpenReference, Installation, SearchEntry, PastEntry):
        model.objects.all().delete()


def assert_sound() -> None:
    """Histories have no gap, live rows and tags agree with them, and each memory is found as it is and was."""
    assert [deviation for kind in KINDS for deviation in deviations(kind)] == []
    assert list(upkeep.check(lambda _where, _seen: None)) == []


def versions() -> Counter[str]:
    """How many versions there are of each kind."""
    return Counter({kind.typ: kind.versions.objects.count() for kind in KINDS})
