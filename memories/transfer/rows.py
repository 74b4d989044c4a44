"""Rows of an import: what a line says, in the canonical forms that the tools demand, or all that is wrong with it."""

import base64
import binascii
import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, pairwise
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from memories import values
from memories.errors import BrainError, Invalid, Missing, TooLarge
from memories.history import removing
from memories.kinds import KINDS, Kind
from memories.limits import limits
from memories.models import Aktion, MemoryTyp, ScopeTyp
from memories.transfer import FORMAT
from memories.transfer.lines import ORIGINAL, content_columns, wire_name

MOST_TAGS = 100  # as the tools' schemas have it
_MOST_RELEVANT = 100
_MOST_FAULTS = 20
_BYTES_A_NUMBER = 4
_FILE = "datei"  # the origin of lines that name none

Reader = Callable[[Any, str], Any]


@dataclass(frozen=True, slots=True)
class Past:
    """A version as its origin had it: its columns, what only the origin's own hold, and the content, by column."""

    version: int
    columns: Mapping[str, Any]
    original: Mapping[str, str]
    content: Mapping[str, Any]
    told: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A memory to import. `content` is None for one that is deleted; `hints` tell what of the line was left out."""

    number: int
    kind: Kind
    instanz: str
    kennung: str
    digest: str
    content: Mapping[str, Any] | None
    past: Sequence[Past] = ()
    hints: Sequence[str] = ()

    @property
    def titel(self) -> str:
        """Its title or short description."""
        content = self.content or self.past[-1].content
        return str(content.get("titel") or content.get("kurzbeschreibung"))

    @property
    def is_edited(self) -> bool:
        """Whether somebody changed in the file what the memory holds now, without a version."""
        newest = self.past[-1].content if self.past else {}
        return bool(newest) and any(newest[name] != value for name, value in (self.content or {}).items())


@dataclass(frozen=True, slots=True)
class Faulty:
    """A line that cannot be imported."""

    number: int
    faults: Sequence[BrainError]


def rows(lines: Iterable[bytes], now: datetime, defaults: Mapping[str, str] | None = None) -> Iterator[Row | Faulty]:
    """The rows of an export. `defaults` are for fields that a line does not have.

    Raises NewerFormat when the first line says that this program cannot read the rest.
    """
    for number, line in enumerate(lines, 1):
        row = row_of(number, line, now, defaults or {})
        if row is not None:
            yield row


class NewerFormat(Invalid):
    """The file is of a format that this program does not know."""


def _check_format(header: Mapping[str, Any]) -> None:
    if header["brain_export"] != FORMAT:
        raise NewerFormat(
            _("The file has format %(there)s; this Brain reads format %(here)d.")
            % {"there": str(header["brain_export"])[:20], "here": FORMAT}
        )


def _object(line: bytes) -> dict[str, Any]:
    try:
        told = values.strict_json(values.utf8_text(line))
    except ValueError as error:
        raise Invalid(_("This is not valid JSON: %(reason)s.") % {"reason": error}) from error
    if not isinstance(told, dict):
        raise Invalid(_("A line is a JSON object."))
    return told


def row_of(number: int, line: bytes, now: datetime, defaults: Mapping[str, str]) -> Row | Faulty | None:
    """The row that a line says; None for a blank line and the header. Raises NewerFormat."""
    if not line.strip():
        return None
    try:
        told = _object(line)
        if "brain_export" in told:
            _check_format(told)
            return None
        faults = _secrets(told)
        if faults:
            return Faulty(number, faults)
        if isinstance(told.get("fehler"), str):
            raise Invalid(told["fehler"])
        hints = told.pop("hinweise", [])
        return _row(number, dict(defaults) | told, now, hints if isinstance(hints, list) else [])
    except NewerFormat:
        raise
    except BrainError as fault:
        return Faulty(number, fault.faults)


def keepable(line: bytes) -> bytes:
    """The line as it may be kept until it is imported: of one that holds a credential, what is wrong with it alone."""
    text = line.decode("utf-8", "replace")
    try:
        faults = _secrets(json.loads(text))
    except (ValueError, RecursionError, TooLarge):
        faults = _secrets(text)
    return json.dumps({"fehler": sentences(faults)}).encode() if faults else line


def _secrets(told: Any) -> list[BrainError]:
    """The faults of texts that hold a credential, also of those that have no place here; at most 20."""
    try:
        return list(islice(values.secrets_in(told, ""), _MOST_FAULTS))
    except RecursionError as error:
        raise values.nested_too_deeply() from error


def sentences(faults: Sequence[BrainError]) -> str:
    """The faults of a line, as a report tells them."""
    return " ".join(
        f"{fault.feld}: {fault.meldung}" if fault.feld else str(fault.meldung) for fault in faults[:_MOST_FAULTS]
    )


def _row(number: int, told: Mapping[str, Any], now: datetime, hints: Sequence[Any]) -> Row:
    """The row that an object says. Raises a fault that carries all of its faults."""
    kind = next((kind for kind in KINDS if kind.typ == told.get("typ")), None)
    if kind is None:
        raise Invalid(_("The kinds are longterm, shortterm and brain."), "typ")
    faults = _Faults()
    digest = _digest(told)
    instanz, kennung = faults.of(_herkunft, told.get("herkunft"), digest) or ("", "")
    past = faults.of(_history, kind, told.get("versionen") or [], now) or []
    gone = bool(told.get("geloescht"))
    content = None if gone else faults.of(_present, kind, told, now)
    if not faults.found:
        faults.of(_check_end, kind, past, gone)
    faults.done()
    return Row(number, kind, instanz, kennung, digest, content, past, (*map(str, hints), *_left_out(kind, told, past)))


def _digest(told: Mapping[str, Any]) -> str:
    """What tells a line from others, whatever the order of its fields."""
    try:
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    except RecursionError as error:
        raise values.nested_too_deeply() from error


def _left_out(kind: Kind, told: Mapping[str, Any], past: Sequence[Past]) -> list[str]:
    """What of the line has no place here, each name once."""
    content = set(map(wire_name, content_columns(kind)))
    names = told.keys() - content - {"typ", "herkunft", "geloescht", "versionen", "aktualisiert_am"}
    for each in past:
        names |= {f"versionen.{name}" for name in each.told.keys() - _STAMP.keys() - {"zeitpunkt", "stand"}}
        names |= {f"versionen.stand.{name}" for name in each.told["stand"].keys() - content}
    return [_("%(name)s was not imported") % {"name": name[:100]} for name in sorted(names)]


class _Faults:
    """Faults of a line, gathered."""

    def __init__(self) -> None:
        self.found: list[BrainError] = []

    def of(self, read: Callable[..., Any], *given: Any) -> Any:
        """What was read, or None for a fault."""
        try:
            return read(*given)
        except BrainError as fault:
            self.found.extend(fault.faults)
            return None

    def done(self) -> None:
        """Raises what was found."""
        if self.found:
            raise Invalid(self.found[0].meldung, self.found[0].feld, self.found)


def _herkunft(told: Any, digest: str) -> tuple[str, str]:
    if told is None:
        return _FILE, digest
    if not isinstance(told, Mapping):
        raise Invalid(_("This must be an object."), "herkunft")
    origin = values.limited_text(_text(told.get("instanz"), "herkunft.instanz"), "herkunft.instanz", 64)
    return origin, values.identifier(_text(told.get("ID"), "herkunft.ID"), "herkunft.ID")


def _check_end(kind: Kind, past: Sequence[Past], gone: bool) -> None:  # noqa: FBT001
    """Whether the history ends as the line says."""
    if gone and not past:
        raise Invalid(_("A deleted memory has nothing to import but its versions."), "versionen")
    if past and (past[-1].columns["aktion"] in removing(kind)) != gone:
        raise Invalid(_("The last version and the line do not agree on whether the memory is deleted."), "geloescht")


def _history(kind: Kind, told: Any, now: datetime) -> list[Past]:
    """The versions, whose numbers and times must run without a gap."""
    if not isinstance(told, list):
        raise Invalid(_("This must be a list."), "versionen")
    faults = _Faults()
    past = [faults.of(_version, kind, each, f"versionen[{place}]", now) for place, each in enumerate(told)]
    faults.done()
    if [each.version for each in past] != list(range(1, len(past) + 1)):
        raise Invalid(_("The versions do not run from 1 without a gap."), "versionen")
    ends = removing(kind)
    for before, after in pairwise(past):
        if after.columns["zeitpunkt"] < before.columns["zeitpunkt"]:
            raise Invalid(
                _("Version %(number)d is older than the one before.") % {"number": after.version}, "versionen"
            )
        if after.content["vorgeschlagen"] and not before.content["vorgeschlagen"]:
            raise Invalid(_("What was approved is not proposed again."), "versionen")
        if before.columns["aktion"] in ends and after.columns["aktion"] != Aktion.WIEDERHERGESTELLT:
            raise Invalid(_("After a deletion comes a restoration, or nothing."), "versionen")
    if past and past[0].columns["aktion"] in ends:
        raise Invalid(_("A history does not begin with a deletion."), "versionen")
    return past


def _version(kind: Kind, told: Any, feld: str, now: datetime) -> Past:
    if not isinstance(told, Mapping) or not isinstance(told.get("stand"), Mapping):
        raise Invalid(_("A version is an object with its state in `stand`."), feld)
    faults = _Faults()
    content = faults.of(_content, kind, told["stand"], f"{feld}.stand.", now)
    read = {name: faults.of(_read, reader, told, name, feld) for name, reader in _STAMP.items()}
    at = faults.of(_read, lambda value, name: _past_moment(value, name, now), told, "zeitpunkt", feld)
    faults.done()
    columns = {name: value for name, value in read.items() if name not in (*ORIGINAL, "version")}
    original = {name: read[name] for name in ORIGINAL}
    return Past(read["version"], columns | {"zeitpunkt": at}, original, content, told)


def _read(reader: Reader, told: Mapping[str, Any], name: str, feld: str) -> Any:
    if name not in told:
        raise Missing(_("This is missing."), f"{feld}.{name}")
    return reader(told[name], f"{feld}.{name}")


def _present(kind: Kind, told: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """What the memory holds now. Without a moment of creation or a vector these stay as they are, or come later."""
    content = _content(kind, {"erstellt_am": now.isoformat(), **told}, "", now)
    left = () if "erstellt_am" in told else ("erstellt_am",)
    if "embedding" not in told:
        left = (*left, *(name for name in content if name.startswith("embedding")))
    return {name: value for name, value in content.items() if name not in left}


def _content(kind: Kind, told: Mapping[str, Any], feld: str, now: datetime) -> dict[str, Any]:
    """What a memory holds, by column. Optional fields that are not there have their default."""
    faults = _Faults()
    content: dict[str, Any] = {}
    for name in content_columns(kind):
        column = kind.memories._meta.get_field(name)  # noqa: SLF001
        wire = wire_name(name)
        if told.get(wire) is not None:
            content[name] = faults.of(_READERS[name], told[wire], f"{feld}{wire}")
        elif column.null or (kind.memories.EXPIRES and name == "gueltig_bis"):
            content[name] = None
        elif column.has_default() or column.blank:
            content[name] = column.get_default()
        else:
            faults.found.append(Missing(_("This is missing."), f"{feld}{wire}"))
    faults.done()
    if content["erstellt_am"] > now:
        raise Invalid(_("The moment lies in the future."), f"{feld}erstellt_am")
    packed = content["embedding"]
    content["embedding_dimension"] = None if packed is None else len(packed) // _BYTES_A_NUMBER
    return content


def _text(value: Any, feld: str) -> str:
    if not isinstance(value, str):
        raise Invalid(_("This must be a text."), feld)
    return value


def _filled(name: str) -> Reader:
    return lambda value, feld: values.filled_text(_text(value, feld), feld, getattr(limits(), name))


def _limited(limit: int) -> Reader:
    return lambda value, feld: values.limited_text(_text(value, feld), feld, limit)


def _free(value: Any, feld: str) -> str:
    return values.limited_text(_text(value, feld), feld, limits().memory)


def _maybe_empty(value: Any, feld: str) -> str:
    return values.identifier(value, feld, may_be_empty=True)


def _one_of(choices: Any) -> Reader:
    def read(value: Any, feld: str) -> str:
        if value not in choices.values:
            raise Invalid(_("Allowed are: %(values)s.") % {"values": ", ".join(choices.values)}, feld)
        return str(value)

    return read


def _number(lowest: int, highest: int) -> Reader:
    def read(value: Any, feld: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            told = {"lowest": lowest, "highest": highest}
            raise Invalid(_("This must be a whole number from %(lowest)d to %(highest)d.") % told, feld)
        return value

    return read


def _moment(value: Any, feld: str) -> datetime:
    return values.moment(_text(value, feld), feld)


def _past_moment(value: Any, feld: str, now: datetime) -> datetime:
    at = _moment(value, feld)
    if at > now:
        raise Invalid(_("The moment lies in the future."), feld)
    return at


def _tags(value: Any, feld: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise Invalid(_("Tags are a list of texts."), feld)
    names = values.tag_names(value, feld)
    if len(names) > MOST_TAGS:
        raise TooLarge(_("At most %(limit)d tags are allowed.") % {"limit": MOST_TAGS}, feld)
    return names


def _embedding(value: Any, feld: str) -> bytes:
    """The vector: float32 numbers in base64, or a list of numbers."""
    if isinstance(value, str):
        try:
            packed = base64.b64decode(value, validate=True)
            return values.embedding(np.frombuffer(packed, dtype="<f4").tolist(), feld)
        except (binascii.Error, ValueError) as error:
            raise Invalid(_("This is no vector in base64."), feld) from error
    if not isinstance(value, list) or not value or not all(type(number) in {int, float} for number in value):
        raise Invalid(_("An embedding is a list of numbers, or base64."), feld)
    return values.embedding(value, feld)


def _flag(value: Any, feld: str) -> bool:
    if not isinstance(value, bool):
        raise Invalid(_("This must be true or false."), feld)
    return value


def _references(value: Any, feld: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Invalid(_("This must be an object."), feld)
    if len(values.json_text(json.dumps(value), feld)) > limits().referenzfelder:
        raise TooLarge(_("The references are larger than %(limit)d bytes.") % {"limit": limits().referenzfelder}, feld)
    return value


def _call(value: Any, feld: str) -> uuid.UUID:
    try:
        return uuid.UUID(_text(value, feld))
    except ValueError as error:
        raise Invalid(_("This is no UUID."), feld) from error


_READERS: dict[str, Reader] = {
    "nutzer": values.identifier,
    "agent": values.identifier,
    "tag_namen": _tags,
    "embedding": _embedding,
    "embedding_profil_hash": _filled("kennung"),
    "embedding_veraltet": _flag,
    "vorgeschlagen": _flag,
    "erstellt_am": _moment,
    "kurzbeschreibung": _filled("kurzbeschreibung"),
    "memory": _filled("memory"),
    "scope": values.identifier,
    "gueltig_bis": _moment,
    "memory_typ": _one_of(MemoryTyp),
    "titel": _filled("titel"),
    "inhalt": _free,
    "inhalt_json": lambda value, feld: values.json_text(_text(value, feld), feld),
    "scope_typ": _one_of(ScopeTyp),
    "relevanz": _number(0, _MOST_RELEVANT),
    **dict.fromkeys(
        ("scope_vk", "scope_modul", "scope_id", "agent_id", "room_id", "session_id", "quelle_typ", "quelle_id"),
        _maybe_empty,
    ),
}
_STAMP: dict[str, Reader] = {
    "version": _number(1, 2**31 - 1),
    "aktion": _one_of(Aktion),
    "durch_nutzer": _limited(255),
    "durch_agent": _limited(255),
    "tuer": _limited(20),
    "tool": _limited(64),
    "schluessel": _limited(150),
    "benutzer": _limited(150),
    "verweis": _limited(2_000),
    "grund": lambda value, feld: values.limited_text(_text(value, feld), feld, limits().grund),
    "referenzfelder": _references,
    "aufruf": _call,
}
