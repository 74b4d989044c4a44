"""The history: every change is a version with who, when, how and why, and every version can come back."""

from datetime import datetime
from typing import Any

import pytest

from tests.conftest import Agent, note
from tests.doors import BRAIN, change, fault_of, history, inhalt_for, now, one_fault, restore, steps

INSERT = "insert_brain_longterm_memory"
UPDATE = "update_brain_longterm_memory"
SELECT = "select_brain_longterm_memory"
DELETE = "delete_brain_longterm_memory"


def test_a_version_says_who_when_how_and_why(anna: Agent, ben: Agent) -> None:
    kennung = anna.store(tags=["a"], memory="m")
    references = {"ticket": "T-17", "schritte": [1, {"a": None}]}
    change(ben, kennung, memory="neu", referenzfelder=references)
    anna.call(DELETE, IDs=[kennung], grund="überholt")
    rows = history(anna, kennung)
    assert [row["version"] for row in rows] == [3, 2, 1]
    assert [row["aktion"] for row in rows] == ["geloescht", "geaendert", "angelegt"]
    assert [row["tool"] for row in rows] == [DELETE, UPDATE, INSERT]
    assert [row["nutzer"] for row in rows] == ["anna", "ben", "anna"]
    assert [row["agent"] for row in rows] == ["planer"] * 3
    assert [row["schluessel"] for row in rows] == ["anna", "ben", "anna"]
    assert [row["tuer"] for row in rows] == ["rest"] * 3
    assert [row["benutzer"] for row in rows] == [None] * 3
    assert [row["grund"] for row in rows] == ["überholt", "", ""]
    assert [row["referenzfelder"] for row in rows] == [{}, references, {}]
    assert {row["ID"] for row in rows} == {kennung}
    assert {row["typ"] for row in rows} == {"longterm"}
    moments = [datetime.fromisoformat(row["zeitpunkt"]) for row in rows]
    assert moments == sorted(moments, reverse=True)
    assert all(moment.tzinfo for moment in moments)
    assert rows[0].keys() == {
        "index",
        "typ",
        "erfolg",
        "ID",
        "version",
        "aktion",
        "zeitpunkt",
        "stand",
        "aenderungen",
        "nutzer",
        "agent",
        "tuer",
        "tool",
        "schluessel",
        "benutzer",
        "grund",
        "referenzfelder",
        "vertrauen",
        "verdaechtig",
    }


def test_a_version_holds_the_whole_state_after_it(anna: Agent) -> None:
    kennung = anna.store(memory="m", tags=["a", "b"], embedding=[1, 2], embedding_profil_hash="p")
    change(anna, kennung, memory="neu", tags=["c"])
    newest, first = (row["stand"] for row in history(anna, kennung))
    assert (first["memory"], first["tags"], first["embedding_veraltet"]) == ("m", ["a", "b"], False)
    assert (newest["memory"], newest["tags"], newest["embedding_veraltet"]) == ("neu", ["c"], True)
    for state in (newest, first):
        assert (state["hat_embedding"], state["embedding_profil_hash"]) == (True, "p")
        assert (state["scope"], state["scope_vk"], state["nutzer"], state["agent"]) == ("modul", "12", "anna", "planer")
    row = now(anna, kennung)
    assert {name: row[name] for name in newest} == newest


def test_case_29_a_change_names_the_fields_that_changed_and_no_others(anna: Agent) -> None:
    kennung = anna.store(memory="m", tags=["a"])
    change(anna, kennung, tags=["a", "b"])
    change(anna, kennung, tags=["a", "b"], kurzbeschreibung="neu")
    change(anna, kennung, tags=["a", "b"], kurzbeschreibung="neu", embedding=[1, 2, 3], embedding_profil_hash="p")
    change(anna, kennung, tags=["a", "b"], kurzbeschreibung="neu", memory="anders")
    change(anna, kennung, tags=["a", "b"], kurzbeschreibung="neu", memory="anders", embedding=None)
    removed, moved, vector, short, tags, first = (steps(row) for row in history(anna, kennung))
    assert first == {}
    assert tags == {"tags": (["a"], ["a", "b"])}
    assert short == {"kurzbeschreibung": ("Frist", "neu")}
    assert vector == {"embedding": (None, {"dimension": 3}), "embedding_profil_hash": (None, "p")}
    assert moved == {"memory": ("m", "anders"), "embedding_veraltet": (False, True)}
    assert removed == {"embedding": ({"dimension": 3}, None), "embedding_veraltet": (True, False)}


def test_case_29_another_vector_of_the_same_length_is_a_change_too(anna: Agent) -> None:
    kennung = anna.store(memory="m", tags=["a"], embedding=[1, 2])
    change(anna, kennung, embedding=[2, 1])
    assert steps(history(anna, kennung)[0]).keys() == {"embedding"}


def test_the_changes_of_a_brain_memory_have_its_own_names(anna: Agent) -> None:
    kennung = anna.call("insert_brain_memory", **BRAIN)["daten"][0]["ID"]
    anna.call("update_brain_memory", ID=kennung, scope_ID="12", relevanz="80", gueltig_bis="2999-12-31", agent_ID="a")
    assert steps(history(anna, kennung)[0]) == {
        "scope_ID": ("", "12"),
        "agent_ID": ("", "a"),
        "relevanz": ("50", "80"),
        "gueltig_bis": (None, "2999-12-31T23:59:59.999999+01:00"),
    }


def test_an_update_that_changes_nothing_writes_no_version(anna: Agent) -> None:
    kennung = anna.store(memory="m", tags=["a"], embedding=[1, 2], embedding_profil_hash="p")
    before = now(anna, kennung)
    for fields in ({}, {"embedding": [1, 2]}, {"embedding_profil_hash": "p"}, {"tags": ["A", "a"]}):
        row = change(anna, kennung, **fields)
        assert (row["erfolg"], row["unveraendert"], row["ID"]) == (True, True, kennung)
    assert now(anna, kennung) == before
    assert len(history(anna, kennung)) == 1


def test_the_same_memory_twice_in_a_call_is_changed_twice_in_order(anna: Agent) -> None:
    one, two = anna.store(), anna.store()
    entries = [
        {"ID": kennung, "kurzbeschreibung": "k", "memory": text, "tags": [text]}
        for kennung, text in ((one, "1"), (two, "x"), (one, "2"), (one, "2"), (one, "3"), (two, "y"))
    ]
    answer = anna.call(UPDATE, memories=entries)
    assert answer["erfolg"] is True
    assert [row["ID"] for row in answer["daten"]] == [one, two, one, one, one, two]
    assert [row.get("unveraendert", False) for row in answer["daten"]] == [False, False, False, True, False, False]
    assert [(row["version"], row["stand"]["memory"], row["stand"]["tags"]) for row in history(anna, one)[:3]] == [
        (4, "3", ["3"]),
        (3, "2", ["2"]),
        (2, "1", ["1"]),
    ]
    assert [steps(row).get("memory") for row in history(anna, one)][:2] == [("2", "3"), ("1", "2")]
    assert now(anna, two)["memory"] == "y"


def test_a_bad_entry_between_two_for_the_same_memory_is_its_own_fault(anna: Agent) -> None:
    kennung = anna.store()
    entry = {"ID": kennung, "kurzbeschreibung": "k", "memory": "1", "tags": []}
    answer = anna.call(UPDATE, memories=[entry, entry | {"memory": ""}, entry | {"memory": "2"}])
    assert [row["erfolg"] for row in answer["daten"]] == [True, False, True]
    assert [row["version"] for row in history(anna, kennung)] == [3, 2, 1]
    assert now(anna, kennung)["memory"] == "2"


def test_deleting_twice_in_a_call_finds_it_once(anna: Agent) -> None:
    kennung = anna.store()
    answer = anna.call(DELETE, IDs=[kennung, kennung])
    assert [row["erfolg"] for row in answer["daten"]] == [True, False]
    assert one_fault(answer, 1) == ("nicht_gefunden", "ID")
    assert [row["version"] for row in history(anna, kennung)] == [2, 1]


def test_versions_have_no_gaps_whatever_happens(anna: Agent) -> None:
    kennung = anna.store()
    for round_ in range(3):
        change(anna, kennung, memory=f"{round_}")
        change(anna, kennung, memory=f"{round_}")
        change(anna, kennung, memory="")
        anna.call(DELETE, IDs=[kennung])
        change(anna, kennung, memory="weg")
        restore(anna, kennung, 1)
        restore(anna, kennung, 99)
    rows = history(anna, kennung)
    assert [row["version"] for row in rows] == list(range(len(rows), 0, -1))
    assert len(rows) == 1 + 3 * 3
    assert now(anna, kennung)["version"] == len(rows)


def test_the_history_comes_in_pages_also_while_it_grows(anna: Agent) -> None:
    kennung = anna.store()
    for number in range(11):
        change(anna, kennung, memory=f"{number}")
    seen: list[int] = []
    weiter = None
    while weiter or not seen:
        answer = anna.call("select_brain_history", ID=kennung, limit=5, **({"weiter": weiter} if weiter else {}))
        seen += [row["version"] for row in answer["daten"]]
        assert all(row["aenderungen"] for row in answer["daten"] if row["version"] > 1)
        weiter = answer["weiter"]
        change(anna, kennung, memory=f"neu {len(seen)}")
    assert seen == list(range(12, 0, -1))


def test_a_cursor_of_another_history_is_refused(anna: Agent) -> None:
    one, two = anna.store(), anna.store()
    for kennung in (one, two):
        change(anna, kennung, memory="neu")
    weiter = anna.call("select_brain_history", ID=one, limit=1)["weiter"]
    inhalt = inhalt_for("select_brain_history") | {"ID": two, "weiter": weiter}
    fault = fault_of(anna.post("select_brain_history", {"inhalt": inhalt}), 400)
    assert (fault["code"], fault["feld"]) == ("ungueltig", "inhalt.weiter")


@pytest.mark.parametrize("kennung", ["", "7", "tag_1", "longterm_0", "longterm_1\n", 7, None, ["longterm_1"]])
def test_the_history_of_what_is_no_id_is_a_fault_of_the_call(anna: Agent, kennung: Any) -> None:
    inhalt = inhalt_for("select_brain_history") | {"ID": kennung}
    fault = fault_of(anna.post("select_brain_history", {"inhalt": inhalt}), 400)
    assert (fault["code"], fault["feld"]) == ("ungueltig", "inhalt.ID")


# Restore


def test_a_memory_goes_back_to_a_version_with_fields_tags_and_vector(anna: Agent, ben: Agent) -> None:
    kennung = anna.store(memory="alt", tags=["a", "b"], embedding=[1, 2], embedding_profil_hash="p")
    before = now(anna, kennung)
    change(anna, kennung, memory="neu", tags=["c"], embedding=[3, 4, 5], embedding_profil_hash="q")
    answer = restore(ben, kennung, 1, grund="versehentlich", referenzfelder={"n": 1})
    assert answer["daten"] == [{"index": 0, "typ": "longterm", "erfolg": True, "ID": kennung}]
    after = now(anna, kennung)
    assert after["version"] == 3
    assert {k: v for k, v in after.items() if k not in {"version", "aktualisiert_am"}} == {
        k: v for k, v in before.items() if k not in {"version", "aktualisiert_am"}
    }
    newest = history(anna, kennung)[0]
    assert (newest["aktion"], newest["grund"], newest["nutzer"]) == ("wiederhergestellt", "versehentlich", "ben")
    assert newest["referenzfelder"] == {"n": 1}
    assert newest["verweis"] == f"{kennung} v1"
    assert steps(newest)["memory"] == ("neu", "alt")
    assert anna.call(SELECT, tags=["b"])["anzahl"]["gesamt"] == 1
    assert anna.call(SELECT, tags=["c"])["anzahl"]["gesamt"] == 0


@pytest.mark.parametrize("kind", ["longterm", "shortterm", "brain"])
def test_case_33_a_deleted_memory_comes_back_with_its_id(anna: Agent, kind: str) -> None:
    tool = "memory" if kind == "brain" else f"{kind}_memory"
    fields: dict[str, Any] = dict(BRAIN) if kind == "brain" else {"memories": [note(tags=["a"], embedding=[1, 2])]}
    kennung = anna.call(f"insert_brain_{tool}", **fields)["daten"][0]["ID"]
    before = now(anna, kennung)
    assert anna.call(f"delete_brain_{tool}", IDs=[kennung])["erfolg"] is True
    assert one_fault(anna.call(f"select_brain_{tool}", IDs=[kennung])) == ("nicht_gefunden", "ID")
    assert restore(anna, kennung, 2)["erfolg"] is True
    after = now(anna, kennung)
    assert (before.pop("version"), after.pop("version")) == (1, 3)
    assert after.pop("aktualisiert_am") > before.pop("aktualisiert_am")
    assert after == before
    assert [row["aktion"] for row in history(anna, kennung)] == ["wiederhergestellt", "geloescht", "angelegt"]
    assert restore(anna, kennung, 1)["daten"][0]["unveraendert"] is True


def test_restoring_what_is_already_so_writes_no_version(anna: Agent) -> None:
    kennung = anna.store()
    assert restore(anna, kennung, 1)["daten"][0]["unveraendert"] is True
    assert len(history(anna, kennung)) == 1


def test_an_expired_memory_comes_back_with_the_default_validity(anna: Agent) -> None:
    entry = note(gueltig_bis="2020-01-01")
    kennung = anna.call("insert_brain_shortterm_memory", memories=[entry])["daten"][0]["ID"]
    assert one_fault(anna.call("select_brain_shortterm_memory", IDs=[kennung])) == ("nicht_gefunden", "ID")
    assert restore(anna, kennung, 1)["erfolg"] is True
    assert datetime.fromisoformat(now(anna, kennung)["gueltig_bis"]) > datetime.now().astimezone()


def test_an_expired_brain_memory_comes_back_without_an_end(anna: Agent) -> None:
    kennung = anna.call("insert_brain_memory", **BRAIN, gueltig_bis="2020-01-01")["daten"][0]["ID"]
    assert restore(anna, kennung, 1)["erfolg"] is True
    assert now(anna, kennung)["gueltig_bis"] is None


@pytest.mark.parametrize("version", [2, 99, 2**31 - 1])
def test_a_version_that_is_not_there_is_the_entrys_fault(anna: Agent, version: int) -> None:
    answer = restore(anna, anna.store(), version)
    assert one_fault(answer) == ("nicht_gefunden", "version")


@pytest.mark.parametrize("version", [0, -1, 2**31, 2**63, 1.5, "1", True, None])
def test_what_is_no_version_is_the_entrys_fault(anna: Agent, version: Any) -> None:
    assert one_fault(restore(anna, anna.store(), version)) == ("ungueltig", "version")


def test_a_version_may_be_written_as_a_whole_float(anna: Agent) -> None:
    kennung = anna.store()
    change(anna, kennung, memory="neu")
    inhalt = {"nutzer": "anna", "agent": "a", "ID": kennung, "version": 1.0}
    assert anna.post("restore_brain_memory", {"inhalt": inhalt}).json()["erfolg"] is True


@pytest.mark.parametrize("kennung", ["", "7", "tag_1", "longterm_0", 7, None])
def test_restoring_what_is_no_id_is_the_entrys_fault(anna: Agent, kennung: Any) -> None:
    assert one_fault(restore(anna, kennung, 1)) == ("ungueltig", "ID")


def test_restoring_needs_the_id_and_the_version(anna: Agent) -> None:
    fault = anna.call("restore_brain_memory")["daten"][0]["fehler"]
    assert {(each["code"], each["feld"]) for each in fault["details"]} == {
        ("pflichtfeld", "ID"),
        ("pflichtfeld", "version"),
    }


def test_case_34_version_3_restored_is_version_5_and_says_where_it_is_from(anna: Agent) -> None:
    kennung = anna.store(memory="1", tags=["a"], embedding=[1, 2])
    change(anna, kennung, memory="2", tags=["b"])
    change(anna, kennung, memory="3", tags=["c"], embedding=[3, 4])
    change(anna, kennung, memory="4", tags=[])
    assert restore(anna, kennung, 3)["erfolg"] is True
    row = now(anna, kennung)
    assert (row["version"], row["memory"], row["tags"]) == (5, "3", ["c"])
    assert (row["embedding"], row["embedding_veraltet"]) == ([3.0, 4.0], False)
    newest = history(anna, kennung)[0]
    assert (newest["aktion"], newest["verweis"]) == ("wiederhergestellt", f"{kennung} v3")
    assert restore(anna, kennung, 2)["erfolg"] is True
    row = now(anna, kennung)
    assert (row["memory"], row["embedding"], row["embedding_veraltet"]) == ("2", [1.0, 2.0], True)
