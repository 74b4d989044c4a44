"""Calls that are sent again: an idempotency key makes every entry take effect once (cases of part B)."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from memories import repeats
from memories.models import HandledEntry, LongtermMemory, RepeatableCall, ShorttermMemory
from memories.writing import write_in_groups
from tests.conftest import Agent, note
from tests.doors import raw
from tests.trouble import database_away, together

pytestmark = pytest.mark.django_db(transaction=True)

INSERT = "insert_brain_longterm_memory"


def insert(agent: Agent, key: str | None, *entries: dict[str, Any], tool: str = INSERT) -> Any:
    """The response to an insert under this idempotency key."""
    headers = {} if key is None else {"Idempotency-Key": key}
    inhalt = {"nutzer": agent.nutzer, "agent": agent.agent, "memories": list(entries) or [note()]}
    return agent.post(tool, {"inhalt": inhalt}, **headers)


def test_16_the_same_call_under_the_same_key_gives_the_first_answer_again(anna: Agent) -> None:
    first = insert(anna, "k1", note(), note(memory=""), note(tags=["x"]))
    again = insert(anna, "k1", note(), note(memory=""), note(tags=["x"]))
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    assert first.json()["anzahl"] == {"gesamt": 3, "erfolgreich": 2, "fehlgeschlagen": 1}
    assert LongtermMemory.objects.count() == 2


def test_16_the_same_call_at_once_stores_once(anna: Agent) -> None:
    answers = together([lambda: insert(anna, "k1", note(), note()).json() for _caller in range(4)])
    assert all(answer == answers[0] for answer in answers), answers
    assert LongtermMemory.objects.count() == 2


def test_without_a_key_calls_are_executed_as_they_come(anna: Agent) -> None:
    assert insert(anna, None).json() != insert(anna, None).json()
    assert LongtermMemory.objects.count() == 2
    assert not RepeatableCall.objects.exists()


def test_another_body_under_the_same_key_is_refused(anna: Agent) -> None:
    insert(anna, "k1")
    refused = insert(anna, "k1", note(memory="anders"))
    assert refused.status_code == 409
    assert refused.json()["fehler"]["code"] == "schluessel_wiederverwendet"
    assert LongtermMemory.objects.count() == 1
    assert insert(anna, "k1", tool="insert_brain_shortterm_memory").status_code == 409
    assert not ShorttermMemory.objects.exists()


def test_the_body_counts_not_its_spelling(anna: Agent) -> None:
    first = insert(anna, "k1").json()
    turned = {"arguments": {"inhalt": {"memories": [note()], "agent": "planer", "nutzer": "anna"}}, "tool": INSERT}
    body = json.dumps(turned, indent=3)
    again = anna.http.post("/api/tools/", body, content_type="application/json", headers={"Idempotency-Key": "k1"})
    assert again.json() == first


@pytest.mark.parametrize(
    "value", ["1e400", "-1e400", str(2**70), str(2**70 + 1), '"\\ud800"', '"\\udfff"', "null", "1", "2"]
)
def test_values_that_no_database_keeps_tell_calls_apart_as_well(anna: Agent, value: str) -> None:
    def sent(number: str) -> Any:
        entry = json.dumps(note(embedding=["X"])).replace('"X"', number)
        body = f'{{"inhalt": {{"nutzer": "anna", "agent": "planer", "memories": [{entry}]}}}}'
        return raw(anna, body, f"/api/tools/{INSERT}/", **{"Idempotency-Key": "k1"})

    assert sent(value).status_code == 200
    assert sent(value).content == sent(value).content
    assert sent(f"{value}, 1").status_code == 409
    other = {"1e400": "null", "1": "1.0"}.get(value, "7")
    assert sent(other).status_code == 409


def test_keys_of_different_access_keys_do_not_meet(anna: Agent, ben: Agent) -> None:
    insert(anna, "k1")
    assert ben.nutzer == "ben"
    assert insert(ben, "k1", note(nutzer="ben")).status_code == 200
    assert LongtermMemory.objects.count() == 2


@pytest.mark.parametrize("key", ["", "x" * 256, "a\x07b"])
def test_a_key_that_is_none_is_told(anna: Agent, key: str) -> None:
    response = insert(anna, key)
    assert response.status_code == 400
    assert response.json()["fehler"]["feld"] == "Idempotency-Key"
    assert not LongtermMemory.objects.exists()


def test_questions_are_asked_anew(anna: Agent) -> None:
    def count() -> int:
        response = anna.post(
            "select_brain_longterm_memory",
            {"inhalt": {"nutzer": "anna", "agent": "planer"}},
            **{"Idempotency-Key": "k1"},
        )
        return int(response.json()["anzahl"]["gesamt"])

    assert count() == 0
    anna.store()
    assert count() == 1


def change(anna: Agent, tool: str, inhalt: dict[str, Any]) -> list[Any]:
    """The answers to the same call, three times under one key."""
    call = {"inhalt": {"nutzer": "anna", "agent": "planer", **inhalt}}
    return [anna.post(tool, call, **{"Idempotency-Key": tool}).json() for _time in range(3)]


def test_every_verb_takes_effect_once(anna: Agent) -> None:
    long = anna.store()
    short = anna.call("insert_brain_shortterm_memory", memories=[note()])["daten"][0]["ID"]
    entry = {"ID": long, "kurzbeschreibung": "Neu", "memory": "Neu", "tags": []}
    calls = [
        ("update_brain_longterm_memory", {"memories": [entry]}),
        ("promote_brain_shortterm_memory", {"IDs": [short]}),
        ("delete_brain_longterm_memory", {"IDs": [long]}),
        ("restore_brain_memory", {"ID": long, "version": 1}),
        ("insert_brain_memory", {"memory_typ": "arbeit", "titel": "Abnahme"}),
    ]
    for tool, inhalt in calls:
        first, second, third = change(anna, tool, inhalt)
        assert first["erfolg"], first
        assert first == second == third
    versions = anna.call("select_brain_history", ID=long)["daten"]
    assert [version["version"] for version in versions] == [4, 3, 2, 1]


def cut_off_after(monkeypatch: pytest.MonkeyPatch, groups: int) -> None:
    """End the execution of calls as a killed process does: so many groups are committed, the answer never is."""

    def one_by_one(items: Any, write: Any, landed: Any, *, apart: Callable[[Any], Any] = id, once: Any = None) -> Any:
        class Shifted:
            def __init__(self, place: int) -> None:
                self.place = place

            def handled(self, _places: Any) -> Any:
                found = once.handled([self.place])
                return {0: found[self.place]} if found else {}

            def keep(self, outcomes: Any) -> None:
                once.keep(dict.fromkeys([self.place], *outcomes.values()))

        done = []
        for place, item in enumerate(items):
            if place == groups:
                raise KeyboardInterrupt
            done += write_in_groups([item], write, landed, apart=apart, once=Shifted(place))
        return done

    monkeypatch.setattr("memories.services.write_in_groups", one_by_one)


@pytest.mark.parametrize("groups", [0, 1, 3, 5])
def test_a_batch_that_was_cut_off_is_completed_by_its_repetition(
    anna: Agent, monkeypatch: pytest.MonkeyPatch, groups: int
) -> None:
    entries = [note(kurzbeschreibung=f"Nr. {number}") for number in range(5)]
    with monkeypatch.context() as patch:
        cut_off_after(patch, groups)
        if groups < 5:
            with pytest.raises(KeyboardInterrupt):
                insert(anna, "k1", *entries)
        else:
            patch.setattr(repeats.Repeat, "finish", lambda *_arguments: None)
            insert(anna, "k1", *entries)
    assert LongtermMemory.objects.count() == groups
    kept = set(LongtermMemory.objects.values_list("pk", flat=True))
    answer = insert(anna, "k1", *entries).json()
    assert answer["anzahl"]["erfolgreich"] == 5
    assert sorted(LongtermMemory.objects.values_list("kurzbeschreibung", flat=True)) == [f"Nr. {n}" for n in range(5)]
    assert kept <= {int(row["ID"].partition("_")[2]) for row in answer["daten"]}
    assert insert(anna, "k1", *entries).json() == answer


def test_a_call_that_the_database_could_not_take_can_be_repeated(anna: Agent) -> None:
    with database_away():
        assert insert(anna, "k1").status_code == 503
    assert insert(anna, "k1").status_code == 200
    assert LongtermMemory.objects.count() == 1


def test_a_day_later_the_key_is_free_and_cleaned_up(anna: Agent) -> None:
    insert(anna, "k1")
    insert(anna, "k2")
    RepeatableCall.objects.update(begun_at=timezone.now() - timedelta(hours=24, seconds=1))
    assert insert(anna, "k1", note(memory="anders")).status_code == 200
    assert LongtermMemory.objects.count() == 3
    call_command("clean_up")
    assert [call.idempotency_key for call in RepeatableCall.objects.all()] == ["k1"]
    assert HandledEntry.objects.count() == 1


# A change that names the version which it is to replace.


def update(agent: Agent, kennung: str, *, more: dict[str, Any] | None = None, **headers: str) -> dict[str, Any]:
    """The answer to a change of one long-term memory."""
    entry = {"ID": kennung, "kurzbeschreibung": "Neu", "memory": "Neu", "tags": []}
    call = {"inhalt": {"nutzer": "anna", "agent": "planer", "memories": [entry], **(more or {})}}
    answer: dict[str, Any] = agent.post("update_brain_longterm_memory", call, **headers).json()
    return answer


@pytest.mark.parametrize("headers", [{}, {"If-Match": '"1"'}, {"If-Match": 'W/"1"'}])
def test_a_change_of_an_outdated_version_is_a_conflict(anna: Agent, headers: dict[str, str]) -> None:
    kennung = anna.store()
    more = None if headers else {"erwartete_version": 1}
    assert update(anna, kennung, more=more, **headers)["erfolg"]
    row = update(anna, kennung, more=more, **headers)["daten"][0]
    assert (row["fehler"]["code"], row["version"], row["ID"]) == ("konflikt", 2, kennung)
    assert anna.call("select_brain_longterm_memory", IDs=[kennung])["daten"][0]["version"] == 2


def test_every_tool_that_changes_takes_the_version_and_no_other_does(anna: Agent) -> None:
    kennung = anna.call("insert_brain_memory", memory_typ="arbeit", titel="Alt")["daten"][0]["ID"]
    row = anna.call("update_brain_memory", ID=kennung, titel="Neu", erwartete_version=9)["daten"][0]
    assert (row["fehler"]["code"], row["version"]) == ("konflikt", 1)
    assert anna.call("update_brain_memory", ID=kennung, titel="Neu", erwartete_version=1)["erfolg"]
    short = anna.call("insert_brain_shortterm_memory", memories=[note()])["daten"][0]["ID"]
    entry = {"ID": short, "kurzbeschreibung": "Neu", "memory": "Neu", "tags": []}
    answer = anna.call("update_brain_shortterm_memory", memories=[entry], erwartete_version=7)
    assert answer["daten"][0]["fehler"]["code"] == "konflikt"
    refused = anna.post(
        "delete_brain_longterm_memory",
        {"inhalt": {"nutzer": "anna", "agent": "planer", "IDs": ["longterm_1"], "erwartete_version": 1}},
    )
    assert refused.json()["fehler"]["code"] == "unbekanntes_feld"


def test_a_version_is_expected_of_one_memory_only(anna: Agent) -> None:
    entries = [{"ID": anna.store(), "kurzbeschreibung": "k", "memory": "m", "tags": []} for _entry in range(2)]
    refused = anna.post(
        "update_brain_longterm_memory",
        {"inhalt": {"nutzer": "anna", "agent": "planer", "memories": entries, "erwartete_version": 1}},
    )
    assert refused.status_code == 400
    assert refused.json()["fehler"]["feld"] == "inhalt.erwartete_version"


@pytest.mark.parametrize("version", [0, -1, 1.5, "x", True])
def test_a_version_that_is_none_is_told(anna: Agent, version: Any) -> None:
    answer = update(anna, anna.store(), more={"erwartete_version": version})
    assert answer["fehler"]["feld"] == "inhalt.erwartete_version"


def test_if_match_must_hold_a_version(anna: Agent) -> None:
    assert update(anna, anna.store(), **{"If-Match": '"abc"'})["fehler"]["feld"] == "If-Match"
    assert update(anna, anna.store(), **{"If-Match": "*"})["erfolg"]


def test_help_tells_of_the_version(anna: Agent) -> None:
    answer = anna.post("update_brain_longterm_memory", {"help": 1}).json()
    assert "inhalt.erwartete_version" in [row["name"] for row in answer["daten"][0]["parameter"]]
