"""What stands beside a hit in its session is found with it (nachbarn: 1), as far as rights and filters go."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memories import services
from memories.kinds import BRAIN, LONGTERM
from memories.services import Change
from tests.conftest import Agent
from tests.doors import fault_of, faults
from tests.searching import at, done, found, kind_of, search, stored

Make = Callable[..., Agent]

START = datetime(2026, 5, 4, 9, tzinfo=UTC)
TALK = ["Guten Morgen", "Der Aufzug steht", "Quarzit liegt im Keller", "Dann holen wir ihn", "Am besten heute", "Gut"]


def talk(lines: Sequence[str] = TALK, session: str = "s1", **columns: Any) -> list[str]:
    """The IDs of the turns of a session, each a minute after the other."""
    kinds = {"titel": "Gespräch", "session_id": session, **columns}
    return [
        stored(BRAIN, START + timedelta(minutes=place), [{**kinds, "inhalt": line}])[0]
        for place, line in enumerate(lines)
    ]


def test_neighbours_are_found_next_ones_first_and_no_farther_than_two_away(anna: Agent) -> None:
    first, before, hit, after, later, _last = talk()
    assert found(anna, "Quarzit") == [hit]
    assert found(anna, "Quarzit", nachbarn=0) == [hit]
    assert found(anna, "Quarzit", nachbarn=1) == [hit, before, after, first, later]


def test_points_say_what_came_from_neighbours_and_stay_on_one_scale(anna: Agent) -> None:
    _first, before, hit, _after, later, _last = talk()
    lone = anna.store(memory="Quarzit")
    rows = {row["ID"]: row for row in search(anna, suche="Quarzit", nachbarn=1, erklaeren=1)["daten"]}
    whole = rows[hit]["punkte"]
    assert rows[before]["punkte"] == pytest.approx(0.35 * whole, abs=1e-3)
    assert rows[later]["punkte"] == pytest.approx(0.15 * whole, abs=1e-3)
    assert rows[before]["treffer"] == {
        "text": None,
        "vektor": None,
        "nachbarn": {"punkte": pytest.approx(rows[before]["punkte"], abs=1e-3)},
    }
    assert "nachbarn" not in rows[hit]["treffer"]
    assert 0 < rows[lone]["punkte"] <= 0.5
    assert rows[lone]["treffer"]["text"]["punkte"] / 2 == pytest.approx(rows[lone]["punkte"], abs=1e-3)


def test_hits_beside_each_other_lift_each_other(anna: Agent) -> None:
    alone = talk(["Quarzit", "nichts", "nichts"], session="s1")[0]
    lifted = talk(["Quarzit", "Quarzit"], session="s2")
    assert found(anna, "Quarzit", nachbarn=1)[:3] == [*lifted, alone]


def test_sessions_and_owners_are_apart_and_no_session_is_none(anna: Agent) -> None:
    hit = talk(["Quarzit"])[0]
    talk(["fremd"], session="s2")
    talk(["ebenso"], nutzer="ben")
    assert found(anna, "Quarzit", nachbarn=1) == [hit]
    lone = talk(["Glimmer", "nichts"], session="")[0]
    assert found(anna, "Glimmer", nachbarn=1) == [lone]


def test_the_order_is_that_of_creation_whatever_was_changed_since(anna: Agent) -> None:
    first, second, third, fourth = talk(["eins", "zwei", "drei", "Quarzit"])
    change = Change(kind_of(first)[1], {"inhalt": "eins, neu"})
    done(services.update(BRAIN, [change], at(START + timedelta(days=1)))[0])
    assert found(anna, "Quarzit", nachbarn=1) == [fourth, third, second]


def test_what_a_key_may_not_see_is_not_found_and_lies_between_nobody(agent_with: Make) -> None:
    first, _foreign, hit = [
        *talk(["eins"], agent="planer"),
        *talk(["zwei"], agent="geheim"),
        *talk(["Quarzit"], agent="planer"),
    ]
    limited = agent_with("anna", nutzer=["anna"], agent=["planer"])
    rows = search(limited, suche="Quarzit", nachbarn=1)["daten"]
    assert [row["ID"] for row in rows] == [hit, first]
    assert rows[1]["punkte"] == pytest.approx(0.35 * rows[0]["punkte"], abs=1e-3)


def test_a_foreign_hit_lends_nothing(carla: Agent) -> None:
    talk(["Quarzit", "nichts"], nutzer="anna")
    talk(["nichts", "nichts"], nutzer="carla")
    assert found(carla, "Quarzit", nachbarn=1) == []


def test_filters_hold_for_neighbours(anna: Agent) -> None:
    talk(["eins"], tag_namen=["Bau"])
    hit = talk(["Quarzit"], tag_namen=["Geologie"])[0]
    other = talk(["drei"], tag_namen=["Geologie"], scope_id="13")[0]
    assert found(anna, "Quarzit", nachbarn=1, tags=["geologie"]) == [hit, other]
    assert found(anna, "Quarzit", nachbarn=1, tags=["geologie"], scope_vk="12") == [hit]
    assert found(anna, "Quarzit", nachbarn=1, typen=["longterm"]) == []
    late = (START + timedelta(minutes=1)).isoformat()
    assert found(anna, "Quarzit", nachbarn=1, von=late) == []


def test_what_is_over_is_no_neighbour(anna: Agent) -> None:
    talk(["eins"], gueltig_bis=START + timedelta(days=1))
    hit = talk(["Quarzit"])[0]
    assert found(anna, "Quarzit", nachbarn=1) == [hit]


def test_what_must_or_must_not_occur_holds_for_neighbours_too(anna: Agent) -> None:
    lines = ["Quarzit im Keller", "Glimmer", "Quarzit im Hof"]
    cellar, _between, yard = talk(lines)
    assert found(anna, '"Quarzit im Keller"', nachbarn=1) == [cellar]
    assert found(anna, "Quarzit -Glimmer", nachbarn=1) == [cellar, yard]
    assert found(anna, "Quarzit -Hof", nachbarn=1) == [cellar]


def test_a_hit_by_vector_lends_as_well(anna: Agent) -> None:
    vector = {"embedding": b"\x00\x00\x80?\x00\x00\x00\x00", "embedding_profil_hash": "p"}
    hit, beside = [*talk(["eins"], **vector), *talk(["zwei"])]
    inhalt = {"embedding": [1, 0], "embedding_profil_hash": "p"}
    assert found(anna, **inhalt) == [hit]
    assert found(anna, **inhalt, nachbarn=1) == [hit, beside]


def test_other_kinds_are_found_as_without(anna: Agent) -> None:
    notes = stored(LONGTERM, START, [{"memory": "Quarzit"}, {"memory": "Quarzit und noch viel mehr davon"}])
    assert found(anna, "Quarzit", nachbarn=1) == found(anna, "Quarzit") == notes


def test_neighbours_as_of_a_moment_are_refused(anna: Agent) -> None:
    body = {"inhalt": {"nutzer": "anna", "agent": "planer", "suche": "Quarzit", "nachbarn": 1, "stand": "2026-05-05"}}
    assert faults(fault_of(anna.post("search_brain", body), 400)) == {("ungueltig", "inhalt.nachbarn")}


def test_the_limit_counts_neighbours(anna: Agent) -> None:
    _first, before, hit, *_rest = talk()
    assert found(anna, "Quarzit", nachbarn=1, limit=2) == [hit, before]
