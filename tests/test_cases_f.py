"""Faults that users of such systems reported, part F: embeddings. 64, 67, 68 stand with the values."""

from typing import Any

import pytest

from tests.conftest import Agent, note
from tests.doors import change, history, now, one_fault

INSERT = "insert_brain_longterm_memory"


def _vector(length: int, profile: str | None = "p") -> dict[str, Any]:
    return {"embedding": [0.5] * length, "embedding_profil_hash": profile}


@pytest.mark.parametrize("kind", ["longterm", "shortterm"])
def test_case_61_a_vector_of_another_length_than_its_profile_is_that_entrys_fault(anna: Agent, kind: str) -> None:
    anna.call(f"insert_brain_{kind}_memory", memories=[note(**_vector(1_536))])
    entries = [note(**_vector(3)), note(**_vector(1_536)), note(**_vector(1_537)), note(**_vector(3, "q"))]
    answer = anna.call(f"insert_brain_{kind}_memory", memories=entries)
    assert [row["erfolg"] for row in answer["daten"]] == [False, True, False, True]
    assert one_fault(answer, 0) == one_fault(answer, 2) == ("ungueltig", "embedding")
    told = answer["daten"][0]["fehler"]["meldung"]
    assert "1536" in told
    assert " 3 " in told


def test_case_61_the_first_vector_of_a_new_profile_says_how_long_they_are(anna: Agent) -> None:
    answer = anna.call(INSERT, memories=[note(**_vector(2)), note(**_vector(3)), note(**_vector(2))])
    assert [row["erfolg"] for row in answer["daten"]] == [True, False, True]
    assert one_fault(anna.call(INSERT, memories=[note(**_vector(3))])) == ("ungueltig", "embedding")


@pytest.mark.parametrize(
    "fields", [_vector(3, None), {"embedding": [1]}, {"embedding_profil_hash": "p"}, {"ebedding_profil_haash": "p"}]
)
def test_case_61_a_vector_without_a_profile_and_a_profile_without_a_vector_are_kept(anna: Agent, fields: Any) -> None:
    anna.store(**_vector(2))
    row = now(anna, anna.store(**fields))
    assert row["hat_embedding"] is ("embedding" in fields)
    assert row["embedding_profil_hash"] == ("p" if "embedding" not in fields else None)


def test_case_61_an_update_obeys_the_profile_too(anna: Agent) -> None:
    anna.store(**_vector(2))
    kennung = anna.store(memory="m", **_vector(2))
    assert change(anna, kennung, embedding=[1, 2, 3])["fehler"]["feld"] == "embedding"
    assert len(history(anna, kennung)) == 1
    assert change(anna, kennung, embedding=[1, 2, 3], embedding_profil_hash="q")["erfolg"] is True
    late = anna.store(memory="m", embedding=[1, 2, 3])
    assert change(anna, late, embedding_profil_hash="p")["fehler"]["code"] == "ungueltig"
    assert change(anna, late, embedding_profil_hash="q")["erfolg"] is True


def test_case_61_the_only_memory_of_a_profile_may_change_its_length(anna: Agent) -> None:
    kennung = anna.store(memory="m", **_vector(2))
    assert change(anna, kennung, embedding=[1, 2, 3])["erfolg"] is True
    anna.call("delete_brain_longterm_memory", IDs=[kennung])
    assert anna.call(INSERT, memories=[note(**_vector(5))])["erfolg"] is True


def test_case_62_two_profiles_of_one_length_stay_apart(anna: Agent) -> None:
    answer = anna.call(INSERT, memories=[note(**_vector(384, "A")), note(**_vector(384, "B"))])
    assert [now(anna, row["ID"])["embedding_profil_hash"] for row in answer["daten"]] == ["A", "B"]
