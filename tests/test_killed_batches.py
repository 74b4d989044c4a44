"""Batches that a SIGKILL cuts off, wherever they are, and that are sent again: every entry takes effect once (16)."""

import json
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection

from tests.conftest import note
from tests.serving import Place, Server, runs, serving

SEED = 16
LANES = 5  # batches under way at once, each with memories of its own
ROUNDS = 8  # every second one kills the whole server, the others its worker: two in 5.5 s would end the server
MOST_ROUNDS = 40  # as many follow as it takes until batches were cut off before and after something was stored
OF_EACH = 3  # batches that must have been
LEAST, MOST = 20, 100
RESPAWNED_WITHIN = 60  # seconds
Batch = tuple[str, dict[str, Any]]
Answer = dict[str, Any]
Rows = list[dict[str, Any]]


class Lane:
    """One owner's memories: which batch comes next, and what must be there when it has taken effect."""

    def __init__(self, number: int) -> None:
        self.nutzer = f"lane{number}"
        self.dice = random.Random(SEED * 100 + number)
        self.live: dict[str, str] = {}  # text by ID
        self.versions: Counter[str] = Counter()  # by ID, deleted memories included
        self.round = 0

    def next(self) -> Batch:
        """The tool and the `inhalt` of the next batch; some entries of it fail whenever it is sent."""
        self.round += 1
        typ = self.dice.choice(["longterm", "shortterm"])
        stock = [kennung for kennung in self.live if kennung.startswith(typ)]
        verbs = ["insert", "update", "delete"] + ["promote"] * (typ == "shortterm")
        verb = self.dice.choice(verbs) if len(stock) >= LEAST else "insert"
        count = self.dice.randint(LEAST, MOST)
        if verb == "insert":
            entries: dict[str, Any] = {"memories": [self._new(place) for place in range(count)]}
        elif verb == "update":
            few = self.dice.sample(stock, max(count // 5, 4))  # each several times: as many transactions
            entries = {"memories": [self._change(self.dice.choice(few), place) for place in range(count)]}
        else:
            going = self.dice.sample(stock, min(len(stock) // 2, MOST - 2))
            entries = {"IDs": [*going, going[0], f"{typ}_999999"]}
        return f"{verb}_brain_{typ}_memory", entries

    def _new(self, place: int) -> dict[str, Any]:
        text = "" if place % 17 == 5 else self._text(place)
        return note(nutzer=self.nutzer, memory=text, tags=[f"Runde {self.round}", self.nutzer])

    def _change(self, kennung: str, place: int) -> dict[str, Any]:
        tags = [f"Runde {self.round}", *(["a"] if place % 2 else [])]
        return {"ID": kennung, "kurzbeschreibung": "Neu", "memory": self._text(place), "tags": tags}

    def _text(self, place: int) -> str:
        return f"{self.nutzer}, Runde {self.round}, Eintrag {place}"

    def apply(self, batch: Batch, rows: Rows) -> None:
        """Check that each entry has the outcome that it must have, and note what is there now."""
        tool, inhalt = batch
        verb = tool.partition("_")[0]
        entries = inhalt.get("memories") or inhalt["IDs"]
        assert [row["index"] for row in rows] == list(range(len(entries)))
        for entry, row in zip(entries, rows, strict=True):
            if verb == "insert":
                assert row["erfolg"] is bool(entry["memory"]), row
            elif verb == "update":
                assert row["erfolg"] is True, row
            else:
                assert row["erfolg"] is (entry in self.live), row
            if row["erfolg"]:
                getattr(self, f"_{verb}")(entry, row)

    def _insert(self, entry: dict[str, Any], row: dict[str, Any]) -> None:
        assert row["ID"] not in self.versions
        self.live[row["ID"]] = entry["memory"]
        self.versions[row["ID"]] = 1

    def _update(self, entry: dict[str, Any], row: dict[str, Any]) -> None:
        assert row["ID"] == entry["ID"]
        self.live[row["ID"]] = entry["memory"]
        self.versions[row["ID"]] += 1

    def _delete(self, entry: str, row: dict[str, Any]) -> None:
        assert row["ID"] == entry
        del self.live[entry]
        self.versions[entry] += 1

    def _promote(self, entry: str, row: dict[str, Any]) -> None:
        assert row["verweis"] == entry
        self._insert({"memory": self.live[entry]}, row)
        self._delete(entry, {"ID": entry})


class Stock:
    """The server's database, looked at past the server."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def read(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a question."""
        with ExitStack() as stack:
            if connection.vendor == "sqlite":
                opened: Any = sqlite3.connect(Path(self.place.environment["BRAIN_DATA"], "brain.sqlite3"))
                stack.callback(opened.close)
            else:
                opened = stack.enter_context(psycopg.connect(self.place.environment["DATABASE_URL"]))
            return list(opened.execute(sql).fetchall())

    def live(self) -> dict[str, str]:
        """The text of each memory by its ID."""
        return {
            f"{typ}_{pk}": text
            for typ in ("longterm", "shortterm")
            for pk, text in self.read(f"SELECT id, memory FROM memories_{typ}memory")
        }

    def versions(self) -> dict[str, int]:
        """How many versions each memory has, by its ID."""
        return {
            f"{typ}_{pk}": count
            for typ in ("longterm", "shortterm")
            for pk, count in self.read(f"SELECT memory_id, COUNT(*) FROM memories_{typ}version GROUP BY memory_id")
        }

    def how_far(self, idempotency_key: str, entries: int) -> str:
        """How far a batch came before it was cut off."""
        handled = self.read(
            "SELECT c.answer IS NOT NULL, COUNT(e.id) FROM memories_repeatablecall c "
            "LEFT JOIN memories_handledentry e ON e.call_id = c.id "
            f"WHERE c.idempotency_key = '{idempotency_key}' GROUP BY c.id"
        )
        if not handled:
            return "not begun"
        ((answered, stored),) = handled
        if answered:
            return "answer kept"
        return "begun" if not stored else "part stored" if stored < entries * 0.9 else "stored"


class Killed:
    """A server that is killed and comes back: its worker by itself, all of it by a new start."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.server: Server
        self._running = ExitStack()

    def start(self) -> None:
        """Start it."""
        self.server = self._running.enter_context(serving(self.place))

    def kill_worker(self) -> None:
        """Kill what answers calls; its parent starts another."""
        before = self._answering()
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + RESPAWNED_WITHIN
        while any(runs(pid) for pid in before) or not self._is_ready():
            assert time.monotonic() < until, "no worker came back"
            time.sleep(0.05)

    def kill_all(self) -> None:
        """Kill every process of it, and start it anew."""
        pids = [self.server.process.pid, *self.server.workers()]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.server.process.wait()
        self._running.close()
        self.start()

    def stop(self) -> None:
        """Stop it."""
        self._running.close()

    def _answering(self) -> list[int]:
        """The workers, which are spawned; Python's resource tracker is none."""
        return [pid for pid in self.server.workers() if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def _is_ready(self) -> bool:
        with suppress(OSError, HTTPException, ValueError):
            return self.server.request("GET", "/readyz")[0] == 200
        return False


@contextmanager
def killed(place: Place) -> Iterator[Killed]:
    """A running server that may be killed."""
    server = Killed(place)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class Round:
    """A batch of each lane, sent at once, as often as wanted."""

    def __init__(self, number: int, lanes: list[Lane], key: str) -> None:
        self.lanes = lanes
        self.batches = [lane.next() for lane in lanes]
        self.key = key
        self.number = number

    def send(self, brain: Killed, pool: Executor) -> list[Future[Answer | None]]:
        """Send all of them; the answers to come."""
        pairs = zip(self.lanes, self.batches, strict=True)
        return [pool.submit(self._send, brain.server, lane, batch) for lane, batch in pairs]

    def answers(self, brain: Killed, pool: Executor) -> list[Answer]:
        """The answers to all of them."""
        told = [call.result() for call in self.send(brain, pool)]
        assert None not in told
        return [answer for answer in told if answer]

    def _send(self, server: Server, lane: Lane, batch: Batch) -> Answer | None:
        """The answer to a batch; None when the server ended before it came."""
        tool, entries = batch
        body = json.dumps({"inhalt": {"nutzer": lane.nutzer, "agent": "planer", **entries}}).encode()
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Content_Type": "application/json",
            "Idempotency_Key": self._idempotency_key(lane),
        }
        try:
            status, answer = server.request("POST", f"/api/tools/{tool}/", body, **headers)
        except (OSError, HTTPException, ValueError):
            return None
        assert status == 200, answer
        told: Answer = answer
        return told

    def _idempotency_key(self, lane: Lane) -> str:
        return f"{lane.nutzer}-{self.number}"

    def apply(self, answers: list[Answer]) -> None:
        """Check each lane's answer, and note what is there now."""
        for lane, batch, answer in zip(self.lanes, self.batches, answers, strict=True):
            lane.apply(batch, answer["daten"])

    def how_far(self, stock: Stock) -> list[str]:
        """How far each batch came."""
        return [
            stock.how_far(self._idempotency_key(lane), len(inhalt.get("memories") or inhalt["IDs"]))
            for lane, (_tool, inhalt) in zip(self.lanes, self.batches, strict=True)
        ]

    def verbs(self) -> list[str]:
        """What the batches do."""
        return [tool.partition("_")[0] for tool, _inhalt in self.batches]


class Moments:
    """When to kill: at a random moment of the time that batches usually take, as far as that is known.

    How quick the machine is differs from one minute to the next, so that time follows how far the batches came.
    """

    def __init__(self, usual: float) -> None:
        self.usual = usual
        self.ends: Counter[str] = Counter()
        self._dice = random.Random(SEED)

    def next(self) -> float:
        """The seconds after which to kill."""
        return self.usual * self._dice.uniform(0.02, 1.1)

    def learn(self, ends: Counter[str]) -> None:
        """Note how far the batches of a round came."""
        self.ends += ends
        stored = self._stored(ends)
        if stored in (0, LANES):
            self.usual *= 3 / 4 if stored else 4 / 3

    def are_spread(self) -> bool:
        """Whether batches were cut off before anything of them was stored, and others after that."""
        stored = self._stored(self.ends)
        return min(stored, self.ends.total() - stored) >= OF_EACH

    @staticmethod
    def _stored(ends: Counter[str]) -> int:
        return ends["part stored"] + ends["stored"] + ends["answer kept"]


def kill_and_repeat(batches: Round, brain: Killed, pool: Executor, *, after: float, worker: bool) -> Counter[str]:
    """Send the batches, kill the server after so many seconds, send them twice more; how far they had come."""
    cut_off = batches.send(brain, pool)
    time.sleep(after)
    if worker:
        brain.kill_worker()
    else:
        brain.kill_all()
    first = [call.result() for call in cut_off]
    ends = Counter(batches.how_far(Stock(brain.place)))
    second = batches.answers(brain, pool)
    assert batches.answers(brain, pool) == second
    assert all(early in (None, late) for early, late in zip(first, second, strict=True))
    batches.apply(second)
    return ends


def test_16_batches_that_are_killed_and_sent_again_take_effect_once(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.environment |= {"BRAIN_WORKERS": "1", "BRAIN_THREADS": f"{LANES}"}
    lanes = [Lane(number) for number in range(LANES)]
    verbs: Counter[str] = Counter()
    number = 0
    with killed(place) as brain, ThreadPoolExecutor(LANES) as pool:
        key = place.key()
        began = time.monotonic()
        unharmed = Round(0, lanes, key)
        unharmed.apply(unharmed.answers(brain, pool))
        moments = Moments(time.monotonic() - began)
        while number < ROUNDS or not moments.are_spread():
            number += 1
            assert number <= MOST_ROUNDS, moments.ends
            batches = Round(number, lanes, key)
            worker = number % 2 == 1
            moments.learn(kill_and_repeat(batches, brain, pool, after=moments.next(), worker=worker))
            verbs += Counter(batches.verbs())
        stock = Stock(place)
        assert stock.live() == {kennung: text for lane in lanes for kennung, text in lane.live.items()}
        assert stock.versions() == {kennung: count for lane in lanes for kennung, count in lane.versions.items()}
        for command in (["check_history"], ["search_index", "--check"]):
            outcome = place.manage(*command)
            assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert verbs.total() == LANES * number >= LANES * ROUNDS
    assert verbs.keys() == {"insert", "update", "delete", "promote"}
