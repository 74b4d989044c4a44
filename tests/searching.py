"""What the tests of the search share: asking it, memories with a history of their own, and the index as it stands."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memories import services
from memories.kinds import KINDS, SHORTTERM, Kind
from memories.models import PastEntry, SearchEntry
from memories.principal import SYSTEM, Origin
from memories.search import upkeep
from tests.conftest import Agent

PROFILE = {"embedding_profil_hash": "p"}


def search(agent: Agent, **inhalt: Any) -> dict[str, Any]:
    """The answer to a search that is executed."""
    answer = agent.call("search_brain", **inhalt)
    assert answer["erfolg"] is True
    assert answer["fehler"] is None
    return answer


def found(agent: Agent, suche: str = "", **inhalt: Any) -> list[str]:
    """The IDs that a search finds, best first."""
    wanted = {"suche": suche} if suche else {}
    return [row["ID"] for row in search(agent, **wanted, **{"limit": 100, **inhalt})["daten"]]


def listed(agent: Agent, suche: str, **inhalt: Any) -> list[str]:
    """The long-term memories that select finds by text, oldest first."""
    inhalt = {"suche": suche, "sortierung": "aelteste", "limit": 100, **inhalt}
    return [row["ID"] for row in agent.call("select_brain_longterm_memory", **inhalt)["daten"]]


def at(moment: datetime) -> Origin:
    """How a change of this moment came about."""
    return Origin(principal=SYSTEM, nutzer="anna", agent="planer", tuer="command", tool="test", clock=lambda: moment)


def stored(kind: Kind, moment: datetime, drafts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The IDs of new memories of this moment; a draft has columns, of which those not named are filled in."""
    texts = {"titel": "t", "memory_typ": "arbeit"} if kind.typ == "brain" else {"kurzbeschreibung": "k", "memory": "m"}
    place = {"scope_typ": "modul", "scope_id": "12"} if kind.typ == "brain" else {"scope": "modul", "scope_vk": "12"}
    whole = {"nutzer": "anna", "agent": "planer", "tag_namen": [], **texts, **place}
    if kind is SHORTTERM:
        whole["gueltig_bis"] = None
    outcomes = services.insert(kind, [whole | draft for draft in drafts], at(moment))
    return [done(outcome).kennung for outcome in outcomes]


def done(outcome: services.Outcome) -> services.Done:
    """The change, which took place."""
    assert isinstance(outcome, services.Done), outcome
    return outcome


def deviations() -> list[str]:
    """What is wrong with the index."""
    return [f"{each.where}: {each.what}" for each in upkeep.check(lambda _what, _number: None)]


def entries() -> list[tuple[Any, ...]]:
    """The index as it stands: all live and past entries with all that they hold, but for their own keys."""
    return sorted(
        (model.__name__, *(_plain(getattr(entry, name)) for name in _columns(model)))
        for model in (SearchEntry, PastEntry)
        for entry in model.objects.all()
    )


def _columns(model: Any) -> list[str]:
    fields = model._meta.concrete_fields  # noqa: SLF001
    return [field.name for field in fields if field.name not in {"id", "block"}]


def _plain(value: Any) -> str:
    return bytes(value).hex() if isinstance(value, memoryview | bytes) else str(value)


def kind_of(kennung: str) -> tuple[Kind, int]:
    """The kind and the key of an ID."""
    typ, _line, key = kennung.partition("_")
    return next(kind for kind in KINDS if kind.typ == typ), int(key)
