"""Lists that stay quick with a million rows: no page reads a whole table, counts everything or is large."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client

from memories.admin import base, finding
from memories.kinds import BRAIN, KINDS, LONGTERM, SHORTTERM, Kind
from memories.models import Grant, LongtermMemory
from memories.principal import SYSTEM, Origin
from memories.services import Change, delete, insert, update
from tests.admincast import NOTE, person, store, url

pytestmark = pytest.mark.django_db
ROWS = 400
COUNTED = 60
MOST_BYTES = 80_000
MOST_QUERIES = 12
ALL = [f"Schlagwort {n} an allen" for n in range(12)]
OF_SOME = "version_deleted"  # the index that holds the deletions alone
ORIGIN = Origin(SYSTEM, nutzer="anna", agent="planer", tuer="rest", tool="test", grund="Probe " * 160)
MEMORY_PAGES = [
    "",
    "o=-8",
    "o=8",
    "o=-10",
    "o=9",
    "tag=t3",
    "nutzer=ben",
    "agent=a5",
    "age=week",
    "age=old",
    "q=Frist",
    "p=2",
]
PAGES = {
    LONGTERM: [*MEMORY_PAGES, "scope=s7", "q=Kuendigung+vertrag&age=week&tag=t3", "q=longterm_1"],
    SHORTTERM: [*MEMORY_PAGES, "scope=s7", "validity=valid", "validity=expired", "q=drei&validity=valid"],
    BRAIN: [*MEMORY_PAGES, "memory_typ=agent", "memory_typ=agent&validity=valid&age=month", "scope_typ=room"],
}
VERSION_PAGES = [
    "",
    "o=1",
    "aktion=geloescht",
    "tuer=rest",
    "age=week",
    "q=Probe",
    "q=longterm_1",
    "tuer=rest&age=today",
]


def many(kind: Kind) -> None:
    """Memories of many owners, agents, scopes, tags and types, and some changes."""
    drafts = [
        NOTE
        | {"memory_typ": ["arbeit", "agent"][n % 2], "titel": f"Frist {n}", "gueltig_bis": None}
        | {"tag_namen": [f"t{n % 20}", *ALL], "agent": f"a{n % 40}", "scope": f"s{n % 30}", "nutzer": f"n{n % 30}"}
        | {"scope_typ": "global"}
        for n in range(ROWS)
    ]
    done = [outcome.key for outcome in insert(kind, drafts, ORIGIN) if not isinstance(outcome, Exception)]
    update(kind, [Change(key, {"tag_namen": ["neu"]}) for key in done[:20]], ORIGIN)
    delete(kind, done[20:30], ORIGIN)


class Statements:
    """What is asked of the database, with the values."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def __call__(self, execute: Any, sql: str, params: Any, many: Any, context: Any) -> Any:
        """Note a statement."""
        self.asked.append((sql, params))
        return execute(sql, params, many, context)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[Statements]:
    """What the database is asked, of lists that end early."""
    monkeypatch.setattr(base, "COUNTED_UP_TO", COUNTED)
    monkeypatch.setattr(finding, "MOST_FOUND", 10)
    found = Statements()
    with connection.execute_wrapper(found):
        yield found


def big(table: str | None) -> bool:
    """Whether the table grows with the memories."""
    return bool(table) and any(str(table).endswith(end) for end in ("memory", "version", "entry", "longtermtag"))


def read_whole(sql: str, params: Any) -> list[str]:
    """The steps of a statement's plan that read a table from beginning to end."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
            steps = [row[3] for row in cursor.fetchall()]
            scans = [step for step in steps if step.startswith("SCAN") and big(step.split()[1]) and OF_SOME not in step]
            ends_early = "LIMIT" in sql and " WHERE " not in sql and not any("TEMP B-TREE" in step for step in steps)
            return [] if ends_early else scans
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
        plan = cursor.fetchone()[0]
    return list(_whole((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"], ends_early=False))


def _whole(node: Any, *, ends_early: bool) -> Iterator[str]:
    kind = node["Node Type"]
    by_index = "Index Cond" in node or "Recheck Cond" in node or OF_SOME in node.get("Index Name", "")
    if big(node.get("Relation Name")) and not by_index and ("Filter" in node or not ends_early):
        yield f"{kind} {node['Relation Name']} {node.get('Index Name', '')} {node.get('Filter', '')}"
    inside = kind == "Limit" or (ends_early and kind not in {"Sort", "Aggregate", "Hash", "HashAggregate"})
    for child in node.get("Plans", ()):
        yield from _whole(child, ends_early=inside)


def check(statements: Statements, client: Client, address: str) -> Any:
    """The page, of which no statement reads a whole table."""
    statements.asked.clear()
    page = client.get(address)
    assert page.status_code == 200, (address, page.get("Location"))
    asked = [(sql, params) for sql, params in statements.asked if sql.startswith("SELECT") and "set_config" not in sql]
    found = {sql: whole for sql, params in asked if (whole := read_whole(sql, params))}
    assert not found, "\n".join([address, *(f"{sql}\n  {whole}" for sql, whole in found.items())])
    if "q=" not in address:
        assert len(asked) <= MOST_QUERIES, address
    assert len(page.content) <= MOST_BYTES, (address, len(page.content))
    return page


def known_to_the_planner() -> None:
    """Gather statistics; on PostgreSQL these tables are so small that it would rather read them whole."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")


def test_no_page_reads_a_whole_table(statements: Statements) -> None:
    clients = [person("anna", superuser=True), person("vera", [f"view_{kind.typ}memory" for kind in KINDS])]
    vera = User.objects.get(username="vera")
    vera.grants.all().delete()
    Grant.objects.create(user=vera, nutzer=["n1", "n2"])
    Grant.objects.create(user=vera, agent=["a5"], scope=["s5", "global"])
    for kind in KINDS:
        many(kind)
    known_to_the_planner()
    for client in clients:
        for kind, pages in PAGES.items():
            for page in pages:
                if "p=2" not in page or client is clients[0]:
                    check(statements, client, f"{url('changelist', kind=kind.typ)}?{page}")
        for page in VERSION_PAGES:
            check(statements, client, f"/admin/memories/longtermversion/?{page}")
        for page in ["", "o=1", "wer=anna", "grund=Probe", "age=week", "q=Frist", "q=longterm_1"]:
            check(statements, client, f"{url('trash')}?{page}")
    check(statements, clients[0], url("history", LongtermMemory.objects.first().pk))


def walked(client: Client, address: str) -> tuple[list[str], int]:
    """What all pages show, going on from each end, and how often the list went on."""
    shown: list[str] = []
    times = 0
    query = "?"
    while query:
        pages = client.get(f"{address}{query}").context["cl"].paginator.num_pages
        for page in range(1, pages + 1):
            cl = client.get(f"{address}{query}&p={page}" if page > 1 else f"{address}{query}").context["cl"]
            shown += [f"{row.kennung} {row.version}" for row in cl.result_list]
            assert page == pages or not cl.further
        query, times = cl.further, times + 1
    return shown, times - 1


def test_a_list_goes_on_where_its_count_ends(statements: Statements) -> None:
    anna = person("anna", superuser=True)
    keys = [store() for _each in range(2 * COUNTED + 5)]
    page = anna.get(url("changelist"))
    assert "More than 60 long-term memories" in page.content.decode()
    assert "There are more than 60; after the last page you can go on." in page.content.decode()
    shown, times = walked(anna, url("changelist"))
    assert [name.split()[0] for name in shown] == [f"longterm_{key}" for key in reversed(keys)]
    assert times == 2
    versions, _times = walked(anna, "/admin/memories/longtermversion/")
    assert len(set(versions)) == len(versions) == len(keys)


def test_a_filter_without_an_index_looks_through_a_part_at_a_time(statements: Statements) -> None:
    anna = person("anna", superuser=True)
    own = {"titel": "T", "gueltig_bis": None}
    keys = [store(BRAIN, **own, memory_typ="agent" if n % 50 == 3 else "arbeit") for n in range(2 * COUNTED + 5)]
    address = url("changelist", kind="brain") + "?memory_typ=agent"
    page = anna.get(address)
    assert "60 rows were looked through for these; after the last page you can go on." in page.content.decode()
    found, query = [], "&"
    for _part in range(3):
        cl = anna.get(address if query == "&" else url("changelist", kind="brain") + query).context["cl"]
        found += [row.pk for row in cl.result_list]
        query = cl.further
    assert found == [key for n, key in reversed(list(enumerate(keys))) if n % 50 == 3]
    assert query == ""
    assert anna.get(address, {"tag": "vertrag"}).context["cl"].further == ""


def test_what_a_grant_shows_of_many_is_reached_part_by_part(statements: Statements) -> None:
    keys = [store(BRAIN, titel="T", memory_typ="arbeit", gueltig_bis=None) for _each in range(COUNTED + 5)]
    client = person("vera", ["view_brainmemory", "view_longtermmemory"])
    vera = User.objects.get(username="vera")
    vera.grants.update(scope=["global"])
    shown, times = walked(client, url("changelist", kind="brain"))
    assert [name.split()[0] for name in shown] == [f"brain_{key}" for key in reversed(keys)]
    assert times == 1
    vera.grants.all().delete()
    for address in (url("changelist"), url("trash"), "/admin/memories/longtermversion/"):
        assert list(client.get(address).context["cl"].result_list) == []


def test_a_place_of_another_list_is_none(statements: Statements) -> None:
    anna = person("anna", superuser=True)
    for _each in range(COUNTED + 5):
        store()
    further = anna.get(url("changelist"), {"p": "2"}).context["cl"].further
    assert anna.get(url("changelist") + further).status_code == 200
    for address in (url("changelist", kind="brain") + further, url("changelist") + "?weiter=x"):
        assert anna.get(address).status_code == 302
    page = anna.get(url("changelist") + further + "&nutzer=anna")
    assert 'name="weiter"' not in page.content.decode()
    assert page.context["cl"].get_query_string({"nutzer": "ben"}) == "?nutzer=ben"


def steps_of(statements: Statements, client: Client, query: str) -> list[str]:
    """The steps of the plans of what the list asks of memories, on SQLite."""
    statements.asked.clear()
    assert client.get(f"{url('changelist')}?{query}").status_code == 200
    with connection.cursor() as cursor:
        found = []
        for sql, params in list(statements.asked):
            if "longtermmemory" in sql:
                cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
                found += [row[3] for row in cursor.fetchall()]
    return found


@pytest.mark.skipif("connection.vendor != 'sqlite'")
def test_the_index_of_the_search_is_asked_once_and_not_for_each_memory(statements: Statements) -> None:
    store()
    steps = steps_of(statements, person("anna", superuser=True), "vector=stale")
    reading = [step for step in steps if step.startswith(("SCAN f VIRTUAL", "SEARCH c"))]
    assert reading
    assert reading[::2] == [step for step in reading if step.startswith("SCAN f VIRTUAL")], reading


@pytest.mark.skipif("connection.vendor != 'sqlite'")
def test_after_cleaning_up_sqlite_knows_which_index_leaves_fewer_rows(statements: Statements) -> None:
    drafts = [NOTE | {"nutzer": f"n{n % 30}", "agent": "planer"} for n in range(300)]
    insert(LONGTERM, drafts, ORIGIN)
    vera = person("vera", ["view_longtermmemory"])
    User.objects.get(username="vera").grants.update(nutzer=["n1"])
    call_command("clean_up")
    steps = steps_of(statements, vera, "agent=planer")
    assert any("longtermmemory_nutzer" in step for step in steps)
    assert not any("longtermmemory_agent" in step for step in steps)
