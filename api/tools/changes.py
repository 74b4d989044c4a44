"""What the tools of all kinds have in common when they store, change and delete: how an outcome becomes a row."""

from collections.abc import Callable, Sequence

from api.fields import memory_id
from api.schemas import answer, call, changed_row, ids, text
from api.tool import Call, Reply, Row, Shape, Tool
from memories import services
from memories.errors import BrainError, Conflict
from memories.kinds import Kind
from memories.principal import Action
from memories.services import Change, Outcome


def row(outcome: Outcome) -> Row | BrainError:
    """The row of an outcome: the ID, and what else there is to tell."""
    if isinstance(outcome, Conflict) and outcome.version:
        return {"fehler": outcome, "version": outcome.version}
    if isinstance(outcome, BrainError):
        return outcome
    told: Row = {"ID": outcome.kennung}
    if not outcome.changed:
        told["unveraendert"] = True
    if outcome.verweis:
        told["verweis"] = outcome.verweis
    if outcome.vorgeschlagen:
        told["vorgeschlagen"] = True
    return told


def rows(outcomes: Sequence[Outcome]) -> Reply:
    """The reply that tells these outcomes."""
    return Reply([row(outcome) for outcome in outcomes])


def inserting(kind: Kind) -> Callable[[Call], Reply]:
    """The handler that stores new memories of this kind."""
    return lambda call: rows(services.insert(kind, call.entries, call.origin))


def updating(kind: Kind) -> Callable[[Call], Reply]:
    """The handler that changes memories of this kind; entries are columns and the memory's `key`."""

    def handler(call: Call) -> Reply:
        changes = [
            Change(
                entry["key"],
                {name: value for name, value in entry.items() if name != "key"},
                erwartete_version=call.erwartete_version,
            )
            for entry in call.entries
        ]
        return rows(services.update(kind, changes, call.origin))

    return handler


def deleting(kind: Kind, *, name: str, titel: str, was: str) -> Tool:
    """The tool that deletes memories of this kind."""
    key = memory_id(kind)
    return Tool(
        name=name,
        titel=titel,
        beschreibung=f"Löscht 1 bis 100 {was}; restore_brain_memory holt sie zurück.",
        shape=Shape.IDS,
        input_schema=call(ids() | {"grund": text()}, ["IDs"]),
        output_schema=answer(changed_row()),
        read=lambda entry: key.read(entry, "ID"),
        handler=lambda call: rows(services.delete(kind, call.entries, call.origin)),
        action=Action.DELETE,
        destructive=True,
        typ=kind.typ,
        grenzen=("grund",),
        beispiel={
            "tool": name,
            "arguments": {
                "inhalt": {"IDs": [f"{kind.typ}_41"], "grund": "überholt", "nutzer": "anna", "agent": "planer"},
                "referenzfelder": {"ticket": "T-17"},
            },
        },
    )


def help_example(name: str) -> dict[str, object]:
    """The example of the given tools: a call for help."""
    return {"tool": name, "arguments": {"inhalt": {}, "help": 1, "referenzfelder": {}}}
