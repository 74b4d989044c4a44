"""Trouble made for real: a database that is away, connections that break, answers that get lost."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, close_old_connections, connection

from memories.drift import deviations
from memories.kinds import KINDS

sqlite_only = pytest.mark.skipif(connection.vendor != "sqlite", reason="concerns SQLite")
postgresql_only = pytest.mark.skipif(connection.vendor != "postgresql", reason="concerns PostgreSQL")


def assert_no_drift() -> None:
    """Check that histories, live rows and tags agree."""
    assert [deviation for kind in KINDS for deviation in deviations(kind)] == []


@contextmanager
def another_connection() -> Iterator[Callable[..., Any]]:
    """Another program's connection, committing each statement; yields its `execute`."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        other: Any = sqlite3.connect(settings["NAME"], isolation_level=None, check_same_thread=False)
    else:
        other = psycopg.connect(**_address(settings["NAME"]), autocommit=True)
    try:
        yield other.execute
    finally:
        other.close()


def _address(database: str) -> dict[str, Any]:
    settings = connection.settings_dict
    return {
        "host": settings["HOST"],
        "port": settings["PORT"],
        "user": settings["USER"],
        "password": settings["PASSWORD"],
        "dbname": database,
    }


@contextmanager
def database_away() -> Iterator[None]:
    """Nobody can write: SQLite's lock is held elsewhere; PostgreSQL breaks all connections and takes no new ones.

    This process waits for the database a moment only, not as long as a server does, until it is back.
    """
    with _sqlite_locked() if connection.vendor == "sqlite" else _postgresql_closed():
        yield


@contextmanager
def _sqlite_locked() -> Iterator[None]:
    with another_connection() as execute, impatient_sqlite():
        execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def impatient_sqlite() -> Iterator[None]:
    """Wait for SQLite's lock 50 ms at most."""
    connection.ensure_connection()
    connection.connection.execute("PRAGMA busy_timeout = 50")
    yield
    if connection.connection is not None:
        connection.connection.execute("PRAGMA busy_timeout = 30000")


@contextmanager
def _postgresql_closed() -> Iterator[None]:
    name = connection.settings_dict["NAME"]
    with psycopg.connect(**_address("postgres"), autocommit=True) as server:
        server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        server.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [name])
        try:
            yield
        finally:
            server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
            close_old_connections()  # as a server does between two requests


def break_connection() -> None:
    """End PostgreSQL's side of this thread's connection."""
    pid = connection.connection.info.backend_pid
    with another_connection() as execute:
        execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


@contextmanager
def after_statement(beginning: str, then: Callable[[], None]) -> Iterator[None]:
    """Do this, once, after the first statement that begins so."""
    waiting = [then]

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if waiting and sql.startswith(beginning):
            waiting.pop()()
        return result

    with connection.execute_wrapper(wrapper):
        yield
    assert not waiting, f"no statement began with {beginning}"


@contextmanager
def at_commit(
    *, before: Callable[[], object] | None = None, after: Callable[[], object] | None = None
) -> Iterator[None]:
    """Do this, once, right before or right after the next commit."""
    real: Callable[[], None] = connection.commit
    times = 0

    def commit() -> None:
        nonlocal times
        times += 1
        if times == 1 and before:
            before()
        real()
        if times == 1 and after:
            after()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "commit", commit)
        yield
    assert times, "nothing was committed"


def lose_the_answer() -> None:
    """What a program sees of a connection that breaks."""
    raise OperationalError("the connection is lost")


@contextmanager
def beside(work: Callable[[], Any]) -> Iterator[Future[Any]]:
    """Run this in a thread with a connection of its own meanwhile; its result must be asked for."""

    def run() -> Any:
        try:
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(run)


def together(works: list[Callable[[], Any]]) -> list[Any]:
    """The results of all these, run at the same time, each in a thread with a connection of its own."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], Any]) -> Any:
        try:
            start.wait()
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


def wait_until_somebody_waits() -> None:
    """Return when a connection of PostgreSQL waits for a lock of another."""
    until = time.monotonic() + 10
    with another_connection() as execute:
        while execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()[0] == 0:
            assert time.monotonic() < until, "nobody waits"
            time.sleep(0.01)


def database_url() -> str:
    """The address of the tests' database, for other processes."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    return (
        f"postgres://{settings['USER']}:{settings['PASSWORD']}@{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"
    )
