"""Case 71: what words the memories of others hold shows in no answer, in no points and in no number of statements."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.search import vocabulary
from tests.conftest import Agent

pytestmark = pytest.mark.django_db(transaction=True)

OWN = [
    "Die Frist für den Umzug endet im März",
    "Der Lieferant Brightwell liefert donnerstags",
    "Umzug nach Lübeck mit dem Lastwagen",
    "Zahnarzttermin im April",
]
# A word that is asked for, and what others hold of it.
FOREIGN = {
    "itself": ("Zyanidvorrat", "Der Zyanidvorrat liegt im Keller"),
    "a near spelling": ("Zyanidvorrad", "Der Zyanidvorrat liegt im Keller"),
    "another near spelling": ("Zyanidvorat", "Der Zyanidvorrat liegt im Keller"),
    "an inflection": ("Zyanidvorräte", "Der Zyanidvorrat liegt im Keller"),
    "a compound": ("Zyanid", "Der Zyanidvorrat liegt im Keller"),
    "a part": ("Zyanidvorrat", "Zyanid und Vorrat"),
    "a short word": ("xq", "xq"),
    "a near spelling of an own word": ("Lieferand", "Lieferanden und Lieferande"),
    "an own word": ("Umzug", "Umzug Umzug Umzug"),
    "an own rare word": ("Lastwagen", "Lastwagen Lastwagen"),
    "a compound of an own word": ("Umzug", "Umzugswagen Umzugskarton Firmenumzug"),
    "a part of an own word": ("Zahnarzttermin", "Zahnarzt Termin"),
    "nothing of it": ("Umzug", "Völlig Fremdes"),
}
QUESTIONS: dict[str, Callable[[str], dict[str, Any]]] = {
    "alone": lambda word: {"suche": word},
    "with an own word": lambda word: {"suche": f"Frist {word}"},
    "with two": lambda word: {"suche": f"Lieferant {word} Umzug"},
    "explained": lambda word: {"suche": f"Frist {word}", "erklaeren": 1},
    "excluded": lambda word: {"suche": f"Umzug -{word}"},
    "as a phrase": lambda word: {"suche": f'Umzug "{word}"'},
    "as of a moment": lambda word: {"suche": f"Frist {word}", "stand": "2999-01-01"},
    "with a vector": lambda word: {"suche": f"Umzug {word}", "embedding": [1, 2, 3], "embedding_profil_hash": "p"},
    "beside": lambda word: {"suche": f"Umzug {word}", "nachbarn": 1},
    "in one kind": lambda word: {"suche": f"Umzug {word}", "typen": ["longterm"], "scope": "modul"},
    "in a list": lambda word: {"suche": f"Umzug {word}"},
    "in a list, alone": lambda word: {"suche": word},
}


def asked(agent: Agent, name: str, word: str) -> tuple[dict[str, Any], int]:
    """The answer without its cursor, which says when it was made; and how many statements it took."""
    tool = "select_brain_longterm_memory" if name.startswith("in a list") else "search_brain"
    vocabulary._analysed.cache_clear()  # noqa: SLF001 - as it would be some seconds later
    with CaptureQueriesContext(connection) as context:
        answer = agent.call(tool, **QUESTIONS[name](word))
    answer.pop("weiter", None)
    # PostgreSQL's statistics are read once in ten seconds, whoever asks: twice when these end in between.
    return answer, sum("pg_stats" not in query["sql"] for query in context.captured_queries)


@pytest.mark.parametrize("what", FOREIGN)
def test_case_71_a_foreign_word_shows_in_no_answer_and_no_statement(
    agent_with: Callable[..., Agent], what: str
) -> None:
    anna, carla = agent_with("anna", nutzer=["anna"]), agent_with("carla", nutzer=["carla"])
    vector = {"embedding": [1, 2, 3], "embedding_profil_hash": "p"}
    for place, text in enumerate(OWN):
        anna.store(memory=text, kurzbeschreibung=f"Notiz {place}", tags=[], **vector)
    word, foreign = FOREIGN[what]
    for _each in range(3):
        carla.store(memory="Ganz Anderes", kurzbeschreibung="Notiz", tags=[])
    before = {}
    for name in QUESTIONS:
        asked(anna, name, word)  # warms up
        before[name] = asked(anna, name, word)
    for _each in range(3):
        carla.store(memory=foreign, kurzbeschreibung="Notiz", tags=[])
    for name in QUESTIONS:
        assert asked(anna, name, word) == before[name], name
