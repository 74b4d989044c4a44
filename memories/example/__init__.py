"""The example data, and how it is played into the database: step by step, as agents would have done it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from memories import services, values
from memories.errors import BrainError
from memories.kinds import KINDS, Kind
from memories.principal import SYSTEM, Origin
from memories.services import Change, Outcome

TOOL = "load_example"
_TELL_EVERY = 100


@dataclass(frozen=True, slots=True)
class Step:
    """One change of one memory of the example."""

    days_ago: float
    kind: Kind
    name: str
    what: str
    told: Mapping[str, Any]


def already_loaded() -> bool:
    """Whether the example was loaded before, even if its memories are gone by now."""
    return any(kind.versions.objects.filter(tool=TOOL).exists() for kind in KINDS)


def load(progress: Callable[[int, int], None]) -> tuple[int, int, list[str]]:
    """Play all steps, oldest first. Returns how many memories and later changes there were, and what went wrong."""
    now = timezone.now()
    steps = sorted(_steps(), key=lambda step: -step.days_ago)
    keys: dict[str, int] = {}
    faults: list[str] = []
    for number, step in enumerate(steps, 1):
        outcome = _play(step, keys.get(step.name, 0), now)
        if isinstance(outcome, BrainError):
            faults.append(f"{step.name} {step.what}: {outcome.feld} {outcome.meldung}")
        elif step.what == "insert":
            keys[step.name] = outcome.key
        if number % _TELL_EVERY == 0:
            progress(number, len(steps))
    created = sum(step.what == "insert" for step in steps)
    return created, len(steps) - created, faults


def _steps() -> list[Step]:
    steps: list[Step] = []
    for kind in KINDS:
        text = Path(__file__).with_name(f"{kind.typ}.json").read_text(encoding="utf-8")
        for item in json.loads(text):
            name, first = item["schluessel"], item["anlage"]
            steps.append(Step(first["vor_tagen"], kind, name, "insert", first))
            steps.extend(Step(later["vor_tagen"], kind, name, later["art"], later) for later in item["aenderungen"])
    return steps


def _play(step: Step, key: int, now: datetime) -> Outcome:
    told = step.told
    at = now - timedelta(days=step.days_ago)
    origin = Origin(
        principal=SYSTEM,
        nutzer=told["nutzer"],
        agent=told["agent"],
        tuer="command",
        tool=TOOL,
        grund=told.get("grund", ""),
        referenzfelder=told.get("referenzfelder", {}),
        clock=lambda: at,
    )
    match step.what:
        case "insert":
            owner = {"nutzer": told["nutzer"], "agent": told["agent"], "tag_namen": []}
            return services.insert(step.kind, [owner | _columns(told["werte"], now)], origin)[0]
        case "update":
            return services.update(step.kind, [Change(key, _columns(told["werte"], now))], origin)[0]
        case "delete":
            return services.delete(step.kind, [key], origin)[0]
        case "restore":
            return services.restore(step.kind, key, told["version"], origin)
        case "promote":
            return services.promote([key], origin)[0]
        case _:
            raise ValueError(step.what)


def _columns(given: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The values by column, in canonical form."""
    columns: dict[str, Any] = {}
    for name, value in given.items():
        match name:
            case "tags":
                columns["tag_namen"] = values.tag_names(value, name)
            case "gueltig_in_tagen":
                columns["gueltig_bis"] = now + timedelta(days=value)
            case "relevanz":
                columns[name] = int(value)
            case _:
                columns[name.lower()] = value
    return columns
