"""Hostile input: whatever is sent, the answer is JSON of the envelope's shape, and never a fault of the program."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from api.tool import Shape
from tests.conftest import Agent, note
from tests.doors import ENVELOPE, NAMES, entry_for, inhalt_for, raw, tool_of

DEEP = 100_000
VALUES = {
    "null": "null",
    "true": "true",
    "zero": "0",
    "minus one": "-1",
    "a whole float": "7.0",
    "2^31": str(2**31),
    "2^63": str(2**63),
    "2^80": str(2**80),
    "twenty digits": "9" * 20,
    "400 digits": "9" * 400,
    "5,000 digits": "9" * 5_000,
    "1e308": "1e308",
    "1e999": "1e999",
    "1e39": "1e39",
    "NaN": "NaN",
    "Infinity": "Infinity",
    "an empty text": '""',
    "a blank": '" "',
    "blanks of all kinds": r'"\t\n\u000b\u00a0\u2003\u3000"',
    "NUL": r'"a\u0000b"',
    "all control characters": json.dumps("".join(map(chr, range(1, 32)))),
    "a high surrogate": r'"\ud800"',
    "surrogates the wrong way round": r'"\ude00\ud83d"',
    "a surrogate after a float": r'[1.5, "\ud800"]',
    "zero width": r'"a\u200bb"',
    "a bidi override": r'"\u202egnp.exe"',
    "a byte order mark": r'"\ufeffa"',
    "beyond the BMP": '"🙂\U0010ffff"',
    "a thousand accents": json.dumps("a" + "\u0301" * 1_000),
    "a long text": json.dumps("x" * 300),
    "SQL": json.dumps("'; DROP TABLE memories_longtermmemory; --"),
    "LIKE signs": json.dumps("%_\\"),
    "percent format": json.dumps("%s %(name)s %d"),
    "a template": json.dumps("{{ x }} {% y %} ${z} <script>"),
    "a text of JSON": json.dumps('{"a": [1]}'),
    "a text of broken JSON": json.dumps('{"a": '),
    "a text of NaN": json.dumps("[NaN]"),
    "a text of deep JSON": json.dumps("[" * DEEP),
    "the text null": '"null"',
    "an ID of another kind": '"tag_1"',
    "an ID with a line break": r'"longterm_1\n"',
    "an ID with foreign digits": '"longterm_١"',
    "an ID beyond 64 bits": '"brain_99999999999999999999"',
    "an ID of 2^63": f'"longterm_{2**63}"',
    "an ID of 5,000 digits": f'"shortterm_{"9" * 5_000}"',
    "a list in lists": "[[[]]]",
    "a mixed list": '[1, "a", null, {}, [], true, 1.5]',
    "a list of 101": json.dumps(["a"] * 101),
    "a list of 1,000": json.dumps([None] * 1_000),
    "an empty object": "{}",
    "an unknown field": '{"x": 1}',
    "a field without a name": '{"": {"": {"": 1}}}',
    "a field named with dots": '{"a.b[0]": 1}',
    "a field named with NUL": r'{"a\u0000": 1}',
    "a field named with half a pair": r'{"\ud800": {"\udfff": "\ud800"}}',
    "a field with a long name": json.dumps({"n" * 100_000: 1}),
    "a thousand fields": json.dumps({f"f{n}": n for n in range(1_000)}),
    "a key twice": '{"a": 1, "a": 2}',
    "a key twice, once escaped": r'{"a": 1, "\u0061": 2}',
    "a moment that is none": '"2026-02-30"',
    "a moment before all": '"0001-01-01T00:00:00+14:00"',
    "a moment after all": '"9999-12-31T23:59:59-14:00"',
    "a skipped hour": '"2026-03-29T02:30"',
    "65 levels": '{"a":' * 65 + "1" + "}" * 65,
    "1,000 levels": "[" * 1_000 + "]" * 1_000,
    "100,000 levels": "[" * DEEP + "]" * DEEP,
    "100,000 objects": '{"a":' * DEEP + "1" + "}" * DEEP,
}
BODIES: dict[str, bytes] = {
    "nothing": b"",
    "blanks": b" \n\t",
    "one byte": b"\x00",
    "a bracket": b"[",
    "an open object": b'{"tool":',
    "100,000 brackets": b"[" * DEEP,
    "100,000 braces": b'{"a":' * DEEP,
    "a comma too many": b'{"tool": "x",}',
    "a comment": b'{"tool": "x"} // y',
    "single quotes": b"{'tool': 'x'}",
    "two values": b"{}{}",
    "a bare word": b"undefined",
    "a form": b"tool=x&arguments=y",
    "XML": b"<?xml version='1.0'?><tool/>",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"tool": "x"}'.encode("utf-16"),
    "UTF-32": '{"tool": "x"}'.encode("utf-32-le"),
    "latin-1": '{"tool": "ö"}'.encode("latin-1"),
    "a broken letter": b'{"tool": "\xc3"}',
    "an overlong slash": b'{"tool": "\xc0\xaf"}',
    "a surrogate in UTF-8": b'{"tool": "\xed\xa0\x80"}',
    "beyond Unicode": b'{"tool": "\xf4\x90\x80\x80"}',
    "a raw line break in a text": b'{"tool": "a\nb"}',
    "a raw NUL in a text": b'{"tool": "a\x00b"}',
    "a bad escape": rb'{"tool": "\x41"}',
    "a short escape": rb'{"tool": "\u12"}',
    "a leading zero": b'{"tool": 01}',
    "a plus": b'{"tool": +1}',
    "a bare point": b'{"tool": .5}',
    "hexadecimal": b'{"tool": 0x1F}',
    "half a number": b'{"tool": 1e}',
    "compressed": b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
    "random bytes": bytes(range(256)),
    "tool twice": b'{"tool": "a", "tool": "b", "arguments": {}}',
    "arguments twice": b'{"tool": "select_brain_tags", "arguments": {}, "arguments": {}}',
    "null": b"null",
    "true": b"true",
    "a number": b"-0",
    "a text": b'"insert_brain_memory"',
    "an empty list": b"[]",
    "a list of lists": b"[[[]]]",
    "1e999": b"1e999",
    "NaN": b"NaN",
    "half a pair": rb'"\ud800"',
    "a tab in a name": b'{"to\tol": 1}',
    "an empty name": b'{"": {"": 1}}',
    "arguments in a list": b'{"tool": "select_brain_tags", "arguments": [{}]}',
    "arguments that are nothing": b'{"tool": "select_brain_tags", "arguments": null}',
    "arguments that are a number": b'{"tool": "select_brain_tags", "arguments": 1e400}',
    "arguments in a broken text": b'{"tool": "select_brain_tags", "arguments": "{"}',
    "a list of calls": b'[{"tool": "select_brain_tags", "arguments": {}}]',
    "a tool alone": b'{"tool": "select_brain_tags"}',
    "arguments alone": b'{"arguments": {}}',
    "an unknown member": rb'{"tool": "select_brain_tags", "arguments": {}, "\ud800": 1}',
    "10,000 unknown members": json.dumps({f"m{n}": n for n in range(10_000)}).encode(),
    "a tool with half a pair": rb'{"tool": "\ud800", "arguments": {}}',
    "a tool with NUL": rb'{"tool": "a\u0000", "arguments": {}}',
    "a long tool": json.dumps({"tool": "x" * 1_000_000, "arguments": {}}).encode(),
    "a tool of 400 digits": b'{"tool": ' + b"9" * 400 + b', "arguments": {}}',
    "a tool that is a list": b'{"tool": ["select_brain_tags"], "arguments": {}}',
    "a tool that is no number": b'{"tool": NaN, "arguments": {}}',
}
STATUSES = {200, 400, 404}
# These have the fields of another tool, which stands for them.
ALIKE = {"select_brain_shortterm_memory", "update_brain_memory", "delete_brain_shortterm_memory", "delete_brain_memory"}


def _answers_in_order(response: Any) -> dict[str, Any]:
    assert response.status_code in STATUSES, (response.status_code, response.content[:500])
    assert response["Content-Type"] == "application/json"
    answer: dict[str, Any] = json.loads(response.content)
    assert answer.keys() >= ENVELOPE
    assert (answer["fehler"] is None) == (response.status_code == 200)
    counts = answer["anzahl"]
    assert counts["gesamt"] == counts["erfolgreich"] + counts["fehlgeschlagen"] == len(answer["daten"])
    return answer


def _put(inhalt: str, name: str, value: str) -> str:
    """The object's text with one more member at its end."""
    return inhalt[:-1] + (", " if len(inhalt) > 2 else "") + f"{json.dumps(name)}: {value}}}"


def _places(name: str, value: str) -> list[str]:
    """The texts of arguments that have the value in each place around the tool's fields, and in each field."""
    tool = tool_of(name)
    whole = inhalt_for(name)
    fields = tool.input_schema["properties"]["inhalt"]["properties"]
    arguments = [f'{{"inhalt": {json.dumps(whole)}, "{place}": {value}}}' for place in ("help", "referenzfelder", "x")]
    arguments += [value, f'{{"inhalt": {value}}}', f'{{"inhalt": {value}, "help": 1, "referenzfelder": {value}}}']
    for field in [*fields, "x"] if name not in ALIKE else ["x"]:
        rest = {key: kept for key, kept in whole.items() if key != field}
        arguments.append(f'{{"inhalt": {_put(json.dumps(rest), field, value)}}}')
    if tool.shape is Shape.IDS:
        rest = {key: kept for key, kept in whole.items() if key != "IDs"}
        arguments.append(f'{{"inhalt": {_put(json.dumps(rest), "IDs", f"[{value}]")}}}')
    if tool.shape is Shape.MEMORIES:
        entry = entry_for(name)
        rest = {key: kept for key, kept in whole.items() if key != "memories"}
        spoilt = [
            _put(json.dumps({key: kept for key, kept in entry.items() if key != field}), field, value)
            for field in [*fields["memories"]["items"]["properties"], "x"]
        ]
        items = [value, *spoilt]
        for item in ("tags", "embedding"):
            kept = {key: kept for key, kept in entry.items() if key != item}
            items += [_put(json.dumps(kept), item, f"[{value}]"), _put(json.dumps(kept), item, f"[1.5, {value}]")]
        arguments.append(f'{{"inhalt": {_put(json.dumps(rest), "memories", "[" + ", ".join(items) + "]")}}}')
    return arguments


@pytest.fixture
def everybody(agent_with: Callable[..., Agent]) -> Agent:
    """An agent whose key may speak for everybody, so that no value is refused before it is looked at."""
    return agent_with("everybody")


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_no_value_in_any_place_of_any_tool_breaks_the_program(everybody: Agent, value: str) -> None:
    for name in NAMES:
        for arguments in _places(name, value):
            _answers_in_order(raw(everybody, arguments, f"/api/tools/{name}/"))


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_no_body_breaks_the_program(anna: Agent, body: bytes) -> None:
    for path in ("/api/tools/", *(f"/api/tools/{name}/" for name in NAMES)):
        answer = _answers_in_order(raw(anna, body, path))
        assert answer["fehler"] is not None


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_the_neighbours_of_a_hostile_entry_are_stored_or_the_whole_call_is_refused(anna: Agent, value: str) -> None:
    good = json.dumps(note())
    body = f'{{"inhalt": {{"nutzer": "anna", "agent": "planer", "memories": [{good}, {value}, {good}]}}}}'
    answer = _answers_in_order(raw(anna, body, "/api/tools/insert_brain_longterm_memory/"))
    stored = anna.call("select_brain_longterm_memory")["anzahl"]["gesamt"]
    if answer["fehler"] is None:
        assert [row["erfolg"] for row in answer["daten"]] == [True, False, True]
        assert stored == 2
    else:
        assert stored == 0
