"""A German office asks: of the queries of each kind, so many must find their memory among the first ten."""

from collections import defaultdict

import pytest
from django.db import connection

from memories.principal import SYSTEM
from memories.search import Question, search
from memories.search.query import parse
from tests.quality import corpus

LEAST = {"umlaut": 0.95, "inflection": 0.95, "compound": 0.95, "exact": 0.95, "typo": 0.85}


@pytest.mark.django_db
def test_each_kind_of_query_finds_its_memory_among_ten(capsys: pytest.CaptureFixture[str]) -> None:
    keys = corpus.store()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    found: dict[str, list[bool]] = defaultdict(list)
    missed = []
    for asked in corpus.queries():
        wanted = set().union(*(keys[name] for name in asked.names))
        hits = search(Question(text=parse(asked.words)), SYSTEM).found
        found[asked.kind].append(any(hit.memory.pk in wanted for hit in hits))
        if not found[asked.kind][-1]:
            missed.append(f"{asked.kind}: {asked.words} ({', '.join(sorted(asked.names))})")
    figures = {kind: sum(each) / len(each) for kind, each in found.items()}
    with capsys.disabled():
        print(f"\nhit@10, {connection.vendor}:", *(f"{kind} {figures[kind]:.3f}" for kind in LEAST), sep=" ")
    assert all(figures[kind] >= least for kind, least in LEAST.items()), "\n".join(missed)


def test_every_query_names_a_memory_that_is_there() -> None:
    asked = corpus.queries()
    assert len(asked) >= 150
    assert {each.kind for each in asked} == set(LEAST)
    assert len({each.words for each in asked}) == len(asked)
