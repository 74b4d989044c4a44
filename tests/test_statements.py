"""How many statements a call costs: few, and as many for a hundred entries as for ten."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.conftest import Agent, note

# Unlike within a test's own transaction, BEGIN and COMMIT are real ones here.
pytestmark = pytest.mark.django_db(transaction=True)

POSTGRESQL = connection.vendor == "postgresql"
SIZES = (10, 50, 100)
_numbers = count()


def cost(agent: Agent, tool: str, **inhalt: Any) -> int:
    """The statements of a call that succeeds, its key and its record included; on SQLite BEGIN and COMMIT too."""
    with CaptureQueriesContext(connection) as context:
        answer = agent.call(tool, **inhalt)
    assert answer["erfolg"], answer
    statements = [query["sql"] for query in context.captured_queries]
    return sum(not (POSTGRESQL and sql.startswith(("BEGIN", "COMMIT"))) for sql in statements)


def assert_constant(costs: dict[int, int], *, sqlite: int, postgresql: int) -> None:
    """Check the bound for a hundred; SQLite takes so few values in a statement that a hundred can need two batches."""
    assert costs[10] == costs[50]
    assert costs[100] == costs[50] if POSTGRESQL else costs[100] <= costs[50] + 2
    assert costs[100] <= (postgresql if POSTGRESQL else sqlite)


def new_tags() -> list[str]:
    """Eight names that nobody has used before."""
    return [f"Tag {next(_numbers)}" for _ in range(8)]


def vector() -> list[float]:
    """A new vector of 384 numbers."""
    return [float(place + next(_numbers)) for place in range(384)]


def entry(**fields: Any) -> dict[str, Any]:
    """An entry with all there is: 8 tags, a vector, a profile hash."""
    return note(tags=new_tags(), embedding=vector(), embedding_profil_hash="modell-1") | fields


def stored(agent: Agent, number: int, kind: str = "longterm", **fields: Any) -> list[str]:
    """The IDs of so many new memories."""
    answer = agent.call(f"insert_brain_{kind}_memory", memories=[entry(**fields) for _ in range(number)])
    return [row["ID"] for row in answer["daten"]]


@pytest.mark.parametrize("kind", ["longterm", "shortterm"])
@pytest.mark.parametrize("known", [True, False], ids=["known tags", "new tags"])
def test_insert(anna: Agent, kind: str, known: bool) -> None:
    eight = {"tags": new_tags()} if known else {}
    stored(anna, 1, **eight)
    costs = {
        size: cost(anna, f"insert_brain_{kind}_memory", memories=[entry(**eight) for _ in range(size)])
        for size in SIZES
    }
    assert_constant(costs, sqlite=14, postgresql=10)


@pytest.mark.parametrize("kind", ["longterm", "shortterm"])
def test_update_with_new_tags_and_new_vectors(anna: Agent, kind: str) -> None:
    costs = {}
    for size in SIZES:
        changes = [
            {
                "ID": kennung,
                "kurzbeschreibung": "neu",
                "memory": "neu",
                "tags": new_tags(),
                "embedding": vector(),
                "embedding_profil_hash": "modell-2",
            }
            for kennung in stored(anna, size, kind)
        ]
        costs[size] = cost(anna, f"update_brain_{kind}_memory", memories=changes)
    assert_constant(costs, sqlite=18, postgresql=14)


def test_an_update_that_changes_nothing_only_looks(anna: Agent) -> None:
    eight = new_tags()
    costs = {}
    for size in SIZES:
        changes = [
            {"ID": kennung, "kurzbeschreibung": "k", "memory": "m", "tags": eight}
            for kennung in stored(anna, size, kurzbeschreibung="k", memory="m", tags=eight)
        ]
        costs[size] = cost(anna, "update_brain_longterm_memory", memories=changes)
    assert_constant(costs, sqlite=7, postgresql=5)


def test_delete(anna: Agent) -> None:
    costs = {size: cost(anna, "delete_brain_longterm_memory", IDs=stored(anna, size)) for size in SIZES}
    assert_constant(costs, sqlite=12, postgresql=10)


def test_promote(anna: Agent) -> None:
    costs = {size: cost(anna, "promote_brain_shortterm_memory", IDs=stored(anna, size, "shortterm")) for size in SIZES}
    assert_constant(costs, sqlite=19, postgresql=15)


def the_same(calls: list[Callable[[], int]]) -> int:
    """What each of these calls costs."""
    costs = [call() for call in calls]
    assert len(set(costs)) == 1, costs
    return costs[0]


def test_select_by_ids_of_one_and_of_a_hundred(anna: Agent) -> None:
    ids = stored(anna, 100)
    calls = [
        lambda size=size: cost(anna, "select_brain_longterm_memory", IDs=ids[:size], mit_embedding=1)
        for size in (1, 10, 100)
    ]
    assert the_same(calls) <= 3


@pytest.mark.parametrize(
    "query", [{}, {"tags": ["a"]}, {"tags_eines": ["a", "b"]}, {"sortierung": "aelteste"}], ids=str
)
def test_select_by_filter_of_one_and_of_a_hundred(anna: Agent, query: dict[str, Any]) -> None:
    stored(anna, 100, tags=["a"])
    calls = [lambda size=size: cost(anna, "select_brain_longterm_memory", limit=size, **query) for size in (1, 10, 100)]
    assert the_same(calls) <= 3


def test_history_of_few_and_of_many_versions(anna: Agent) -> None:
    (kennung,) = stored(anna, 1)
    for place in range(30):
        change = {"ID": kennung, "kurzbeschreibung": f"{place}", "memory": "m", "tags": new_tags()}
        anna.call("update_brain_longterm_memory", memories=[change])
    calls = [lambda size=size: cost(anna, "select_brain_history", ID=kennung, limit=size) for size in (1, 10, 30)]
    assert the_same(calls) <= 4


def test_tags_few_and_many(anna: Agent) -> None:
    stored(anna, 20)
    calls = [lambda size=size: cost(anna, "select_brain_tags", limit=size) for size in (1, 10, 100)]
    assert the_same(calls) <= 3


@pytest.mark.skipif(POSTGRESQL, reason="PostgreSQL's planner knows how many memories an agent has")
def test_memories_are_read_by_their_ids_and_not_by_whom_a_key_may_see(agent_with: Callable[..., Agent]) -> None:
    limited = agent_with("anna", agent=["planer"], scope=["modul"], nutzer=["anna"])
    ids = stored(limited, 30)
    entries = [entry(ID=each) for each in ids]
    for each in entries:
        for fixed in ("scope", "scope_vk", "agent", "nutzer"):
            del each[fixed]
    with CaptureQueriesContext(connection) as context:
        assert limited.call("select_brain_longterm_memory", IDs=ids)["erfolg"]
        assert limited.call("update_brain_longterm_memory", memories=entries)["erfolg"]
        assert len(limited.call("search_brain", suche="Kündigungsfrist", limit=30)["daten"]) == 30
        assert limited.call("delete_brain_longterm_memory", IDs=ids)["erfolg"]
    asked = [query["sql"] for query in context.captured_queries]
    asked = [sql for sql in asked if sql.startswith("SELECT") and 'FROM "memories_longtermmemory"' in sql]
    assert len(asked) >= 4
    for sql in asked:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            steps = " ".join(row[3] for row in cursor.fetchall())
        assert not any(f"INDEX longtermmemory_{column} " in steps for column in ("nutzer", "agent", "scope")), sql
