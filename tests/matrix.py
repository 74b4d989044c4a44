"""What the tests of the matrix share: two sides, who comes to them with which rights, and a call of every tool.

What a principal may do is declared here once more, apart from the program, so that both can be held against each other.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from memories.keys import make_key
from memories.kinds import BRAIN, KINDS
from memories.models import (
    AccessKey,
    CallRecord,
    Grant,
    KeyUsage,
    Recall,
    RecalledSearch,
    RepeatableCall,
    ServiceAccount,
)
from memories.principal import Origin, Principal, Reach
from memories.services import Done, insert
from tests.conftest import Agent

ALL = frozenset({"longterm", "shortterm", "brain"})
BOTH = frozenset({"own", "foreign"})
OWN = frozenset({"own"})
NONE: frozenset[str] = frozenset()
EVERYTHING = frozenset({"read", "insert", "write", "delete", "restore"})
MISSING = "999999"


@dataclass(frozen=True)
class Side:
    """A nutzer's memories. `word`, `tag` and the place are asked for; `secret` stands in every text, nowhere else."""

    name: str
    nutzer: str
    agent: str
    scope: str
    record: str
    word: str
    tag: str
    secret: str
    live: Mapping[str, str] = field(default_factory=dict)
    gone: Mapping[str, str] = field(default_factory=dict)

    def unknown(self) -> "Side":
        """The same, with IDs that nothing has."""
        ids = {kind.typ: f"{kind.typ}_{MISSING}" for kind in KINDS}
        return replace(self, live=ids, gone=ids)

    def entry(self, text: str = "Die Kündigungsfrist endet bald.", **more: Any) -> dict[str, Any]:
        """A long-term or short-term memory of this side."""
        place = {"scope": self.scope, "scope_vk": self.record, "nutzer": self.nutzer, "agent": self.agent}
        return {"kurzbeschreibung": "Frist", "memory": text, "tags": ["gemeinsam"], **place, **more}

    def brain(self, text: str = "Die Kündigungsfrist endet bald.", **more: Any) -> dict[str, Any]:
        """A brain memory of this side."""
        return {
            "memory_typ": "arbeit",
            "titel": "Frist",
            "inhalt": text,
            "scope_typ": self.scope,
            "scope_ID": self.record,
            **more,
        }


ANNAS = Side("own", "anna", "planer", "modul", "12", "Birnbaum", "Obstgarten", "Haselnuss")
WANDAS = Side("foreign", "wanda", "koch", "room", "77", "Quarzfels", "Opalglanz", "Zinnober")


def stored(side: Side, builder: Agent) -> Side:
    """The side with its memories: of each kind a live one of two versions, a deleted one, and a proposed one."""
    agent = Agent(builder.key, nutzer=side.nutzer, agent=side.agent)
    references = {"ticket": side.secret}
    live, gone = {}, {}
    for found in (live, gone):
        text = f"{side.word} {side.secret} mit Kündigungsfrist"
        tags = ["gemeinsam", side.tag]
        vector = {"embedding": [1, 2, 3], "embedding_profil_hash": f"profil-{side.secret}"}
        for kind in ("longterm", "shortterm"):
            entry = side.entry(f"{text} zuerst", kurzbeschreibung=side.secret, tags=tags, **vector)
            found[kind] = _done(agent, f"insert_brain_{kind}_memory", references, memories=[entry])
            change = {"ID": found[kind], "kurzbeschreibung": side.secret, "memory": text, "tags": tags}
            _done(agent, f"update_brain_{kind}_memory", references, memories=[change])
        told = side.brain(f"{text} zuerst", titel=side.secret, inhalt_json=json.dumps({"a": side.secret}))
        found["brain"] = _done(agent, "insert_brain_memory", references, **told)
        _done(agent, "update_brain_memory", references, ID=found["brain"], inhalt=text)
    for kind, kennung in gone.items():
        _done(agent, f"delete_brain_{tool_part(kind)}", references, IDs=[kennung], grund=side.secret)
    _propose(side)
    return replace(side, live=live, gone=gone)


def _propose(side: Side) -> None:
    """A proposal of each kind, near to the side's memories."""
    origin = Origin(Principal(reaches=(Reach(),), proposes=True), side.nutzer, side.agent, "rest", "test")
    text = f"{side.word} {side.secret} mit Kündigungsfrist"
    for kind in KINDS:
        draft = {"nutzer": side.nutzer, "agent": side.agent, "tag_namen": [side.tag]}
        draft |= {kind.memories.SCOPE: side.scope, kind.memories.RECORD: side.record}
        draft |= dict.fromkeys(kind.memories.TEXTS[:2], text)
        draft |= {"memory_typ": "arbeit"} if kind is BRAIN else {}
        assert isinstance(insert(kind, [draft], origin)[0], Done)


def _done(agent: Agent, tool: str, references: Any, **inhalt: Any) -> str:
    answer = agent.call(tool, referenzfelder=references, **inhalt)
    assert answer["erfolg"], answer
    return str(answer["daten"][0]["ID"])


def tool_part(kind: str) -> str:
    """How the names of a kind's tools end."""
    return "memory" if kind == "brain" else f"{kind}_memory"


# Who comes


@dataclass(frozen=True)
class Who:
    """A principal: whose memories it sees, and what it may do with those. None of `sees` is one that is not let in."""

    sees: frozenset[str] | None
    does: frozenset[str] = EVERYTHING
    kinds: frozenset[str] = ALL
    key: Mapping[str, Any] = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    grant: Mapping[str, Any] | None = None
    nutzer: str = "anna"
    calls: bool = False  # whether it sees calls in the admin, of the sides that it sees

    def may(self, does: str, side: Side, *kinds: str) -> bool:
        """Whether it may do this with memories of these kinds of the side."""
        return self.sees is not None and side.name in self.sees and does in self.does and self.kinds >= set(kinds)


KEYS = {
    "a key without limits": Who(BOTH),
    "a key of a nutzer": Who(OWN, key={"nutzer": ["anna"]}),
    "a key of an agent": Who(OWN, key={"agent": ["planer"]}),
    "a key of a scope": Who(OWN, key={"scope": ["modul"]}),
    "a key of a record": Who(OWN, key={"scope_vk": ["12"]}),
    "a key of a kind": Who(BOTH, kinds=frozenset({"longterm"}), key={"typen": ["longterm"]}),
    "a key that reads": Who(OWN, frozenset({"read"}), key={"nutzer": ["anna"], "may_write": False}),
    "a key that does not delete": Who(OWN, EVERYTHING - {"delete"}, key={"nutzer": ["anna"], "may_delete": False}),
    "a key that does not restore": Who(OWN, EVERYTHING - {"restore"}, key={"nutzer": ["anna"], "may_restore": False}),
    "a key under review": Who(OWN, frozenset({"read", "insert"}), key={"nutzer": ["anna"], "pruefpflicht": True}),
    "an outsider's key": Who(NONE, key={"nutzer": ["zora"]}, nutzer="zora"),
    "a key of no scope": Who(NONE, key={"scope": []}),
    "an expired key": Who(None, key={"nutzer": ["anna"], "expires_at": timedelta(seconds=-1)}),
    "a revoked key": Who(None, key={"nutzer": ["anna"]}),
    "a key of an account that is not active": Who(None, key={"nutzer": ["anna"]}),
    "nobody": Who(None),
}
READING = frozenset({"read"})
CURATING = EVERYTHING - {"delete"}
PERSONS = {
    "viewer": Who(BOTH, READING, roles=("Betrachter",), grant={}),
    "curator": Who(BOTH, CURATING, roles=("Kurator",), grant={}),
    "auditor": Who(BOTH, READING, roles=("Auditor",), grant={}, calls=True),
    "administrator": Who(BOTH, EVERYTHING, roles=("Administrator",), grant={}, calls=True),
    "operator of a nutzer": Who(OWN, CURATING, roles=("Kurator",), grant={"nutzer": ["anna"]}),
    "operator of a scope": Who(OWN, CURATING, roles=("Kurator",), grant={"scope": ["modul"]}),
    "administrator of a nutzer": Who(OWN, EVERYTHING, roles=("Administrator",), grant={"nutzer": ["anna"]}, calls=True),
    "administrator whose grant reads": Who(
        OWN, READING, roles=("Administrator",), grant={"nutzer": ["anna"], "may_write": False}, calls=True
    ),
    "auditor of a nutzer": Who(OWN, READING, roles=("Auditor",), grant={"nutzer": ["anna"]}, calls=True),
    "auditor of a scope": Who(OWN, READING, roles=("Auditor",), grant={"scope": ["modul"]}),
    "auditor of a kind": Who(BOTH, READING, frozenset({"brain"}), roles=("Auditor",), grant={"typen": ["brain"]}),
    "administrator without a grant": Who(NONE, roles=("Administrator",)),
    "outsider": Who(NONE, CURATING, roles=("Auditor", "Kurator"), grant={"nutzer": ["zora"]}, calls=True),
    "staff without a role": Who(NONE, NONE, grant={}),
    "not of the staff": Who(None, roles=("Administrator",), grant={}),
    "nobody": Who(None),
}


def agent_of(name: str) -> Agent:
    """The agent that comes with this key."""
    who = KEYS[name]
    if name == "nobody":
        agent = Agent("", nutzer=who.nutzer)
        agent.http = Client(raise_request_exception=False)
        return agent
    flags = {"may_write": True, "expires_at": None} | dict(who.key)
    only = {limit: flags.pop(limit) for limit in list(flags) if isinstance(flags[limit], list)}
    if flags["expires_at"]:
        flags["expires_at"] += timezone.now()
    key, text = make_key(name=name, account=name, only=only, **flags)
    if name == "a revoked key":
        key.revoke(timezone.now())
    if name == "a key of an account that is not active":
        ServiceAccount.objects.filter(pk=key.account_id).update(is_active=False)
    return Agent(text, nutzer=who.nutzer)


def person_of(name: str) -> Client:
    """The person, signed in, speaking English."""
    who = PERSONS[name]
    client = Client(headers={"Accept-Language": "en"}, raise_request_exception=False)
    if name == "nobody":
        return client
    user = User.objects.create_user(name, is_staff=name != "not of the staff")
    user.groups.set(Group.objects.filter(name__in=who.roles))
    if who.grant is not None:
        Grant.objects.create(user=user, **who.grant)
    client.force_login(user)
    return client


# What is called


@dataclass(frozen=True)
class Recipe:
    """What a tool does with memories of these kinds, and calls of it for the memories of a side.

    The first of the questions tells of the side to whoever may see it. `place` names the limits that a new memory can
    lie outside of, where the others are those of the caller himself.
    """

    does: str
    kinds: tuple[str, ...]
    calls: Callable[[Side], list[dict[str, Any]]]
    place: frozenset[str] = NONE


def _filters(side: Side) -> list[dict[str, Any]]:
    return [
        {"nutzer_filter": side.nutzer},
        {},
        {"agent_filter": side.agent},
        {"scope": side.scope},
        {"scope_vk": side.record},
        {"tags": [side.tag]},
        {"tags_eines": [side.tag, "gemeinsam"]},
        {"suche": side.word},
        {"suche": "Kündigungsfrist"},
        {"sortierung": "aelteste", "limit": 1},
        {"von": "2020-01-01", "zeitfeld": "erstellt_am"},
    ]


def _searches(side: Side) -> list[dict[str, Any]]:
    vector = {"embedding": [1, 2, 3], "embedding_profil_hash": f"profil-{side.secret}", "mit_veralteten": 1}
    return [
        {"suche": side.word},
        {"suche": "Kündigungsfrist", "limit": 100, "erklaeren": 1},
        {"suche": "Kundigunsfrist", "erklaeren": 1},
        {"suche": f"{side.word} -Kündigungsfrist"},
        {"suche": "Kündigungsfrist", "nutzer_filter": side.nutzer},
        {"suche": "Kündigungsfrist", "tags": [side.tag]},
        {"suche": "zuerst", "stand": "2999-01-01"},
        {"suche": "Kündigungsfrist", "nachbarn": 1, "typen": ["brain"]},
        {"embedding": [1, 2, 3], "embedding_profil_hash": f"profil-{ANNAS.secret}", "mit_veralteten": 1},
        vector,
        {"suche": "Kündigungsfrist", **vector},
    ]


def _of_kind(kind: str) -> dict[str, Recipe]:
    name = tool_part(kind)
    change = {"kurzbeschreibung": "Neu", "memory": "Neu", "tags": []}
    if kind == "brain":
        insert = Recipe("insert", (kind,), lambda side: [side.brain()], frozenset({"scope", "scope_vk"}))
        update = Recipe("write", (kind,), lambda side: [{"ID": side.live[kind], "titel": "Neu"}])
    else:
        insert = Recipe("insert", (kind,), lambda side: [{"memories": [side.entry()]}])
        update = Recipe("write", (kind,), lambda side: [{"memories": [{"ID": side.live[kind], **change}]}])
    return {
        f"insert_brain_{name}": insert,
        f"update_brain_{name}": update,
        f"select_brain_{name}": Recipe(
            "read", (kind,), lambda side: [{"IDs": [side.live[kind]], "mit_embedding": 1}, *_filters(side)]
        ),
        f"delete_brain_{name}": Recipe("delete", (kind,), lambda side: [{"IDs": [side.live[kind]]}]),
    }


def _histories(side: Side) -> list[dict[str, Any]]:
    every = [*side.live.values(), *side.gone.values()]
    return [{"ID": kennung} for kennung in every] + [{"ID": kennung, "limit": 1} for kennung in every]


RECIPES: dict[str, Recipe] = {
    **_of_kind("longterm"),
    **_of_kind("shortterm"),
    **_of_kind("brain"),
    "promote_brain_shortterm_memory": Recipe(
        "write", ("shortterm", "longterm"), lambda side: [{"IDs": [side.live["shortterm"]]}]
    ),
    "search_brain": Recipe("read", (), _searches),
    "select_brain_history": Recipe("read", ("longterm",), _histories),
    "restore_brain_memory": Recipe(
        "restore", ("longterm",), lambda side: [{"ID": side.gone["longterm"], "version": 1}]
    ),
    "select_brain_tags": Recipe(
        "read", (), lambda side: [{"praefix": side.tag[:3]}, {}, {"praefix": "gem"}, {"limit": 1}]
    ),
}


# What became of it

_UNIMPORTANT = {Session, CallRecord, KeyUsage, Recall, RecalledSearch, RepeatableCall}


@cache
def _reading() -> dict[str, str]:
    """The statement that reads each of these tables, by the model's name."""
    found = {}
    for model in apps.get_models():
        names = [column.column for column in model._meta.concrete_fields]  # noqa: SLF001
        if model is AccessKey:
            names = [name for name in names if name not in {"last_used_at", "failed_call", "failed_times"}]
        if model not in _UNIMPORTANT:
            columns = ", ".join(map(connection.ops.quote_name, names))
            found[model.__name__] = f"SELECT {columns} FROM {connection.ops.quote_name(model._meta.db_table)}"  # noqa: SLF001
    return found


def tables() -> dict[str, list[str]]:
    """All rows of all tables but those that only tell that somebody was there."""
    found = {}
    with connection.cursor() as cursor:
        for name, sql in _reading().items():
            cursor.execute(sql)
            found[name] = sorted(map(repr, cursor.fetchall()))
    return found


@contextmanager
def undone() -> Iterator[None]:
    """Whatever happens inside is undone in the end."""
    point = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(point)


_CHANGING = re.compile(
    r'(name="csrfmiddlewaretoken" value=")[^"]*|(\\?"weiter\\?": ?\\?")[^"\\]*|(weiter=)[^"&]+|("instanz": ?")[^"]*'
)


def settled(text: str) -> str:
    """The text without what differs from one answer to the next: tokens and signed cursors."""
    return _CHANGING.sub(lambda found: next(filter(None, found.groups())), text)


def rows_of(side: Side) -> Iterator[tuple[str, str, int]]:
    """Kind, ID and key of each live memory of the side."""
    for kind in KINDS:
        kennung = side.live[kind.typ]
        yield kind.typ, kennung, int(kennung.partition("_")[2])
