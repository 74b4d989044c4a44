"""Every tool and every method of MCP, by every kind of key, with own and foreign memories: from the registries."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction

from api.mcp import resources
from api.mcp.server import SERVER
from api.tools import TOOLS
from memories.roles import ROLES
from tests.conftest import Agent
from tests.doors import NAMES
from tests.matrix import (
    ANNAS,
    KEYS,
    MISSING,
    NONE,
    PERSONS,
    RECIPES,
    WANDAS,
    Recipe,
    Side,
    agent_of,
    rows_of,
    settled,
    stored,
    tables,
    undone,
)
from tests.mcp import Mcp

pytestmark = pytest.mark.django_db

DOORS = ("rest", "mcp")
LET_IN = [name for name, who in KEYS.items() if who.sees is not None]
BLIND = [name for name in LET_IN if "foreign" not in (KEYS[name].sees or NONE)]
ASKING = [name for name, recipe in RECIPES.items() if recipe.does == "read"]


def completions() -> list[dict[str, Any]]:
    """The parameters of completions of everything that can be completed."""
    prompt = {"type": "ref/prompt", "name": "tidy_topic"}
    typed = (("tag", ""), ("tag", "opal"), ("tag", "gem"), ("scope", ""), ("scope", "ro"))
    return [
        *({"ref": prompt, "argument": {"name": name, "value": value}} for name, value in typed),
        {"ref": {"type": "ref/resource", "uri": resources.TEMPLATE}, "argument": {"name": "typ", "value": ""}},
    ]


# The requests of each method of MCP; the tools have tests of their own, and memories are read by their addresses.
METHODS: dict[str, list[dict[str, Any]]] = {
    "tools/list": [{}],
    "tools/call": [],
    "resources/list": [{}],
    "resources/templates/list": [{}],
    "resources/read": [],
    "prompts/list": [{}],
    "prompts/get": [{"name": "tidy_topic", "arguments": {"topic": "Frist"}}],
    "completion/complete": completions(),
}


def requests(side: Side) -> list[tuple[str, dict[str, Any]]]:
    """Method and parameters of all requests, those for the memories of the side included."""
    reads = [("resources/read", {"uri": address(kind, key)}) for kind, _kennung, key in rows_of(side)]
    return reads + [(method, params) for method, all_of_it in METHODS.items() for params in all_of_it]


def address(kind: str, key: int) -> str:
    """The address of a memory as a resource."""
    return f"brain://{kind}/{key}"


@dataclass
class World:
    """The two sides, who comes to them, and what each was told while there was but one side."""

    own: Side
    foreign: Side
    agents: dict[str, Agent]
    before: dict[str, dict[str, str]]

    def side(self, name: str) -> Side:
        """The side of this name."""
        return self.own if name == "own" else self.foreign


def say(agent: Agent, door: str, tool: str, inhalt: dict[str, Any]) -> tuple[int, Any, str]:
    """Status, envelope (None when the door itself refuses) and text of the answer to a call."""
    arguments = {"inhalt": {"nutzer": agent.nutzer, "agent": agent.agent, **inhalt}}
    if door == "rest":
        response = agent.post(tool, arguments)
        return response.status_code, json.loads(response.content), response.content.decode()
    response = Mcp(agent, "legacy").send("tools/call", {"name": tool, "arguments": arguments})
    told = json.loads(response.content)
    return response.status_code, told.get("result", {}).get("structuredContent"), response.content.decode()


def everything_told(agent: Agent, own: Side, foreign: Side) -> dict[str, str]:
    """All that the agent is told when it asks everything about both sides, by what it asked."""
    told = {}
    for side in (own, foreign.unknown()):
        for tool in ASKING:
            for place, inhalt in enumerate(RECIPES[tool].calls(side)):
                asked = f"{tool} {inhalt}"
                if asked not in told:
                    with undone():
                        told[asked] = settled(say(agent, DOORS[place == 0], tool, inhalt)[2])
        for method, params in requests(side):
            asked = f"{method} {params}"
            if asked not in told:
                with undone():
                    told[asked] = Mcp(agent, "legacy").send(method, params).content.decode()
    told["definitions"] = agent.http.get("/api/tools/").content.decode()
    return told


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """Made once: anna's memories, what everybody is told then, and wanda's memories."""
    with django_db_blocker.unblock(), transaction.atomic():
        builder = agent_of("a key without limits")
        agents = {name: agent_of(name) for name in KEYS}
        own = stored(ANNAS, builder)
        before = {name: everything_told(agents[name], own, WANDAS) for name in BLIND}
        yield World(own, stored(WANDAS, builder), agents, before)
        transaction.set_rollback(True)


def without_traces(text: str, side: Side) -> bool:
    """Whether nothing of what only the side's memories say is in the text."""
    return not any(mark in text for mark in (side.secret, side.word, side.tag))


def expected(name: str, recipe: Recipe, side: Side) -> bool:
    """Whether the key may do that with the side's memories."""
    who = KEYS[name]
    if recipe.place and not recipe.place & set(who.key):
        return who.sees is not None and recipe.does in who.does and who.kinds >= set(recipe.kinds)
    return who.may(recipe.does, side, *recipe.kinds)


# That nothing is missing


def test_every_tool_has_a_recipe_and_every_method_a_request() -> None:
    assert set(RECIPES) == set(NAMES)
    assert set(METHODS) == set(SERVER.methods)
    assert {tool.name: tool.action.value for tool in TOOLS} == {name: each.does for name, each in RECIPES.items()}


def test_every_role_comes_as_somebody() -> None:
    assert {role for who in PERSONS.values() for role in who.roles} == set(ROLES)


# What each may do


@pytest.mark.parametrize("side_name", ["own", "foreign"])
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("tool", NAMES)
def test_a_key_does_what_it_may_and_nothing_else(world: World, tool: str, door: str, side_name: str) -> None:
    side, recipe = world.side(side_name), RECIPES[tool]
    allowed = []
    for name, agent in world.agents.items():
        before = tables()
        inhalt = recipe.calls(side)[0]
        with undone():
            status, answer, text = say(agent, door, tool, inhalt)
            after = tables()
        if KEYS[name].sees is None:
            assert status == 401, name
        elif expected(name, recipe, side):
            assert answer["erfolg"], (name, text)
            if recipe.does == "read":
                assert not without_traces(text, side), name
            allowed.append(name)
        if not expected(name, recipe, side) or recipe.does == "read":
            assert after == before, name
        else:
            assert after != before, name
        if not expected(name, recipe, side):
            assert without_traces(text, side), (name, text)
            assert answer is None or not answer["erfolg"] or answer["daten"] == [], (name, text)
    assert "a key without limits" in allowed
    assert len(allowed) > (4 if side_name == "own" else 0)


@pytest.mark.parametrize("name", LET_IN)
def test_a_key_is_told_of_the_tools_that_it_may_call(world: World, name: str) -> None:
    who, agent = KEYS[name], world.agents[name]
    kinds = {kind for tool in NAMES for kind in RECIPES[tool].kinds}
    assert kinds == {"longterm", "shortterm", "brain"}
    wanted = {
        tool.name
        for tool in TOOLS
        if RECIPES[tool.name].does in who.does and (tool.kind is None or tool.kind in who.kinds)
    }
    with undone():
        assert {tool["name"] for tool in agent.http.get("/api/tools/").json()["tools"]} == wanted
        assert {tool["name"] for tool in Mcp(agent).ask("tools/list")["tools"]} == wanted
        for tool in NAMES:
            status = 200 if tool in wanted else 403
            assert agent.http.get(f"/api/tools/{tool}/").status_code == status
            assert agent.post(tool, {"help": 1}).status_code == status


@pytest.mark.parametrize("side_name", ["own", "foreign"])
@pytest.mark.parametrize("name", list(KEYS))
def test_a_key_reads_over_mcp_what_it_may_see(world: World, name: str, side_name: str) -> None:
    who, agent, side = KEYS[name], world.agents[name], world.side(side_name)
    for method, params in requests(side):
        with undone():
            response = Mcp(agent, "legacy").send(method, params)
        if who.sees is None:
            assert response.status_code == 401
            assert response["Content-Type"] == "application/json"
            continue
        text = response.content.decode()
        for other in (world.own, world.foreign):
            assert other.name in who.sees or without_traces(text, other), (method, text)
        if method == "resources/read":
            kind = params["uri"].split("/")[2]
            assert (side.secret in text) == who.may("read", side, kind), (method, params, text)
    if who.sees is not None:
        with undone():
            uris = {each["uri"] for each in Mcp(agent).ask("resources/list")["resources"]}
        for kind, _kennung, key in rows_of(side):
            assert (address(kind, key) in uris) == who.may("read", side, kind)


# What is foreign does not exist


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("tool", NAMES)
def test_a_foreign_id_reads_like_an_unknown_one(world: World, tool: str, door: str) -> None:
    calls = zip(RECIPES[tool].calls(world.foreign), RECIPES[tool].calls(world.foreign.unknown()), strict=True)
    different = [(foreign, unknown) for foreign, unknown in calls if foreign != unknown]
    ids = "|".join([*world.foreign.live.values(), *world.foreign.gone.values()])
    for name in BLIND:
        for pair in different:
            texts = []
            for inhalt in pair:
                with undone():
                    texts.append(settled(say(world.agents[name], door, tool, inhalt)[2]))
            as_unknown = re.sub(rf"\b({ids})\b", lambda found: f"{found[0].partition('_')[0]}_{MISSING}", texts[0])
            assert as_unknown == texts[1], name


@pytest.mark.parametrize("name", BLIND)
def test_nothing_that_a_key_is_told_depends_on_what_it_may_not_see(world: World, name: str) -> None:
    now = everything_told(world.agents[name], world.own, world.foreign)
    assert {asked: told for asked, told in now.items() if told != world.before[name][asked]} == {}
    text = "".join(now.values())
    assert without_traces(text, world.foreign)
    assert KEYS[name].sees == NONE or not without_traces(text, world.own)
