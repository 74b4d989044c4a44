"""Reading: by ID, by filter, in order, and page by page while others write."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memories import services
from memories.kinds import BRAIN, LONGTERM, SHORTTERM, Kind
from memories.principal import SYSTEM, Origin
from tests.conftest import Agent, note
from tests.doors import fault_of, inhalt_for, one_fault

SELECT = {
    "longterm": "select_brain_longterm_memory",
    "shortterm": "select_brain_shortterm_memory",
    "brain": "select_brain_memory",
}
BERLIN = ZoneInfo("Europe/Berlin")
FOR_GOOD = datetime(2999, 1, 1, tzinfo=UTC)
OWN: dict[str, dict[str, Any]] = {
    "longterm": {"kurzbeschreibung": "k", "memory": "m", "scope": "modul", "scope_vk": "12"},
    "shortterm": {
        "kurzbeschreibung": "k",
        "memory": "m",
        "scope": "modul",
        "scope_vk": "12",
        "gueltig_bis": FOR_GOOD,
    },
    "brain": {"memory_typ": "arbeit", "titel": "t", "scope_typ": "modul", "scope_id": "12"},
}
KINDS = [LONGTERM, SHORTTERM, BRAIN]
by_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.typ)


def stored_at(kind: Kind, moment: datetime, **fields: Any) -> str:
    """The ID of a memory that was stored at this moment."""
    origin = Origin(principal=SYSTEM, nutzer="anna", agent="planer", tuer="command", tool="test", clock=lambda: moment)
    draft = {"nutzer": "anna", "agent": "planer", "tag_namen": [], **OWN[kind.typ], **fields}
    (done,) = services.insert(kind, [draft], origin)
    assert isinstance(done, services.Done), done
    return done.kennung


def ids(agent: Agent, kind: Kind, **inhalt: Any) -> list[str]:
    """The IDs that a select finds, in order."""
    answer = agent.call(SELECT[kind.typ], **{"limit": 100, **inhalt})
    assert answer["erfolg"] is True
    return [row["ID"] for row in answer["daten"]]


def pages(agent: Agent, kind: Kind, between: Callable[[int], None] = lambda _page: None, **inhalt: Any) -> list[str]:
    """The IDs of all pages, one after the other; `between` is called after each page with its number."""

    def read() -> Iterator[str]:
        weiter, page = None, 0
        while page == 0 or weiter:
            answer = agent.call(SELECT[kind.typ], **inhalt, **({"weiter": weiter} if weiter else {}))
            yield from (row["ID"] for row in answer["daten"])
            weiter, page = answer["weiter"], page + 1
            between(page)

    return list(read())


# By ID


@by_kind
def test_memories_are_read_by_their_ids_in_the_order_asked_for(anna: Agent, kind: Kind) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    a, b, c = (stored_at(kind, start + timedelta(days=n)) for n in range(3))
    missing = f"{kind.typ}_999999"
    answer = anna.call(SELECT[kind.typ], IDs=[c, missing, a, c, b])
    assert answer["erfolg"] is False
    assert answer["anzahl"] == {"gesamt": 5, "erfolgreich": 4, "fehlgeschlagen": 1}
    assert [row["ID"] for row in answer["daten"]] == [c, missing, a, c, b]
    assert [row["index"] for row in answer["daten"]] == [0, 1, 2, 3, 4]
    assert one_fault(answer, 1) == ("nicht_gefunden", "ID")
    assert answer["weiter"] is None


@pytest.mark.parametrize(
    "kennung",
    [
        "longterm_999999",
        f"longterm_{2**63 - 1}",
        f"longterm_{2**63}",
        "longterm_99999999999999999999",
        f"longterm_{'9' * 5_000}",
    ],
)
def test_an_id_that_no_memory_has_is_not_found_however_large_it_is(anna: Agent, kennung: str) -> None:
    for tool in (SELECT["longterm"], "delete_brain_longterm_memory"):
        assert one_fault(anna.call(tool, IDs=[kennung])) == ("nicht_gefunden", "ID")
    assert one_fault(anna.call("select_brain_history", ID=kennung)) == ("nicht_gefunden", "ID")
    assert one_fault(anna.call("restore_brain_memory", ID=kennung, version=1)) == ("nicht_gefunden", "ID")


@pytest.mark.parametrize(
    "kennung",
    [
        "",
        "41",
        "longterm",
        "longterm_",
        "longterm_0",
        "longterm_01",
        "longterm_-1",
        "longterm_1.0",
        "longterm_1\n",
        " longterm_1",
        "Longterm_1",
        "LONGTERM_1",
        "longterm_١",
        "longterm-1",
        "tag_1",
        "longterm_1 or 1=1",
        "null",
    ],
)
def test_what_is_no_id_is_that_rows_fault(anna: Agent, kennung: str) -> None:
    good = anna.store()
    answer = anna.call(SELECT["longterm"], IDs=[good, kennung])
    assert [row["erfolg"] for row in answer["daten"]] == [True, False]
    assert one_fault(answer, 1) == ("ungueltig", "ID")
    answer = anna.call("delete_brain_longterm_memory", IDs=[kennung, good])
    assert [row["erfolg"] for row in answer["daten"]] == [False, True]
    assert one_fault(answer) == ("ungueltig", "ID")


@by_kind
def test_an_id_of_another_kind_is_that_rows_fault(anna: Agent, kind: Kind) -> None:
    for other in KINDS:
        if other is kind:
            continue
        kennung = stored_at(other, datetime(2026, 1, 1, tzinfo=UTC))
        answer = anna.call(SELECT[kind.typ], IDs=[kennung])
        assert one_fault(answer) == ("ungueltig", "ID")
        assert kind.typ in answer["daten"][0]["fehler"]["meldung"]


@pytest.mark.parametrize(
    "more",
    [{"scope": "modul"}, {"tags": []}, {"limit": 5}, {"weiter": "x"}, {"sortierung": "neueste"}, {"von": "2026-01-01"}],
)
def test_ids_together_with_filters_are_refused(anna: Agent, more: Any) -> None:
    inhalt = inhalt_for(SELECT["longterm"], IDs=[anna.store()])
    del inhalt["limit"]
    fault = fault_of(anna.post(SELECT["longterm"], {"inhalt": inhalt | more}), 400)
    assert (fault["code"], fault["feld"]) == ("ungueltig", "inhalt.IDs")


# What a row tells

COMMON = {
    "index",
    "typ",
    "erfolg",
    "ID",
    "nutzer",
    "agent",
    "tags",
    "version",
    "erstellt_am",
    "aktualisiert_am",
    "hat_embedding",
    "embedding_profil_hash",
    "embedding_veraltet",
    "embedding_ausstehend",
    "vertrauen",
    "verdaechtig",
}
NOTE = {"kurzbeschreibung", "memory", "scope", "scope_vk"}
BRAIN_OWN = {
    "memory_typ",
    "titel",
    "inhalt",
    "inhalt_json",
    "scope_typ",
    "scope_modul",
    "scope_ID",
    "agent_ID",
    "room_ID",
    "session_ID",
    "quelle_typ",
    "quelle_ID",
    "relevanz",
    "gueltig_bis",
}


@by_kind
def test_a_row_has_the_kinds_own_fields_and_those_of_every_memory(anna: Agent, kind: Kind) -> None:
    kennung = stored_at(kind, datetime(2026, 7, 1, 12, tzinfo=UTC))
    own = {"longterm": NOTE, "shortterm": NOTE | {"gueltig_bis"}, "brain": BRAIN_OWN}[kind.typ]
    (row,) = anna.call(SELECT[kind.typ])["daten"]
    assert row.keys() == COMMON | own
    assert row == anna.call(SELECT[kind.typ], IDs=[kennung])["daten"][0]
    assert (row["typ"], row["version"], row["nutzer"], row["agent"]) == (kind.typ, 1, "anna", "planer")
    assert row["erstellt_am"] == row["aktualisiert_am"] == "2026-07-01T14:00:00+02:00"
    assert (row["hat_embedding"], row["embedding_profil_hash"], row["embedding_veraltet"]) == (False, None, False)


# Filters


@by_kind
def test_each_filter_finds_what_it_names_and_nothing_else(anna: Agent, agent_with: Any, kind: Kind) -> None:
    everybody = agent_with("admin")
    scope, record = ("scope_typ", "scope_id") if kind is BRAIN else ("scope", "scope_vk")
    at = datetime(2026, 1, 1, tzinfo=UTC)
    one = stored_at(kind, at, tag_namen=["a", "b"])
    two = stored_at(kind, at + timedelta(days=1), tag_namen=["b"], nutzer="ben", **{scope: "room"})
    three = stored_at(kind, at + timedelta(days=2), tag_namen=["c"], agent="koch", **{record: "13"})
    four = stored_at(kind, at + timedelta(days=3), **{record: ""})
    everything = [four, three, two, one]
    expected: list[tuple[dict[str, Any], list[str]]] = [
        ({}, everything),
        ({"scope": "modul"}, [four, three, one]),
        ({"scope": "session"}, []),
        ({"scope_vk": 12}, [two, one]),
        ({"scope_vk": "13"}, [three]),
        ({"scope_vk": ""}, [four]),
        ({"nutzer_filter": "ben"}, [two]),
        ({"agent_filter": "koch"}, [three]),
        ({"tags": ["B"]}, [two, one]),
        ({"tags": ["a", "b"]}, [one]),
        ({"tags": ["a", "c"]}, []),
        ({"tags": ["nirgends"]}, []),
        ({"tags": []}, everything),
        ({"tags_eines": ["a", "c"]}, [three, one]),
        ({"tags_eines": ["nirgends"]}, []),
        ({"tags_eines": []}, everything),
        ({"tags": ["b"], "tags_eines": ["a", "c"]}, [one]),
        ({"von": "2026-01-02"}, [four, three, two]),
        ({"bis": "02.01.2026"}, [two, one]),
        ({"von": "2026-01-02", "bis": "2026-01-03"}, [three, two]),
        ({"von": "2026-01-02T01:00:00+01:00", "bis": "2026-01-02T00:00:00Z"}, [two]),
        ({"von": "2026-01-02T00:00:01Z"}, [four, three]),
        ({"von": "2026-02-01", "bis": "2026-01-01"}, []),
        ({"scope": "modul", "scope_vk": "12", "tags": ["a"], "agent_filter": "planer", "nutzer_filter": "anna"}, [one]),
        ({"scope": "modul", "nutzer_filter": "ben"}, []),
        ({"zeitfeld": "erstellt_am", "bis": "2026-01-01", "tags": ["a"], "sortierung": "aelteste"}, [one]),
    ]
    for only, found in expected:
        assert ids(everybody, kind, **only) == found, only
        assert pages(everybody, kind, limit=1, **only) == found, only


def test_the_time_filter_is_about_the_last_change_or_the_creation(anna: Agent) -> None:
    old = stored_at(LONGTERM, datetime(2020, 1, 1, tzinfo=UTC))
    older = stored_at(LONGTERM, datetime(2019, 1, 1, tzinfo=UTC))
    change = {"ID": old, "kurzbeschreibung": "neu", "memory": "neu", "tags": []}
    assert anna.call("update_brain_longterm_memory", memories=[change])["erfolg"]
    assert ids(anna, LONGTERM, von="2021-01-01") == [old]
    assert ids(anna, LONGTERM, von="2021-01-01", zeitfeld="aktualisiert_am") == [old]
    assert ids(anna, LONGTERM, von="2021-01-01", zeitfeld="erstellt_am") == []
    assert ids(anna, LONGTERM, bis="2020-12-31", zeitfeld="erstellt_am") == [old, older]
    assert ids(anna, LONGTERM, bis="2020-12-31") == [older]


def test_case_45_a_day_begins_and_ends_in_the_servers_time_zone(anna: Agent) -> None:
    early = stored_at(LONGTERM, datetime(2026, 7, 15, 0, 30, tzinfo=BERLIN))
    late = stored_at(LONGTERM, datetime(2026, 7, 15, 23, 59, 59, 999_999, tzinfo=BERLIN))
    before = stored_at(LONGTERM, datetime(2026, 7, 14, 23, 59, 59, 999_999, tzinfo=BERLIN))
    after = stored_at(LONGTERM, datetime(2026, 7, 16, 0, 0, tzinfo=BERLIN))
    assert ids(anna, LONGTERM, von="2026-07-15", bis="2026-07-15") == [late, early]
    assert ids(anna, LONGTERM, von="15.7.2026", bis="15.07.2026") == [late, early]
    assert ids(anna, LONGTERM, bis="2026-07-14") == [before]
    assert ids(anna, LONGTERM, von="2026-07-16") == [after]


def test_many_tags_can_be_asked_for_at_once(anna: Agent) -> None:
    names = [f"t{n}" for n in range(100)]
    kennung = anna.store(tags=names)
    anna.store(tags=names[:99])
    assert ids(anna, LONGTERM, tags=names) == [kennung]
    assert ids(anna, LONGTERM, tags=[*names[:99], "T0"]) == ids(anna, LONGTERM, tags=names[:99])
    assert len(ids(anna, LONGTERM, tags_eines=names)) == 2
    for field in ("tags", "tags_eines"):
        inhalt = inhalt_for(SELECT["longterm"]) | {field: [*names, "x"]}
        fault = fault_of(anna.post(SELECT["longterm"], {"inhalt": inhalt}), 400)
        assert (fault["code"], fault["feld"]) == ("zu_gross", f"inhalt.{field}")


@pytest.mark.parametrize(
    ("wrong", "feld"),
    [
        ({"scope": True}, "scope"),
        ({"scope": " "}, "scope"),
        ({"scope_vk": " "}, "scope_vk"),
        ({"agent_filter": " "}, "agent_filter"),
        ({"nutzer_filter": 1.5}, "nutzer_filter"),
        ({"tags": "a"}, "tags"),
        ({"tags": [""]}, "tags[0]"),
        ({"tags_eines": [7]}, "tags_eines[0]"),
        ({"von": "gestern"}, "von"),
        ({"bis": "2026-02-30"}, "bis"),
        ({"von": 1767225600}, "von"),
        ({"zeitfeld": "gueltig_bis"}, "zeitfeld"),
        ({"sortierung": "relevanz"}, "sortierung"),
        ({"sortierung": "Neueste"}, "sortierung"),
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": 101}, "limit"),
        ({"limit": 2**70}, "limit"),
        ({"limit": 1.5}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"weiter": 7}, "weiter"),
        ({"mit_embedding": "1"}, "mit_embedding"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(anna: Agent, wrong: Any, feld: str) -> None:
    fault = fault_of(anna.post(SELECT["longterm"], {"inhalt": inhalt_for(SELECT["longterm"]) | wrong}), 400)
    assert (fault["code"], fault["feld"]) == ("ungueltig", f"inhalt.{feld}")


# Order and pages


@by_kind
def test_the_newest_come_first_or_the_oldest_and_ties_have_an_order_too(anna: Agent, kind: Kind) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    stored = [stored_at(kind, at + timedelta(days=day)) for day in (2, 0, 1, 1, 1, 0)]
    oldest_first = [stored[place] for place in (1, 5, 2, 3, 4, 0)]
    assert ids(anna, kind) == ids(anna, kind, sortierung="neueste") == oldest_first[::-1]
    assert ids(anna, kind, sortierung="aelteste") == oldest_first
    for limit in (1, 2, 4, 6, 7):
        assert pages(anna, kind, limit=limit) == oldest_first[::-1]
        assert pages(anna, kind, limit=limit, sortierung="aelteste") == oldest_first


def test_brain_memories_can_be_sorted_by_relevance(anna: Agent) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    low, high, middle, tie = (stored_at(BRAIN, at, relevanz=relevance) for relevance in (0, 100, 50, 50))
    assert ids(anna, BRAIN, sortierung="relevanz") == [high, tie, middle, low]
    for limit in (1, 2, 3, 4):
        assert pages(anna, BRAIN, limit=limit, sortierung="relevanz") == [high, tie, middle, low]


def test_a_page_has_twenty_rows_when_nobody_says(anna: Agent) -> None:
    anna.call("insert_brain_longterm_memory", memories=[note(tags=[])] * 45)
    answers = [anna.call(SELECT["longterm"])]
    while answers[-1]["weiter"]:
        answers.append(anna.call(SELECT["longterm"], weiter=answers[-1]["weiter"]))
    assert [len(answer["daten"]) for answer in answers] == [20, 20, 5]
    assert [row["index"] for row in answers[1]["daten"]] == list(range(20))


def test_case_56_a_list_longer_than_a_page_says_that_it_goes_on(anna: Agent) -> None:
    for _call in range(3):
        anna.call("insert_brain_longterm_memory", memories=[note(tags=[])] * 100)
    answer = anna.call(SELECT["longterm"], limit=100)
    assert len(answer["daten"]) == 100
    assert answer["weiter"]
    assert len(set(pages(anna, LONGTERM, limit=100))) == 300


def test_the_limit_may_be_written_as_a_whole_float(anna: Agent) -> None:
    anna.call("insert_brain_longterm_memory", memories=[note()] * 3)
    assert len(ids(anna, LONGTERM, limit=2.0)) == 2


@by_kind
@pytest.mark.parametrize("order", ["neueste", "aelteste", "relevanz"])
def test_pages_miss_and_repeat_nothing_while_others_write(anna: Agent, kind: Kind, order: str) -> None:
    if order == "relevanz" and kind is not BRAIN:
        order = "neueste"
    at = datetime(2026, 1, 1, tzinfo=UTC)
    relevance = [{"relevanz": n * 7 % 100} if kind is BRAIN else {} for n in range(30)]
    stored = [stored_at(kind, at + timedelta(minutes=n), **relevance[n]) for n in range(30)]
    kept = {*stored[:5], *stored[10:]}
    tool = "memory" if kind is BRAIN else f"{kind.typ}_memory"

    def write(page: int) -> None:
        stored_at(kind, at - timedelta(minutes=page))
        stored_at(kind, datetime(2026, 2, page, tzinfo=UTC))
        for kennung in stored[page::3]:
            if kind is BRAIN:
                change: dict[str, Any] = {"ID": kennung, "titel": f"Seite {page}"}
            else:
                change = {"memories": [{"ID": kennung, "kurzbeschreibung": f"{page}", "memory": "m", "tags": []}]}
            anna.call(f"update_brain_{tool}", **change)
        anna.call(f"delete_brain_{tool}", IDs=[stored[4 + page]] if page < 6 else [stored[5]])

    seen = pages(anna, kind, write, limit=4, sortierung=order)
    assert len(seen) == len(set(seen))
    assert kept <= set(seen)


def test_pages_by_relevance_keep_their_order_while_relevances_change(anna: Agent) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    stored = [stored_at(BRAIN, at, relevanz=100 - n) for n in range(20)]

    def turn_round(page: int) -> None:
        for n, kennung in enumerate(stored):
            anna.call("update_brain_memory", ID=kennung, relevanz=str((n * 5 + page * 17) % 101))
        stored_at(BRAIN, datetime.now(UTC), relevanz=50)

    assert pages(anna, BRAIN, turn_round, limit=3, sortierung="relevanz") == stored


def test_a_cursor_belongs_to_its_query_alone(anna: Agent, agent_with: Any) -> None:
    anna.call("insert_brain_longterm_memory", memories=[note()] * 3)
    anna.call("insert_brain_shortterm_memory", memories=[note()] * 3)
    own = anna.call(SELECT["longterm"], limit=1, scope="modul")["weiter"]
    assert len(ids(anna, LONGTERM, scope="modul", weiter=own)) == 2
    assert len(ids(anna, LONGTERM, scope="modul", weiter=own, mit_embedding=1, limit=1)) == 1
    other = anna.call(SELECT["shortterm"], limit=1, scope="modul")["weiter"]
    tags = anna.call("select_brain_tags", limit=1)["weiter"] or "x"
    for weiter, inhalt in (
        (own, {}),
        (own, {"scope": "room"}),
        (own, {"scope": "modul", "tags": ["Vertrag"]}),
        (own, {"scope": "modul", "sortierung": "aelteste"}),
        (own, {"scope": "modul", "von": "2020-01-01"}),
        (other, {"scope": "modul"}),
        (tags, {"scope": "modul"}),
    ):
        fault = fault_of(
            anna.post(SELECT["longterm"], {"inhalt": {"nutzer": "anna", "agent": "a", "weiter": weiter, **inhalt}}), 400
        )
        assert (fault["code"], fault["feld"]) == ("ungueltig", "inhalt.weiter")


@pytest.mark.parametrize(
    "weiter",
    ["x", " ", ":", "::", "a:b:c", "ä", "🙂" * 100, "x" * 100_000, "null", "W10:1:1", '["2026-01-01", 1]', "\n"],
)
def test_a_cursor_that_is_none_is_refused_everywhere(anna: Agent, weiter: str) -> None:
    kennung = anna.store()
    for name in (*SELECT.values(), "select_brain_tags", "select_brain_history"):
        more = {"ID": kennung} if name == "select_brain_history" else {}
        fault = fault_of(anna.post(name, {"inhalt": {"nutzer": "anna", "agent": "a", "weiter": weiter, **more}}), 400)
        assert (fault["code"], fault["feld"]) == ("ungueltig", "inhalt.weiter")


def test_a_cursor_whose_text_was_changed_is_refused(anna: Agent) -> None:
    anna.call("insert_brain_longterm_memory", memories=[note()] * 3)
    weiter = anna.call(SELECT["longterm"], limit=1)["weiter"]
    for place in range(0, len(weiter), 7):
        changed = weiter[:place] + ("A" if weiter[place] != "A" else "B") + weiter[place + 1 :]
        inhalt = {"nutzer": "anna", "agent": "a", "weiter": changed}
        assert anna.post(SELECT["longterm"], {"inhalt": inhalt}).status_code == 400


def test_an_empty_cursor_begins_at_the_beginning(anna: Agent) -> None:
    kennung = anna.store()
    assert ids(anna, LONGTERM, weiter="") == [kennung]


def test_a_cursor_of_another_key_shows_nothing_that_this_key_may_not_see(anna: Agent, carla: Agent) -> None:
    anna.call("insert_brain_longterm_memory", memories=[note()] * 3)
    weiter = anna.call(SELECT["longterm"], limit=1)["weiter"]
    inhalt = {"nutzer": "carla", "agent": "a", "weiter": weiter}
    response = carla.post(SELECT["longterm"], {"inhalt": inhalt})
    assert response.status_code == 400 or response.json()["daten"] == []
    assert "Kündigungsfrist" not in json.dumps(response.json(), ensure_ascii=False)
