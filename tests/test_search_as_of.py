"""Searching what was known at a moment: the texts, tags, vectors, scopes and validities that held then."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from unittest import mock
from zoneinfo import ZoneInfo

import pytest
from django.core.management import call_command

from memories import services
from memories.kinds import BRAIN, KINDS, LONGTERM, SHORTTERM, Kind
from memories.services import Change
from memories.values import embedding
from tests.conftest import Agent
from tests.searching import PROFILE, at, deviations, done, entries, found, kind_of, search, stored

BERLIN = ZoneInfo("Europe/Berlin")
MICROSECOND = timedelta(microseconds=1)
Make = Callable[..., Agent]


def day(number: int, hour: int = 12) -> datetime:
    """A moment of the story."""
    return datetime(2026, 1, 1, hour, tzinfo=UTC) + timedelta(days=number)


def changed(kennung: str, moment: datetime, **columns: Any) -> None:
    """Change a memory at this moment."""
    kind, key = kind_of(kennung)
    assert done(services.update(kind, [Change(key, columns)], at(moment))[0]).changed


def then(agent: Agent, moment: datetime, suche: str, **inhalt: Any) -> list[tuple[str, int]]:
    """The IDs and versions that a search as of this moment finds, best first."""
    rows = search(agent, suche=suche, stand=moment.isoformat(), limit=100, **inhalt)["daten"]
    return [(row["ID"], row["version"]) for row in rows]


def test_the_text_of_that_day_is_searched_and_shown(anna: Agent) -> None:
    (kennung,) = stored(LONGTERM, day(0), [{"memory": "Quarzit", "kurzbeschreibung": "alt", "tag_namen": ["eins"]}])
    changed(kennung, day(10), memory="Granit", kurzbeschreibung="neu", tag_namen=["zwei"])
    assert then(anna, day(-1), "Quarzit") == []
    assert then(anna, day(5), "Quarzit") == [(kennung, 1)]
    assert then(anna, day(5), "Granit") == []
    assert then(anna, day(15), "Quarzit") == []
    assert then(anna, day(15), "Granit") == [(kennung, 2)]
    (row,) = search(anna, suche="Quarzit", stand=day(5).isoformat())["daten"]
    assert (row["memory"], row["kurzbeschreibung"], row["tags"]) == ("Quarzit", "alt", ["eins"])
    assert datetime.fromisoformat(row["aktualisiert_am"]) == day(0)
    (row,) = search(anna, suche="Granit", stand=day(15).isoformat())["daten"]
    (plain,) = search(anna, suche="Granit")["daten"]
    assert row.keys() == plain.keys()
    assert row == plain | {"punkte": row["punkte"]}


def test_the_tags_of_that_day_hold(anna: Agent) -> None:
    (kennung,) = stored(LONGTERM, day(0), [{"memory": "Quarzit", "tag_namen": ["eins"]}])
    changed(kennung, day(10), tag_namen=["zwei"])
    for moment, tag in ((day(5), "eins"), (day(15), "zwei")):
        assert [ID for ID, _version in then(anna, moment, "Quarzit", tags=[tag])] == [kennung]
        assert [ID for ID, _version in then(anna, moment, tag)] == [kennung]
        other = {"eins": "zwei", "zwei": "eins"}[tag]
        assert then(anna, moment, "Quarzit", tags=[other]) == []
        assert then(anna, moment, "Quarzit", tags_eines=[other]) == []
        assert then(anna, moment, other) == []


def test_the_vector_of_that_day_is_compared(anna: Agent) -> None:
    vectors = [{"embedding": embedding(numbers, "e"), "embedding_profil_hash": "p"} for numbers in ([1, 0], [0, 1])]
    first, second = stored(LONGTERM, day(0), vectors)
    changed(first, day(10), embedding=embedding([-1, 0], "e"))
    changed(second, day(20), memory="anders")
    changed(second, day(30), embedding=None)

    def nearest(moment: datetime, **more: Any) -> list[str]:
        return found(anna, embedding=[1, 0.5], **PROFILE, stand=moment.isoformat(), **more)

    assert nearest(day(-1)) == []
    assert nearest(day(5)) == [first, second]
    assert nearest(day(15)) == [second, first]
    assert nearest(day(25)) == [first]
    assert nearest(day(25), mit_veralteten=1) == [second, first]
    assert nearest(day(35), mit_veralteten=1) == [first]
    assert found(anna, embedding=[1, 0.5], embedding_profil_hash="q", stand=day(5).isoformat()) == []
    told = search(anna, embedding=[1, 0.5], **PROFILE, stand=day(25).isoformat())["durchsucht"]
    assert told == {
        "in_reichweite": 2,
        "genau": True,
        "ausgelassen": {"abgelaufen": 0, "ohne_vektor_dieses_profils": 0, "vektor_veraltet": 1},
    }


def test_both_legs_look_at_the_same_day(anna: Agent) -> None:
    vector = {"embedding": embedding([1, 0], "e"), "embedding_profil_hash": "p"}
    text, near = stored(LONGTERM, day(0), [{"memory": "Quarzit"}, vector])
    changed(text, day(10), memory="m")
    changed(near, day(10), embedding=None)
    inhalt: dict[str, Any] = {"suche": "Quarzit", "embedding": [1, 0], **PROFILE}
    assert set(found(anna, **inhalt, stand=day(5).isoformat())) == {text, near}
    assert found(anna, **inhalt, stand=day(15).isoformat()) == []
    assert found(anna, **inhalt) == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.typ)
def test_what_was_deleted_since_is_found_with_words_that_nothing_holds_any_more(anna: Agent, kind: Kind) -> None:
    column = "inhalt" if kind is BRAIN else "memory"
    until = {} if kind is LONGTERM else {"gueltig_bis": day(999)}
    texts = ["Quarzitbruch", "Violine", "Die Kündigung"]
    ids = stored(kind, day(0), [{column: text, **until} for text in texts])
    services.delete(kind, [kind_of(kennung)[1] for kennung in ids], at(day(10)))
    for suche, kennung in zip(("Quarzitbruch", '"violine"', "kuendigen"), ids, strict=True):
        assert then(anna, day(5), suche) == [(kennung, 1)]
        assert then(anna, day(15), suche) == []
        assert found(anna, suche) == []
    assert then(anna, day(5), "Quarzit") == [(ids[0], 1)]  # in a compound
    assert then(anna, day(5), "Voiline") == [(ids[1], 1)]  # misspelt
    assert search(anna, suche="Violine", stand=day(5).isoformat())["durchsucht"]["in_reichweite"] == 3
    assert search(anna, suche="Violine", stand=day(15).isoformat())["durchsucht"]["in_reichweite"] == 0


def test_what_was_restored_was_not_there_meanwhile(anna: Agent) -> None:
    (kennung,) = stored(LONGTERM, day(0), [{"memory": "Quarzit"}])
    key = kind_of(kennung)[1]
    services.delete(LONGTERM, [key], at(day(10)))
    services.restore(LONGTERM, key, 1, at(day(20)))
    assert [then(anna, day(number), "Quarzit") for number in (5, 15, 25)] == [[(kennung, 1)], [], [(kennung, 3)]]


def test_what_was_promoted_was_a_short_term_memory_before(anna: Agent) -> None:
    vector = {"embedding": embedding([1, 0], "e"), "embedding_profil_hash": "p"}
    (short,) = stored(SHORTTERM, day(0), [{"memory": "Quarzit", "gueltig_bis": day(999), **vector}])
    long = done(services.promote([kind_of(short)[1]], at(day(10)))[0]).kennung
    assert then(anna, day(5), "Quarzit") == [(short, 1)]
    assert then(anna, day(15), "Quarzit") == [(long, 1)]
    for moment, kennung in ((day(5), short), (day(15), long)):
        assert found(anna, embedding=[1, 0], **PROFILE, stand=moment.isoformat()) == [kennung]
    assert then(anna, day(5), "Quarzit", typen=["longterm"]) == []
    assert then(anna, day(15), "Quarzit", typen=["shortterm"]) == []


def test_at_the_exact_moment_of_a_change_it_has_taken_place(anna: Agent) -> None:
    (kennung,) = stored(LONGTERM, day(0), [{"memory": "Quarzit eins"}])
    changed(kennung, day(10), memory="Quarzit zwei")
    services.delete(LONGTERM, [kind_of(kennung)[1]], at(day(20)))
    moments = [day(0) - MICROSECOND, day(0), day(10) - MICROSECOND, day(10), day(20) - MICROSECOND, day(20)]
    versions = [[version for _kennung, version in then(anna, moment, "Quarzit")] for moment in moments]
    assert versions == [[], [1], [1], [2], [2], []]


def test_of_several_changes_at_one_moment_the_last_one_holds(anna: Agent) -> None:
    (kennung,) = stored(LONGTERM, day(0), [{"memory": "Quarzit"}])
    for text in ("Granit", "Violine"):
        changed(kennung, day(10), memory=text)
    assert [then(anna, day(10), word) for word in ("Quarzit", "Granit", "Violine")] == [[], [], [(kennung, 3)]]
    assert then(anna, day(10) - MICROSECOND, "Quarzit") == [(kennung, 1)]
    assert deviations() == []


@pytest.mark.parametrize(
    ("stand", "version"),
    [
        ("2026-03-27", 1),
        ("2026-03-28", 2),
        ("28.03.2026", 2),
        ("2026-03-28T22:59:59Z", 1),
        ("2026-03-28T23:59", 2),
        ("2026-03-28T23:29", 1),
        ("2026-03-28T23:30+01:00", 2),
        ("2026-03-29", 2),
    ],
)
def test_a_date_alone_is_the_end_of_that_day_in_the_servers_time_zone(anna: Agent, stand: str, version: int) -> None:
    (kennung,) = stored(LONGTERM, day(0), [{"memory": "Quarzit"}])
    changed(kennung, datetime(2026, 3, 28, 23, 30, tzinfo=BERLIN), memory="Quarzit, neu")
    if stand == "2026-03-28T22:59:59Z":  # half an hour after the change, in another zone
        version = 2
    (row,) = search(anna, suche="Quarzit", stand=stand)["daten"]
    assert (row["ID"], row["version"]) == (kennung, version)


@pytest.mark.parametrize("kind", [SHORTTERM, BRAIN], ids=lambda kind: kind.typ)
def test_case_43_what_expired_since_is_found_in_that_days_version(anna: Agent, kind: Kind) -> None:
    column = "inhalt" if kind is BRAIN else "memory"
    start, end = datetime(2026, 5, 1, tzinfo=BERLIN), datetime(2026, 7, 1, 23, 59, tzinfo=BERLIN)
    vector = {"embedding": embedding([1, 0], "e"), "embedding_profil_hash": "p"}
    (kennung,) = stored(kind, start, [{column: "Quarzit im Mai", "gueltig_bis": end, **vector}])
    changed(kennung, datetime(2026, 6, 15, tzinfo=BERLIN), **{column: "Granit im Juni"})
    assert (found(anna, "Quarzit"), found(anna, "Granit")) == ([], [])
    (row,) = search(anna, suche="Quarzit", stand="2026-06-01")["daten"]
    assert (row["ID"], row["version"], row[column]) == (kennung, 1, "Quarzit im Mai")
    assert [row["version"] for row in search(anna, suche="Granit", stand="2026-06-20")["daten"]] == [2]
    assert found(anna, embedding=[1, 0], **PROFILE, stand="2026-06-01") == [kennung]
    for over in ("2026-07-02", (end + MICROSECOND).isoformat()):
        answer = search(anna, suche="Granit", stand=over)
        assert answer["daten"] == []
        assert answer["durchsucht"]["ausgelassen"] == {"abgelaufen": 1}
    assert found(anna, "Granit", stand=end.isoformat()) == [kennung]


def test_a_validity_that_was_changed_held_as_it_was_told_then(anna: Agent) -> None:
    (kennung,) = stored(BRAIN, day(0), [{"inhalt": "Quarzit", "gueltig_bis": day(10)}])
    changed(kennung, day(20), gueltig_bis=None)
    found_on = [number for number in (5, 15, 25) if then(anna, day(number), "Quarzit")]
    assert found_on == [5, 25]
    changed(kennung, day(30), gueltig_bis=day(31))
    assert [number for number in (5, 15, 25, 30, 35) if then(anna, day(number), "Quarzit")] == [5, 25, 30]


def test_in_the_future_holds_what_holds_now_and_is_still_valid_then(anna: Agent) -> None:
    soon = datetime.now(tz=UTC) + timedelta(days=9)
    (kennung,) = stored(LONGTERM, day(0), [{"memory": "Quarzit"}])
    (short,) = stored(SHORTTERM, day(0), [{"memory": "Quarzit", "gueltig_bis": soon}])
    assert set(found(anna, "Quarzit", stand=(soon - timedelta(days=1)).isoformat())) == {kennung, short}
    assert found(anna, "Quarzit", stand=(soon + timedelta(days=1)).isoformat()) == [kennung]
    assert found(anna, "Quarzit", stand="9999-12-30") == [kennung]
    assert found(anna, "Quarzit", stand="0001-01-02") == []


def test_filters_hold_as_of_then(anna: Agent) -> None:
    drafts = [{"memory": "Quarzit"}, {"memory": "Quarzit", "scope": "room", "nutzer": "ben", "agent": "koch"}]
    first, second = stored(LONGTERM, day(0), drafts)
    (brain,) = stored(BRAIN, day(1), [{"inhalt": "Quarzit"}])
    changed(first, day(10), memory="Quarzit, neu")
    changed(brain, day(10), scope_typ="room")

    def ids(moment: datetime, **only: Any) -> set[str]:
        return {kennung for kennung, _version in then(anna, moment, "Quarzit", **only)}

    assert ids(day(5)) == ids(day(15)) == {first, second, brain}
    assert ids(day(5), scope="room") == {second}
    assert ids(day(15), scope="room") == {second, brain}
    assert ids(day(5), scope="modul") == {first, brain}
    assert ids(day(5), nutzer_filter="ben") == ids(day(5), agent_filter="koch") == {second}
    assert ids(day(15), von=day(9).isoformat()) == {first, brain}
    assert ids(day(5), von=day(9).isoformat()) == set()
    assert ids(day(15), bis=day(9).isoformat()) == {second}
    assert ids(day(15), von=day(1).isoformat(), zeitfeld="erstellt_am") == {brain}
    assert ids(day(15), typen=["brain"]) == {brain}


def test_rights_are_those_of_the_version(agent_with: Make) -> None:
    (kennung,) = stored(BRAIN, day(0), [{"inhalt": "Quarzit", "scope_typ": "modul"}])
    changed(kennung, day(10), scope_typ="global")
    module, world = agent_with("anna", scope=["modul"]), agent_with("anna", scope=["global"])
    assert then(module, day(5), "Quarzit") == [(kennung, 1)]
    assert then(world, day(5), "Quarzit") == []
    assert then(module, day(15), "Quarzit") == []
    assert then(world, day(15), "Quarzit") == [(kennung, 2)]
    told = search(world, suche="Quarzit", stand=day(5).isoformat())["durchsucht"]
    assert told["in_reichweite"] == 0
    carla = agent_with("carla", nutzer=["carla"])
    assert then(carla, day(5), "Quarzit") == []


def test_no_version_is_hidden_by_hundreds_of_others(anna: Agent) -> None:
    """Versions that did not hold at that moment are no candidates, however well they match."""
    (many,) = stored(LONGTERM, day(0), [{"memory": "Quarzit 0"}])
    for number in range(1, 260):
        changed(many, day(1) + timedelta(minutes=number), memory=f"Quarzit {number}")
    (quiet,) = stored(LONGTERM, day(0), [{"memory": "Quarzit " + "Sand " * 50}])
    assert then(anna, day(0), "Quarzit") == [(many, 1), (quiet, 1)]
    assert then(anna, day(1) + timedelta(minutes=100), "Quarzit") == [(many, 101), (quiet, 1)]
    assert set(found(anna, "Quarzit")) == {many, quiet}


# A whole story, and what held at each of its moments


class Story:
    """Changes by chance, one a day, and what the test knows to have held after each."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.now: dict[str, dict[str, Any]] = {}
        self.gone: list[str] = []
        self.days: list[dict[str, dict[str, Any]]] = []

    def run(self, days: int) -> None:
        """Let so many days pass."""
        for number in range(days):
            verbs = [self.insert, self.insert, self.update, self.update, self.update, self.delete, self.restore]
            self.dice.choice([*verbs, self.promote])(day(number))
            self.days.append({kennung: dict(state) for kennung, state in self.now.items()})

    def state(self, kind: Kind, moment: datetime) -> dict[str, Any]:
        """A memory's words, tags, scope, vector and end of validity, by chance."""
        ends = {LONGTERM: (None,), SHORTTERM: (500, 5, 20), BRAIN: (None, None, 10)}[kind]
        end = self.dice.choice(ends)
        return {
            "words": self.dice.sample(["quarzit", "violine", "bergwerk", "lampion"], 2),
            "tags": self.dice.sample(["eins", "zwei"], self.dice.randrange(3)),
            "scope": self.dice.choice(["modul", "global"]),
            "vector": self.dice.choice([None, [1, 0], [0, 1]]),
            "until": None if end is None else moment + timedelta(days=end),
        }

    def columns(self, kind: Kind, state: dict[str, Any]) -> dict[str, Any]:
        """The columns of this state."""
        text = " ".join(state["words"])
        own = {"inhalt": text, "scope_typ": state["scope"]} if kind is BRAIN else {"memory": text}
        place = {"scope": state["scope"]} if kind is not BRAIN else {}
        until = {"gueltig_bis": state["until"]} if kind.memories.EXPIRES else {}
        packed = None if state["vector"] is None else embedding(state["vector"], "e")
        vector = {"embedding": packed, "embedding_profil_hash": "p" if packed else None}
        return own | place | until | vector | {"tag_namen": state["tags"]}

    def insert(self, moment: datetime) -> None:
        """A new memory."""
        kind = self.dice.choice(KINDS)
        state = self.state(kind, moment)
        (kennung,) = stored(kind, moment, [self.columns(kind, state)])
        self.now[kennung] = state

    def update(self, moment: datetime) -> None:
        """A memory changes in all that it holds."""
        alive = [kennung for kennung in self.now if kind_of(kennung)[0] is not SHORTTERM]
        if not alive:
            return
        kennung = self.dice.choice(alive)
        kind, key = kind_of(kennung)
        state = self.state(kind, moment)
        if kind is not BRAIN:
            state["scope"] = self.now[kennung]["scope"]
        done(services.update(kind, [Change(key, self.columns(kind, state))], at(moment))[0])
        self.now[kennung] = state

    def delete(self, moment: datetime) -> None:
        """A memory is deleted."""
        if self.now:
            kennung = self.dice.choice(list(self.now))
            kind, key = kind_of(kennung)
            done(services.delete(kind, [key], at(moment))[0])
            del self.now[kennung]
            self.gone.append(kennung)

    def restore(self, moment: datetime) -> None:
        """A deleted long-term memory comes back as it was first."""
        back = [kennung for kennung in self.gone if kennung not in self.now and kind_of(kennung)[0] is LONGTERM]
        if back:
            kennung = self.dice.choice(back)
            done(services.restore(LONGTERM, kind_of(kennung)[1], 1, at(moment)))
            first = next(states[kennung] for states in self.days if kennung in states)
            self.now[kennung] = dict(first)

    def promote(self, moment: datetime) -> None:
        """A short-term memory becomes a long-term one."""
        short = [kennung for kennung in self.now if kind_of(kennung)[0] is SHORTTERM]
        if short:
            kennung = self.dice.choice(short)
            promoted = done(services.promote([kind_of(kennung)[1]], at(moment))[0])
            self.now[promoted.kennung] = self.now.pop(kennung) | {"until": None}

    def held(self, number: int, fits: Callable[[dict[str, Any]], bool]) -> set[str]:
        """The memories that held on this day and fit."""
        moment = day(number)
        return {
            kennung
            for kennung, state in self.days[number].items()
            if (state["until"] is None or state["until"] >= moment) and fits(state)
        }


@pytest.fixture
def _as_long_ago_as_the_story() -> Any:
    """Services take what expired for gone, by the clock; the story's short validities are over long ago."""
    with mock.patch("memories.models.queries.timezone.now", return_value=day(0)):
        yield


@pytest.mark.usefixtures("_as_long_ago_as_the_story")
@pytest.mark.parametrize("seed", [1, 2])
def test_at_every_moment_of_a_story_exactly_that_is_found_which_held_then(
    anna: Agent, agent_with: Make, seed: int
) -> None:
    story = Story(seed)
    story.run(90)
    admin, module = agent_with("anna"), agent_with("anna", scope=["modul"])
    sizes = set()
    for number in range(2, 90, 9):
        stand = {"stand": day(number).isoformat()}
        for word in ("quarzit", "lampion"):
            has_word = lambda state, word=word: word in state["words"]  # noqa: E731
            hits = found(admin, word, **stand)
            assert len(hits) == len(set(hits))
            assert set(hits) == story.held(number, has_word)
            sizes.add(len(hits))
            assert set(found(admin, word, tags=["eins"], **stand)) == story.held(
                number, lambda state, has_word=has_word: has_word(state) and "eins" in state["tags"]
            )
            assert set(found(module, word, **stand)) == story.held(
                number, lambda state, has_word=has_word: has_word(state) and state["scope"] == "modul"
            )
        assert set(found(admin, embedding=[1, 1], **PROFILE, mit_veralteten=1, **stand)) == story.held(
            number, lambda state: state["vector"] is not None
        )
        told = search(admin, suche="quarzit", **stand)["durchsucht"]
        assert told["in_reichweite"] == len(story.days[number])
        assert told["ausgelassen"]["abgelaufen"] == len(story.days[number]) - len(story.held(number, lambda _: True))
    assert len(sizes) > 4
    assert deviations() == []
    before = entries()
    assert len(before) > 60
    call_command("search_index", "--rebuild", stdout=StringIO())
    assert entries() == before
