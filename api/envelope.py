"""The one door to the tools: frame, help?, validate, authorise, handler, answer. REST and MCP are thin over it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from hashlib import sha256
from typing import Any

from django.utils.translation import gettext as _

from api import jsonbody, repeated
from api.checking import MOST_FAULTS, Checker, faulty_together
from api.schemas import ENVELOPE, MEANINGS, call
from api.tool import Call, Reply, Row, Shape, Tool
from api.tools import TOOLS
from memories import failures, repeats, values
from memories.calls import Metered, metered
from memories.errors import BrainError, Invalid, NotAllowed, TooLarge, Unavailable, UnknownTool
from memories.limits import limits
from memories.models.repeat import KEY_LENGTH
from memories.principal import Action, Origin, Principal

Answer = dict[str, Any]

_BY_NAME = {tool.name: tool for tool in TOOLS}
_EXPECTED_VERSION = {
    "name": "inhalt.erwartete_version",
    "typ": "integer",
    "pflicht": False,
    "beschreibung": "Nur ändern, wenn die eine Erinnerung des Aufrufs noch diese Version hat; sonst konflikt.",
}
_FRAME = Checker(ENVELOPE)
_ARGUMENTS = Checker(call({}))


def opened(frame: Any) -> tuple[str, Any]:
    """The tool's name and its arguments. Raises a fault that carries all faults of the frame around them."""
    hollow = frame | {"arguments": {}} if isinstance(frame, dict) and frame.get("arguments") is not None else frame
    faults = _FRAME.faults(hollow)
    if faults:
        raise faulty_together(faults)
    return frame["tool"], frame["arguments"]


def references_of(arguments: Any) -> dict[str, Any]:
    """The caller's references, also those of a call that is refused."""
    arguments = _ARGUMENTS.decoded(arguments)
    references = arguments.get("referenzfelder") if isinstance(arguments, dict) else None
    return references if isinstance(references, dict) else {}


def find(name: str) -> Tool:
    """The tool of this name. Raises UnknownTool, with the nearest name."""
    tool = _BY_NAME.get(name)
    if tool is None:
        told = _("There is no tool %(name)s.") % {"name": name[:80]}
        close = get_close_matches(name[:80], _BY_NAME, n=1)
        if close:
            told += " " + _("Did you mean %(name)s?") % {"name": close[0]}
        raise UnknownTool(told, "tool")
    return tool


def callable_by(principal: Principal) -> list[Tool]:
    """The tools that the principal may call, in their fixed order."""
    return [tool for tool in TOOLS if not _forbidden(tool, principal)]


@dataclass(frozen=True, slots=True)
class Via:
    """The door that a call came through, and what it said beside the call: a key for safe repeats, a version."""

    tuer: str
    idempotency_key: str | None = None
    erwartete_version: int | None = None
    size: int = 0


def handle(tool: Tool, arguments: Any, principal: Principal, via: Via) -> Answer:
    """Execute a call and answer it. Raises a BrainError for a fault of the call; then nothing was stored.

    A fault of a call that has failed several times in a row says so, unless the call asks for the first answer again.
    """
    try:
        answer = _done(tool, arguments, principal, via)
    except BrainError as fault:
        fault.times = repeated.times_failed(tool, arguments, principal, {fault.code})
        raise
    if not is_failure(answer):
        failures.note_success(principal)
    elif via.idempotency_key is None:
        rows = answer["daten"]
        times = repeated.times_failed(tool, arguments, principal, {row["fehler"]["code"] for row in rows})
        rows[0]["fehler"] = repeated.remarked(rows[0]["fehler"], tool, times)
    return answer


def _done(tool: Tool, arguments: Any, principal: Principal, via: Via) -> Answer:
    arguments = tool.frame.decoded(arguments)
    with metered(_claimed(tool, arguments, principal, via)) as call:
        answer = _handled(tool, arguments, principal, via)
        call.gesamt, call.erfolgreich, call.fehlgeschlagen = (
            answer["anzahl"][name] for name in ("gesamt", "erfolgreich", "fehlgeschlagen")
        )
        if tool.recalls and not _asks_for_help(arguments):
            call.suche = values.sayable(arguments["inhalt"].get("suche", ""))
            call.recalled = [row["ID"] for row in answer["daten"]]
    return answer


def _claimed(tool: Tool, arguments: Any, principal: Principal, via: Via) -> Metered:
    """The call as its record tells it: what is said by whom, not yet checked."""
    inhalt = arguments.get("inhalt") if isinstance(arguments, dict) else None
    inhalt = inhalt if isinstance(inhalt, dict) else {}
    entries = inhalt.get(tool.shape.value)
    return Metered(
        principal,
        via.tuer,
        tool.name,
        writes=tool.writes,
        nutzer=values.as_claimed(inhalt.get("nutzer"), limits().kennung),
        agent=values.as_claimed(inhalt.get("agent"), limits().kennung),
        entries=(len(entries) if isinstance(entries, list) else 1) if tool.writes else 0,
        size=via.size,
    )


def _handled(tool: Tool, arguments: Any, principal: Principal, via: Via) -> Answer:
    references = references_of(arguments)
    if _asks_for_help(arguments):
        return _answered(tool, [define(tool, principal)], {}, references)
    _permit(tool, principal)
    if not isinstance(arguments, dict):
        raise Invalid(tool.frame.faults(arguments)[0].meldung, "arguments")
    faults = tool.frame.faults(_around_entries(tool, arguments)) or _oversized(references)
    if tool.writes and not faults:  # they are stored with every version
        faults = list(values.secrets_in(references, "referenzfelder"))[:MOST_FAULTS]
    if faults:
        raise faulty_together(faults)
    inhalt = arguments["inhalt"]
    version = _expected_version(tool, inhalt, via)
    origin = _origin(tool, inhalt, principal, via.tuer, references)
    if via.idempotency_key is None or not tool.writes or principal.key_id is None:
        return _executed(tool, inhalt, origin, version)
    repeat = repeats.begin(principal.key_id, _idempotency_key(via.idempotency_key), _digest(tool, arguments, version))
    if repeat.answer is not None:
        first: Answer = jsonbody.parse(repeat.answer.encode())
        return first
    answer = _executed(tool, inhalt, replace(origin, repeat=repeat), version)
    if not any(row.get("fehler", {}).get("code") == Unavailable.code for row in answer["daten"]):
        _keep(repeat, answer)
    return answer


def _keep(repeat: repeats.Repeat, answer: Answer) -> None:
    """Keep the answer for repeats. One that quotes a credential, such as in place of an ID, is not kept: the call sent
    again is executed again, and what it stored stays stored once.
    """
    if answer["erfolg"] or not any(values.secrets_in(answer["daten"], "daten")):
        repeat.finish(jsonbody.write(answer).decode())


def _executed(tool: Tool, inhalt: Mapping[str, Any], origin: Origin, version: int | None) -> Answer:
    if tool.shape is Shape.QUERY:
        reply = _asked(tool, inhalt, origin)
    else:
        entries = [inhalt] if tool.shape is Shape.SINGLE else inhalt[tool.shape.value]
        reply = _one_by_one(tool, entries, origin, version)
    rows = [_row(tool, place, row) for place, row in enumerate(reply.rows)]
    return _answered(tool, rows, reply.top, origin.referenzfelder)


def _expected_version(tool: Tool, inhalt: Mapping[str, Any], via: Via) -> int | None:
    """The version that the one memory of a change is to have, from the call or from its door."""
    if not tool.versioned:
        return None
    version = inhalt.get("erwartete_version", via.erwartete_version)
    if version is None:
        return None
    if tool.shape is Shape.MEMORIES and len(inhalt[tool.shape.value]) > 1:
        raise Invalid(_("A version can be expected of a single entry only."), "inhalt.erwartete_version")
    return int(version)


def _idempotency_key(given: str) -> str:
    if not 0 < len(given) <= KEY_LENGTH or not given.isprintable():
        told = _("An idempotency key has 1 to %(limit)d printable characters.")
        raise Invalid(told % {"limit": KEY_LENGTH}, "Idempotency-Key")
    return values.without_secret(given, "Idempotency-Key")


def _digest(tool: Tool, arguments: Any, version: int | None) -> str:
    """What tells one call from another, however it is spelled as JSON."""
    return sha256(jsonbody.canonical([tool.name, arguments, version])).hexdigest()


def is_failure(answer: Answer) -> bool:
    """Whether the call was not executed, or none of its entries succeeded."""
    return answer["fehler"] is not None or answer["anzahl"]["fehlgeschlagen"] == answer["anzahl"]["gesamt"] > 0


def refusal(name: str | None, fault: BrainError, references: object = None) -> Answer:
    """The answer to a call that was not executed."""
    fehler = told(fault)
    if name in _BY_NAME:
        fehler = repeated.remarked(fehler, _BY_NAME[name], fault.times)
    return {
        "tool": name,
        "erfolg": False,
        "anzahl": {"gesamt": 0, "erfolgreich": 0, "fehlgeschlagen": 0},
        "daten": [],
        "fehler": fehler,
        "referenzfelder": references if isinstance(references, dict) else {},
    }


def told(fault: BrainError) -> dict[str, Any]:
    """The fault as the wire tells it: the first one, and all of them under `details` when there are more."""
    faults = [{"code": f.code, "feld": f.feld, "meldung": str(f.meldung)} for f in fault.faults[:MOST_FAULTS]]
    return faults[0] | ({"details": faults} if len(faults) > 1 else {})


def definition(tool: Tool) -> dict[str, Any]:
    """What `help: 1` tells about a tool."""
    in_force = asdict(limits())
    return {
        "name": tool.name,
        "titel": tool.titel,
        "beschreibung": tool.beschreibung,
        "parameter": [*_parameters(tool.input_schema, ""), *([_EXPECTED_VERSION] if tool.versioned else [])],
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "grenzen": {name: in_force[name] for name in (*tool.grenzen, "kennung", "referenzfelder", "body", "nesting")},
        "spalten": dict(tool.spalten),
        "beispiel": tool.beispiel,
    }


def define(tool: Tool, principal: Principal) -> Answer:
    """The tool's definition. Raises NotAllowed when the principal may not call it."""
    _permit(tool, principal)
    return definition(tool)


def _permit(tool: Tool, principal: Principal) -> None:
    forbidden = _forbidden(tool, principal)
    if forbidden:
        raise forbidden


def _forbidden(tool: Tool, principal: Principal) -> NotAllowed | None:
    if not principal.may_call(tool.name):
        return NotAllowed(_("This key may not call the tool %(name)s.") % {"name": tool.name}, "tool")
    if not principal.may(tool.action, tool.kind):
        told = _("This key may not do this.") if principal.may(Action.INSERT) else _("This key may only read.")
        return NotAllowed(told, "tool")
    return None


def _around_entries(tool: Tool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The call without its entries, whose faults are their own; how many there are still shows."""
    inhalt = arguments.get("inhalt")
    if not isinstance(inhalt, dict):
        return arguments
    if tool.shape is Shape.SINGLE:
        return {**arguments, "inhalt": {name: inhalt[name] for name in ("nutzer", "agent") if name in inhalt}}
    entries = inhalt.get(tool.listed)
    if not isinstance(entries, list):
        return arguments
    return {**arguments, "inhalt": inhalt | {tool.listed: [None] * len(entries)}}


def _asks_for_help(arguments: Any) -> bool:
    wish = arguments.get("help") if isinstance(arguments, dict) else None
    return wish == 1 and not isinstance(wish, bool)


def _oversized(references: Any) -> list[BrainError]:
    most = limits().referenzfelder
    if len(jsonbody.write(references)) <= most:
        return []
    return [TooLarge(_("They may take %(limit)d bytes at most.") % {"limit": most}, "referenzfelder")]


def _origin(tool: Tool, inhalt: Mapping[str, Any], principal: Principal, tuer: str, references: Any) -> Origin:
    caller: dict[str, str] = {}
    faults: list[BrainError] = []
    for name in ("nutzer", "agent"):
        try:
            caller[name] = values.identifier(inhalt[name], f"inhalt.{name}")
        except BrainError as fault:
            faults.append(fault)
    grund = inhalt.get("grund")
    if isinstance(grund, str):
        try:
            values.limited_text(grund, "inhalt.grund", limits().grund)
        except BrainError as fault:
            faults.append(fault)
    if faults:
        raise faulty_together(faults)
    outside = principal.cannot_speak_for(**caller)
    if outside:
        raise NotAllowed(_("This key may not speak for this %(name)s.") % {"name": outside}, f"inhalt.{outside}")
    return Origin(
        principal=principal,
        tuer=tuer,
        tool=tool.name,
        grund=grund if isinstance(grund, str) else "",
        referenzfelder=references,
        nutzer=caller["nutzer"],
        agent=caller["agent"],
    )


def _asked(tool: Tool, inhalt: Mapping[str, Any], origin: Origin) -> Reply:
    """The reply to a question; what is wrong with it is the call's fault."""
    try:
        return tool.handler(Call([tool.read(inhalt)], origin))
    except BrainError as fault:
        raise faulty_together([type(each)(each.meldung, f"inhalt.{each.feld}") for each in fault.faults]) from fault


def _one_by_one(tool: Tool, entries: Sequence[Any], origin: Origin, version: int | None) -> Reply:
    """The reply to entries that are judged one by one: those with a fault never reach the handler."""
    entries = [tool.entry.decoded(entry) for entry in entries]
    read = [_read_entry(tool, entry) for entry in entries]
    good = [entry for entry in read if not isinstance(entry, BrainError)]
    reply = tool.handler(Call(good, origin, version)) if good else Reply([])
    done = iter(reply.rows)
    rows = [entry if isinstance(entry, BrainError) else next(done) for entry in read]
    return Reply([_named(tool, row, entry) for row, entry in zip(rows, entries, strict=True)], reply.top)


def _read_entry(tool: Tool, entry: Any) -> Any:
    """The entry in canonical form, or the fault that carries all of its faults."""
    # An ID is judged by whoever reads it.
    faults = [] if tool.shape is Shape.IDS else tool.entry.faults(entry)
    if faults:
        if not isinstance(entry, dict):
            return faulty_together(faults)
        bad = {(fault.feld or "").split(".")[0].split("[")[0] for fault in faults}
        entry = {name: value for name, value in entry.items() if name not in bad}
    try:
        read = tool.read(entry)
    except BrainError as fault:
        faults.extend(fault.faults)
    return faulty_together(faults) if faults else read


def _named(tool: Tool, row: Row | BrainError, entry: Any) -> Row:
    """A failed row of an entry that names a memory tells its ID, so that nobody has to count."""
    fields = {"fehler": row} if isinstance(row, BrainError) else row
    kennung = entry if tool.shape is Shape.IDS else entry.get("ID") if isinstance(entry, dict) else None
    return {"ID": kennung} | fields if "fehler" in fields and isinstance(kennung, str) else fields


def _row(tool: Tool, place: int, row: Row | BrainError) -> Row:
    fields = {"fehler": row} if isinstance(row, BrainError) else row
    fault = fields.get("fehler")
    outcome = {"index": place, "typ": tool.typ, "erfolg": fault is None} | fields
    return outcome | {"fehler": told(fault)} if fault else outcome


def _answered(tool: Tool, rows: list[Row], top: Mapping[str, Any], references: Mapping[str, Any]) -> Answer:
    failed = sum("fehler" in row for row in rows)
    return {
        "tool": tool.name,
        "erfolg": failed == 0,
        "anzahl": {"gesamt": len(rows), "erfolgreich": len(rows) - failed, "fehlgeschlagen": failed},
        "daten": rows,
        "fehler": None,
        "referenzfelder": references,
        **top,
    }


def _parameters(schema: Mapping[str, Any], path: str) -> Any:
    """The rows of `parameter`: every field by its path, such as inhalt.memories[].tags."""
    for name, field in schema.get("properties", {}).items():
        types = field["type"]
        yield {
            "name": f"{path}{name}",
            "typ": types if isinstance(types, str) else " | ".join(types),
            "pflicht": name in schema.get("required", ()),
            "beschreibung": field.get("description") or MEANINGS.get(f"{path}{name}") or MEANINGS[name],
        }
        yield from _parameters(field, f"{path}{name}.")
        yield from _parameters(field.get("items", {}), f"{path}{name}[].")
