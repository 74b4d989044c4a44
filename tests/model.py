"""What the tools should do, in plain Python: memories as dicts, rights as sets. Shares no code with the product."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

KINDS = ("longterm", "shortterm", "brain")
PLACE = ("nutzer", "agent", "scope", "scope_vk")
DONE, UNCHANGED, NO_VERSION = "ok", "unveraendert", "no version"
MISSING, REFUSED, OUTDATED = "nicht_gefunden", "nicht_erlaubt", "konflikt"
State = dict[str, Any]


@dataclass(frozen=True)
class Grant:
    """What may be done where; of the limits, None means everywhere."""

    verbs: frozenset[str] = frozenset({"read", "write", "delete", "restore"})
    kinds: tuple[str, ...] = KINDS
    nutzer: tuple[str, ...] | None = None
    agent: tuple[str, ...] | None = None
    scope: tuple[str, ...] | None = None
    scope_vk: tuple[str, ...] | None = None

    def allows(self, verb: str, kind: str, state: State) -> bool:
        """Whether this may be done with a memory in this state."""
        limits = {name: getattr(self, name) for name in PLACE}
        within = all(only is None or state[name] in only for name, only in limits.items())
        return verb in self.verbs and kind in self.kinds and within


@dataclass(frozen=True, repr=False)
class Who:
    """Somebody with grants, and what he calls himself."""

    name: str
    grants: tuple[Grant, ...]
    nutzer: str = "anna"
    agent: str = "planer"

    def __repr__(self) -> str:
        return self.name

    def may(self, verb: str, kind: str, state: State) -> bool:
        """Whether he may do this with a memory in this state."""
        return any(grant.allows(verb, kind, state) for grant in self.grants)

    def may_anywhere(self, verb: str, kind: str | None = None) -> bool:
        """Whether he may do this at all."""
        return any(verb in grant.verbs and (kind is None or kind in grant.kinds) for grant in self.grants)


@dataclass
class Memory:
    """A memory: its states by version, from 1, and what made each of them."""

    kind: str
    states: list[State]
    actions: list[str]
    live: bool = True

    @property
    def version(self) -> int:
        """The newest version."""
        return len(self.states)

    @property
    def state(self) -> State:
        """The newest state."""
        return self.states[-1]

    def add(self, action: str, state: State, *, live: bool = True) -> None:
        """The next version."""
        self.actions.append(action)
        self.states.append(state)
        self.live = live


@dataclass
class Model:
    """All memories by ID, and how tags are spelled."""

    memories: dict[str, Memory] = field(default_factory=dict)
    spelling: dict[str, str] = field(default_factory=dict)

    @property
    def changes(self) -> int:
        """How many versions there are."""
        return sum(memory.version for memory in self.memories.values())

    def seen(self, who: Who, verb: str = "read") -> dict[str, Memory]:
        """The live memories with which he may do this."""
        return {
            kennung: memory
            for kennung, memory in self.memories.items()
            if memory.live and who.may(verb, memory.kind, memory.state)
        }

    def tags(self, who: Who) -> list[tuple[str, int]]:
        """The tags in sight with their counts, in the order of their folded names."""
        counts: dict[str, int] = {}
        for memory in self.seen(who).values():
            for tag in memory.state["tags"]:
                counts[tag] = counts.get(tag, 0) + 1
        return sorted(counts.items(), key=lambda pair: pair[0].casefold())

    def insert(self, who: Who, kind: str, state: State, kennung: str | None) -> str:
        """Store a memory under the ID that it got; what becomes of it."""
        if not who.may("write", kind, state):
            return REFUSED
        assert kennung
        assert kennung not in self.memories, "an ID was given twice"
        self.memories[kennung] = Memory(kind, [self._spelled(state)], ["angelegt"])
        return DONE

    def update(self, who: Who, kennung: str, values: State, expected: int | None) -> str:
        """Change a memory."""
        memory = self.seen(who, "write").get(kennung)
        if memory is None:
            return MISSING
        if expected not in {None, memory.version}:
            return OUTDATED
        wanted = memory.state | values
        if self._as_spelled(wanted) == memory.state:
            return UNCHANGED
        if not who.may("write", memory.kind, wanted):
            return REFUSED
        memory.add("geaendert", self._spelled(wanted))
        return DONE

    def delete(self, who: Who, kennung: str) -> str:
        """Delete a memory."""
        memory = self.seen(who, "delete").get(kennung)
        if memory is None:
            return MISSING
        memory.add("geloescht", memory.state, live=False)
        return DONE

    def promote(self, who: Who, kennung: str, fresh: str | None) -> str:
        """Turn a short-term memory into a long-term one of this ID."""
        memory = self.seen(who, "write").get(kennung)
        if memory is None:
            return MISSING
        if not who.may("write", "longterm", memory.state):
            return REFUSED
        assert fresh
        assert fresh not in self.memories, "an ID was given twice"
        self.memories[fresh] = Memory("longterm", [memory.state], ["befoerdert"])
        memory.add("befoerdert", memory.state, live=False)
        return DONE

    def restore(self, who: Who, kennung: str, number: int) -> str:
        """Set a memory back to a version."""
        memory = self.memories.get(kennung)
        if memory is None or not who.may("restore", memory.kind, memory.state):
            return MISSING
        if number > memory.version or not who.may("restore", memory.kind, memory.states[number - 1]):
            return NO_VERSION
        if memory.live and memory.states[number - 1] == memory.state:
            return UNCHANGED
        memory.add("wiederhergestellt", memory.states[number - 1])
        return DONE

    def history(self, who: Who, kennung: str) -> list[tuple[int, str, State]] | None:
        """The versions in sight, newest first; None for a memory that is not there for him."""
        memory = self.memories.get(kennung)
        if memory is None or not who.may("read", memory.kind, memory.state):
            return None
        versions = zip(range(1, memory.version + 1), memory.actions, memory.states, strict=True)
        return [each for each in versions if who.may("read", memory.kind, each[2])][::-1]

    def _spelled(self, state: State) -> State:
        """The state, whose tags give those that are new their spelling."""
        for tag in state["tags"]:
            self.spelling.setdefault(tag.casefold(), tag)
        return self._as_spelled(state)

    def _as_spelled(self, state: State) -> State:
        once = dict.fromkeys(self.spelling.get(tag.casefold(), tag) for tag in _each_once(state["tags"]))
        return state | {"tags": list(once)}


def _each_once(tags: Sequence[str]) -> Iterator[str]:
    """The tags, of those that differ in case alone the first."""
    folded = set()
    for tag in tags:
        if tag.casefold() not in folded:
            folded.add(tag.casefold())
            yield tag
