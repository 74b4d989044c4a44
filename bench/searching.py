"""The measurements of `bench.search`: upkeep, each kind of search with its recall, and the bare scans."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import simsimd
from django.core.management import call_command
from django.db import connection, transaction

from bench.corpus import DIMENSION, Corpus, Floats
from memories.filters import Filter
from memories.kinds import LONGTERM
from memories.models import LongtermMemory, SearchEntry
from memories.principal import SYSTEM
from memories.search import Question, index, search, upkeep, vectors
from memories.search.analyser import stems
from memories.search.query import parse
from memories.search.vectors import Profile, VectorQuery

QUERIES = 60
BEST = 10
_PROFILE = Profile("bench", DIMENSION)
_LOAD = 500  # memories a transaction
_NEW = 2_000  # memories that come to those that are there: so many that the database tidies its indexes in between
_OWNERS, _RECORDS = 100, 1_000  # values of the filters: 1 % and 0.1 %
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Spent:
    """What the runs of one thing cost in CPU milliseconds, and the share of the true nearest that they found."""

    what: str
    each: Sequence[float]
    aim: str = ""
    recall: float | None = None

    @property
    def median(self) -> float:
        """The figure in the middle."""
        return float(np.median(self.each))

    def __str__(self) -> str:
        recall = "" if self.recall is None else f"{self.recall:.3f}"
        return f"{self.what:<50}{self.median:>9.2f}{float(np.percentile(self.each, 95)):>9.2f}{recall:>8}  {self.aim}"


def measure(rows: int) -> int:
    """Load unless it is there, then measure and print."""
    call_command("migrate", verbosity=0)
    corpus = Corpus()
    print(f"Database: {connection.vendor}, {rows:,} memories x {DIMENSION} numbers; CPU ms of {QUERIES} queries each")
    if SearchEntry.objects.count() < rows:
        load(corpus, rows)
    matrix = np.concatenate([chunk.vectors for chunk in corpus.chunks(rows)])
    print(f"{'':<50}{'p50':>9}{'p95':>9}{'recall':>8}  aim")
    searches(corpus, matrix)
    upkeep_in_place(corpus, rows)
    if connection.vendor == "sqlite":
        first_search()
    return 0


def load(corpus: Corpus, rows: int) -> None:
    """Store the memories, keep the index as every write does, and pack the vectors."""
    start, storing, keeping, began = 0, 0.0, 0.0, time.monotonic()
    for chunk in corpus.chunks(rows):
        for place in range(0, len(chunk.texts), _LOAD):
            part = slice(place, place + _LOAD)
            made = _memories(start + place, chunk.texts[part], chunk.vectors[part])
            with transaction.atomic():
                storing += cpu(lambda made=made: LongtermMemory.objects.bulk_create(made))
                keeping += cpu(lambda made=made: index.put(LONGTERM, made))
        start += len(chunk.texts)
        print(f"  {start:,} stored after {(time.monotonic() - began) / 60:.1f} minutes", flush=True)
    print("  packing; on PostgreSQL with pgvector a graph is made, which takes 20 minutes a million", flush=True)
    packing = cpu(lambda: upkeep.pack(lambda *_: None))
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    print(f"A memory: row {storing / rows:.3f} ms, index {keeping / rows:.3f} ms (at most 1), ", end="")
    print(f"packed {packing / rows:.3f} ms", flush=True)


def upkeep_in_place(corpus: Corpus, rows: int) -> None:
    """What new memories cost beside all the others, blocks or graph included; they do not stay."""
    chunk = corpus.chunk(rows, _NEW)
    made = _memories(rows, chunk.texts, chunk.vectors)
    with transaction.atomic():
        LongtermMemory.objects.bulk_create(made)
        each = [cpu(lambda memory=memory: index.put(LONGTERM, [memory])) for memory in made[:QUERIES]]
        together = cpu(lambda: index.put(LONGTERM, made[QUERIES:])) / (_NEW - QUERIES)
        transaction.set_rollback(True)
    print(Spent("index of a new memory, alone", each), flush=True)
    print(f"{f'index of a new memory, {_NEW - QUERIES:,} at once':<50}{together:>9.2f}{'':>17}  at most 1", flush=True)


def _memories(first: int, texts: Sequence[str], units: Floats) -> list[LongtermMemory]:
    return [_memory(first + n, text, vector) for n, (text, vector) in enumerate(zip(texts, units, strict=True))]


def _memory(number: int, text: str, vector: Floats) -> LongtermMemory:
    return LongtermMemory(
        kurzbeschreibung=text[:40],
        memory=text,
        scope="modul",
        scope_vk=f"r{number * 7919 % _RECORDS}",
        nutzer=f"n{number * 31 % _OWNERS}",
        agent="planer",
        embedding=vector.tobytes(),
        embedding_dimension=DIMENSION,
        embedding_profil_hash=_PROFILE.profil_hash,
        erstellt_am=_NOW,
        aktualisiert_am=_NOW,
    )


def searches(corpus: Corpus, matrix: Floats) -> None:
    """Every kind of search with its aim, and the bare scans."""
    short, questions, units = corpus.queries(QUERIES)
    keys = np.array(SearchEntry.objects.order_by("memory_id").values_list("memory_id", flat=True)[: len(matrix)])
    numbers = np.arange(len(matrix))
    filters = (
        ("", Filter(), numbers),
        (", 1 %", Filter(nutzer="n31"), numbers[numbers % _OWNERS == 1]),
        (", 0.1 %", Filter(scope_vk="r919"), numbers[numbers % _RECORDS == 1]),
    )
    codes, scales = vectors.quantised(matrix)
    text_scan = Spent("bare full-text query", run(_bare_text, short))
    vector_scan = Spent("bare two-stage scan, in memory", run(lambda u: _bare_vectors(u, codes, scales, matrix), units))
    exact = Spent("bare exact scan, in memory", run(lambda u: np.argpartition(-(matrix @ u), BEST)[:BEST], units))
    for line in (text_scan, vector_scan, exact):
        print(line, flush=True)
    short_answers = 0
    for name, only, members in filters:
        print(Spent(f"text{name}", run(lambda q, only=only: text_search(q, only), short)), flush=True)
        print(Spent(f"question{name}", run(lambda q, only=only: text_search(q, only), questions)), flush=True)
        answers: list[list[int]] = []
        spent = run(lambda u, only=only, kept=answers: kept.append(vector_search(u, only)), units)
        recall = _recall(answers[-QUERIES:], units, matrix, members, keys)
        short_answers += sum(len(found) < min(BEST, len(members)) for found in answers)
        aim = "" if not name else f"at most {exact.median / 5:.1f}: a fifth of the exact scan"
        print(Spent(f"vector{name}", spent, aim if name == ", 1 %" else "", recall), flush=True)
        spent = run(lambda both, only=only: hybrid(both, only), list(zip(short, units, strict=True)))
        aim = "" if name else f"at most {3 * (text_scan.median + vector_scan.median):.1f}: three times both scans"
        print(Spent(f"text and vector{name}", spent, aim), flush=True)
    print(f"Answers by vector with fewer hits than there are: {short_answers}", flush=True)


def text_search(text: str, only: Filter) -> Any:
    """A search by text alone."""
    return search(Question(text=parse(text), only=only), SYSTEM)


def vector_search(unit: Floats, only: Filter) -> list[int]:
    """The keys that a search by vector alone finds."""
    found = search(Question(vector=VectorQuery(unit, _PROFILE), only=only, limit=BEST), SYSTEM).found
    return [each.memory.pk for each in found]


def hybrid(both: tuple[str, Floats], only: Filter) -> Any:
    """A search by text and vector."""
    text, unit = both
    return search(Question(text=parse(text), vector=VectorQuery(unit, _PROFILE), only=only), SYSTEM)


def _bare_text(text: str) -> None:
    words = stems(text)
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                "SELECT rowid FROM memories_fulltext WHERE memories_fulltext MATCH %s "
                "ORDER BY bm25(memories_fulltext, 1.0, 0.0) LIMIT 200",
                [" OR ".join(f'"{word}"' for word in words)],
            )
        else:
            query = " | ".join(f"'{word}'" for word in words)
            cursor.execute(
                "SELECT id FROM memories_searchentry WHERE sd @@ %s::tsquery "
                "ORDER BY ts_rank(sd, %s::tsquery, 1) DESC LIMIT 200",
                [query, query],
            )
        cursor.fetchall()


def _bare_vectors(unit: Floats, codes: Any, scales: Floats, matrix: Floats) -> None:
    code, _scale = vectors.quantised(unit[None, :])
    scores = np.asarray(simsimd.cdist(code, codes, metric="dot"))[0] * scales
    best = np.argpartition(-scores, 100)[:100]
    np.sort(matrix[best] @ unit)


def _recall(answers: Iterable[Sequence[int]], units: Floats, matrix: Floats, members: Any, keys: Any) -> float:
    """The share of the exact nearest that was found."""
    shares = []
    for found, unit in zip(answers, units, strict=True):
        nearest = members[np.argsort(-(matrix[members] @ unit))[:BEST]]
        shares.append(len({*found} & {*keys[nearest].tolist()}) / min(BEST, len(members)))
    return float(np.mean(shares))


def run(what: Callable[[Any], Any], inputs: Iterable[Any]) -> list[float]:
    """The CPU milliseconds for each input; three go before as a warm-up."""
    wanted = list(inputs)
    for one in wanted[:3]:
        what(one)
    return [cpu(lambda one=one: what(one)) for one in wanted]


def cpu(what: Callable[[], Any]) -> float:
    """CPU milliseconds of this process and of the database's backend, where it runs on this machine."""
    before, start = _backend(), time.process_time()
    what()
    return (time.process_time() - start + _backend() - before) * 1000


def _backend() -> float:
    if connection.vendor != "postgresql":
        return 0.0
    connection.ensure_connection()
    file = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat")
    return int(file.read_text().split()[0]) / 1e9 if file.exists() else 0.0


_FIRST = """
import resource, time
import django
django.setup()
from django.db import connection
from bench.corpus import Corpus
from bench.searching import hybrid
from memories.filters import Filter
def held():
    return sum(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon")) // 1024
connection.ensure_connection()
short, _questions, units = Corpus().queries(20)
base, start, began = held(), time.process_time(), time.perf_counter()
hybrid((short[0], units[0]), Filter())
print(f"First search after a start: {time.process_time() - start:.2f} s CPU, {time.perf_counter() - began:.2f} s")
for both in zip(short, units):
    hybrid(both, Filter())
print(f"Memory after 20 searches: {held() - base} MB above the start's {base} MB (at most 200)")
"""


def first_search() -> None:
    """What the first search of a new process costs, and the memory it holds afterwards."""
    print(subprocess.run([sys.executable, "-c", _FIRST], check=True, capture_output=True, text=True).stdout, end="")
