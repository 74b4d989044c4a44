"""The write path in trouble: refused rows, databases that are away, answers that get lost, tags that vanish."""

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import close_old_connections, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.translation import override

from memories import services
from memories.errors import BrainError, NotFound, Refused, Unavailable
from memories.kinds import BRAIN, LONGTERM, SHORTTERM, Kind
from memories.models import BrainMemory, LongtermMemory, LongtermVersion, ShorttermVersion, Tag
from memories.principal import SYSTEM, Origin
from memories.services import Change, Done
from tests.conftest import Agent, note
from tests.trouble import (
    after_statement,
    another_connection,
    assert_no_drift,
    at_commit,
    beside,
    break_connection,
    database_away,
    impatient_sqlite,
    lose_the_answer,
    postgresql_only,
    sqlite_only,
    wait_until_somebody_waits,
)

pytestmark = pytest.mark.django_db(transaction=True)


def origin(**fields: Any) -> Origin:
    """An origin that may do everything."""
    return Origin(**{"principal": SYSTEM, "nutzer": "anna", "agent": "planer", "tuer": "rest", "tool": "test"} | fields)


def brain(**fields: Any) -> dict[str, Any]:
    """A draft of a brain memory."""
    return {"titel": "t", "memory_typ": "arbeit", "nutzer": "anna", "agent": "planer", "tag_namen": []} | fields


def longterm(**fields: Any) -> dict[str, Any]:
    """A draft of a long-term memory."""
    draft = note(**fields)
    return {"tag_namen": draft.pop("tags")} | draft


def insert(*drafts: Mapping[str, Any], kind: Kind = LONGTERM) -> list[int]:
    """The keys of new memories, all of which are stored."""
    outcomes = services.insert(kind, drafts, origin())
    assert all(isinstance(outcome, Done) for outcome in outcomes), outcomes
    return [outcome.key for outcome in outcomes if isinstance(outcome, Done)]


def versions(kind: Kind, key: int) -> list[tuple[int, str]]:
    """Number and action of all versions of a memory."""
    return list(kind.versions.objects.filter(memory_id=key).order_by("version").values_list("version", "aktion"))


BAD_ON_BOTH = {
    "a value beyond a constraint": {"relevanz": 101},
    "a negative value": {"relevanz": -1},
    "an integer too large for the column or the driver": {"relevanz": 2**63},
    "a choice that does not exist": {"memory_typ": "quatsch"},
    "null where there must be something": {"titel": None},
    "half a surrogate pair": {"titel": "\ud800"},
    "no number": {"relevanz": "viel"},
    "a list for a number": {"relevanz": [1]},
    "a vector that is no number long": {"embedding": b"abc"},
}
BAD_ON_POSTGRESQL = {"an identifier too long for its column": {"agent": "x" * 300}, "NUL": {"titel": "a\0b"}}


@pytest.mark.parametrize(
    "bad",
    [
        *(pytest.param(bad, id=what) for what, bad in BAD_ON_BOTH.items()),
        *(pytest.param(bad, id=what, marks=postgresql_only) for what, bad in BAD_ON_POSTGRESQL.items()),
    ],
)
def test_rows_that_the_database_refuses_leave_the_others_stored(bad: dict[str, Any]) -> None:
    faulty = {0, 41, 42, 99}
    drafts = [
        brain(**{"titel": f"Nummer {place}", "tag_namen": ["alle", f"Tag {place}"]} | (bad if place in faulty else {}))
        for place in range(100)
    ]

    outcomes = services.insert(BRAIN, drafts, origin())

    assert [place for place, outcome in enumerate(outcomes) if isinstance(outcome, Refused)] == sorted(faulty)
    stored = {place: outcome.key for place, outcome in enumerate(outcomes) if isinstance(outcome, Done)}
    assert len(stored) == 96
    assert list(stored.values()) == sorted(stored.values())
    titles = dict(BrainMemory.objects.values_list("pk", "titel"))
    assert titles == {key: f"Nummer {place}" for place, key in stored.items()}
    assert BRAIN.versions.objects.count() == 96
    assert sorted(Tag.objects.values_list("name", flat=True)) == sorted(["alle", *(f"Tag {place}" for place in stored)])
    assert_no_drift()


def transactions(context: CaptureQueriesContext) -> int:
    """How many transactions were begun."""
    return sum(query["sql"].startswith("BEGIN") for query in context.captured_queries)


def test_a_few_refused_rows_cost_few_transactions() -> None:
    drafts = [brain(relevanz=101 if place == 60 else 50) for place in range(100)]
    with CaptureQueriesContext(connection) as context:
        outcomes = services.insert(BRAIN, drafts, origin())
    assert sum(isinstance(outcome, Done) for outcome in outcomes) == 99
    assert transactions(context) <= 2 * 7 + 1


@pytest.mark.parametrize("bad", [range(100), range(0, 100, 2), range(50)], ids=["all", "each other", "the first half"])
def test_many_refused_rows_go_one_by_one_after_about_ten(bad: range) -> None:
    drafts = [brain(relevanz=101 if place in bad else 50) for place in range(100)]
    with CaptureQueriesContext(connection) as context:
        outcomes = services.insert(BRAIN, drafts, origin())
    assert [place for place, outcome in enumerate(outcomes) if isinstance(outcome, Refused)] == list(bad)
    assert BrainMemory.objects.count() == 100 - len(bad)
    assert transactions(context) <= 130  # halving alone would take 199 for all of them
    assert_no_drift()


def test_no_text_of_a_refused_row_reaches_the_log(caplog: pytest.LogCaptureFixture) -> None:
    services.insert(BRAIN, [brain(titel="Geheimnis", relevanz=101)], origin())
    assert "refused" in caplog.text
    assert "Geheimnis" not in caplog.text


def test_repeated_ids_are_changed_in_the_order_sent_around_a_refused_row() -> None:
    first, second = insert(brain(titel="a"), brain(titel="b"), kind=BRAIN)
    values: list[tuple[int, dict[str, Any]]] = [
        (first, {"titel": "eins"}),
        (second, {"relevanz": 101}),
        (first, {"titel": "zwei"}),
        (first, {"titel": "drei", "relevanz": 101}),
        (second, {"titel": "B"}),
        (first, {"titel": "vier"}),
        (first, {"titel": "vier"}),
    ]
    outcomes = services.update(BRAIN, [Change(key, change) for key, change in values], origin())
    assert [outcome.version if isinstance(outcome, Done) else type(outcome) for outcome in outcomes] == [
        *(2, Refused, 3, Refused, 2, 4, 4)
    ]
    assert [outcome.changed for outcome in outcomes if isinstance(outcome, Done)] == [True, True, True, True, False]
    history = BRAIN.versions.objects.filter(memory_id=first).order_by("version")
    assert list(history.values_list("titel", flat=True)) == ["a", "eins", "zwei", "vier"]
    assert_no_drift()


def test_a_memory_of_very_many_versions_stays_writable_and_its_history_comes_in_pages(anna: Agent) -> None:
    kennung = anna.store()
    for call in range(3):
        entry = {"ID": kennung, "kurzbeschreibung": "k", "tags": []}
        changes = [entry | {"memory": f"{call}/{place} {'x' * 20_000}"} for place in range(100)]
        assert anna.call("update_brain_longterm_memory", memories=changes)["anzahl"]["erfolgreich"] == 100
    seen: list[int] = []
    weiter: dict[str, str] = {}
    while True:
        page = anna.call("select_brain_history", ID=kennung, limit=100, **weiter)
        seen += [row["version"] for row in page["daten"]]
        if page["weiter"] is None:
            break
        weiter = {"weiter": page["weiter"]}
    assert seen == list(range(301, 0, -1))
    assert_no_drift()


def test_an_id_that_is_deleted_twice_in_a_call_is_gone_the_second_time() -> None:
    keys = insert(longterm(), longterm())
    outcomes = services.delete(LONGTERM, [keys[0], keys[1], keys[0]], origin())
    assert [type(outcome) for outcome in outcomes] == [Done, Done, NotFound]
    assert versions(LONGTERM, keys[0]) == [(1, "angelegt"), (2, "geloescht")]


@postgresql_only
def test_a_row_beyond_a_limit_of_the_server_is_refused_at_once() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE INDEX narrow ON memories_longtermmemory (memory)")
    try:
        long = "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(20_000))
        outcomes = services.insert(LONGTERM, [longterm(), longterm(memory=long), longterm()], origin())
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP INDEX narrow")
    assert [type(outcome) for outcome in outcomes] == [Done, Refused, Done]


# What is nobody's fault is repeated.


def repeated(caplog: pytest.LogCaptureFixture) -> int:
    """How often a group had to be repeated."""
    return sum(record.getMessage().startswith("The database was not available") for record in caplog.records)


@postgresql_only
def test_a_deadlock_reaches_nobody(caplog: pytest.LogCaptureFixture) -> None:
    keys = insert(longterm(), longterm())

    def other_way_round() -> None:
        with another_connection() as execute:
            execute("SET deadlock_timeout = '20s'")  # the service is the one to find the deadlock
            execute("BEGIN")
            lock = "SELECT 1 FROM memories_longtermmemory WHERE id = %s FOR UPDATE"
            execute(lock, [keys[1]])
            ready.append(True)
            wait_until_somebody_waits()
            execute(lock, [keys[0]])
            execute("COMMIT")

    ready: list[bool] = []
    with beside(other_way_round) as other:
        while not ready:
            assert not other.done() or other.result() is None
        outcomes = services.update(LONGTERM, [Change(key, {"memory": "neu"}) for key in keys], origin())
    other.result()
    assert repeated(caplog) == 1
    assert [outcome.version for outcome in outcomes if isinstance(outcome, Done)] == [2, 2]
    assert [versions(LONGTERM, key)[1:] for key in keys] == [[(2, "geaendert")]] * 2
    assert_no_drift()


@postgresql_only
def test_a_serialization_failure_reaches_nobody(caplog: pytest.LogCaptureFixture) -> None:
    (key,) = insert(longterm())

    def touch() -> None:
        with another_connection() as execute:
            execute("BEGIN")
            execute("UPDATE memories_longtermmemory SET version = version WHERE id = %s", [key])
            ready.append(True)
            wait_until_somebody_waits()
            execute("COMMIT")

    ready: list[bool] = []
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_isolation = 'repeatable read'")
    try:
        with beside(touch) as other:
            while not ready:
                assert not other.done() or other.result() is None
            (outcome,) = services.update(LONGTERM, [Change(key, {"memory": "neu"})], origin())
        other.result()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET default_transaction_isolation")
    assert repeated(caplog) == 1
    assert isinstance(outcome, Done)
    assert versions(LONGTERM, key) == [(1, "angelegt"), (2, "geaendert")]


@sqlite_only
def test_a_lock_held_longer_than_the_timeout_reaches_nobody(caplog: pytest.LogCaptureFixture) -> None:
    with another_connection() as execute:
        execute("BEGIN IMMEDIATE")

        def release() -> None:
            while not repeated(caplog):
                pass
            execute("ROLLBACK")

        with beside(release), impatient_sqlite():
            keys = insert(*(longterm() for _ in range(3)))
    assert repeated(caplog) >= 1
    assert [versions(LONGTERM, key) for key in keys] == [[(1, "angelegt")]] * 3
    assert LongtermMemory.objects.count() == 3


@postgresql_only
def test_a_connection_that_breaks_before_the_commit_reaches_nobody(caplog: pytest.LogCaptureFixture) -> None:
    with at_commit(before=break_connection):
        keys = insert(*(longterm(tags=["neu", f"neu {place}"]) for place in range(5)))
    assert repeated(caplog) == 1
    assert sorted(LongtermMemory.objects.values_list("pk", flat=True)) == keys
    assert_no_drift()


@postgresql_only
def test_a_connection_that_breaks_between_two_statements_reaches_nobody() -> None:
    with after_statement('INSERT INTO "memories_longtermmemory"', break_connection):
        keys = insert(longterm(), longterm())
    assert sorted(LongtermMemory.objects.values_list("pk", flat=True)) == keys
    assert_no_drift()


@postgresql_only
def test_connections_that_broke_while_idle_are_replaced_unnoticed(anna: Agent) -> None:
    anna.store()
    threads = 5
    asked, broken = threading.Barrier(threads + 1), threading.Barrier(threads + 1)

    def work() -> tuple[int, int, int]:
        """The pid before its connection breaks, the status of a request afterwards, and the pid then."""
        anna.call("select_brain_longterm_memory")
        pid = connection.connection.info.backend_pid
        asked.wait()
        broken.wait()
        close_old_connections()  # as a server does between two requests
        assert anna.call("select_brain_longterm_memory")["anzahl"]["gesamt"] == 1
        status = anna.http.get("/readyz").status_code
        return pid, status, connection.connection.info.backend_pid

    with ExitStack() as stack:
        working = [stack.enter_context(beside(work)) for _thread in range(threads)]
        asked.wait()
        with another_connection() as execute:
            others = "datname = current_database() AND pid <> pg_backend_pid()"
            execute(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE {others}")
        broken.wait()
        results = [future.result() for future in working]
    assert [status for _before, status, _after in results] == [200] * threads
    assert all(before != after for before, _status, after in results)
    close_old_connections()
    assert anna.call("select_brain_longterm_memory")["anzahl"]["gesamt"] == 1


@postgresql_only
def test_a_tag_that_was_looked_up_stays_until_it_is_linked() -> None:
    insert(longterm(tags=["Vertrag"]))
    LONGTERM.links.objects.all().delete()
    LongtermMemory.objects.all().delete()
    LongtermVersion.objects.all().delete()

    def try_to_remove() -> None:
        with another_connection() as execute:
            execute("SET lock_timeout = '200ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                execute("DELETE FROM memories_tag")

    with after_statement("SELECT id, name, schluessel", try_to_remove):
        insert(longterm(tags=["Vertrag"]))
    assert Tag.objects.get().name == "Vertrag"
    assert_no_drift()


@postgresql_only
def test_links_are_checked_when_they_are_written_not_at_commit() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), bool_or(condeferrable) FROM pg_constraint "
            "WHERE contype = 'f' AND conrelid::regclass::text IN "
            "('memories_longtermtag', 'memories_shorttermtag', 'memories_braintag')"
        )
        assert cursor.fetchone() == (6, False)


# The answer to a commit is lost: it is found out whether the commit took place.


def change_each_way(key: int, short: int, gone: int) -> dict[str, Callable[[], list[services.Outcome]]]:
    """A change by each of the verbs."""
    return {
        "insert": lambda: services.insert(LONGTERM, [longterm(), longterm()], origin()),
        "update": lambda: services.update(LONGTERM, [Change(key, {"memory": "neu"})], origin()),
        "delete": lambda: services.delete(LONGTERM, [key], origin()),
        "promote": lambda: services.promote([short], origin()),
        "restore": lambda: [services.restore(LONGTERM, gone, 1, origin())],
    }


def lose_connection_and_answer() -> None:
    """The connection breaks before the answer is read."""
    if connection.vendor == "postgresql":
        break_connection()
    lose_the_answer()


@pytest.mark.parametrize("verb", ["insert", "update", "delete", "promote", "restore"])
def test_a_commit_whose_answer_is_lost_is_reported_as_stored_and_stored_once(verb: str) -> None:
    key, gone = insert(longterm(), longterm())
    (short,) = insert(longterm(), kind=SHORTTERM)
    services.delete(LONGTERM, [gone], origin())
    before = LongtermVersion.objects.count() + ShorttermVersion.objects.count()

    with at_commit(after=lose_connection_and_answer):
        outcomes = change_each_way(key, short, gone)[verb]()

    written = {"insert": 2, "promote": 2}.get(verb, 1)
    assert all(isinstance(outcome, Done) and outcome.changed for outcome in outcomes)
    assert LongtermVersion.objects.count() + ShorttermVersion.objects.count() == before + written
    for outcome in outcomes:
        assert isinstance(outcome, Done)
        assert versions(outcome.kind, outcome.key)[-1][0] == outcome.version
    assert_no_drift()


@pytest.mark.parametrize("verb", ["insert", "update", "delete", "promote", "restore"])
def test_a_commit_that_failed_is_repeated(verb: str) -> None:
    key, gone = insert(longterm(), longterm())
    (short,) = insert(longterm(), kind=SHORTTERM)
    services.delete(LONGTERM, [gone], origin())
    before = LongtermVersion.objects.count() + ShorttermVersion.objects.count()

    with at_commit(before=lose_the_answer):
        outcomes = change_each_way(key, short, gone)[verb]()

    written = {"insert": 2, "promote": 2}.get(verb, 1)
    assert all(isinstance(outcome, Done) and outcome.changed for outcome in outcomes)
    assert LongtermVersion.objects.count() + ShorttermVersion.objects.count() == before + written
    assert_no_drift()


@postgresql_only
def test_when_nobody_can_tell_whether_it_was_stored_the_caller_is_told_to_look() -> None:
    with ExitStack() as until_here:

        def vanish() -> None:
            until_here.enter_context(database_away())
            lose_the_answer()

        with at_commit(after=vanish), pytest.raises(Unavailable) as raised:
            insert(longterm())
    with override("en"):
        assert "look whether it is there" in str(raised.value.meldung)
    assert LongtermMemory.objects.count() == 1
    assert_no_drift()


# The database stays away: 503, or the rest of the entries.


def test_a_database_that_is_away_is_503_with_retry_after(anna: Agent) -> None:
    anna.store()
    with database_away():
        response = anna.post(
            "insert_brain_longterm_memory", {"inhalt": {"nutzer": "anna", "agent": "planer", "memories": [note()]}}
        )
    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    assert response.json()["fehler"]["code"] == "nicht_verfuegbar"
    assert response.json()["daten"] == []
    assert LongtermMemory.objects.count() == 1
    anna.store()


@postgresql_only
def test_a_database_that_is_away_is_not_ready(client: Any) -> None:
    with database_away():
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 200


def test_what_was_stored_before_the_database_went_away_is_told_entry_by_entry() -> None:
    drafts = [brain(relevanz=101 if place == 70 else 50) for place in range(100)]
    with ExitStack() as until_here, at_commit(after=lambda: until_here.enter_context(database_away())):
        outcomes = services.insert(BRAIN, drafts, origin())
    kinds = [type(outcome) for outcome in outcomes]
    assert kinds == [Done] * 50 + [Unavailable] * 50
    assert BrainMemory.objects.count() == 50
    assert_no_drift()


def test_a_repeated_id_whose_second_change_found_no_database_is_told_so(anna: Agent) -> None:
    kennung = anna.store()
    other = anna.store()
    entry = {"ID": kennung, "kurzbeschreibung": "k", "tags": []}
    changes = [entry | {"memory": "eins"}, entry | {"memory": "zwei"}, entry | {"ID": other, "memory": "eins"}]
    with ExitStack() as until_here, at_commit(after=lambda: until_here.enter_context(database_away())):
        answer = anna.call("update_brain_longterm_memory", memories=changes)
    assert [row["erfolg"] for row in answer["daten"]] == [True, False, True]
    assert answer["daten"][1]["fehler"]["code"] == "nicht_verfuegbar"
    assert set(LongtermMemory.objects.values_list("memory", "version")) == {("eins", 2)}
    assert_no_drift()


# Clocks may differ, histories may not.


def test_time_never_runs_backwards_within_a_history() -> None:
    now = timezone.now()
    ahead = origin(clock=lambda: now + timedelta(hours=2))
    behind = origin(clock=lambda: now - timedelta(hours=2))

    def key_of(outcome: services.Outcome) -> int:
        assert isinstance(outcome, Done), outcome
        return outcome.key

    key, other = (key_of(outcome) for outcome in services.insert(SHORTTERM, [longterm(), longterm()], ahead))
    services.update(SHORTTERM, [Change(key, {"memory": "neu"}), Change(key, {"memory": "neuer"})], behind)
    services.delete(SHORTTERM, [key], behind)
    services.restore(SHORTTERM, key, 1, behind)
    services.restore(SHORTTERM, key, 3, behind)
    promoted = [key_of(outcome) for outcome in services.promote([key, other], behind)]
    services.update(LONGTERM, [Change(promoted[0], {"memory": "alt"})], behind)

    history = list(ShorttermVersion.objects.filter(memory_id=key).order_by("version"))
    assert [version.aktion for version in history] == [
        *("angelegt", "geaendert", "geaendert", "geloescht", "wiederhergestellt", "wiederhergestellt", "befoerdert")
    ]
    assert [version.zeitpunkt for version in history] == [now + timedelta(hours=2)] * 7
    longterm_history = LongtermVersion.objects.filter(memory_id=promoted[0]).order_by("version")
    assert [version.zeitpunkt for version in longterm_history] == [now + timedelta(hours=2)] * 2
    assert LongtermMemory.objects.get(pk=promoted[0]).erstellt_am == history[0].erstellt_am
    assert_no_drift()


def test_the_log_is_quiet_when_all_is_well(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="memories"):
        (key,) = insert(longterm())
        assert isinstance(services.delete(LONGTERM, [key], origin())[0], Done)
        assert isinstance(services.delete(LONGTERM, [key], origin())[0], BrainError)
    assert not [record for record in caplog.records if record.name.startswith("memories")]
