"""Whatever JSON is sent as a call, it is answered in shape or refused with a fault of ours."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api import envelope, jsonbody
from api.envelope import Via
from api.tools import TOOLS
from memories.errors import BrainError
from memories.principal import SYSTEM
from tests.doors import ENVELOPE, inhalt_for

pytestmark = pytest.mark.django_db

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=20)
    | st.sampled_from(["", "null", "longterm_1", "brain_0", "7.0", "2026-02-30", "[]", "{}", "\0", "\ud800", "0" * 400])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
calls_of_ours = st.sampled_from([{"inhalt": inhalt_for(tool.name)} for tool in TOOLS])
# A data base that keeps examples would let a failure of one run come back in the next, on another tree.
quick = settings(
    max_examples=400, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all places in a JSON value."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, child in children for place in places(child, (*path, key)))]


@st.composite
def nearly_right(draw: Any) -> Any:
    """A call that is right but for one or two places, which hold anything or nothing."""
    call = copy.deepcopy(draw(calls_of_ours))
    for _place in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(places(call)[1:] or [()]))
        holder = call
        for step in path[:-1]:
            holder = holder[step]
        if not path:
            return draw(values)
        if draw(st.booleans()) or isinstance(holder, list):
            holder[path[-1]] = draw(values)
        else:
            del holder[path[-1]]
    return call


def told(tool_name: str, arguments: Any) -> dict[str, Any]:
    """The answer to the call, or its refusal; both must be JSON."""
    tool = envelope.find(tool_name)
    try:
        answer = envelope.handle(tool, arguments, SYSTEM, Via("rest"))
    except BrainError as fault:
        answer = envelope.refusal(tool_name, fault, envelope.references_of(arguments))
    read: dict[str, Any] = jsonbody.parse(jsonbody.write(answer)) if "\ud800" not in str(answer) else answer
    return read


@quick
@given(st.sampled_from([tool.name for tool in TOOLS]), values | nearly_right())
def test_any_arguments_of_any_tool_are_answered_in_shape(name: str, arguments: Any) -> None:
    answer = told(name, arguments)
    assert answer.keys() >= ENVELOPE
    assert answer["anzahl"]["gesamt"] == len(answer["daten"])
    for row in answer["daten"]:
        assert row.get("erfolg", True) == ("fehler" not in row)


def code_of(work: Callable[[], Any]) -> str:
    """The code of the fault that this is refused with; empty when it is not."""
    try:
        work()
    except BrainError as fault:
        return str(envelope.told(fault)["code"])
    return ""


@quick
@given(values | st.fixed_dictionaries({"tool": values, "arguments": values}))
def test_any_frame_is_opened_or_refused(frame: Any) -> None:
    assert code_of(lambda: envelope.opened(frame)) or isinstance(envelope.opened(frame)[0], str)


@quick
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_body_is_read_or_refused(body: bytes) -> None:
    assert code_of(lambda: jsonbody.parse(body)) in {"", "kein_json", "zu_gross"}
