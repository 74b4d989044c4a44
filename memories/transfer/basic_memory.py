"""Notes of basic-memory: Markdown with YAML front matter, observations and relations in its lists.

Format as in https://docs.basicmemory.com/concepts/knowledge-format and in src/basic_memory/markdown (entity_parser.py,
plugins.py) of https://github.com/basicmachines-co/basic-memory: `- [category] text #tag (context)`. A note becomes a
memory: its title, its text as it is, and as tags those of the front matter, of the observations, and their categories.
"""

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from pathlib import PurePosixPath
from typing import Any, BinaryIO

import yaml
from django.utils.translation import gettext as _

from memories.transfer.told import faulty, line, told_fields

_INSTANZ = "basic-memory"
_LARGEST = 64 * 1024 * 1024  # bytes of all notes of an archive
_READ = {"title", "tags", "permalink", "created"}
_FRONT = re.compile(r"\A---[ \t]*\r?\n(?P<front>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_ITEM = re.compile(r"^[ \t]*[-*+][ \t]+(?P<text>.+)$", re.MULTILINE)
_CATEGORY = re.compile(r"\[(?P<category>[^\[\]()]+)\]\s+\S")
_CLOCK = re.compile(r"\d{1,3}:\d{2}")
_TASK = frozenset("xX")


class _Loader(yaml.SafeLoader):
    """Front matter without aliases, which can make a small text a huge value."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """A node that is written out."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("alias")
        return super().compose_node(parent, index)


def read(files: Iterable[tuple[str, BinaryIO]]) -> Iterator[bytes]:
    """A line for each note; a file may also be a zip archive of notes."""
    for name, file in files:
        if name.lower().endswith(".zip"):
            yield from _archive(name, file)
        else:
            yield _note(name, file.read())


def _archive(name: str, file: BinaryIO) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(file) as archive:
            notes = [each for each in archive.infolist() if each.filename.lower().endswith(".md")]
            if sum(each.file_size for each in notes) > _LARGEST:
                yield faulty(_("The notes in %(file)s are too large together.") % {"file": name})
                return
            for each in notes:
                yield _note(each.filename, archive.read(each))
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        yield faulty(_("%(file)s is no zip archive that can be read: %(reason)s") % {"file": name, "reason": error})


def _note(name: str, content: bytes) -> bytes:
    try:
        text = content.decode("utf-8-sig")
        found = _FRONT.match(text)
        front = yaml.load(found["front"], Loader=_Loader) if found else {}  # noqa: S506 - a safe loader, and stricter
    except (ValueError, RecursionError, yaml.YAMLError):
        return faulty(_("%(file)s is no note: it is not UTF-8, or its front matter is no YAML.") % {"file": name})
    if not isinstance(front, Mapping):
        front = {}
    body = (text[found.end() :] if found else text).strip("\r\n")
    title = str(front.get("title") or PurePosixPath(name).stem)
    row = {
        "typ": "longterm",
        "herkunft": {"instanz": _INSTANZ, "ID": str(front.get("permalink") or name)},
        "kurzbeschreibung": title,
        "memory": body if body.strip() else title,
        "tags": [*_front_tags(front.get("tags")), *_tags_of(body)],
        "erstellt_am": _moment(front.get("created")),
    }
    named = {str(key): value for key, value in front.items() if (key, value) != ("type", "note")}
    return line(row, told_fields(named, _READ))


def _front_tags(told: Any) -> list[str]:
    """The tags of the front matter: a list, or names with commas between."""
    names = told if isinstance(told, list) else str(told or "").split(",")
    return [name for each in names if (name := str(each).strip().lstrip("#"))]


def _tags_of(body: str) -> Iterator[str]:
    """The categories and tags of observations."""
    for item in _ITEM.finditer(body):
        text = item["text"].strip()
        found = _CATEGORY.match(text)
        category = found["category"].strip() if found else ""
        marks = len(category) == 1 and (category in _TASK or not category.isalnum())
        if category and not marks and not _CLOCK.match(category):
            yield category
        for part in text.split():
            if part.startswith("#"):
                yield from filter(None, part.split("#"))


def _moment(told: Any) -> str | None:
    if isinstance(told, datetime):
        return told.isoformat()
    if isinstance(told, date):
        return f"{told.isoformat()}T00:00"
    return str(told) if told else None
