"""What calls cost: a batch beside the bare ORM work, one insert beside a plain view, checking, and where time goes."""

import cProfile
import io
import json
import pstats
import random
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.db import connection, transaction
from django.utils import timezone

from api import envelope, jsonbody
from api.envelope import Via
from api.mcp.protocol import MODERN
from bench.plain.models import PlainMemory
from memories import services
from memories.embeddings import put_embedding
from memories.history import Stamp, copied_fields, record
from memories.keys import make_key
from memories.kinds import LONGTERM
from memories.models import Aktion, LongtermMemory, LongtermTag, LongtermVersion, PastEntry, SearchEntry
from memories.principal import SYSTEM, Origin, Principal
from memories.search import index
from memories.tags import known_tags
from memories.values import embedding, tag_key

ENTRIES = 100
TAGS = 8
ROUNDS = 15
TEXT = "Die Kündigungsfrist beträgt drei Monate zum Quartalsende. " * 8

_random = random.Random(4711)


def main() -> int:
    """Measure everything and print the ratios."""
    call_command("migrate", verbosity=0)
    call_command("migrate", run_syncdb=True, verbosity=0)  # the tables of the plain view, which has no migrations
    print(f"Database: {connection.vendor}. CPU time, median of {ROUNDS} rounds, alternating; aims in brackets.")
    application = get_wsgi_application()
    _key, text = make_key(name="bench", account="bench", only={}, may_write=True, expires_at=None)
    post = _poster(application, text)
    batch_against_orm(post)
    single_against_plain_view(post)
    versions_against_libraries()
    validation(post)
    mcp_beside_rest(post)
    rights_and_records()
    where_time_goes(post)
    return 0


def _poster(application: Any, key: str) -> Callable[..., bytes]:
    """Calls the WSGI application as a server does, without a network."""

    def post(path: str, body: bytes, **headers: str) -> bytes:
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": path,
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "HTTP_HOST": "localhost",
            "HTTP_AUTHORIZATION": f"Bearer {key}",
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body),
            "wsgi.url_scheme": "http",
            "wsgi.errors": io.StringIO(),
            **headers,
        }
        response = application(environ, lambda *_: None)
        answer = b"".join(response)
        response.close()
        return answer

    return post


def entries(count: int, numbers: int) -> list[dict[str, Any]]:
    """Entries of an insert: 8 tags of a vocabulary of 200, a vector of so many numbers."""
    return [
        {
            "kurzbeschreibung": f"Kündigungsfrist {place}",
            "memory": TEXT,
            "tags": [f"Tag {_random.randrange(200)}.{n}" for n in range(TAGS)],
            "scope": "modul",
            "scope_vk": "12",
            "agent": "planer",
            "nutzer": "anna",
            "embedding": [_random.gauss(0, 0.05) for _number in range(numbers)],
            "embedding_profil_hash": f"profil-{numbers}",
        }
        for place in range(count)
    ]


def call_body(items: list[dict[str, Any]]) -> bytes:
    """The body of an insert call."""
    inhalt = {"memories": items, "nutzer": "anna", "agent": "planer"}
    return json.dumps({"tool": "insert_brain_longterm_memory", "arguments": {"inhalt": inhalt}}).encode()


def cpu(run: Callable[[], Any]) -> float:
    """CPU milliseconds of one run."""
    start = time.process_time()
    run()
    return (time.process_time() - start) * 1000


def alternating(*runs: Callable[[], Any], rounds: int = ROUNDS) -> list[float]:
    """The median CPU milliseconds of each, run in turn so that noise meets all alike; the first round is a warm-up."""
    figures: list[list[float]] = [[] for _run in runs]
    for number in range(rounds + 1):
        for place, run in enumerate(runs):
            spent = cpu(run)
            if number:
                figures[place].append(spent)
    return [statistics.median(each) for each in figures]


def batch_against_orm(post: Callable[[str, bytes], bytes]) -> None:
    """The whole call of 100 entries against bulk_create of the same rows, tag, version and search rows."""
    items = entries(ENTRIES, 384)
    body = call_body(items)
    vectors = [embedding(item["embedding"], "embedding") for item in items]
    assert json.loads(post("/api/tools/", body))["erfolg"]
    stored = list(LongtermMemory.objects.order_by("-pk")[:ENTRIES])[::-1]
    analysed = _analysed(stored)
    call, bare, keep = alternating(
        lambda: post("/api/tools/", body),
        lambda: bare_orm(items, vectors, analysed),
        lambda: index.put(LONGTERM, stored),
    )
    print(
        f"100 inserts x 384 numbers: call {call:.1f} ms, bare ORM {bare:.1f} ms, ratio {call / bare:.2f} (at most 1.5)"
    )
    print(f"Of which the search index: {keep / ENTRIES:.2f} ms a memory (at most 1)")


def _analysed(stored: list[LongtermMemory]) -> list[dict[str, Any]]:
    """The search rows' own columns; analysing is no work of the ORM's, so it is done beforehand."""
    left_out = {"id", "memory_id", "version", "seit", "bis"}
    names = [column.name for column in PastEntry._meta.concrete_fields if column.name not in left_out]  # noqa: SLF001
    entries_of = [entry for row in stored for entry in index.entries_of(LONGTERM, row)]
    return [{name: getattr(entry, name) for name in names} for entry in entries_of]


def bare_orm(items: list[dict[str, Any]], vectors: list[bytes], analysed: list[dict[str, Any]]) -> None:
    """The ORM work that cannot be avoided, with everything already checked, packed and analysed."""
    now = timezone.now()
    with transaction.atomic():
        known = known_tags(name for item in items for name in item["tags"])
        rows = []
        for item, vector in zip(items, vectors, strict=True):
            row = LongtermMemory(
                **{name: item[name] for name in ("kurzbeschreibung", "memory", "scope", "scope_vk", "agent", "nutzer")},
                tag_namen=item["tags"],
                embedding_profil_hash=item["embedding_profil_hash"],
                erstellt_am=now,
                aktualisiert_am=now,
            )
            put_embedding(row, vector)
            rows.append(row)
        LongtermMemory.objects.bulk_create(rows)
        LongtermTag.objects.bulk_create(
            LongtermTag(memory_id=row.pk, tag_id=pk)
            for row in rows
            for pk in {known[tag_key(name)].pk for name in row.tag_namen}
        )
        LongtermVersion.objects.bulk_create(_version(row) for row in rows)
        SearchEntry.objects.bulk_create(
            SearchEntry(memory_id=row.pk, version=1, seit=now, **fields)
            for row, fields in zip(rows, analysed, strict=True)
        )


def _version(row: LongtermMemory) -> LongtermVersion:
    return LongtermVersion(
        memory_id=row.pk,
        version=1,
        aktion="angelegt",
        zeitpunkt=row.erstellt_am,
        durch_nutzer="anna",
        durch_agent="planer",
        tuer="rest",
        tool="insert_brain_longterm_memory",
        aufruf="00000000-0000-4000-8000-000000000000",
        **{name: getattr(row, name) for name in copied_fields(LONGTERM)},
    )


def single_against_plain_view(post: Callable[[str, bytes], bytes]) -> None:
    """One insert against a view with serializer, save(), tags.set() and history by signal."""
    item = entries(1, 384)[0]
    body, plain_body = call_body([item]), json.dumps(item).encode()
    assert json.loads(post("/api/tools/", body))["erfolg"]
    assert "ID" in json.loads(post("/plain/", plain_body))
    many = 20

    def repeat(path: str, what: bytes) -> None:
        for _time in range(many):
            post(path, what)

    call, plain = alternating(lambda: repeat("/api/tools/", body), lambda: repeat("/plain/", plain_body))
    ratio = call / plain
    print(f"One insert: call {call / many:.2f} ms, plain view {plain / many:.2f} ms, ratio {ratio:.2f} (at most 0.5)")


def versions_against_libraries() -> None:
    """100 version rows: copied by the database, made by bulk_create, and by simple-history's bulk_history_create."""
    rows = list(LongtermMemory.objects.order_by("-pk")[:ENTRIES])
    plain = list(PlainMemory.objects.order_by("-pk")[:ENTRIES])
    origin = Origin(principal=SYSTEM, nutzer="anna", agent="planer", tuer="rest", tool="bench")
    stamp = Stamp(origin, Aktion.GEAENDERT, timezone.now())

    def undone(write: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            with transaction.atomic():
                write()
                transaction.set_rollback(True)

        return run

    LongtermVersion.objects.filter(memory_id__in=[row.pk for row in rows]).delete()
    copied, bulk, library = alternating(
        undone(lambda: record(LONGTERM, [row.pk for row in rows], stamp)),
        undone(lambda: LongtermVersion.objects.bulk_create(_version(row) for row in rows)),
        undone(lambda: PlainMemory.history.bulk_history_create(plain)),
    )
    print(
        f"{ENTRIES} versions: INSERT … SELECT {copied:.1f} ms, bulk_create {bulk:.1f} ms, "
        f"simple-history's bulk_history_create {library:.1f} ms"
    )


def validation(post: Callable[[str, bytes], bytes]) -> None:
    """The share of a call of 100 entries x 1,536 numbers that checking and reading the entries takes."""
    body = call_body(entries(ENTRIES, 1536))
    tool = envelope.find("insert_brain_longterm_memory")
    memories = jsonbody.parse(body)["arguments"]["inhalt"]["memories"]
    call, check = alternating(
        lambda: post("/api/tools/", body),
        lambda: [envelope._read_entry(tool, entry) for entry in memories],  # noqa: SLF001 - the step to measure
    )
    print(
        f"100 x 1,536 numbers: call {call:.1f} ms, validation {check:.1f} ms, share {check / call:.2f} (at most 0.20)"
    )


def mcp_beside_rest(post: Callable[..., bytes]) -> None:
    """The same calls over both doors: MCP's frame, headers, and the answer's text inside the text of the answer."""
    calls = [
        ("insert of 100", "insert_brain_longterm_memory", {"memories": entries(ENTRIES, 384)}, 1),
        ("select of 20", "select_brain_longterm_memory", {"limit": 20}, 20),
        ("search", "search_brain", {"suche": "Kündigungsfrist Quartalsende"}, 10),
    ]
    for told, name, asked, many in calls:
        arguments = {"inhalt": {**asked, "nutzer": "anna", "agent": "planer"}}
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        }
        params = {"name": name, "arguments": arguments, "_meta": meta}
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        headers = {"HTTP_MCP_PROTOCOL_VERSION": MODERN, "HTTP_MCP_METHOD": "tools/call", "HTTP_MCP_NAME": name}
        body = json.dumps({"tool": name, "arguments": arguments}).encode()
        assert json.loads(post("/mcp", message, **headers))["result"]["structuredContent"]["erfolg"]
        assert json.loads(post("/api/tools/", body))["erfolg"]

        def over_mcp(message: bytes = message, headers: dict[str, str] = headers, many: int = many) -> None:
            for _time in range(many):
                post("/mcp", message, **headers)

        def over_rest(body: bytes = body, many: int = many) -> None:
            for _time in range(many):
                post("/api/tools/", body)

        mcp, rest = alternating(over_mcp, over_rest)
        print(f"MCP, {told}: {mcp / many:.2f} ms, REST {rest / many:.2f} ms, ratio {mcp / rest:.2f} (at most 1.1)")


def rights_and_records() -> None:
    """What rights, records and limits of use cost: calls without a door, by a limited key, an unlimited one, and none.

    Whoever looks a key up has to do so in any case. A key for repeats is counted apart, since few calls have one.
    """
    limits = {"nutzer": ["anna", "ben"], "agent": ["planer"], "scope": ["modul", "raum"], "scope_vk": ["12", "13"]}
    limited, _text = make_key(name="limited", account="bench", only=limits, may_write=True, expires_at=None)
    unlimited, _text = make_key(name="unlimited", account="bench", only={}, may_write=True, expires_at=None)
    principal, anybody = limited.principal(), unlimited.principal()
    names = iter(range(1_000_000))
    calls = [
        ("insert of 100", "insert_brain_longterm_memory", {"memories": entries(ENTRIES, 384)}, 1),
        ("search", "search_brain", {"suche": "Kündigungsfrist Quartalsende"}, 10),
    ]
    for told, name, asked, many in calls:
        tool = envelope.find(name)
        arguments = {"inhalt": {**asked, "nutzer": "anna", "agent": "planer"}}

        def run(who: Principal, via: Callable[[], Via], tool: Any = tool, arguments: Any = arguments) -> Any:
            return envelope.handle(tool, arguments, who, via())

        def repeated(times: int, *call: Any) -> Callable[[], None]:
            def run_all() -> None:
                for _time in range(times):
                    run(*call)

            return run_all

        def plain(times: int = many) -> None:
            with patch.object(envelope, "metered", nullcontext):
                repeated(times, SYSTEM, lambda: Via("rest"))()

        guarded, recorded, once, bare = alternating(
            repeated(many, principal, lambda: Via("rest", size=100_000)),
            repeated(many, anybody, lambda: Via("rest", size=100_000)),
            repeated(many, principal, lambda: Via("rest", idempotency_key=f"{next(names)}", size=100_000)),
            plain,
        )
        more = f"; a key for repeats makes it {once / many:.2f} ms" if tool.writes else ""
        print(
            f"Rights and records, {told}: {guarded / many:.2f} ms, without {bare / many:.2f} ms, ratio "
            f"{guarded / bare:.2f} (at most 1.15), of which records {recorded / bare:.2f}{more}"
        )


def where_time_goes(post: Callable[[str, bytes], bytes]) -> None:
    """The steps of a call of 100 entries x 384 numbers, each measured on its own."""
    items = entries(ENTRIES, 384)
    body = call_body(items)
    tool = envelope.find("insert_brain_longterm_memory")
    arguments = jsonbody.parse(body)["arguments"]
    read = [envelope._read_entry(tool, entry) for entry in arguments["inhalt"]["memories"]]  # noqa: SLF001
    origin = Origin(principal=SYSTEM, nutzer="anna", agent="planer", tuer="rest", tool="bench")
    answer = json.loads(post("/api/tools/", body))
    call, parse, check, store, write = alternating(
        lambda: post("/api/tools/", body),
        lambda: jsonbody.parse(body),
        lambda: [envelope._read_entry(tool, entry) for entry in arguments["inhalt"]["memories"]],  # noqa: SLF001
        lambda: services.insert(LONGTERM, read, origin),
        lambda: jsonbody.write(answer),
    )
    rest = call - parse - check - store - write
    print(f"Where {call:.1f} ms go: parsing {parse:.1f}, checking {check:.1f}, storing {store:.1f}, ", end="")
    print(f"answering {write:.2f}, all else (Django, key, door) {rest:.1f}")
    profile = cProfile.Profile()
    profile.runcall(lambda: services.insert(LONGTERM, read, origin))
    lines = io.StringIO()
    pstats.Stats(profile, stream=lines).sort_stats("tottime").print_stats(12)
    print("Inside storing, by own time:")
    print("\n".join(line for line in lines.getvalue().splitlines() if line.strip())[-1600:])
