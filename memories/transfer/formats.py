"""The formats that can be imported: each turns a file into lines of our own format."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.transfer import basic_memory, mcp_graph, mem0


@dataclass(frozen=True, slots=True)
class Format:
    """A format by its name. `read` takes files by their name and gives lines of JSON."""

    name: str
    titel: str | Promise
    read: Callable[[Iterable[tuple[str, BinaryIO]]], Iterator[bytes]]


def _own(files: Iterable[tuple[str, BinaryIO]]) -> Iterator[bytes]:
    for _name, file in files:
        yield from file


FORMATS = (
    Format("brain", _("Brain: an export with histories (JSON lines)"), _own),
    Format("mem0", _("mem0: all memories (JSON)"), mem0.read),
    Format("mcp-memory", _("MCP memory server: its graph (JSON lines)"), mcp_graph.read),
    Format("basic-memory", _("basic-memory: notes (Markdown, or a zip archive of them)"), basic_memory.read),
)


def format_of(name: str) -> Format:
    """The format of this name."""
    return next(each for each in FORMATS if each.name == name)
