"""Faults that users of such systems reported, part F: embeddings, as a search meets them."""

import math
import random
from typing import Any

import pytest

from tests.conftest import Agent, note
from tests.doors import fault_of, faults, one_fault
from tests.searching import PROFILE, found, search

INSERT = "insert_brain_longterm_memory"


def refused(agent: Agent, **inhalt: Any) -> set[tuple[str, str | None]]:
    """Code and field of all faults of a search that is refused."""
    body = {"inhalt": {"nutzer": "anna", "agent": "planer", **inhalt}}
    return faults(fault_of(agent.post("search_brain", body), 400))


def test_case_61_a_vector_of_another_length_than_its_profile_finds_nothing_and_is_no_error(anna: Agent) -> None:
    kennung = anna.store(memory="Quarzit", embedding=[0.5] * 1_536, **PROFILE)
    answer = search(anna, embedding=[1, 2, 3], **PROFILE)
    assert answer["daten"] == []
    assert answer["durchsucht"]["ausgelassen"]["ohne_vektor_dieses_profils"] == 1
    assert found(anna, "Quarzit", embedding=[1, 2, 3], **PROFILE) == [kennung]
    assert found(anna, embedding=[0.1] * 1_536, **PROFILE) == [kennung]


def test_case_61_a_vector_needs_its_hash_and_a_hash_its_vector_and_an_unknown_hash_finds_nothing(anna: Agent) -> None:
    anna.store(embedding=[1, 2, 3], **PROFILE)
    assert refused(anna, embedding=[1, 2, 3]) == {("ungueltig", "inhalt.embedding_profil_hash")}
    assert refused(anna, **PROFILE) == {("ungueltig", "inhalt.embedding")}
    assert found(anna, embedding=[1, 2, 3], embedding_profil_hash="unknown") == []


def test_case_61_of_a_batch_the_good_vectors_are_found(anna: Agent) -> None:
    anna.store(memory="m", embedding=[1, 0, 0], **PROFILE)
    lengths = (3, 2, 3, 4)
    answer = anna.call(INSERT, memories=[note(embedding=[1] * length, **PROFILE) for length in lengths])
    assert [row["erfolg"] for row in answer["daten"]] == [True, False, True, False]
    assert one_fault(answer, 1) == one_fault(answer, 3) == ("ungueltig", "embedding")
    stored = {row["ID"] for row in answer["daten"] if row["erfolg"]}
    assert set(found(anna, embedding=[1, 1, 1], **PROFILE)[:2]) == stored


def test_case_62_two_profiles_of_one_length_are_never_compared(anna: Agent) -> None:
    vector = [random.Random(62).gauss(0, 1) for _n in range(384)]
    old = anna.store(memory="Quarzit alt", embedding=vector, embedding_profil_hash="A")
    new = anna.store(memory="Quarzit neu", embedding=vector, embedding_profil_hash="B")
    assert found(anna, embedding=vector, embedding_profil_hash="A") == [old]
    assert found(anna, embedding=vector, embedding_profil_hash="B") == [new]
    answer = search(anna, suche="Quarzit", embedding=vector, embedding_profil_hash="A", erklaeren=1)
    parts = {row["ID"]: row["treffer"] for row in answer["daten"]}
    assert parts.keys() == {old, new}
    assert parts[new]["vektor"] is None
    assert parts[new]["text"]["punkte"] > 0
    assert parts[old]["vektor"]["kosinus"] == pytest.approx(1, abs=1e-6)
    assert answer["durchsucht"]["ausgelassen"]["ohne_vektor_dieses_profils"] == 1


@pytest.mark.parametrize(
    ("embedding", "feld"),
    [
        ([0, 0, 0], "embedding"),
        ([1e-60, 0], "embedding"),
        ([1e39], "embedding[0]"),
        ([1, -1e39], "embedding[1]"),
        ([True], "embedding[0]"),
        (["1"], "embedding[0]"),
        ([None], "embedding[0]"),
        ([[1]], "embedding[0]"),
        ([], "embedding"),
        ({"0": 1}, "embedding"),
        ("1", "embedding"),
        (1, "embedding"),
    ],
)
def test_case_64_what_has_no_direction_is_neither_stored_nor_searched_for(
    anna: Agent, embedding: Any, feld: str
) -> None:
    kept = anna.store(memory="m", embedding=[1], **PROFILE)
    answer = anna.call(INSERT, memories=[note(embedding=embedding, embedding_profil_hash="q"), note()])
    assert [row["erfolg"] for row in answer["daten"]] == [False, True]
    assert one_fault(answer) == ("ungueltig", feld)
    assert refused(anna, embedding=embedding, **PROFILE) == {("ungueltig", f"inhalt.{feld}")}
    assert found(anna, embedding=[1], **PROFILE) == [kept]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_case_64_what_is_no_number_is_refused(anna: Agent, number: str) -> None:
    anna.store(memory="m", embedding=[1], **PROFILE)
    body = (
        '{"tool": "search_brain", "arguments": {"inhalt": {"nutzer": "anna", "agent": "planer", '
        f'"embedding": [{number}], "embedding_profil_hash": "p"}}}}}}'
    )
    response = anna.http.generic("POST", "/api/tools/", body.encode(), content_type="application/json")
    fault_of(response, 400)


@pytest.mark.parametrize("dimension", [1, 2_001, 3_072, 4_001, 16_000])
def test_case_67_vectors_of_any_length_are_ranked_by_their_cosine(anna: Agent, dimension: int) -> None:
    dice = random.Random(dimension)
    vectors = [[dice.gauss(0, 1) for _n in range(dimension)] for _m in range(12)]
    rows = anna.call(INSERT, memories=[note(embedding=vector, **PROFILE) for vector in vectors])["daten"]
    made = {row["ID"]: vector for row, vector in zip(rows, vectors, strict=True)}
    query = [dice.gauss(0, 1) for _n in range(dimension)]
    cosines = {
        kennung: sum(a * b for a, b in zip(vector, query, strict=True)) / math.hypot(*vector) / math.hypot(*query)
        for kennung, vector in made.items()
    }
    hits = search(anna, embedding=query, **PROFILE, limit=12, erklaeren=1)["daten"]
    assert {row["ID"] for row in hits} == made.keys()
    told = [row["treffer"]["vektor"]["kosinus"] for row in hits]
    assert told == pytest.approx(sorted(cosines.values(), reverse=True), abs=1e-5)
    assert told == pytest.approx([cosines[row["ID"]] for row in hits], abs=1e-5)
