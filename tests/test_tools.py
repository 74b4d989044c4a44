"""What each tool does to the memories: insert, update, delete, promote, and what stays as it was."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.conftest import Agent, note
from tests.doors import BRAIN, change, fault_of, faults, history, inhalt_for, now, one_fault, restore, steps

TYPES = ["longterm", "shortterm"]


def _insert(caller: Agent, kind: str, /, **fields: Any) -> str:
    answer = caller.call(f"insert_brain_{kind}_memory", memories=[note(**fields)])
    assert answer["erfolg"], answer
    return str(answer["daten"][0]["ID"])


def _update(agent: Agent, kind: str, *entries: dict[str, Any]) -> dict[str, Any]:
    return agent.call(f"update_brain_{kind}_memory", memories=list(entries))


def _entry(kennung: str, **fields: Any) -> dict[str, Any]:
    return {"ID": kennung, "kurzbeschreibung": "k", "memory": "m", "tags": []} | fields


# Long-term and short-term memories


@pytest.mark.parametrize("kind", TYPES)
def test_what_is_inserted_is_what_select_shows(anna: Agent, kind: str) -> None:
    sent = note(tags=["Vertrag", "Frist"], embedding=[0.5, -1], embedding_profil_hash="p", scope=7, scope_vk="")
    kennung = _insert(anna, kind, **sent)
    assert kennung.startswith(f"{kind}_")
    row = now(anna, kennung)
    expected = sent | {"scope": "7"}
    assert {name: row[name] for name in expected} == expected
    assert row["hat_embedding"] is True


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("field", ["kurzbeschreibung", "memory", "tags", "scope", "scope_vk", "agent", "nutzer"])
def test_every_required_field_of_an_insert_is_missed(anna: Agent, kind: str, field: str) -> None:
    entry = note()
    del entry[field]
    answer = anna.call(f"insert_brain_{kind}_memory", memories=[entry, note()])
    assert [row["erfolg"] for row in answer["daten"]] == [False, True]
    assert one_fault(answer) == ("pflichtfeld", field)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("field", ["ID", "kurzbeschreibung", "memory", "tags"])
def test_every_required_field_of_an_update_is_missed(anna: Agent, kind: str, field: str) -> None:
    entry = _entry(_insert(anna, kind))
    del entry[field]
    assert one_fault(_update(anna, kind, entry)) == ("pflichtfeld", field)


@pytest.mark.parametrize("kind", TYPES)
def test_entries_alike_are_all_stored(anna: Agent, kind: str) -> None:
    answer = anna.call(f"insert_brain_{kind}_memory", memories=[note()] * 3)
    assert len({row["ID"] for row in answer["daten"]}) == 3


@pytest.mark.parametrize("kind", TYPES)
def test_case_20_an_update_of_the_text_leaves_everything_else_as_it_was(anna: Agent, kind: str) -> None:
    kennung = _insert(anna, kind, memory="alt", tags=["x"], embedding=[0.1, -2], embedding_profil_hash="p")
    before = now(anna, kennung)
    assert _update(anna, kind, _entry(kennung, kurzbeschreibung="neu", memory="neu", tags=["a"]))["erfolg"] is True
    after = now(anna, kennung)
    changed = {"kurzbeschreibung", "memory", "tags", "version", "aktualisiert_am", "embedding_veraltet"}
    assert {name for name in after if after[name] != before[name]} == changed
    assert (after["kurzbeschreibung"], after["memory"], after["tags"]) == ("neu", "neu", ["a"])
    assert (after["version"], after["embedding_veraltet"]) == (2, True)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    "extra", ["nutzer", "agent", "scope", "scope_vk", "erstellt_am", "version", "embedding_veraltet"]
)
def test_case_21_an_update_cannot_move_a_memory_to_somebody_else(anna: Agent, kind: str, extra: str) -> None:
    kennung = _insert(anna, kind)
    before = now(anna, kennung)
    answer = _update(anna, kind, _entry(kennung, **{extra: "eve"}), _entry(_insert(anna, kind)))
    assert [row["erfolg"] for row in answer["daten"]] == [False, True]
    assert one_fault(answer) == ("unbekanntes_feld", extra)
    assert now(anna, kennung) == before
    assert len(history(anna, kennung)) == 1


@pytest.mark.parametrize("kind", TYPES)
def test_an_id_of_another_kind_is_that_entrys_fault(anna: Agent, kind: str) -> None:
    other = "shortterm" if kind == "longterm" else "longterm"
    mine, theirs = _insert(anna, kind), _insert(anna, other, memory="alt")
    brain = anna.call("insert_brain_memory", **BRAIN)["daten"][0]["ID"]
    answer = _update(anna, kind, _entry(theirs), _entry(mine), _entry(brain), _entry("x"), _entry(f"{kind}_1\n"))
    assert [row["erfolg"] for row in answer["daten"]] == [False, True, False, False, False]
    assert {one_fault(answer, place) for place in (0, 2, 3, 4)} == {("ungueltig", "ID")}
    assert now(anna, theirs)["memory"] == "alt"
    answer = anna.call(f"delete_brain_{kind}_memory", IDs=[theirs, brain, mine])
    assert [row["erfolg"] for row in answer["daten"]] == [False, False, True]
    assert now(anna, theirs)["erfolg"] is True


@pytest.mark.parametrize("kind", TYPES)
def test_a_memory_that_is_gone_or_never_was_cannot_be_changed(anna: Agent, kind: str) -> None:
    gone = _insert(anna, kind)
    anna.call(f"delete_brain_{kind}_memory", IDs=[gone])
    answer = _update(anna, kind, _entry(gone), _entry(f"{kind}_999999"))
    first, second = (row["fehler"] for row in answer["daten"])
    assert first == second
    assert (first["code"], first["feld"]) == ("nicht_gefunden", "ID")


# Vectors in updates

VECTOR = {"embedding": [1, 2], "embedding_profil_hash": "p"}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("fields", "embedding", "profile", "stale"),
    [
        ({"memory": "m"}, [1.0, 2.0], "p", False),
        ({"memory": "neu"}, [1.0, 2.0], "p", True),
        ({"memory": "m", "kurzbeschreibung": "neu"}, [1.0, 2.0], "p", True),
        ({"memory": "m", "tags": ["neu"]}, [1.0, 2.0], "p", False),
        ({"memory": "neu", "embedding": [3, 4]}, [3.0, 4.0], "p", False),
        ({"memory": "neu", "embedding": [1, 2]}, [1.0, 2.0], "p", False),
        ({"memory": "neu", "embedding": None}, None, "p", False),
        ({"memory": "m", "embedding": None}, None, "p", False),
        ({"memory": "m", "embedding_profil_hash": "q"}, [1.0, 2.0], "q", False),
        ({"memory": "m", "ebedding_profil_haash": "q"}, [1.0, 2.0], "q", False),
        ({"memory": "m", "embedding_profil_hash": None}, [1.0, 2.0], None, False),
        ({"memory": "neu", "embedding_profil_hash": "q"}, [1.0, 2.0], "q", True),
        ({"memory": "neu", "embedding": [3], "embedding_profil_hash": "q"}, [3.0], "q", False),
        ({"memory": "neu", "embedding": None, "ebedding_profil_haash": None}, None, None, False),
    ],
)
def test_a_vector_stays_goes_or_becomes_stale(
    anna: Agent, kind: str, fields: Any, embedding: Any, profile: str | None, stale: bool
) -> None:
    kennung = _insert(anna, kind, kurzbeschreibung="k", memory="m", tags=[], **VECTOR)
    assert _update(anna, kind, _entry(kennung, **fields))["erfolg"] is True
    row = now(anna, kennung)
    assert (row["embedding"], row["embedding_profil_hash"]) == (embedding, profile)
    assert (row["hat_embedding"], row["embedding_veraltet"]) == (embedding is not None, stale)


def test_a_stale_vector_stays_stale_until_a_new_one_comes_or_it_goes(anna: Agent) -> None:
    kennung = anna.store(memory="m", tags=[], **VECTOR)
    change(anna, kennung, memory="neu")
    change(anna, kennung, memory="neu", tags=["b"])
    assert now(anna, kennung)["embedding_veraltet"] is True
    change(anna, kennung, memory="m")
    assert now(anna, kennung)["embedding_veraltet"] is True
    row = change(anna, kennung, memory="m", embedding=[1, 2])
    assert "unveraendert" not in row
    assert now(anna, kennung)["embedding_veraltet"] is False
    assert steps(history(anna, kennung)[0]) == {"embedding_veraltet": (True, False)}


def test_without_a_vector_nothing_is_stale(anna: Agent) -> None:
    kennung = anna.store(memory="m")
    change(anna, kennung, memory="neu")
    assert now(anna, kennung)["embedding_veraltet"] is False


def test_a_vector_can_come_later(anna: Agent) -> None:
    kennung = anna.store(memory="m")
    change(anna, kennung, embedding=[1])
    row = now(anna, kennung)
    assert (row["embedding"], row["hat_embedding"], row["embedding_veraltet"]) == ([1.0], True, False)


# Short-term memories: validity


def test_a_shortterm_memory_is_valid_for_seven_days_when_nobody_says(anna: Agent, settings: Any) -> None:
    for fields in ({}, {"gueltig_bis": None}, {"gueltig_bis": ""}):
        row = now(anna, _insert(anna, "shortterm", **fields))
        left = datetime.fromisoformat(row["gueltig_bis"]) - timezone.now()
        assert timedelta(days=6, hours=23) < left <= timedelta(days=7)
    settings.BRAIN_SHORTTERM_DAYS = 1
    left = datetime.fromisoformat(now(anna, _insert(anna, "shortterm"))["gueltig_bis"]) - timezone.now()
    assert timedelta(hours=23) < left <= timedelta(days=1)


def test_an_update_keeps_the_validity_or_sets_it_or_begins_it_anew(anna: Agent) -> None:
    kennung = _insert(anna, "shortterm", gueltig_bis="2999-01-01")
    kept = now(anna, kennung)["gueltig_bis"]
    _update(anna, "shortterm", _entry(kennung))
    _update(anna, "shortterm", _entry(kennung, gueltig_bis=""))
    assert now(anna, kennung)["gueltig_bis"] == kept
    _update(anna, "shortterm", _entry(kennung, gueltig_bis="31.12.2998"))
    assert now(anna, kennung)["gueltig_bis"].startswith("2998-12-31T23:59:59")
    _update(anna, "shortterm", _entry(kennung, gueltig_bis=None))
    left = datetime.fromisoformat(now(anna, kennung)["gueltig_bis"]) - timezone.now()
    assert timedelta(days=6, hours=23) < left <= timedelta(days=7)


def test_an_expired_memory_is_found_by_nothing_but_its_history(anna: Agent) -> None:
    kennung = _insert(anna, "shortterm", tags=["weg"], gueltig_bis="2020-01-01")
    brain = anna.call("insert_brain_memory", **BRAIN, gueltig_bis="2020-01-01")["daten"][0]["ID"]
    assert anna.call("select_brain_shortterm_memory")["daten"] == []
    assert anna.call("select_brain_memory")["daten"] == []
    assert anna.call("select_brain_tags")["daten"] == []
    for answer in (
        anna.call("select_brain_shortterm_memory", IDs=[kennung]),
        anna.call("select_brain_memory", IDs=[brain]),
        _update(anna, "shortterm", _entry(kennung)),
        anna.call("update_brain_memory", ID=brain, titel="neu"),
        anna.call("delete_brain_shortterm_memory", IDs=[kennung]),
        anna.call("promote_brain_shortterm_memory", IDs=[kennung]),
    ):
        assert one_fault(answer) == ("nicht_gefunden", "ID")
    assert [row["version"] for row in history(anna, kennung)] == [1]
    assert [row["version"] for row in history(anna, brain)] == [1]


# Promote


def test_a_promoted_memory_keeps_everything_but_its_id(anna: Agent, ben: Agent) -> None:
    old = _insert(anna, "shortterm", memory="m", tags=["A", "b"], **VECTOR)
    change(anna, old, memory="neu", tags=["A", "b"])
    before = now(anna, old)
    answer = ben.call("promote_brain_shortterm_memory", IDs=[old], grund="wichtig", referenzfelder={"n": 1})
    (row,) = answer["daten"]
    new = row["ID"]
    assert (row["typ"], row["verweis"], row["erfolg"]) == ("longterm", old, True)
    assert new.startswith("longterm_")
    after = now(anna, new)
    apart = {"ID", "typ", "version", "aktualisiert_am", "gueltig_bis"}
    assert {k: v for k, v in after.items() if k not in apart} == {k: v for k, v in before.items() if k not in apart}
    assert after["embedding_veraltet"] is True
    assert one_fault(anna.call("select_brain_shortterm_memory", IDs=[old])) == ("nicht_gefunden", "ID")
    (born,) = history(anna, new)
    gone = history(anna, old)[0]
    for version, other in ((born, old), (gone, new)):
        assert (version["aktion"], version["verweis"], version["grund"]) == ("befoerdert", other, "wichtig")
        assert (version["nutzer"], version["referenzfelder"]) == ("ben", {"n": 1})
    assert (born["version"], gone["version"]) == (1, 3)
    counted = {row["name"]: row["anzahl"] for row in anna.call("select_brain_tags")["daten"]}
    assert counted == {"A": 1, "b": 1}


def test_promoting_goes_entry_by_entry(anna: Agent) -> None:
    one, two = _insert(anna, "shortterm"), _insert(anna, "shortterm")
    longterm = _insert(anna, "longterm")
    answer = anna.call("promote_brain_shortterm_memory", IDs=[one, longterm, "shortterm_999999", one, two])
    assert [row["erfolg"] for row in answer["daten"]] == [True, False, False, False, True]
    assert one_fault(answer, 1) == ("ungueltig", "ID")
    assert one_fault(answer, 2) == one_fault(answer, 3) == ("nicht_gefunden", "ID")
    assert anna.call("select_brain_longterm_memory")["anzahl"]["gesamt"] == 3


def test_a_promoted_shortterm_memory_can_come_back(anna: Agent) -> None:
    old = _insert(anna, "shortterm", memory="m")
    anna.call("promote_brain_shortterm_memory", IDs=[old])
    assert restore(anna, old, 1)["erfolg"] is True
    assert now(anna, old)["memory"] == "m"


# Brain memories


def test_an_update_of_a_brain_memory_changes_what_was_sent_alone(anna: Agent) -> None:
    kennung = anna.call("insert_brain_memory", **BRAIN, inhalt="alt", relevanz="70", scope_ID="7")["daten"][0]["ID"]
    before = now(anna, kennung)
    answer = anna.call("update_brain_memory", ID=kennung, inhalt="neu", scope_typ="modul")
    assert answer["daten"] == [{"index": 0, "typ": "brain", "erfolg": True, "ID": kennung}]
    after = now(anna, kennung)
    assert {name for name in after if after[name] != before[name]} == {
        "inhalt",
        "scope_typ",
        "version",
        "aktualisiert_am",
    }
    anna.call(
        "update_brain_memory", ID=kennung, memory_typ="erfahrung", titel="neu", relevanz="0", gueltig_bis="2999-01-01"
    )
    row = now(anna, kennung)
    assert (row["memory_typ"], row["titel"], row["relevanz"], row["inhalt"]) == ("erfahrung", "neu", "0", "neu")


def test_empty_fields_of_an_update_count_as_not_sent_and_null_sets_back(anna: Agent) -> None:
    kennung = anna.call("insert_brain_memory", **BRAIN, inhalt="alt", relevanz="70", gueltig_bis="2999-01-01")["daten"][
        0
    ]["ID"]
    answer = anna.call("update_brain_memory", ID=kennung, inhalt="", relevanz="", gueltig_bis="", scope_typ="")
    assert answer["daten"][0]["unveraendert"] is True
    anna.call("update_brain_memory", ID=kennung, inhalt=None, relevanz=None, gueltig_bis=None)
    row = now(anna, kennung)
    assert (row["inhalt"], row["relevanz"], row["gueltig_bis"]) == ("", "50", None)


def test_a_faulty_update_of_a_brain_memory_changes_nothing(anna: Agent) -> None:
    kennung = anna.call("insert_brain_memory", **BRAIN)["daten"][0]["ID"]
    answer = anna.call("update_brain_memory", ID=kennung, titel=" ", relevanz="x", memory_typ=" ", x=1, inhalt="neu")
    assert faults(answer["daten"][0]["fehler"]) == {
        ("unbekanntes_feld", "x"),
        ("ungueltig", "titel"),
        ("ungueltig", "relevanz"),
        ("ungueltig", "memory_typ"),
    }
    assert now(anna, kennung)["inhalt"] == ""
    assert len(history(anna, kennung)) == 1


def test_an_update_of_a_brain_memory_with_nothing_to_change_says_so(anna: Agent) -> None:
    kennung = anna.call("insert_brain_memory", **BRAIN)["daten"][0]["ID"]
    for fields in ({}, BRAIN, {"relevanz": "050"}):
        assert anna.call("update_brain_memory", ID=kennung, **fields)["daten"][0]["unveraendert"] is True


@pytest.mark.parametrize("kennung", ["longterm_1", "shortterm_1", "7", "", "brain_0", "brain_1\n", 7, None])
def test_an_update_needs_the_id_of_a_brain_memory(anna: Agent, kennung: Any) -> None:
    assert one_fault(anna.call("update_brain_memory", ID=kennung, titel="x")) == ("ungueltig", "ID")


def test_the_caller_of_an_update_does_not_become_the_owner(anna: Agent, ben: Agent) -> None:
    kennung = anna.call("insert_brain_memory", **BRAIN)["daten"][0]["ID"]
    assert ben.call("update_brain_memory", ID=kennung, titel="von ben")["erfolg"] is True
    row = now(anna, kennung)
    assert (row["nutzer"], row["titel"]) == ("anna", "von ben")


# Delete


@pytest.mark.parametrize("kind", ["longterm", "shortterm", "brain"])
def test_deleting_goes_id_by_id(anna: Agent, kind: str) -> None:
    tool = "memory" if kind == "brain" else f"{kind}_memory"
    made = [
        anna.call("insert_brain_memory", **BRAIN)["daten"][0]["ID"] if kind == "brain" else _insert(anna, kind)
        for _each in range(3)
    ]
    answer = anna.call(f"delete_brain_{tool}", IDs=[made[2], f"{kind}_999999", "x", made[0]])
    assert [row["erfolg"] for row in answer["daten"]] == [True, False, False, True]
    assert [row["ID"] for row in answer["daten"]] == [made[2], f"{kind}_999999", "x", made[0]]
    assert one_fault(answer, 1) == ("nicht_gefunden", "ID")
    assert [row["ID"] for row in anna.call(f"select_brain_{tool}")["daten"]] == [made[1]]


@pytest.mark.parametrize("name", ["delete_brain_longterm_memory", "promote_brain_shortterm_memory"])
@pytest.mark.parametrize("grund", [7, True, [], {}])
def test_a_reason_that_is_no_text_is_a_fault_of_the_call(anna: Agent, name: str, grund: Any) -> None:
    fault = fault_of(anna.post(name, {"inhalt": inhalt_for(name) | {"grund": grund}}), 400)
    assert (fault["code"], fault["feld"]) == ("ungueltig", "inhalt.grund")


@pytest.mark.parametrize("grund", ["a\0b", "\ud800"])
def test_a_reason_that_no_database_keeps_is_a_fault_of_the_call(anna: Agent, grund: str) -> None:
    kennung = anna.store()
    inhalt = {"nutzer": "anna", "agent": "a", "IDs": [kennung], "grund": grund}
    fault = fault_of(anna.post("delete_brain_longterm_memory", {"inhalt": inhalt}), 400)
    assert (fault["code"], fault["feld"]) == ("ungueltig", "inhalt.grund")
    assert now(anna, kennung)["erfolg"] is True
