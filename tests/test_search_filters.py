"""What a filter and a key leave of a search is exactly what an oracle says, for a text and for a vector."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from memories import services
from memories.kinds import BRAIN, KINDS, LONGTERM, SHORTTERM, Kind
from memories.models import SearchEntry
from memories.search.reach import FIRST_PART, token
from memories.services import Change
from memories.values import embedding
from tests.conftest import Agent, note
from tests.doors import BRAIN as BRAIN_ENTRY
from tests.searching import PROFILE, at, done, found, kind_of, search, stored

Make = Callable[..., Agent]

WORDS = ("Quarzit", "Violine", "Bergwerk")
TAGS = ("Frist", "Äpfel", "büro", "X 1")
OWNERS, AGENTS = ("anna", "ben", "carla"), ("planer", "koch")
SCOPES, RECORDS = ("modul", "global", "room"), ("", "12", "13")
START = datetime(2026, 1, 1, tzinfo=UTC)
SEED = 7


@dataclass(frozen=True)
class Known:
    """A memory as the test knows it, without asking the database."""

    kennung: str
    kind: Kind
    nutzer: str
    agent: str
    scope: str
    record: str
    tags: frozenset[str]
    words: frozenset[str]
    profile: str | None
    stale: bool
    created: datetime
    changed: datetime
    until: datetime | None

    @property
    def expired(self) -> bool:
        """Whether its validity is over."""
        return self.until is not None and self.until < timezone.now()

    def has_vector(self, profile: str, *, also_stale: bool) -> bool:
        """Whether a vector of this profile can find it."""
        return self.profile == profile and (also_stale or not self.stale)

    def passes(self, only: Mapping[str, Any]) -> bool:
        """Whether it passes the filters, as they are sent."""
        at = self.created if only.get("zeitfeld") == "erstellt_am" else self.changed
        wanted, some, mine = (
            {" ".join(tag.casefold().split()) for tag in tags}
            for tags in (only.get("tags", ()), only.get("tags_eines", ()), self.tags)
        )
        return (
            self.kind.typ in only.get("typen", [kind.typ for kind in KINDS])
            and only.get("scope", self.scope) == self.scope
            and only.get("scope_vk", self.record) == self.record
            and only.get("agent_filter", self.agent) == self.agent
            and only.get("nutzer_filter", self.nutzer) == self.nutzer
            and wanted <= mine
            and (not some or bool(some & mine))
            and ("von" not in only or datetime.fromisoformat(only["von"]) <= at)
            and ("bis" not in only or at <= datetime.fromisoformat(only["bis"]))
        )


def some_memories(dice: random.Random) -> list[Known]:
    """Memories of all kinds, owners, scopes and times, with texts, tags, vectors and validities by chance."""
    known: list[Known] = []
    for day in range(6):
        for kind in KINDS:
            fresh = [_drawn(dice, kind, START + timedelta(days=30 * day)) for _n in range(17)]
            ids = stored(kind, fresh[0].created, [_columns(one) for one in fresh])
            known.extend(replace(one, kennung=kennung) for one, kennung in zip(fresh, ids, strict=True))
    return [_moved_on(dice, one) if dice.random() < 0.3 and not one.expired else one for one in known]


def _drawn(dice: random.Random, kind: Kind, created: datetime) -> Known:
    ends = {SHORTTERM: (-1, 1, 9), BRAIN: (None, None, -1, 1)}.get(kind, (None,))
    end = dice.choice(ends)
    return Known(
        kennung="",
        kind=kind,
        nutzer=dice.choice(OWNERS),
        agent=dice.choice(AGENTS),
        scope=dice.choice(SCOPES),
        record=dice.choice(RECORDS),
        tags=frozenset(dice.sample(TAGS, dice.randrange(len(TAGS)))),
        words=frozenset(word for word in WORDS if dice.random() < 0.3),
        profile=dice.choice((None, "p", "p", "q")),
        stale=False,
        created=created,
        changed=created,
        until=None if end is None else timezone.now() + timedelta(days=end),
    )


def _columns(one: Known) -> dict[str, Any]:
    text = " ".join([*sorted(one.words), "Sand"])
    scope = {"scope_typ": one.scope, "scope_id": one.record}
    own = {"titel": "t", "inhalt": text, **scope} if one.kind is BRAIN else {"memory": text}
    place = {} if one.kind is BRAIN else {"scope": one.scope, "scope_vk": one.record}
    until = {"gueltig_bis": one.until} if one.kind.memories.EXPIRES else {}
    vector = {"embedding": _vector(one.words), "embedding_profil_hash": one.profile} if one.profile else {}
    mine = {"nutzer": one.nutzer, "agent": one.agent, "tag_namen": sorted(one.tags)}
    return own | place | until | vector | mine


def _vector(words: frozenset[str]) -> bytes:
    return embedding([1.0, *(float(word in words) for word in WORDS)], "embedding")


def _moved_on(dice: random.Random, one: Known) -> Known:
    """The memory after a change of its text, its tags, or (brain) its scope."""
    moment = one.changed + timedelta(days=dice.choice((1, 45)))
    what = dice.choice(("text", "tags", "scope" if one.kind is BRAIN else "text"))
    if what == "text":
        words = frozenset(WORDS) - one.words
        one = replace(one, words=words, stale=one.profile is not None, changed=moment)
        columns = {name: value for name, value in _columns(one).items() if name in {"memory", "inhalt"}}
    elif what == "tags":
        one = replace(one, tags=frozenset(TAGS) - one.tags, changed=moment)
        columns = {"tag_namen": sorted(one.tags)}
    else:
        scope = SCOPES[(SCOPES.index(one.scope) + 1) % len(SCOPES)]
        one = replace(one, scope=scope, changed=moment)
        columns = {"scope_typ": scope}
    assert done(services.update(one.kind, [Change(kind_of(one.kennung)[1], columns)], at(moment))[0]).changed
    return one


def ask_and_compare(agent: Agent, in_sight: Sequence[Known], only: Mapping[str, Any], *, also_stale: bool) -> int:
    """Search by each word and by a vector with these filters; the hits and the counts are the oracle's."""
    reached = [one for one in in_sight if one.passes(only)]
    live = [one for one in reached if not one.expired]
    gone = len(reached) - len(live)
    for word in WORDS:
        answer = search(agent, suche=word, limit=100, **only)
        _same(answer, {one.kennung for one in live if word in one.words})
        assert answer["durchsucht"] == {
            "in_reichweite": len(reached),
            "genau": True,
            "ausgelassen": {"abgelaufen": gone},
        }, only
    for profile in ("p", "q", "r"):
        switch = {"mit_veralteten": 1} if also_stale else {}
        answer = search(agent, embedding=[1, 1, 0, 0], embedding_profil_hash=profile, limit=100, **only, **switch)
        _same(answer, {one.kennung for one in live if one.has_vector(profile, also_stale=also_stale)})
        stale = {} if also_stale else {"vektor_veraltet": sum(one.profile == profile and one.stale for one in reached)}
        assert answer["durchsucht"]["ausgelassen"] == {
            "abgelaufen": gone,
            "ohne_vektor_dieses_profils": sum(one.profile != profile for one in reached),
            **stale,
        }, only
    return len(reached)


def _same(answer: dict[str, Any], expected: set[str]) -> None:
    hits = [row["ID"] for row in answer["daten"]]
    assert len(hits) == len(set(hits))
    if len(expected) <= 100:
        assert set(hits) == expected
    else:
        assert len(hits) == 100
        assert set(hits) <= expected


ALONE: list[dict[str, Any]] = [
    {},
    *({"typen": [kind.typ]} for kind in KINDS),
    {"typen": ["brain", "longterm"]},
    *({"scope": scope} for scope in (*SCOPES, "nowhere")),
    *({"scope_vk": record} for record in RECORDS),
    *({"agent_filter": agent} for agent in AGENTS),
    *({"nutzer_filter": owner} for owner in OWNERS),
    *({"tags": [tag]} for tag in TAGS),
    {"tags": ["FRIST", "äpfel"]},
    {"tags": list(TAGS)},
    {"tags": ["nothing"]},
    {"tags_eines": ["frist"]},
    {"tags_eines": ["nothing", "BÜRO", "x  1"]},
    {"tags_eines": ["nothing"]},
    {"von": "2026-03-02T00:00:00+00:00"},
    {"bis": "2026-03-02T00:00:00+00:00"},
    {"von": "2026-03-02T00:00:00+00:00", "bis": "2026-03-02T00:00:00+00:00", "zeitfeld": "erstellt_am"},
    {"von": "2026-03-02T00:00:00.000001+00:00", "zeitfeld": "erstellt_am"},
    {"bis": "2026-03-01T23:59:59.999999+00:00", "zeitfeld": "erstellt_am"},
    {"von": "2026-02-01T00:00:00+00:00", "bis": "2026-04-20T00:00:00+00:00", "zeitfeld": "aktualisiert_am"},
]


def drawn_filters(dice: random.Random) -> dict[str, Any]:
    """Some filters at once."""
    only: dict[str, Any] = {}
    for each in dice.sample(ALONE, dice.randrange(2, 4)):
        only |= each
    return only


@pytest.fixture
def memories(anna: Agent) -> list[Known]:
    """Some 300 memories."""
    return some_memories(random.Random(SEED))


@pytest.fixture
def everybody(agent_with: Make) -> Agent:
    """Somebody who sees all."""
    return agent_with("anna")


def test_each_filter_alone_leaves_exactly_what_passes_it(everybody: Agent, memories: list[Known]) -> None:
    assert len(memories) > 300
    assert sum(one.expired for one in memories) > 30
    assert sum(one.stale for one in memories) > 15
    reached = [ask_and_compare(everybody, memories, only, also_stale=bool(n % 2)) for n, only in enumerate(ALONE)]
    assert len(set(reached)) > 15


def test_filters_together_leave_exactly_what_passes_them_all(everybody: Agent, memories: list[Known]) -> None:
    dice = random.Random(SEED + 1)
    reached = [
        ask_and_compare(everybody, memories, drawn_filters(dice), also_stale=dice.random() < 0.5) for _n in range(25)
    ]
    assert sum(bool(number) for number in reached) > 12


LIMITS: list[dict[str, list[str]]] = [
    {"nutzer": ["anna"]},
    {"nutzer": ["anna", "ben"]},
    {"agent": ["koch"]},
    {"scope": ["modul"]},
    {"scope": ["global", "room"]},
    {"nutzer": ["anna", "carla"], "agent": ["planer"], "scope": ["modul", "room"]},
    {"scope": ["nowhere"]},
    {"scope": []},
]


def test_a_limited_key_finds_exactly_what_is_its_own_and_hears_of_nothing_else(
    agent_with: Make, memories: list[Known]
) -> None:
    dice = random.Random(SEED + 2)
    for only_for in LIMITS:
        agent = agent_with((only_for.get("nutzer") or ["anna"])[0], **only_for)
        in_sight = [
            one
            for one in memories
            if one.nutzer in only_for.get("nutzer", OWNERS)
            and one.agent in only_for.get("agent", AGENTS)
            and one.scope in only_for.get("scope", SCOPES)
        ]
        for only in ({}, drawn_filters(dice), {"nutzer_filter": "carla"}):
            ask_and_compare(agent, in_sight, only, also_stale=False)


# Case 71: what a key may not see


def test_case_71_what_is_foreign_is_in_no_row_no_count_and_no_explanation(anna: Agent, carla: Agent) -> None:
    fields: dict[str, Any] = {"memory": "Geheimnis Quarzit", "tags": ["geheim"], "embedding": [1, 0], **PROFILE}
    kennung = anna.store(**fields)
    anna.call("insert_brain_shortterm_memory", memories=[note(**fields)])
    anna.call("insert_brain_memory", **BRAIN_ENTRY, inhalt="Geheimnis Quarzit")
    anna.call("delete_brain_longterm_memory", IDs=[anna.store(**fields)])
    asked: list[dict[str, Any]] = [
        {"suche": "Geheimnis"},
        {"suche": '"Geheimnis Quarzit"'},
        {"suche": "geheim", "tags": ["geheim"]},
        {"embedding": [1, 0], **PROFILE},
        {"embedding": [1, 0], **PROFILE, "mit_veralteten": 1, "suche": "Geheimnis"},
        {"suche": "Geheimnis", "nutzer_filter": "anna"},
        {"suche": "Geheimnis", "stand": "2999-01-01"},
    ]
    for inhalt in asked:
        answer = search(carla, **inhalt, erklaeren=1)
        assert answer["daten"] == []
        assert answer["durchsucht"]["in_reichweite"] == 0
        assert set(answer["durchsucht"]["ausgelassen"].values()) == {0}
        assert "geheim" not in json.dumps(answer).casefold()
    assert kennung in found(anna, "Geheimnis")


def test_case_71_foreign_memories_change_nothing_in_what_is_found_and_told(anna: Agent, carla: Agent) -> None:
    """Not the hits, their points or the counts; a typing error that others made hides nothing either."""
    carla.store(
        kurzbeschreibung="k", memory="Die Buchhaltung prüft die Kündigungsfrist", tags=[], embedding=[1, 0], **PROFILE
    )
    carla.store(kurzbeschreibung="k", memory="Das Protokoll der Buchhaltung", tags=[], embedding=[0, 1], **PROFILE)
    asked: list[dict[str, Any]] = [
        {"suche": suche, **more}
        for suche in ("Buchhaltung", "Buchaltung", "Protokoll Buchhaltung", "Frist", "Nichts", "Protokoll und Nichts")
        for more in ({}, {"embedding": [1, 0], **PROFILE})
    ]
    before = [search(carla, **inhalt, erklaeren=1) for inhalt in asked]
    assert [len(answer["daten"]) for answer in before] == [2, 2, 2, 2, 2, 2, 1, 2, 0, 2, 1, 2]
    for text in ("Buchaltung", "Frist", "Buchhaltung Nichts", "Protokoll", "und"):
        anna.call(
            "insert_brain_longterm_memory",
            memories=[note(memory=text, embedding=[1, 0], **PROFILE) for _n in range(30)],
        )
    assert [search(carla, **inhalt, erklaeren=1) for inhalt in asked] == before


def test_case_71_rare_words_of_others_hide_nothing(anna: Agent, carla: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rarest words choose what is looked at: when they are others', the common ones do."""
    monkeypatch.setattr("memories.search.candidates._TOO_COMMON", 0)
    monkeypatch.setattr("memories.search.candidates._COMMON_FROM", 0)
    own = carla.store(memory="Quarzit")
    for _each in range(9):
        anna.store(memory="Quarzit")
    asked = "Quarzit Violine Bergwerk Fagott"
    assert found(carla, asked) == [own]
    anna.store(memory="Violine Bergwerk Fagott")
    assert found(carla, asked) == [own]


@pytest.mark.parametrize("foreign", [0, 1, 3, 40], ids="{} foreign to each own".format)
def test_a_key_that_may_see_much_finds_all_of_its_own(
    anna: Agent, carla: Agent, monkeypatch: pytest.MonkeyPatch, foreign: int
) -> None:
    """However far it must look: SQLite looks at what it finds, as long as enough of it is in reach."""
    monkeypatch.setattr("memories.search.COUNTED_UP_TO", 3)
    monkeypatch.setattr("memories.search._DEPTH", 4)
    texts = ["Quarzit", "Quarzit Violine", "Bergwerk Quarzit Violine", "Violine", "Nichts davon"]
    own = [carla.store(memory=texts[n % len(texts)], kurzbeschreibung="k") for n in range(10)]
    entries = [note(memory=texts[n % 4], kurzbeschreibung="k") for n in range(foreign)]
    for _each in range(10 if foreign else 0):
        anna.call("insert_brain_longterm_memory", memories=entries)
    expected = {kennung for n, kennung in enumerate(own) if n % len(texts) < 4}
    for suche, limit in (
        ("Quarzit Violine Bergwerk", 3),
        ("Quarzit Violine Bergwerk", 20),
        ("Quarzit -Nichts Violine", 8),
    ):
        rows = search(carla, suche=suche, limit=limit)["daten"]
        ids = [row["ID"] for row in rows]
        assert len(set(ids)) == min(limit, len(expected))
        assert set(ids) <= expected
        if limit == 3:
            assert {row["memory"] for row in rows[:2]} == {"Bergwerk Quarzit Violine"}


def test_a_brain_memory_that_moves_to_another_scope_moves_out_of_sight_and_back(agent_with: Make) -> None:
    admin = agent_with("anna")
    module = agent_with("anna", scope=["modul"])
    world = agent_with("anna", scope=["global"])
    kennung = admin.call("insert_brain_memory", **BRAIN_ENTRY, inhalt="Quarzit", scope_typ="modul")["daten"][0]["ID"]
    assert (found(module, "Quarzit"), found(world, "Quarzit")) == ([kennung], [])
    admin.call("update_brain_memory", ID=kennung, scope_typ="global")
    assert (found(module, "Quarzit"), found(world, "Quarzit")) == ([], [kennung])
    assert found(admin, "Quarzit", scope="modul") == []
    assert search(module, suche="Quarzit")["durchsucht"]["in_reichweite"] == 0
    admin.call("restore_brain_memory", ID=kennung, version=1)
    assert (found(module, "Quarzit"), found(world, "Quarzit")) == ([kennung], [])


def test_expired_ones_before_it_hide_no_hit(anna: Agent) -> None:
    """However many of the best hits may not be shown, all others come."""
    now = timezone.now()
    past = [{"memory": "Quarzit", "gueltig_bis": now - timedelta(days=1), "kurzbeschreibung": "Quarzit"}] * 450
    stored(SHORTTERM, now - timedelta(days=9), past)
    kept = [anna.store(memory="Quarzit " + "Sand " * 60) for _n in range(12)]
    assert set(found(anna, "Quarzit")) == set(kept)
    assert search(anna, suche="Quarzit")["durchsucht"]["ausgelassen"] == {"abgelaufen": 450}


def test_long_texts_before_it_hide_no_hit(anna: Agent) -> None:
    """A long text has many entries, which count as one hit."""
    long = [anna.store(memory="Quarzit " * 120_000) for _n in range(12)]
    short = [anna.store(memory="Quarzit " + "Sand " * 60) for _n in range(60)]
    assert set(found(anna, "Quarzit")) == {*long, *short}
    assert len(found(anna, "Quarzit", limit=50)) == 50


def test_a_hundred_hits_come_of_more(anna: Agent) -> None:
    for n in range(4):
        anna.call(
            "insert_brain_longterm_memory",
            memories=[note(memory="Quarzit", embedding=[n + 1, m + 1], **PROFILE) for m in range(100)],
        )
    assert len(set(found(anna, "Quarzit"))) == 100
    assert len(set(found(anna, embedding=[1, 1], **PROFILE))) == 100
    assert len(set(found(anna, "Quarzit", embedding=[1, 1], **PROFILE))) == 100


def test_what_is_in_reach_is_counted_up_to_a_thousand(anna: Agent, carla: Agent) -> None:
    now = timezone.now()
    row: dict[str, Any] = {"typ": "longterm", "version": 1, "seit": now, "erstellt_am": now, "stamm": "sand"}
    reach = " ".join([FIRST_PART, token("n", "anna"), token("k", "longterm")])
    keys = range(1_000_000, 1_000_999)
    SearchEntry.objects.bulk_create(SearchEntry(memory_id=key, geltung=reach, **row) for key in keys)
    anna.store(memory="Quarzit")
    for number, exact in ((1_000, True), (1_000, False)):
        told = search(anna, suche="Quarzit")["durchsucht"]
        assert (told["in_reichweite"], told["genau"]) == (number, exact)
        assert search(anna, suche="Quarzit", scope="modul")["durchsucht"]["genau"] is True
        anna.store(memory="Granit")
    assert search(carla, suche="Quarzit")["durchsucht"]["in_reichweite"] == 0


def test_case_45_a_day_begins_and_ends_in_the_servers_time_zone(anna: Agent) -> None:
    night = datetime(2026, 7, 1, 0, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    (kennung,) = stored(LONGTERM, night, [{"memory": "Quarzit"}])
    for only in ({"von": "2026-07-01"}, {"von": "01.07.2026", "bis": "2026-07-01"}, {"bis": "2026-07-01"}):
        for field in ("aktualisiert_am", "erstellt_am"):
            assert found(anna, "Quarzit", **only, zeitfeld=field) == [kennung]
    for only in ({"bis": "2026-06-30"}, {"von": "2026-07-02"}, {"von": "2026-07-01T00:30:01"}):
        assert found(anna, "Quarzit", **only) == []
    assert found(anna, "Quarzit", stand="2026-06-30") == []
    assert found(anna, "Quarzit", stand="2026-07-01") == [kennung]


def test_an_identifier_is_the_same_however_it_is_written(anna: Agent) -> None:
    kennung = anna.store(memory="Quarzit", scope=7, scope_vk="Zu\u0308rich")
    for only in ({"scope": "7"}, {"scope": 7}, {"scope_vk": "Zürich"}, {"scope": 7, "scope_vk": "Zu\u0308rich"}):
        assert found(anna, "Quarzit", **only) == [kennung]
    for only in ({"scope": "07"}, {"scope_vk": "zürich"}, {"scope_vk": ""}, {"agent_filter": "Planer"}):
        assert found(anna, "Quarzit", **only) == []


def test_a_hundred_tags_can_be_asked_for(anna: Agent) -> None:
    names = [f"Tag {n}" for n in range(100)]
    kennung = anna.store(memory="Quarzit", tags=names)
    anna.store(memory="Quarzit", tags=names[:-1])
    assert found(anna, "Quarzit", tags=names) == [kennung]
    assert len(found(anna, "Quarzit", tags_eines=names)) == 2


# select's text filter


def test_select_finds_by_every_word_of_a_text(anna: Agent) -> None:
    tool = "select_brain_longterm_memory"
    both = anna.store(memory="Die Kündigungsfrist im Vertrag von Quarzit", tags=[])
    one = anna.store(memory="Der Vertrag", tags=[])

    def ids(suche: str, **more: Any) -> list[str]:
        return [row["ID"] for row in anna.call(tool, suche=suche, sortierung="aelteste", **more)["daten"]]

    assert ids("Vertrag") == [both, one]
    assert ids("vertraege quarzit") == [both]
    assert ids("Frist Vertrag") == [both, one]  # the short description is Frist
    assert ids("Quarzit Nichts") == []
    assert ids('"Vertrag von"') == [both]
    assert ids("Vertrag -Quarzit") == [one]
    assert ids("!!!") == []
    assert ids("Vertrag", nutzer_filter="ben") == []
    assert ids("Vertrag", tags=["Nichts"]) == []
    anna.call("delete_brain_longterm_memory", IDs=[both])
    assert ids("Vertrag") == [one]


def test_case_71_selects_text_finds_nothing_foreign(anna: Agent, carla: Agent) -> None:
    anna.store(memory="Quarzit")
    mine = carla.store(memory="Quarzit")
    answer = carla.call("select_brain_longterm_memory", suche="Quarzit")
    assert [row["ID"] for row in answer["daten"]] == [mine]
    assert answer["weiter"] is None


def test_selects_text_goes_with_pages_and_filters(everybody: Agent, memories: list[Known]) -> None:
    for kind in (LONGTERM, SHORTTERM, BRAIN):
        tool = "select_brain_memory" if kind is BRAIN else f"select_brain_{kind.typ}_memory"
        for only in ({}, {"nutzer_filter": "anna"}, {"tags": ["Frist"]}, {"scope": "modul", "agent_filter": "koch"}):
            expected = [
                one.kennung
                for one in memories
                if one.kind is kind and one.passes(only) and not one.expired and {"Quarzit", "Violine"} <= one.words
            ]
            rows: list[str] = []
            weiter: dict[str, str] = {}
            while True:
                answer = everybody.call(tool, suche="Violine Quarzit", limit=3, **only, **weiter)
                rows += [row["ID"] for row in answer["daten"]]
                if answer["weiter"] is None:
                    break
                weiter = {"weiter": answer["weiter"]}
            assert len(rows) == len(set(rows))
            assert set(rows) == set(expected)


def test_the_cursor_of_another_text_is_refused(anna: Agent) -> None:
    for _n in range(3):
        anna.store(memory="Quarzit Sand")
    tool = "select_brain_longterm_memory"
    weiter = anna.call(tool, suche="Quarzit", limit=1)["weiter"]
    assert weiter
    body = {"inhalt": {"nutzer": "anna", "agent": "planer", "suche": "Sand", "limit": 1, "weiter": weiter}}
    assert anna.post(tool, body).status_code == 400
