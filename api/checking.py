"""Checking values against a tool's JSON Schema: all faults at once, each with its path and a sentence."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

import jsonschema_rs
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy

from api.jsonbody import parse_text
from api.schemas import Schema
from memories.errors import BrainError, Invalid, Missing, TooLarge, UnknownField
from memories.values import clean_text, finite_number

MOST_FAULTS = 20
_NUMBERS = frozenset({float, int})
_MAY_BE_EMPTY = frozenset({"scope_vk"})  # no record, as with scope global

_TYPES: dict[str, str | Promise] = {
    "string": pgettext_lazy("JSON type", "text"),
    "integer": pgettext_lazy("JSON type", "whole number"),
    "number": pgettext_lazy("JSON type", "number"),
    "object": pgettext_lazy("JSON type", "object"),
    "array": pgettext_lazy("JSON type", "list"),
    "boolean": pgettext_lazy("JSON type", "true or false"),
    "null": "null",
}


class Checker:
    """A schema that values are checked against; built once a tool."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._validator = jsonschema_rs.Draft202012Validator(schema)

    def decoded(self, value: Any) -> Any:
        """The value as the client meant it: without optional properties that count as not given, and with texts read as
        JSON where the schema wants an object or a list and the text holds just that.
        """
        return _decoded(value, self.schema)

    def faults(self, value: Any) -> list[BrainError]:
        """All faults of the value, at most 20."""
        found = list(islice(_unclean(value, ""), MOST_FAULTS))
        if found:
            value = _cleaned(value)
        unclean = {fault.feld for fault in found}
        for error in islice(self._validator.iter_errors(value), MOST_FAULTS):
            found.extend(fault for fault in self._told(error, value) if fault.feld not in unclean)
        # What was misnamed comes first: it is why something else is missing.
        return sorted(found, key=lambda fault: not isinstance(fault, UnknownField))[:MOST_FAULTS]

    def _told(self, error: jsonschema_rs.ValidationError, value: Any) -> list[BrainError]:
        path = _path(error.instance_path)
        kind: Any = error.kind
        if kind.name == "required":
            return [Missing(_("This field is required."), _joined(path, kind.property))]
        if kind.name == "additionalProperties":
            schema, given = _at(self.schema, error.schema_path[:-1]), _at(value, error.instance_path)
            return [_unknown(name, path, schema, given) for name in kind.unexpected[:MOST_FAULTS]]
        if kind.name == "type":
            return [_wrong_type(kind.types, path, error.instance)]
        if kind.name == "pattern":  # of IDs alone, and whoever reads one tells a wrong ID from one of another kind
            return []
        sentence = _SENTENCES.get(kind.name)
        return [sentence(kind, path) if sentence else Invalid(_("This value is not allowed here."), path or None)]


def faulty_together(faults: list[BrainError]) -> BrainError:
    """One fault that stands for several: the first of them, which carries all."""
    first = faults[0]
    return type(first)(first.meldung, first.feld, faults)


def _decoded(value: Any, schema: Mapping[str, Any]) -> Any:
    wanted = _types(schema)
    if isinstance(value, str) and "string" not in wanted and wanted & {"object", "array"}:
        value = _read(value, wanted)
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        optional = known.keys() - schema.get("required", ())
        return {
            name: _decoded(child, known.get(name, {}))
            for name, child in value.items()
            if not (name in optional and _counts_as_not_given(name, child, known[name]))
        }
    if isinstance(value, list) and schema.get("items", {}).get("type") == "object":
        return [_decoded(child, schema["items"]) for child in value]
    return value


def _types(schema: Mapping[str, Any]) -> set[str]:
    types = schema.get("type", ())
    return {types} if isinstance(types, str) else set(types)


def _counts_as_not_given(name: str, value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether an optional property is sent without a value: clients often send every parameter."""
    types = _types(schema)
    if value is None:
        return "null" not in types
    if value == "":
        return name not in _MAY_BE_EMPTY
    return value == "null" and ("string" not in types or "null" in types or "enum" in schema)


def _read(text: str, wanted: set[str]) -> Any:
    try:
        value = parse_text(text)
    except (ValueError, BrainError):
        return text
    right = {"object": dict, "array": list}
    return value if any(isinstance(value, right[name]) for name in wanted & right.keys()) else text


def _unclean(value: Any, path: str) -> Iterator[BrainError]:
    """The faults of texts and numbers that no database keeps, wherever they stand."""
    if isinstance(value, (str, float)):
        fault = _kept_by_no_database(value, path or None)
        if fault:
            yield fault
    elif isinstance(value, dict):
        for name, child in value.items():
            yield from _unclean(name, path)
            yield from _unclean(child, _joined(path, name))
    elif isinstance(value, list) and not _is_vector(value):
        for place, child in enumerate(value):
            yield from _unclean(child, f"{path}[{place}]")


def _kept_by_no_database(value: str | float, feld: str | None) -> BrainError | None:
    try:
        if isinstance(value, str):
            clean_text(value, feld)
        else:
            finite_number(value, feld)
    except BrainError as fault:
        return fault
    return None


def _is_vector(values: list[Any]) -> bool:
    """Whether these are finite numbers alone, which need no closer look; thousands of them have to be quick."""
    try:
        # A sum is finite when all its parts are, unless they are huge; then they are looked at one by one.
        return _NUMBERS.issuperset(map(type, values)) and math.isfinite(sum(values))
    except OverflowError:  # a whole number beyond float64
        return False


def _cleaned(value: Any) -> Any:
    """The value with something harmless in place of whatever no database keeps, so that the rest can be checked."""
    if isinstance(value, (str, float)):
        return type(value)() if _kept_by_no_database(value, None) else value
    if isinstance(value, dict):
        return {n: _cleaned(child) for n, child in value.items() if not _kept_by_no_database(n, None)}
    return [_cleaned(child) for child in value] if isinstance(value, list) else value


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _path(steps: Sequence[str | int]) -> str:
    path = ""
    for step in steps:
        path = f"{path}[{step}]" if isinstance(step, int) else _joined(path, step)
    return path


def _at(value: Any, steps: Sequence[str | int]) -> Any:
    for step in steps:
        value = value[step]
    return value


def _unknown(name: str, path: str, schema: Schema, given: Mapping[str, Any]) -> BrainError:
    known = list(schema["properties"])
    absent = [field for field in known if field not in given]
    missing = [field for field in schema.get("required", ()) if field in absent]
    close = _nearest(name, absent) or _nearest(name, known)
    shown = name[:60]
    told = [_("There is no field %(name)s here.") % {"name": shown}]
    if close:
        told.append(_("Did you mean %(name)s?") % {"name": close})
    if missing:
        told.append(_("Missing is: %(names)s.") % {"names": ", ".join(missing)})
    told.append(_("Fields that can be given: %(names)s.") % {"names": ", ".join(known)})
    return UnknownField(" ".join(told), _joined(path, shown))


def _nearest(name: str, names: Sequence[str]) -> str | None:
    """The name that is most like this one, whatever the case of their letters."""
    folded = {each.casefold(): each for each in names}
    close = get_close_matches(name.casefold(), folded, n=1)
    return folded[close[0]] if close else None


def _wrong_type(types: Sequence[str], path: str, given: Any) -> BrainError:
    wanted = _(" or ").join(str(_TYPES[name]) for name in types)
    told = [_("Expected is: %(types)s.") % {"types": wanted}]
    if path and isinstance(given, str) and not {"array", "object"}.isdisjoint(types):
        told.append(_("A text that holds JSON of this type would be read, too; this one holds none."))
    return Invalid(" ".join(told), path or None)


def _too_few(kind: Any, path: str) -> BrainError:
    return Invalid(_("At least %(limit)d must be given.") % {"limit": kind.limit}, path)


def _too_many(kind: Any, path: str) -> BrainError:
    return TooLarge(_("At most %(limit)d can be given.") % {"limit": kind.limit}, path)


def _not_a_choice(kind: Any, path: str) -> BrainError:
    return Invalid(_("Allowed are: %(values)s.") % {"values": ", ".join(map(str, kind.options))}, path)


def _too_small(kind: Any, path: str) -> BrainError:
    return Invalid(_("The number must be at least %(limit)s.") % {"limit": kind.limit}, path)


def _too_high(kind: Any, path: str) -> BrainError:
    return Invalid(_("The number can be at most %(limit)s.") % {"limit": kind.limit}, path)


_SENTENCES: dict[str, Callable[[Any, str], BrainError]] = {
    "minItems": _too_few,
    "maxItems": _too_many,
    "enum": _not_a_choice,
    "minimum": _too_small,
    "maximum": _too_high,
}
