"""The search of the admin's lists: ranked as for agents, within what the person sees, together with every filter."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.admin import finding
from memories.kinds import BRAIN, LONGTERM, SHORTTERM, Kind
from memories.models import Grant
from memories.principal import SYSTEM, Origin
from memories.services import insert
from tests.admincast import NOTE, person, store, url

pytestmark = pytest.mark.django_db
OWN: dict[str, Any] = {"memory_typ": "arbeit", "titel": "T"}


@pytest.fixture
def anna() -> Client:
    """Administrator."""
    return person("anna", superuser=True)


def found(client: Client, kind: Kind = LONGTERM, **parameters: str) -> list[int]:
    """The keys of what the list shows, in its order."""
    response = client.get(url("changelist", kind=kind.typ), parameters)
    assert response.status_code == 200, response
    return [row.pk for row in response.context["cl"].result_list]


def note(text: str, **values: Any) -> int:
    """The key of a memory of this text."""
    return store(kurzbeschreibung="Notiz", memory=text, tag_namen=values.pop("tag_namen", []), **values)


@pytest.mark.parametrize(
    ("text", "searched"),
    [
        ("Die Kündigung liegt vor.", "gekündigt"),
        ("Die Kündigung liegt vor.", "Kuendigung"),
        ("Die Kündigungsfrist beträgt drei Monate.", "Frist"),
        ("Der Lieferant liefert nicht.", "Liferant"),
        ("Am Bahnhof wartet ein Wagen.", '"bahnhof wartet"'),
        ("東京カンファレンスの議事録", "東京"),
        ("Ein Text über C++ und a'b", "C++"),
    ],
)
def test_words_are_found_in_other_forms_inside_others_and_misspelt(anna: Client, text: str, searched: str) -> None:
    note("Etwas ganz anderes.")
    key = note(text)
    assert found(anna, q=searched) == [key]


def test_the_best_come_first_unless_the_list_is_sorted(anna: Client) -> None:
    best = note("Vertrag mit dem Lieferanten, ein Vertrag")
    one = note("Im Vertrag steht vieles von dem, was man sonst nirgends findet, und manches davon ist nicht wahr.")
    note("Nichts davon.")
    assert found(anna, q="vertrag lieferant") == [best, one]
    column = str(anna.get(url("changelist")).context["cl"].list_display.index("aktualisiert_am"))
    assert found(anna, q="vertrag lieferant", o=f"-{column}") == [one, best]
    assert found(anna, q="vertrag -lieferant") == [one]
    for nothing in ("-vertrag", "!!!", "qzxv blorp"):
        assert found(anna, q=nothing) == []


def test_the_search_goes_together_with_every_filter(anna: Client) -> None:
    place = {"scope_typ": "room", "nutzer": "ben", "agent": "leser", "tag_namen": ["Übung"], "memory_typ": "agent"}
    key = store(BRAIN, **OWN | place | {"inhalt": "Der Vertrag läuft aus."})
    for name in ("scope_typ", "nutzer", "agent", "tag_namen", "memory_typ"):
        store(BRAIN, **{**OWN, "inhalt": "Vertrag", **place, name: (OWN | NOTE | {"scope_typ": "modul"})[name]})
    chosen = {"scope_typ": "room", "nutzer": "ben", "agent": "leser", "tag": "übung", "memory_typ": "agent"}
    assert found(anna, BRAIN, q="verträge", **chosen) == [key]
    assert len(found(anna, BRAIN, q="verträge")) == 6
    for name, value in chosen.items():
        assert len(found(anna, BRAIN, q="verträge", **{name: value})) == 5, name
    assert found(anna, BRAIN, q="verträge", age="old") == []


def test_what_is_no_longer_valid_is_found_by_people(anna: Client) -> None:
    past = timezone.now() - timedelta(days=1)
    old, new = (
        store(SHORTTERM, memory="Der Vertrag", gueltig_bis=past),
        store(SHORTTERM, memory="Der Vertrag", gueltig_bis=None),
    )
    assert set(found(anna, SHORTTERM, q="vertrag")) == {old, new}
    assert found(anna, SHORTTERM, q="vertrag", validity="expired") == [old]
    assert found(anna, SHORTTERM, q="vertrag", validity="valid") == [new]


def test_a_person_finds_what_his_grants_show_and_nothing_else() -> None:
    client = person("vera", ["view_longtermmemory"])
    vera = User.objects.get(username="vera")
    vera.grants.all().delete()
    Grant.objects.create(user=vera, nutzer=["ben"], scope=["kunde"])
    Grant.objects.create(user=vera, agent=["leser"], typen=["longterm"])
    seen = {note("Vertrag", nutzer="ben", scope="kunde"), note("Vertrag", agent="leser")}
    hidden = note("Vertrag", nutzer="ben")
    note("Vertrag", nutzer="anna", scope="kunde")
    assert set(found(client, q="vertrag")) == seen
    assert set(found(client)) == seen
    assert found(client, q="vertrag", scope="kunde", nutzer="anna") == []
    assert found(client, q=f"longterm_{hidden}") == []


def test_a_search_that_finds_more_than_it_shows_says_so(monkeypatch: pytest.MonkeyPatch, anna: Client) -> None:
    monkeypatch.setattr(finding, "MOST_FOUND", 3)
    for _each in range(4):
        note("Vertrag")
    page = anna.get(url("changelist"), {"q": "vertrag"})
    assert len(page.context["cl"].result_list) == 3
    assert "These are the 3 that fit best; there are more." in page.content.decode()
    assert "there are more" not in anna.get(url("changelist"), {"q": "vertrag -andere", "age": "old"}).content.decode()


@pytest.mark.parametrize("searched", ["vertrag", "vertrag lieferant frist monate", '"drei monate" -anders'])
def test_a_search_takes_few_statements_however_many_words_it_has(anna: Client, searched: str) -> None:
    origin = Origin(SYSTEM, nutzer="anna", agent="planer", tuer="rest", tool="test")
    texts = [{"memory": f"Vertrag {n} mit dem Lieferanten, Frist drei Monate"} for n in range(400)]
    insert(LONGTERM, [NOTE | text for text in texts], origin)
    with CaptureQueriesContext(connection) as queries:
        page = anna.get(url("changelist"), {"q": searched})
    assert page.context["cl"].result_count == finding.MOST_FOUND
    # PostgreSQL's statistics are read once in ten seconds.
    every = [query["sql"] for query in queries if "pg_stats" not in query["sql"]]
    asked = [sql for sql in every if not sql.startswith(("SAVEPOINT", "RELEASE"))]
    # The list, what there is of the words, and, where something is excluded, long texts that hold it.
    assert len(asked) <= 12 + ("-" in searched), "\n".join(asked)
    assert "UPPER(" not in str(asked)
    assert "ESCAPE" not in str(asked)
