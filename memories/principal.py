"""Who acts, what he may see and change, and how a change came about: frozen values that every service takes."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from django.utils import timezone

ALL_KINDS = frozenset({"longterm", "shortterm", "brain"})


class Action(StrEnum):
    """What can be done with memories. Whoever may do one of the others somewhere may also read there."""

    READ = "read"
    INSERT = "insert"  # store new ones; whoever may write may do so, too
    WRITE = "write"
    DELETE = "delete"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class Reach:
    """What may be done where. Of `nutzer`, `agent`, `scope` and `scope_vk`, None means all and a set these only."""

    actions: frozenset[Action] = frozenset(Action)
    kinds: frozenset[str] = ALL_KINDS
    nutzer: frozenset[str] | None = None
    agent: frozenset[str] | None = None
    scope: frozenset[str] | None = None
    scope_vk: frozenset[str] | None = None

    def allows(self, action: Action) -> bool:
        """Whether this may be done there."""
        return action in self.actions or (action is Action.INSERT and Action.WRITE in self.actions)

    def limits(self) -> dict[str, frozenset[str]]:
        """The limits by their name, without those that allow all."""
        named = {"nutzer": self.nutzer, "agent": self.agent, "scope": self.scope, "scope_vk": self.scope_vk}
        return {name: only for name, only in named.items() if only is not None}

    def outside(self, **values: str) -> list[str]:
        """The names of the values that lie outside, in the order given."""
        limits = self.limits()
        return [name for name, value in values.items() if name in limits and value not in limits[name]]


@dataclass(frozen=True, slots=True)
class Quota:
    """A key's limits, and what it had used of them in a minute and on a day when it was looked up."""

    calls_a_minute: int
    entries_a_day: int
    bytes_a_day: int
    minute: int = 0
    calls: int = 0
    day: int = 0
    entries: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Principal:
    """An access key or a person: what it reaches, and whom it may speak for.

    Of `nutzer`, `agent` and `tools`, None means all and a set these only. `portable` wishes for tool schemas that name
    one type for each property. What one that `proposes` stores waits for approval, and is there for those alone who see
    what is proposed.
    """

    reaches: tuple[Reach, ...] = ()
    nutzer: frozenset[str] | None = None
    agent: frozenset[str] | None = None
    tools: frozenset[str] | None = None
    sees_expired: bool = False
    sees_proposed: bool = False
    proposes: bool = False
    portable: bool = False
    key_id: int | None = None
    key_name: str = ""
    failed_before: bool = False  # whether the key's last call failed
    account_name: str = ""
    quota: Quota | None = None
    user_id: int | None = None
    user_name: str = ""

    # Django REST framework asks this of whoever is signed in.
    is_authenticated: bool = True

    def may_call(self, tool: str) -> bool:
        """Whether the tool is among those it may call."""
        return self.tools is None or tool in self.tools

    def may(self, action: Action, kind: str | None = None) -> bool:
        """Whether it may do this anywhere, with memories of this kind or of any."""
        return bool(self.reaching(action, kind))

    def reaching(self, action: Action, kind: str | None = None) -> tuple[Reach, ...]:
        """Where it may do this."""
        return tuple(r for r in self.reaches if r.allows(action) and (kind is None or kind in r.kinds))

    def kinds(self, action: Action) -> frozenset[str]:
        """The kinds of which there are memories with which it may do this."""
        return frozenset().union(*(reach.kinds for reach in self.reaching(action)))

    def cannot_speak_for(self, **identity: str) -> str | None:
        """The first of `nutzer` and `agent` that it may not call itself; None when it may be all of them."""
        for name, value in identity.items():
            allowed: frozenset[str] | None = getattr(self, name)
            if allowed is not None and value not in allowed:
                return name
        return None


# The program itself, for its own commands.
SYSTEM = Principal(reaches=(Reach(),), sees_expired=True, sees_proposed=True)


class Once(Protocol):
    """Knows which entries of a call are stored already, so that a repetition stores them no second time."""

    def handled(self, places: Sequence[int]) -> Mapping[int, Any]:
        """The outcomes of those of these entries that are stored; called first thing in each transaction."""

    def keep(self, outcomes: Mapping[int, object]) -> None:
        """Note what became of entries; called last thing in the transaction that stores them."""


@dataclass(frozen=True, slots=True)
class Origin:
    """How a change came about; written with every version. `clock` gives the moment, in UTC.

    With `repeat`, entries that an earlier, broken execution of the same call has stored are not stored again.
    """

    principal: Principal
    nutzer: str
    agent: str
    tuer: str
    tool: str
    grund: str = ""
    referenzfelder: Mapping[str, Any] = field(default_factory=dict)
    aufruf: uuid.UUID = field(default_factory=uuid.uuid4)
    repeat: Once | None = None
    clock: Callable[[], datetime] = timezone.now
