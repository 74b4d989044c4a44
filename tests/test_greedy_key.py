"""A key that sends as much as it can beside one that sends a little: the other is still served, and 429 protects it."""

import json
import statistics
import threading
import time
from collections import Counter
from pathlib import Path

from tests.conftest import note
from tests.serving import Place, Server, serving

SMALL = 60  # calls of the modest key
GREEDY = 4  # connections of the greedy one
A_MINUTE = 20
BIG = [note(memory="Die Kündigungsfrist beträgt drei Monate. " * 20)] * 100


def latencies(server: Server, key: str) -> list[float]:
    """The seconds that small calls take, writes and questions in turn, sorted."""
    took = []
    for number in range(SMALL):
        began = time.perf_counter()
        if number % 2:
            status, _answer = server.call("insert_brain_longterm_memory", key, memories=[note()])
        else:
            status, _answer = server.call("select_brain_longterm_memory", key, limit=5)
        took.append(time.perf_counter() - began)
        assert status == 200
    return sorted(took)


def beside(server: Server, key: str, greedy: str) -> tuple[list[float], Counter[int]]:
    """The same while the greedy key sends batches without a pause; and how those were answered."""
    body = json.dumps({"inhalt": {"nutzer": "anna", "agent": "planer", "memories": BIG}}).encode()
    enough = threading.Event()
    answered: Counter[int] = Counter()

    def send() -> None:
        while not enough.is_set():
            answered[server.call("insert_brain_longterm_memory", greedy, body)[0]] += 1

    threads = [threading.Thread(target=send) for _connection in range(GREEDY)]
    for thread in threads:
        thread.start()
    try:
        return latencies(server, key), answered
    finally:
        enough.set()
        for thread in threads:
            thread.join()


def told(name: str, took: list[float], answered: Counter[int]) -> str:
    """The figures for the README."""
    p50, p95 = statistics.median(took) * 1000, took[int(len(took) * 0.95)] * 1000
    return f"{name}: p50 {p50:.0f} ms, p95 {p95:.0f} ms, greedy {dict(answered)}"


def test_a_greedy_key_does_not_keep_others_from_being_served(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with serving(place) as server:
        modest, greedy = place.key(), place.key()
        latencies(server, modest)  # all threads have their connection
        alone = latencies(server, modest)
        crowded, unlimited = beside(server, modest, greedy)
        prefix = greedy.partition(".")[0]
        update = f"AccessKey.objects.filter(prefix={prefix!r}).update(calls_a_minute={A_MINUTE})"
        assert place.manage("shell", "-c", f"from memories.models import AccessKey; {update}").returncode == 0
        guarded, limited = beside(server, modest, greedy)
    print()
    print(told("alone", alone, Counter()))
    print(told("beside", crowded, unlimited))
    print(told("beside a limited one", guarded, limited))
    assert unlimited.keys() == {200}
    assert limited[429] > limited[200]
    assert statistics.median(crowded) < 20 * statistics.median(alone) + 1
    assert statistics.median(guarded) < 10 * statistics.median(alone) + 0.5
