"""What a tool is: one value that names, describes and does it. REST, `help: 1` and OpenAPI are derived from it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

from api.checking import Checker
from api.schemas import EXPECTED_VERSION, Schema
from memories.errors import BrainError
from memories.principal import ALL_KINDS, Action, Origin

Row = dict[str, Any]


class Shape(Enum):
    """Where a tool's entries stand, which decides whose fault a fault is."""

    MEMORIES = "memories"  # entries in inhalt.memories; each one's fault is its own
    IDS = "IDs"  # IDs in inhalt.IDs; each one's fault is its own
    SINGLE = "inhalt"  # inhalt itself is the one entry; its fault is the entry's
    QUERY = "query"  # inhalt is a question; its fault is the call's


@dataclass(frozen=True, slots=True)
class Call:
    """A call that may be executed: its entries without a fault so far, in canonical form, and who calls how.

    A change of one memory may name the version that it is to replace.
    """

    entries: Sequence[Any]
    origin: Origin
    erwartete_version: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of each entry, in order: a row's own fields, or its fault. `top` stands beside `daten`."""

    rows: Sequence[Row | BrainError]
    top: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Tool:
    """A tool.

    `read` brings an entry (of a QUERY, the whole of `inhalt`) into the form that `handler` works with; it gets what the
    schema found no fault with and raises a fault that carries all faults. `grenzen` names the limits that a call can
    meet, `spalten` the columns behind field names that are not the column's. `versioned` tools take
    `erwartete_version` in `inhalt`, also where a given schema does not name it. The recall log notes what a tool that
    `recalls` gives away.
    """

    name: str
    titel: str
    beschreibung: str
    shape: Shape
    input_schema: Schema
    output_schema: Schema
    read: Callable[[Any], Any]
    handler: Callable[[Call], Reply]
    action: Action = Action.READ
    typ: str | None = None
    grenzen: tuple[str, ...] = ()
    spalten: Mapping[str, str] = field(default_factory=dict)
    beispiel: Mapping[str, Any] | None = None
    destructive: bool = False
    versioned: bool = False
    recalls: bool = False

    @property
    def writes(self) -> bool:
        """Whether a call changes anything."""
        return self.action is not Action.READ

    @property
    def kind(self) -> str | None:
        """The one kind of memory that it works on; None for several."""
        return self.typ if self.typ in ALL_KINDS else None

    @property
    def listed(self) -> str:
        """The list whose entries are judged one by one, where a call has it."""
        return "memories" if self.shape is Shape.MEMORIES else "IDs"

    @cached_property
    def frame(self) -> Checker:
        """Checks the call around the entries."""
        inhalt = self.input_schema["properties"]["inhalt"]
        properties = dict(inhalt["properties"])
        if self.listed in properties:
            properties[self.listed] = {k: v for k, v in properties[self.listed].items() if k != "items"}
        if self.shape is Shape.SINGLE:
            properties = {name: properties[name] for name in ("nutzer", "agent")}
        if self.versioned:
            properties["erwartete_version"] = EXPECTED_VERSION
        frame = {
            **self.input_schema,
            "properties": {
                **self.input_schema["properties"],
                "help": {},
                "inhalt": {
                    **inhalt,
                    "properties": properties,
                    "required": [name for name in inhalt["required"] if name in properties],
                    # Unknown names are a fault; in a SINGLE call that is for the entry to tell.
                    "additionalProperties": self.shape is Shape.SINGLE,
                },
            },
            "additionalProperties": False,
        }
        return Checker(frame)

    @cached_property
    def entry(self) -> Checker:
        """Checks one entry."""
        inhalt = self.input_schema["properties"]["inhalt"]
        if self.shape is Shape.SINGLE:
            more = {"erwartete_version": EXPECTED_VERSION} if self.versioned else {}
            return Checker({**inhalt, "properties": inhalt["properties"] | more, "additionalProperties": False})
        return Checker(inhalt["properties"][self.shape.value]["items"])
