"""Faults that users of such systems reported, part E: search and lists. 60 stands with the search; 56 with select."""

import math
import random
from typing import Any

import pytest

from tests.conftest import Agent, note
from tests.doors import BRAIN, fault_of, one_fault
from tests.searching import PROFILE, found, listed, search

INSERT = "insert_brain_longterm_memory"


def stored(agent: Agent, *texts: str) -> list[str]:
    """The IDs of new memories of these texts."""
    memories = [note(kurzbeschreibung="k", memory=text, tags=[]) for text in texts]
    return [row["ID"] for row in agent.call(INSERT, memories=memories)["daten"]]


@pytest.mark.parametrize(
    ("suche", "hit"),
    [
        ("Müller", "Herr Müller ruft an"),
        ("müller", "Herr Müller ruft an"),
        ("Сергей", "Ключ лежит у Сергей"),
        ("СЕРГЕЙ", "Ключ лежит у Сергей"),
        ("Ключ", "Ключ лежит у Сергей"),
        ("ναύτης", "Ο ναύτης είναι εδώ"),
        ("שלום", "שלום לכולם"),
        ("سلام", "سلام عليكم"),
    ],
)
def test_case_46_words_of_every_script_are_found(anna: Agent, suche: str, hit: str) -> None:
    stored(anna, "Frau Ller ruft an", "Etwas anderes")
    (kennung,) = stored(anna, hit)
    assert found(anna, suche) == listed(anna, suche) == [kennung]


@pytest.mark.parametrize("suche", ["!!!", "?", "…", "🙂", "-", "–", '"!"', "\u200b", "\u0301", "&", "%"])
def test_case_46_a_query_without_a_word_finds_nothing_not_what_is_recent(anna: Agent, carla: Agent, suche: str) -> None:
    stored(anna, "Herr Müller ruft an", "Etwas ganz anderes! ? % &")
    carla.store(memory="!!!")
    assert found(anna, suche) == listed(anna, suche) == []
    assert found(anna, suche, stand="2999-01-01") == []


@pytest.mark.parametrize(
    ("suche", "hit"),
    [
        ("kündigen", "Die Kündigung liegt vor"),
        ("gekündigt", "Die Kündigung liegt vor"),
        ("Kuendigung", "Die Kündigung liegt vor"),
        ("KÜNDIGUNG", "Die Kündigung liegt vor"),
        ("Bahnhofstrasse", "Bahnhofstraße"),
        ("BAHNHOFSTRAßE", "Bahnhofstraße"),
        ("Mueller", "Herr Müller"),
        ("MUELLER", "Herr Müller"),
    ],
)
def test_case_47_german_is_found_in_every_form_and_spelling(anna: Agent, suche: str, hit: str) -> None:
    stored(anna, "Etwas ganz anderes")
    (kennung,) = stored(anna, hit)
    assert found(anna, suche) == [kennung]


def test_case_48_a_part_of_a_compound_is_found_after_the_word_itself(anna: Agent) -> None:
    compound, exact = stored(anna, "Die Kündigungsfrist beträgt drei Monate", "Die Frist beträgt drei Monate")
    stored(anna, "Etwas ganz anderes")
    first, second = search(anna, suche="Frist")["daten"]
    assert (first["ID"], second["ID"]) == (exact, compound)
    assert first["punkte"] > second["punkte"] > 0


def test_case_48_another_compound_with_the_same_part_is_found(anna: Agent) -> None:
    stored(anna, "Etwas ganz anderes")
    compound, exact = stored(anna, "Kündigungsfrist beträgt drei Wochen", "Frist")
    assert exact in found(anna, "Monatsfrist")
    del compound  # Kündigungsfrist and Monatsfrist share a part that the vocabulary must know


@pytest.mark.parametrize(
    ("suche", "hit"),
    [
        ("東京", "東京カンファレンスの議事録"),
        ("議事録", "東京カンファレンスの議事録"),
        ("カンファレンス", "東京カンファレンスの議事録"),
        ("会议", "明天的会议记录在这里"),
        ("회의", "내일 회의록"),
        ("東", "東"),
        ("猫", "黒い猫がいる"),
        ("京", "北京"),
        ("책", "책을 읽다"),
        ('"会议 记录"', "会议 记录"),
    ],
)
def test_case_50_scripts_without_blanks_are_found(anna: Agent, suche: str, hit: str) -> None:
    stored(anna, "大阪の天気", "Etwas ganz anderes")
    (kennung,) = stored(anna, hit)
    assert found(anna, suche) == listed(anna, suche) == [kennung]


LITERAL = {
    "E-Mail": "Die E-Mail ist da",
    "C++": "Geschrieben in C++",
    "node.js": "Läuft mit node.js",
    "@nasa": "Folgt @nasa",
    "50%": "Rabatt von 50%",
    "a'b": "Die Formel a'b",
    '"offen': "Die Tür ist offen",
    "AND": "Das Wort AND",
    "NEAR(": "Der Aufruf NEAR(",
    "multi-agent": "Ein multi-agent System",
    "AB-4711/2": "Vorgang AB-4711/2",
    "§ 12": "Siehe § 12",
    "don't": "I don't know",
}


@pytest.mark.parametrize("suche", LITERAL)
def test_case_51_what_other_engines_take_for_operators_is_text(anna: Agent, suche: str) -> None:
    ids = dict(zip(LITERAL.values(), stored(anna, *LITERAL.values()), strict=True))
    assert found(anna, suche)[0] == ids[LITERAL[suche]]
    assert ids[LITERAL[suche]] in listed(anna, suche)


@pytest.mark.parametrize("suche", ["email", "EMAIL", "E-Mails", "e-mail", "E‑Mail"])
def test_case_51_a_word_with_a_hyphen_is_found_without_it(anna: Agent, suche: str) -> None:
    stored(anna, "Das Emaille ist da")
    (kennung,) = stored(anna, "Die E-Mail ist da")
    assert found(anna, suche)[0] == kennung


def test_case_51_a_language_is_not_another_one(anna: Agent) -> None:
    plus, sharp, plain = stored(anna, "Geschrieben in C++", "Geschrieben in C#", "Geschrieben in C")
    assert (found(anna, "C++")[0], found(anna, "C#")[0], found(anna, "C")[0]) == (plus, sharp, plain)
    assert plain not in found(anna, "C++")


def test_case_52_nonsense_finds_nothing_among_a_thousand_memories(anna: Agent) -> None:
    dice = random.Random(52)
    words = ["Vertrag", "Kunde", "Lager", "Rechnung", "Frist", "Büro", "Sitzung", "Angebot", "Termin", "Zahlung"]
    for start in range(0, 1_000, 100):
        stored(anna, *(f"{' '.join(dice.sample(words, 5))} {start + n}" for n in range(100)))
    for suche in ("qzxv blorp", "xyzzy", "Wxkjvq", "zzzz qqqq vvvv", "blorp!", "0000000"):
        assert found(anna, suche) == [], suche
    answers = [search(anna, suche=suche, limit=5)["daten"] for suche in ("Vertrag Frist 77", "Lager", "Büro Termin")]
    assert len({tuple(row["ID"] for row in rows) for rows in answers}) == 3
    best = answers[0]
    assert "77" in best[0]["memory"].split()
    assert best[0]["punkte"] > best[1]["punkte"]
    assert best[0]["punkte"] <= 1


def test_case_55_a_small_tenant_among_many_gets_all_its_hits_and_the_right_ones(agent_with: Any) -> None:
    dice = random.Random(55)
    everybody = agent_with("admin")

    def vectors(number: int) -> list[list[float]]:
        return [[dice.gauss(0, 1) for _n in range(8)] for _m in range(number)]

    for _call in range(22):
        memories = [note(nutzer="other", embedding=vector, **PROFILE) for vector in vectors(100)]
        assert everybody.call(INSERT, memories=memories)["erfolg"]
    mine = vectors(30)
    memories = [note(nutzer="anna", scope="klein", embedding=vector, **PROFILE) for vector in mine]
    ids = [row["ID"] for row in everybody.call(INSERT, memories=memories)["daten"]]
    anna = agent_with("anna", nutzer=["anna"])
    for query in vectors(3):
        nearest = sorted(range(30), key=lambda place: -_cosine(mine[place], query))
        expected = [ids[place] for place in nearest[:20]]
        assert found(anna, embedding=query, **PROFILE, limit=20) == expected
        assert found(everybody, embedding=query, **PROFILE, limit=20, nutzer_filter="anna") == expected
        assert found(everybody, embedding=query, **PROFILE, limit=20, scope="klein") == expected
        assert len(found(everybody, embedding=query, **PROFILE)) == 100


def _cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / math.hypot(*one) / math.hypot(*other)


def test_case_59_an_unknown_type_is_refused_with_those_that_are_allowed(anna: Agent) -> None:
    answer = anna.call("insert_brain_memory", **(BRAIN | {"memory_typ": "foo"}))
    assert one_fault(answer) == ("ungueltig", "memory_typ")
    told = answer["daten"][0]["fehler"]["meldung"]
    assert all(name in told for name in ("arbeit", "entscheidung", "erfahrung", "agent"))
    inhalt = {"suche": "x", "typen": ["foo"], "nutzer": "anna", "agent": "planer"}
    fault = fault_of(anna.post("search_brain", {"inhalt": inhalt}), 400)
    assert (fault["code"], fault["feld"]) == ("ungueltig", "inhalt.typen[0]")
    assert all(name in fault["meldung"] for name in ("longterm", "shortterm", "brain"))
    assert found(anna, "Abnahme") == []


def test_case_60_what_was_left_out_is_told_as_a_number_and_never_by_name(anna: Agent, carla: Agent) -> None:
    foreign = carla.store(memory="Quarzit", embedding=[1, 0], **PROFILE)
    mine = anna.store(memory="Quarzit", embedding=[1, 0], **PROFILE)
    anna.store(memory="Granit")
    answer = search(anna, suche="Quarzit", embedding=[1, 1], **PROFILE, erklaeren=1)
    assert [row["ID"] for row in answer["daten"]] == [mine]
    hit = answer["daten"][0]["treffer"]
    assert hit["text"]["punkte"] > 0
    assert hit["vektor"]["kosinus"] == pytest.approx(0.5**0.5)
    assert answer["durchsucht"]["in_reichweite"] == 2
    assert answer["durchsucht"]["ausgelassen"] == {
        "abgelaufen": 0,
        "ohne_vektor_dieses_profils": 1,
        "vektor_veraltet": 0,
    }
    assert foreign not in str(answer)
