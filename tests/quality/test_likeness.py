"""Letters tell apart what stems cannot, and a long text gains nothing by holding every letter somewhere."""

from memories.search.likeness import likeness
from tests.conftest import Agent
from tests.searching import found


def test_a_word_of_the_same_family_decides_between_equals(anna: Agent) -> None:
    other = anna.store(memory="Der Vertrag nennt keine Adresse.")
    related = anna.store(memory="Der Vertrag nennt keine Buchung.")
    assert found(anna, "Vertrag gebucht") == [related, other]


def test_it_is_the_share_of_the_grams_and_rare_ones_count_for_more() -> None:
    whole, half, nothing = likeness(["frist", "haus"], ["frist haus", "haus", "turm"])
    assert whole == 1.0
    assert 0 < half < 0.5
    assert nothing == 0.0


def test_only_the_beginning_of_a_long_text_counts() -> None:
    filler = "wort " * 400
    assert likeness(["frist"], [filler + "frist", "frist"]) == [0.0, 1.0]


def test_nothing_is_like_nothing() -> None:
    assert likeness([], ["frist"]) == [0.0]
    assert likeness(["frist"], []) == []
