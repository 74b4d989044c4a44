"""What schemathesis does beside its own: who calls, which memories are named, and checks that judge by the contract.

Runs inside schemathesis, whose packages stand apart. BRAIN_RUN names a folder with `told.json`, what the test tells
(see Told), and gets `seen.jsonl`, a line a call: which operation, which status, and what became of foreign memories.
"""

import json
import os
import random
import re
import zlib
from collections.abc import Iterator
from itertools import cycle, zip_longest
from pathlib import Path
from typing import Any

import jsonschema_rs
import schemathesis

FOLDER = Path(os.environ["BRAIN_RUN"])
TOLD: dict[str, Any] = json.loads((FOLDER / "told.json").read_text())
OWN, FOREIGN, SECRETS = TOLD["own"], TOLD["foreign"], TOLD["secrets"]
# What a schema leaves open: values by meaning, what exists, who may, and names beside those it has.
BY_MEANING = {
    *("ungueltig", "zu_gross", "nicht_gefunden", "konflikt", "unbekanntes_tool"),
    *("nicht_angemeldet", "nicht_erlaubt", "schluessel_wiederverwendet"),
}
MAY_BE_EMPTY = {"scope_vk"}
LIKELY = 0.95


class Turns(dict[str, Iterator[str]]):
    """Whose turn it is among the memories, for each operation."""

    def __missing__(self, operation: str) -> Iterator[str]:
        """Begin anew."""
        return self.setdefault(operation, _in_turn(operation))


TURNS = Turns()

# Calls that reach something: most of what is made up would be refused at the door.


@schemathesis.hook
def before_call(ctx: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Let most calls be made by whom the key speaks for, and name memories that exist: own ones and foreign ones."""
    del ctx, kwargs
    if isinstance(case.body, (dict, list)):
        text = json.dumps(case.body, sort_keys=True)
        dice = random.Random(zlib.crc32(text.encode()))
        case.body = _aimed(json.loads(text), "", _aims(_name(case)), dice)
        if case.headers and case.meta.phase.name.value != "coverage" and dice.random() < LIKELY:
            case.headers.pop("If-Match", None)  # hardly any version is the one there is


def _aims(operation: str) -> dict[str, list[str]]:
    """What is put in the place of most texts, by their names."""
    words = dict.fromkeys(("suche", "praefix", "tags", "kurzbeschreibung", "memory", "titel"), TOLD["words"])
    callers = {"nutzer": ["anna"], "agent": ["planer"], "nutzer_filter": ["anna", "wanda"]}
    ids = [next(TURNS[operation])]
    return {"ID": ids, "IDs": ids, "tool": TOLD["tools"], **words, **callers}


def _in_turn(operation: str) -> Iterator[str]:
    """The IDs of the tool's kind: a foreign one, an own one, and so on; tools that remove memories leave some."""
    kind = re.search("longterm|shortterm|brain_memory", operation)
    prefix = "" if kind is None or operation.startswith("restore") else kind[0].removesuffix("_memory")
    third = {"delete": 0, "call": 0, "promote": 1}.get(operation.partition("_")[0], 2)
    both = [[each for each in ids if each.startswith(prefix) and _third(each) == third] for ids in (FOREIGN, OWN)]
    return cycle(kennung for pair in zip_longest(*both) for kennung in pair if kennung)


def _third(kennung: str) -> int:
    return int(kennung.partition("_")[2]) % 3


def _aimed(value: Any, name: str, aims: dict[str, list[str]], dice: random.Random) -> Any:
    if isinstance(value, dict):
        return {key: _aimed(child, key, aims, dice) for key, child in value.items()}
    if isinstance(value, list):
        return [_aimed(child, name, aims, dice) for child in value]
    return dice.choice(aims[name]) if name in aims and isinstance(value, str) and dice.random() < LIKELY else value


# Checks


@schemathesis.check
def wrong_values_are_refused(ctx: Any, response: Any, case: Any) -> None:
    """What wholly succeeds is right by the schema, once what counts as not given is taken away."""
    del ctx
    answer = _answer(response, case)
    if answer is None or not answer["erfolg"] or response.status_code != 200:
        return
    arguments, schema = _called(case)
    if isinstance(arguments, dict):
        if arguments.get("help") == 1:
            return
        arguments.pop("help", None)  # any other value of it executes
    assert jsonschema_rs.is_valid(schema, _meant(arguments, schema)), "a wrong value was taken"


@schemathesis.check
def right_values_are_taken(ctx: Any, response: Any, case: Any) -> None:
    """What is right by the schema is refused for its meaning alone, or for a name that the schema leaves open."""
    del ctx
    answer = _answer(response, case)
    if answer is None or answer["erfolg"] or response.request.headers.get("Content-Type") != "application/json":
        return
    arguments, schema = _called(case)
    if not jsonschema_rs.is_valid(schema, arguments):
        return
    known = set(_properties(schema))
    for fault in _faults(answer):
        name = re.sub(r".*\.", "", fault["feld"] or "")
        opened = fault["code"] == "unbekanntes_feld" and name not in known
        assert opened or fault["code"] in BY_MEANING, f"a right value was refused: {fault}"


@schemathesis.check
def foreign_memories_do_not_exist(ctx: Any, response: Any, case: Any) -> None:
    """No answer holds a word of theirs; an ID of theirs comes back alone to whoever sent it, and is not found."""
    del ctx
    text = response.text
    told = [secret for secret in SECRETS if secret in text]
    assert not told, f"the answer holds {told}"
    sent = json.dumps(case.body) if isinstance(case.body, (dict, list)) else ""
    for kennung in FOREIGN:
        if _names(kennung, text):
            assert _names(kennung, sent), f"{kennung} was not asked for"
    answer = _answer(response, case)
    for row in answer["daten"] if answer else []:
        if row.get("ID") in FOREIGN:
            assert row["erfolg"] is False, f"{row['ID']} was found"


@schemathesis.hook
def after_call(ctx: Any, case: Any, response: Any) -> None:
    """Note what was reached."""
    del ctx
    answer = _answer(response, case)
    rows = answer["daten"] if answer else []
    line = {
        "operation": _name(case),
        "status": response.status_code,
        "erfolg": bool(answer and (answer["erfolg"] or answer["anzahl"]["erfolgreich"])),
        "fremd": sorted({_code(row) for row in rows if row.get("ID") in FOREIGN}),
        "sent": sorted(kennung for kennung in FOREIGN if _names(kennung, json.dumps(case.body, default=str))),
    }
    with (FOLDER / "seen.jsonl").open("a") as seen:
        seen.write(json.dumps(line) + "\n")


# What they are made of


def _name(case: Any) -> str:
    return str(case.operation.definition.raw["operationId"])


def _code(row: dict[str, Any]) -> str:
    return str(row.get("fehler", {}).get("code", "erfolg"))


def _names(kennung: str, text: str) -> bool:
    return re.search(rf"(?<![0-9A-Za-z_]){kennung}(?![0-9])", text) is not None


def _answer(response: Any, case: Any) -> Any:
    """The envelope that a tool answered with."""
    if case.method.upper() != "POST":
        return None
    answer = response.json()
    return answer if isinstance(answer, dict) and "daten" in answer else None


def _called(case: Any) -> tuple[Any, Any]:
    """The arguments of the call and the schema of its tool, or the call and the schema of the envelope around them."""
    path, paths = case.operation.path, case.operation.schema.raw_schema["paths"]
    body = json.loads(json.dumps(case.body)) if isinstance(case.body, (dict, list)) else case.body
    if path.endswith("/api/tools/") and isinstance(body, dict) and f"{path}{body.get('tool')}/" in paths:
        path, body = f"{path}{body['tool']}/", body.get("arguments")
    body = body if isinstance(body, (dict, list, str, int, float, bool)) else None
    return body, paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"]


def _meant(value: Any, schema: dict[str, Any]) -> Any:
    """The value without optional parameters that count as not given, and with texts read that hold JSON (README)."""
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if isinstance(value, str) and "string" not in types and {"object", "array"} & set(types):
        value = _read(value)
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        optional = properties.keys() - schema.get("required", [])
        kept = {n: c for n, c in value.items() if n not in optional or not _is_not_given(n, c, properties[n])}
        return {name: _meant(child, properties.get(name, {})) for name, child in kept.items()}
    if isinstance(value, list):
        return [_meant(child, schema.get("items", {})) for child in value]
    return value


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_not_given(name: str, value: Any, schema: dict[str, Any]) -> bool:
    if value is None:
        return "null" not in schema.get("type", [])
    return value == "null" or (value == "" and name not in MAY_BE_EMPTY)


def _properties(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for child in [*schema.get("properties", {}).values(), schema.get("items")]:
            yield from _properties(child)


def _faults(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    rows = [row["fehler"] for row in answer["daten"] if not row["erfolg"]]
    for fault in [*rows, *([answer["fehler"]] if answer["fehler"] else [])]:
        yield from fault.get("details", [fault])
