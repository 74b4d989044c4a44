"""10,000 random calls of people with different rights, each compared with a plain model: no answer may differ."""

from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from api import envelope
from api.envelope import Via
from memories import kinds
from memories.errors import BrainError
from memories.keys import make_key
from memories.principal import Action, Principal, Reach
from tests.model import (
    DONE,
    KINDS,
    MISSING,
    NO_VERSION,
    OUTDATED,
    PLACE,
    REFUSED,
    UNCHANGED,
    Grant,
    Memory,
    Model,
    State,
    Who,
)
from tests.trouble import assert_no_drift

# Without HTTP; on PostgreSQL, where each takes longer, a fifth of them. Some chains end a little early.
CALLS = 10_000 if connection.vendor == "sqlite" else 2_000
STEPS = 100
READ, CHANGE = frozenset({"read"}), frozenset({"read", "write"})
ALL = Grant()
CAST = (
    Who("everything", (ALL,)),
    Who("anna", (Grant(nutzer=("anna",)),)),
    Who("ben", (Grant(nutzer=("ben",)),), nutzer="ben"),
    Who("planer", (Grant(agent=("planer",)),)),
    Who("modul", (Grant(scope=("modul",)),)),
    Who("record", (Grant(scope_vk=("1",)),)),
    Who("narrow", (Grant(nutzer=("anna", "ben"), scope=("modul", "room"), scope_vk=("1", "2")),)),
    Who("longterm", (Grant(kinds=("longterm",)),)),
    Who("rest", (Grant(kinds=("shortterm", "brain")),)),
    Who("reader", (Grant(verbs=READ, scope=("modul",)),)),
    Who("keeper", (Grant(verbs=CHANGE | {"restore"}),)),
    Who("no restore", (Grant(verbs=CHANGE | {"delete"}, nutzer=("ben",)),), nutzer="ben"),
    Who(  # as a person has them
        "several grants",
        (
            Grant(verbs=READ, scope=("modul",)),
            Grant(verbs=CHANGE, nutzer=("anna",), kinds=("longterm", "brain")),
            Grant(nutzer=("ben",), scope_vk=("1",)),
        ),
    ),
    Who("nothing", (Grant(kinds=()),)),
)
WORDS = ("Zement", "Wolke", "Apfel", "Kupfer", "Bahnhof")

UNKNOWN = "Eine Erinnerung mit dieser ID gibt es nicht."

people = st.sampled_from(CAST)
picks = st.integers(0, 999)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(" ".join)
tags = st.lists(st.sampled_from(["Frist", "frist", "FRIST", "Büro", "büro", "Rot", "rot"]), max_size=3)
places = st.fixed_dictionaries(
    {
        "nutzer": st.sampled_from(["anna", "ben"]),
        "agent": st.sampled_from(["planer", "tester"]),
        "scope": st.sampled_from(["modul", "room"]),
        "scope_vk": st.sampled_from(["1", "2", "3"]),
    }
)
notes = st.sampled_from(KINDS[:2])
few = st.lists(picks, min_size=1, max_size=3)


def principal_of(who: Who) -> Principal:
    """The principal of a key with this grant; of several grants, one as a person is."""
    if len(who.grants) > 1:
        return Principal(reaches=tuple(_reach(grant) for grant in who.grants), user_name=who.name)
    (grant,) = who.grants
    only = {name: getattr(grant, name) for name in PLACE} | {"typen": grant.kinds}
    key, _text = make_key(
        name=who.name,
        account=who.name,
        only=only,
        may_write="write" in grant.verbs,
        expires_at=None,
        may_delete="delete" in grant.verbs,
        may_restore="restore" in grant.verbs,
    )
    return key.principal()


def _reach(grant: Grant) -> Reach:
    limits = {name: frozenset(getattr(grant, name)) for name in PLACE if getattr(grant, name) is not None}
    return Reach(actions=frozenset(map(Action, grant.verbs)), kinds=frozenset(grant.kinds), **limits)


def kind_of(kennung: str) -> kinds.Kind:
    """The kind of an ID."""
    return next(kind for kind in kinds.KINDS if kennung.startswith(kind.typ))


class Calls(RuleBasedStateMachine):
    """Calls through the envelope, as both doors make them."""

    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.undone = transaction.atomic()
        self.undone.__enter__()
        self.model = Model()
        self.principals = {who: principal_of(who) for who in CAST}
        self.last = CAST[0]
        self.looked_at = 0

    def teardown(self) -> None:
        """Compare every history, then take everything back."""
        try:
            for kennung in self.model.memories:
                self.compare_history(CAST[0], kennung)
            for number, who in enumerate(CAST):
                self.compare_sight(who)
                if number % 4 == self.looked_at % 4:
                    self.compare_rows(who)
            assert_no_drift()
        finally:
            transaction.set_rollback(True)
            self.undone.__exit__(None, None, None)

    def call(self, who: Who, tool: str, **inhalt: Any) -> Any:
        """The rows of the answer; the code of the fault when the call is refused."""
        self.last = who
        arguments = {"inhalt": {"nutzer": who.nutzer, "agent": who.agent, **inhalt}}
        try:
            return envelope.handle(envelope.find(tool), arguments, self.principals[who], Via("test"))["daten"]
        except BrainError as fault:
            return fault.code

    def pick(self, kind: str | None, number: int) -> str:
        """The ID of a memory of this kind that is or was there, or of one that never was."""
        known = [kennung for kennung, memory in self.model.memories.items() if kind in {None, memory.kind}]
        known.append(f"{kind or 'longterm'}_999999")
        return known[number % len(known)]

    @rule(who=people, kind=notes, drafts=st.lists(st.tuples(places, texts, tags), min_size=1, max_size=3))
    def insert(self, who: Who, kind: str, drafts: list[tuple[State, str, list[str]]]) -> None:
        """Store some memories."""
        states = [{**place, "text": text, "tags": names} for place, text, names in drafts]
        entries = [{**place, "kurzbeschreibung": text, "memory": text, "tags": names} for place, text, names in drafts]
        rows = self.call(who, f"insert_brain_{kind}_memory", memories=entries)
        if not who.may_anywhere("write", kind):
            assert rows == REFUSED
            return
        for state, row in zip(states, rows, strict=True):
            assert outcome(row) == self.model.insert(who, kind, state, row.get("ID"))

    @rule(who=people, place=places, text=texts)
    def insert_brain(self, who: Who, place: State, text: str) -> None:
        """Store a brain memory, which belongs to the caller."""
        own = {"scope_typ": place["scope"], "scope_ID": place["scope_vk"], "titel": text, "memory_typ": "arbeit"}
        rows = self.call(who, "insert_brain_memory", **own)
        if not who.may_anywhere("write", "brain"):
            assert rows == REFUSED
            return
        state = {**place, "nutzer": who.nutzer, "agent": who.agent, "text": text, "tags": []}
        assert outcome(rows[0]) == self.model.insert(who, "brain", state, rows[0].get("ID"))

    @rule(who=people, kind=notes, changes=st.lists(st.tuples(picks, texts, tags), min_size=1, max_size=3))
    def update(self, who: Who, kind: str, changes: list[tuple[int, str, list[str]]]) -> None:
        """Change some memories, a few of them twice."""
        named = [(self.pick(kind, number), text, names) for number, text, names in changes]
        entries = [{"ID": each, "kurzbeschreibung": text, "memory": text, "tags": names} for each, text, names in named]
        rows = self.call(who, f"update_brain_{kind}_memory", memories=entries)
        if not who.may_anywhere("write", kind):
            assert rows == REFUSED
            return
        for (kennung, text, names), row in in_waves(named, rows):
            self.compare(row, kennung, self.model.update(who, kennung, {"text": text, "tags": names}, None))

    @rule(who=people, number=picks, text=texts, names=tags, expected=st.integers(1, 4))
    def update_a_version(self, who: Who, number: int, text: str, names: list[str], expected: int) -> None:
        """Change a memory if it is at this version."""
        kennung = self.pick("longterm", number)
        entry = {"ID": kennung, "kurzbeschreibung": text, "memory": text, "tags": names}
        rows = self.call(who, "update_brain_longterm_memory", memories=[entry], erwartete_version=expected)
        if not who.may_anywhere("write", "longterm"):
            assert rows == REFUSED
            return
        self.compare(rows[0], kennung, self.model.update(who, kennung, {"text": text, "tags": names}, expected))

    @rule(who=people, number=picks, place=places, text=texts)
    def update_brain(self, who: Who, number: int, place: State, text: str) -> None:
        """Change a brain memory, also where it belongs."""
        kennung = self.pick("brain", number)
        own = {"scope_typ": place["scope"], "scope_ID": place["scope_vk"], "titel": text}
        rows = self.call(who, "update_brain_memory", ID=kennung, **own)
        if not who.may_anywhere("write", "brain"):
            assert rows == REFUSED
            return
        values = {"scope": place["scope"], "scope_vk": place["scope_vk"], "text": text}
        self.compare(rows[0], kennung, self.model.update(who, kennung, values, None))

    @rule(who=people, kind=st.sampled_from(KINDS), numbers=few)
    def delete(self, who: Who, kind: str, numbers: list[int]) -> None:
        """Delete some memories."""
        kennungen = [self.pick(kind, number) for number in numbers]
        tool = "delete_brain_memory" if kind == "brain" else f"delete_brain_{kind}_memory"
        rows = self.call(who, tool, IDs=kennungen)
        if not who.may_anywhere("delete", kind):
            assert rows == REFUSED
            return
        for kennung, row in zip(kennungen, rows, strict=True):
            self.compare(row, kennung, self.model.delete(who, kennung))

    @rule(who=people, numbers=few)
    def promote(self, who: Who, numbers: list[int]) -> None:
        """Turn some short-term memories into long-term ones."""
        kennungen = [self.pick("shortterm", number) for number in numbers]
        rows = self.call(who, "promote_brain_shortterm_memory", IDs=kennungen)
        if not who.may_anywhere("write", "longterm"):
            assert rows == REFUSED
            return
        for kennung, row in zip(kennungen, rows, strict=True):
            wanted = self.model.promote(who, kennung, row.get("ID"))
            self.compare(row, row["ID"] if wanted == DONE else kennung, wanted)

    @rule(who=people, number=picks, version=st.integers(1, 6))
    def restore(self, who: Who, number: int, version: int) -> None:
        """Set a memory back."""
        kennung = self.pick(None, number)
        rows = self.call(who, "restore_brain_memory", ID=kennung, version=version)
        if not who.may_anywhere("restore"):
            assert rows == REFUSED
            return
        wanted = self.model.restore(who, kennung, version)
        if wanted == NO_VERSION:
            assert rows[0]["fehler"]["feld"] == "version"
        else:
            self.compare(rows[0], kennung, wanted)

    @rule(who=people, kind=notes, only=places, asked=st.sets(st.sampled_from(PLACE)), names=tags)
    def select(self, who: Who, kind: str, only: State, asked: set[str], names: list[str]) -> None:
        """List by place and tags."""
        wire = {"nutzer": "nutzer_filter", "agent": "agent_filter"}
        filters = {wire.get(name, name): only[name] for name in asked}
        rows = self.call(who, f"select_brain_{kind}_memory", tags_eines=names, limit=100, **filters)
        if not who.may_anywhere("read", kind):
            assert rows == REFUSED
            return
        carried = {name.casefold() for name in names}
        wanted = {
            kennung
            for kennung, memory in self.model.seen(who).items()
            if memory.kind == kind and all(memory.state[name] == only[name] for name in asked)
            if not carried or carried & {tag.casefold() for tag in memory.state["tags"]}
        }
        assert {row["ID"] for row in rows} == wanted

    @rule(who=people, kind=st.sampled_from(KINDS), numbers=few)
    def read(self, who: Who, kind: str, numbers: list[int]) -> None:
        """Read by ID."""
        kennungen = [self.pick(kind, number) for number in numbers]
        tool = "select_brain_memory" if kind == "brain" else f"select_brain_{kind}_memory"
        rows = self.call(who, tool, IDs=kennungen)
        if not who.may_anywhere("read", kind):
            assert rows == REFUSED
            return
        seen = self.model.seen(who)
        for kennung, row in zip(kennungen, rows, strict=True):
            self.compare(row, kennung, DONE if kennung in seen else MISSING)

    @rule(who=people, word=st.sampled_from(WORDS), typen=st.sets(st.sampled_from(KINDS)))
    def search(self, who: Who, word: str, typen: set[str]) -> None:
        """Search for a word."""
        rows = self.call(who, "search_brain", suche=word, typen=sorted(typen), limit=100)
        if not who.may_anywhere("read"):
            assert rows == REFUSED
            return
        found = {
            kennung
            for kennung, memory in self.model.seen(who).items()
            if word in memory.state["text"] and memory.kind in (typen or KINDS)
        }
        assert {row["ID"] for row in rows} == found

    @rule(who=people, number=picks)
    def history(self, who: Who, number: int) -> None:
        """Read a history."""
        self.compare_history(who, self.pick(None, number))

    @invariant()
    def everybody_sees_what_he_should(self) -> None:
        """After a change: all rows; for one in turn what the database shows him; now and then what the tools do."""
        Calls.steps += 1
        if self.model.changes == self.looked_at:
            return
        self.looked_at = self.model.changes
        everything, in_turn = CAST[0], CAST[self.looked_at % len(CAST)]
        self.compare_sight(everything)
        self.compare_sight(in_turn)
        if self.looked_at % 4 == 0:
            self.compare_rows(self.last)

    def compare_sight(self, who: Who) -> None:
        """Compare what the database shows him."""
        seen = {
            (f"{kind.typ}_{key}", version)
            for kind in kinds.KINDS
            for key, version in kind.memories.objects.visible_to(self.principals[who]).values_list("pk", "version")
        }
        assert seen == {(kennung, memory.version) for kennung, memory in self.model.seen(who).items()}, who.name

    def compare_rows(self, who: Who) -> None:
        """Compare all that the tools list for him."""
        for kind in KINDS:
            tool = "select_brain_memory" if kind == "brain" else f"select_brain_{kind}_memory"
            rows = self.call(who, tool, limit=100)
            if who.may_anywhere("read", kind):
                seen = {each: memory for each, memory in self.model.seen(who).items() if memory.kind == kind}
                assert {row["ID"]: told(row) for row in rows} == {each: shown(seen[each]) for each in seen}
            else:
                assert rows == REFUSED
        rows = self.call(who, "select_brain_tags")
        if who.may_anywhere("read"):
            assert [(row["name"], row["anzahl"]) for row in rows] == self.model.tags(who)
        else:
            assert rows == REFUSED

    def compare_history(self, who: Who, kennung: str) -> None:
        """Compare all versions in sight."""
        rows = self.call(who, "select_brain_history", ID=kennung, limit=100)
        if not who.may_anywhere("read"):
            assert rows == REFUSED
            return
        wanted = self.model.history(who, kennung)
        if wanted is None:
            self.compare(rows[0], kennung, MISSING)
            return
        seen = [(row["version"], row["aktion"], state_of(row["stand"])) for row in rows]
        assert seen == wanted

    def compare(self, row: dict[str, Any], kennung: str, wanted: str) -> None:
        """Compare what became of one memory; one out of sight reads like one that never was."""
        assert outcome(row) == wanted, (row, wanted)
        assert row["ID"] == kennung
        if wanted == MISSING:
            assert row.keys() == {"index", "typ", "erfolg", "ID", "fehler"}
            assert (row["fehler"]["code"], row["fehler"]["feld"]) == ("nicht_gefunden", "ID")
            assert row["fehler"]["meldung"].startswith(UNKNOWN)
        if wanted == OUTDATED:
            assert row["version"] == self.model.memories[kennung].version


def outcome(row: dict[str, Any]) -> str:
    """What became of an entry, in one word."""
    if not row["erfolg"]:
        return str(row["fehler"]["code"])
    return UNCHANGED if row.get("unveraendert") else DONE


def in_waves(entries: Sequence[tuple[str, str, list[str]]], rows: Sequence[Any]) -> list[Any]:
    """Entries with their rows in the order in which they take effect: a memory's second change after all first ones."""
    pairs = list(zip(entries, rows, strict=True))
    earlier = [sum(entries[before][0] == kennung for before in range(n)) for n, (kennung, *_more) in enumerate(entries)]
    return [pairs[place] for place in sorted(range(len(pairs)), key=lambda place: earlier[place])]


def state_of(row: dict[str, Any]) -> State:
    """The state that a row tells."""
    is_brain = "titel" in row
    return {
        "nutzer": row["nutzer"],
        "agent": row["agent"],
        "scope": row["scope_typ" if is_brain else "scope"],
        "scope_vk": row["scope_ID" if is_brain else "scope_vk"],
        "text": row["titel" if is_brain else "memory"],
        "tags": row["tags"],
    }


def told(row: dict[str, Any]) -> tuple[int, State]:
    """Version and state of a row."""
    return row["version"], state_of(row)


def shown(memory: Memory) -> tuple[int, State]:
    """Version and state of the model's memory."""
    return memory.version, memory.state


@pytest.mark.django_db
def test_10000_random_calls_do_what_the_model_does() -> None:
    bounded = settings(
        max_examples=CALLS // STEPS * 5 // 4 + 5,
        stateful_step_count=STEPS,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Calls, settings=bounded)
    assert Calls.steps >= CALLS
