"""Faults that users of such systems reported, part D: delete, expiry, time. 42 and 45 stand with values and select."""

from datetime import datetime
from typing import Any
from unittest import mock
from zoneinfo import ZoneInfo

import pytest

from tests.conftest import Agent, note
from tests.doors import BRAIN, one_fault

BERLIN = ZoneInfo("Europe/Berlin")


def _at(moment: datetime) -> Any:
    """At this moment, as far as reading goes."""
    return mock.patch("django.utils.timezone.now", return_value=moment)


@pytest.mark.parametrize("kind", ["longterm", "shortterm"])
def test_case_36_what_was_deleted_is_found_by_nothing_in_the_next_call(anna: Agent, kind: str) -> None:
    entry = note(tags=["a", "b"], embedding=[1, 2])
    gone, kept = (row["ID"] for row in anna.call(f"insert_brain_{kind}_memory", memories=[entry] * 2)["daten"])
    assert anna.call(f"delete_brain_{kind}_memory", IDs=[gone])["erfolg"] is True
    select = f"select_brain_{kind}_memory"
    for only in ({}, {"tags": ["a"]}, {"tags_eines": ["a", "b"]}, {"scope": "modul"}, {"nutzer_filter": "anna"}):
        assert [row["ID"] for row in anna.call(select, **only)["daten"]] == [kept]
    assert one_fault(anna.call(select, IDs=[gone])) == ("nicht_gefunden", "ID")
    assert {row["anzahl"] for row in anna.call("select_brain_tags")["daten"]} == {1}
    anna.call(f"delete_brain_{kind}_memory", IDs=[kept])
    assert anna.call("select_brain_tags")["daten"] == []


def test_case_38_as_many_are_deleted_as_are_reported(anna: Agent) -> None:
    for _call in range(3):
        anna.call("insert_brain_longterm_memory", memories=[note(tags=["weg"])] * 100)
    deleted = 0
    while rows := anna.call("select_brain_longterm_memory", tags=["weg"], limit=100)["daten"]:
        answer = anna.call("delete_brain_longterm_memory", IDs=[row["ID"] for row in rows])
        deleted += answer["anzahl"]["erfolgreich"]
    assert deleted == 300
    assert anna.call("select_brain_longterm_memory")["anzahl"]["gesamt"] == 0


@pytest.mark.parametrize(
    ("until", "last", "first_without"),
    [
        ("2026-12-31", datetime(2026, 12, 31, 23, 30, tzinfo=BERLIN), datetime(2027, 1, 1, tzinfo=BERLIN)),
        ("31.12.2026", datetime(2026, 12, 31, 23, 59, 59, 999_999, tzinfo=BERLIN), datetime(2027, 1, 1, tzinfo=BERLIN)),
        ("2026-07-15", datetime(2026, 7, 15, 23, 59, 59, tzinfo=BERLIN), datetime(2026, 7, 16, tzinfo=BERLIN)),
        ("2026-03-29", datetime(2026, 3, 29, 23, 59, tzinfo=BERLIN), datetime(2026, 3, 30, tzinfo=BERLIN)),
        ("2026-12-31T12:00", datetime(2026, 12, 31, 12, tzinfo=BERLIN), datetime(2026, 12, 31, 12, 1, tzinfo=BERLIN)),
        ("2026-12-31T12:00Z", datetime(2026, 12, 31, 13, tzinfo=BERLIN), datetime(2026, 12, 31, 13, 1, tzinfo=BERLIN)),
    ],
)
@pytest.mark.parametrize("kind", ["brain", "shortterm"])
def test_case_41_the_last_day_counts_to_its_end_in_the_servers_time_zone(
    anna: Agent, kind: str, until: str, last: datetime, first_without: datetime
) -> None:
    tool = "memory" if kind == "brain" else "shortterm_memory"
    fields = {**BRAIN, "gueltig_bis": until} if kind == "brain" else {"memories": [note(gueltig_bis=until)]}
    kennung = anna.call(f"insert_brain_{tool}", **fields)["daten"][0]["ID"]
    with _at(last):
        assert anna.call(f"select_brain_{tool}", IDs=[kennung])["erfolg"] is True
        assert anna.call(f"select_brain_{tool}")["anzahl"]["gesamt"] == 1
    with _at(first_without):
        assert one_fault(anna.call(f"select_brain_{tool}", IDs=[kennung])) == ("nicht_gefunden", "ID")
        assert anna.call(f"select_brain_{tool}")["anzahl"]["gesamt"] == 0
