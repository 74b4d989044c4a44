"""Case 98: what a key under review stores waits for a person, and until then is there for no agent at any door."""

from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories import duplicates, services
from memories.errors import BrainError
from memories.kinds import BRAIN, KINDS, LONGTERM, SHORTTERM, Kind, parse_id
from memories.models import AccessKey, SearchEntry
from memories.principal import SYSTEM, Action, Origin, Principal, Reach
from memories.search import derived
from memories.search.derived import Made, checksum
from tests.conftest import Agent, note
from tests.doors import NAMES, entry_for, fault_of, history, inhalt_for, now
from tests.embedders import Endpoint
from tests.matrix import ANNAS, agent_of, stored
from tests.mcp import Mcp
from tests.searching import found
from tests.test_matrix import everything_told, say
from tests.transferring import assert_sound, become_another_installation, export, file_of, lines_of, run_import

pytestmark = pytest.mark.django_db

MARK, TAG = "Verschlusssache", "Vorschlagsfach"
VECTOR = {"embedding": [1, 2, 3], "embedding_profil_hash": f"profil-{ANNAS.secret}"}
CURATOR = Principal(
    reaches=(Reach(frozenset({Action.READ, Action.WRITE, Action.RESTORE})),),
    sees_expired=True,
    sees_proposed=True,
    user_name="kira",
)


def by(principal: Principal = CURATOR, grund: str = "geprüft") -> Origin:
    """How a decision comes about."""
    return Origin(principal, nutzer="kira", agent="", tuer="admin", tool="admin", grund=grund)


@pytest.fixture
def builder(db: None) -> Agent:
    """Reads and writes everything."""
    return agent_of("a key without limits")


@pytest.fixture
def proposer(db: None) -> Agent:
    """Speaks for anna, under review."""
    return agent_of("a key under review")


def propose(agent: Agent, **fields: Any) -> tuple[Kind, int]:
    """A new proposal."""
    return parse_id(agent.store(**fields), "ID")


def decided(decide: Any, kind: Kind, key: int, version: int | None = None, origin: Origin | None = None) -> Any:
    """What became of a decision."""
    return decide(kind, {key: version}, origin or by())[0]


# Absent


@pytest.mark.parametrize("door", ["rest", "mcp"])
def test_case_98_a_proposal_is_told_as_one_and_nothing_that_agents_are_told_depends_on_it(
    builder: Agent, proposer: Agent, door: str
) -> None:
    own = stored(ANNAS, builder)
    agents = (builder, proposer)
    before = [everything_told(agent, own, own) for agent in agents]
    text = f"{MARK} mit {own.word} und Kündigungsfrist"
    inserts = [
        (f"insert_brain_{typ}_memory", {"memories": [own.entry(text, tags=["gemeinsam", own.tag, TAG], **VECTOR)]})
        for typ in ("longterm", "shortterm")
    ]
    inserts.append(("insert_brain_memory", own.brain(text, session_ID="s", inhalt_json='{"a": "Verschlusssache"}')))
    proposals = []
    for tool, inhalt in inserts:
        _status, answer, _text = say(proposer, door, tool, inhalt)
        assert answer["erfolg"], answer
        (row,) = answer["daten"]
        assert row["vorgeschlagen"] is True
        proposals.append(row["ID"])
    assert [everything_told(agent, own, own) for agent in agents] == before
    for agent in agents:
        for kennung in proposals:
            assert now(agent, kennung)["fehler"]["code"] == "nicht_gefunden"
            unknown = agent.call("select_brain_history", ID=kennung)["daten"][0]["fehler"]
            assert unknown["code"] == "nicht_gefunden"
        assert found(agent, MARK) == found(agent, MARK, stand="2999-01-01") == []
        assert found(agent, **VECTOR, mit_veralteten=1).count(proposals[0]) == 0
        assert agent.call("select_brain_tags", praefix=TAG)["daten"] == []
    for kind, key in (parse_id(kennung, "ID") for kennung in proposals):
        assert Mcp(builder).fails("resources/read", uri=f"brain://{kind.typ}/{key}")
        assert kind.memories.objects.get(pk=key).vorgeschlagen
    assert_sound()


def test_case_98_what_is_stored_without_review_says_nothing_of_it(builder: Agent) -> None:
    (row,) = builder.call("insert_brain_longterm_memory", memories=[note()])["daten"]
    assert row.keys() == {"index", "typ", "erfolg", "ID"}


REFUSED = ("update", "delete", "promote", "restore")


@pytest.mark.parametrize("tool", NAMES)
def test_case_98_a_key_under_review_reads_and_stores_alone(proposer: Agent, tool: str) -> None:
    response = proposer.post(tool, {"inhalt": inhalt_for(tool)})
    if tool.startswith(REFUSED):
        assert fault_of(response, 403)["code"] == "nicht_erlaubt"
    else:
        assert response.status_code == 200
    offered = {each["name"] for each in Mcp(proposer).ask("tools/list")["tools"]}
    assert (tool in offered) != tool.startswith(REFUSED)


def test_case_98_a_proposal_cannot_be_changed_by_another_agent(builder: Agent, proposer: Agent) -> None:
    kind, key = propose(proposer)
    for tool in ("update_brain_longterm_memory", "delete_brain_longterm_memory", "restore_brain_memory"):
        entry = entry_for(tool)
        texts = []
        for kennung in (f"{kind.typ}_{key}", "longterm_999999"):
            inhalt = (
                {"IDs": [kennung]}
                if tool.startswith("delete")
                else {"memories": [entry | {"ID": kennung}]}
                if tool.startswith("update")
                else entry | {"ID": kennung}
            )
            texts.append(str(builder.call(tool, **inhalt)["daten"]).replace(kennung, "ID"))
        assert texts[0] == texts[1]
    assert kind.versions.objects.filter(memory_id=key).count() == 1


def test_case_98_the_same_call_sent_again_is_answered_the_same(proposer: Agent) -> None:
    arguments = {"inhalt": inhalt_for("insert_brain_longterm_memory")}
    answers = [
        proposer.post("insert_brain_longterm_memory", arguments, **{"Idempotency-Key": "k"}).json() for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert answers[0]["daten"][0]["vorgeschlagen"] is True
    assert LONGTERM.memories.objects.count() == 1


def test_case_98_the_command_makes_such_a_key() -> None:
    call_command("create_key", "k", "--pruefpflicht", stdout=StringIO())
    assert AccessKey.objects.get().pruefpflicht
    assert AccessKey.objects.get().principal().proposes


# Decided


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.typ)
def test_case_98_what_is_approved_is_found_from_then_on(builder: Agent, proposer: Agent, kind: Kind) -> None:
    tool = "insert_brain_memory" if kind is BRAIN else f"insert_brain_{kind.typ}_memory"
    entry = ANNAS.brain(MARK) if kind is BRAIN else {"memories": [ANNAS.entry(MARK, tags=[TAG], **VECTOR)]}
    kennung = proposer.call(tool, **entry)["daten"][0]["ID"]
    key = parse_id(kennung, "ID")[1]
    before = timezone.now()
    done = decided(services.approve, kind, key)
    assert (done.key, done.version, done.changed) == (key, 2, True)
    for agent in (builder, proposer):
        assert found(agent, MARK) == [kennung]
        assert found(agent, MARK, stand=before.isoformat()) == []
        assert now(agent, kennung)["version"] == 2
        (step,) = history(agent, kennung)
        assert (step["version"], step["aktion"], step["grund"], step["aenderungen"]) == (
            2,
            "freigegeben",
            "geprüft",
            [],
        )
        assert (step["nutzer"], step["benutzer"], step["schluessel"]) == ("kira", "kira", None)
    assert [each["name"] for each in builder.call("select_brain_tags", praefix=TAG)["daten"]] == [TAG] * (
        kind is not BRAIN
    )
    whole = kind.versions.objects.filter(memory_id=key).order_by("version")
    assert [(each.aktion, each.schluessel, each.vorgeschlagen) for each in whole] == [
        ("angelegt", "a key under review", True),
        ("freigegeben", "", False),
    ]
    assert_sound()


def test_case_98_an_approved_one_is_searched_as_of_later_moments(builder: Agent, proposer: Agent) -> None:
    kind, key = propose(proposer, memory=MARK)
    decided(services.approve, kind, key)
    approved = timezone.now()
    services.update(kind, [services.Change(key, {"memory": "Anderes"})], by())
    assert found(builder, MARK) == []
    assert found(builder, MARK, stand=approved.isoformat()) == [f"{kind.typ}_{key}"]
    assert_sound()
    call_command("search_index", "--rebuild", stdout=StringIO())
    assert_sound()
    assert found(builder, MARK, stand=approved.isoformat()) == [f"{kind.typ}_{key}"]


def test_case_98_a_rejected_one_lies_in_the_trash_and_comes_back_as_a_proposal(builder: Agent, proposer: Agent) -> None:
    kind, key = propose(proposer, memory=MARK)
    done = decided(services.reject, kind, key, origin=by(grund="falsch"))
    assert done.version == 2
    assert not kind.memories.objects.exists()
    gone = kind.versions.objects.get(memory_id=key, version=2)
    assert (gone.aktion, gone.grund, gone.benutzer) == ("geloescht", "falsch", "kira")
    assert "fehler" in builder.call("select_brain_history", ID=f"{kind.typ}_{key}")["daten"][0]
    assert isinstance(services.restore(kind, key, 1, by()), services.Done)
    assert kind.memories.objects.get(pk=key).vorgeschlagen
    assert found(builder, MARK) == []
    assert_sound()


def test_case_98_an_edited_proposal_stays_one_and_an_approved_one_never_becomes_one_again(
    builder: Agent, proposer: Agent
) -> None:
    kind, key = propose(proposer)
    services.update(kind, [services.Change(key, {"memory": MARK})], by())
    assert kind.memories.objects.get(pk=key).vorgeschlagen
    assert found(builder, MARK) == []
    decided(services.approve, kind, key)
    assert isinstance(services.restore(kind, key, 1, by()), services.Done)
    assert not kind.memories.objects.get(pk=key).vorgeschlagen
    assert [step["version"] for step in history(builder, f"{kind.typ}_{key}")] == [4, 3]
    services.delete(kind, [key], by(SYSTEM))
    assert isinstance(services.restore(kind, key, 1, by()), services.Done)
    assert found(builder, "Kündigungsfrist") == [f"{kind.typ}_{key}"]
    assert_sound()


@pytest.mark.parametrize("decide", [services.approve, services.reject])
def test_case_98_a_decision_is_made_once_on_what_was_seen_and_by_whoever_may_change_it(
    proposer: Agent, decide: Any
) -> None:
    kind, key = propose(proposer)
    services.update(kind, [services.Change(key, {"memory": "Anderes"})], by())
    reader = Principal(reaches=(Reach(frozenset({Action.READ})),), sees_proposed=True)
    elsewhere = Principal(reaches=(Reach(nutzer=frozenset({"ben"})),), sees_proposed=True)
    agent = Principal(reaches=(Reach(),))
    for principal in (reader, elsewhere, agent):
        fault = decided(decide, kind, key, origin=by(principal))
        assert (fault.code, str(fault.meldung)) == ("nicht_gefunden", "Eine Erinnerung mit dieser ID gibt es nicht.")
    assert decided(decide, kind, key, version=1).code == "konflikt"
    assert kind.memories.objects.get(pk=key).vorgeschlagen
    assert isinstance(decided(decide, kind, key, version=2), services.Done)
    again = decided(decide, kind, key)
    assert again.code == ("konflikt" if decide is services.approve else "nicht_gefunden")
    assert kind.versions.objects.filter(memory_id=key).count() == 3


def test_case_98_a_vector_of_another_length_is_found_when_it_is_approved(builder: Agent, proposer: Agent) -> None:
    three, two = ({"embedding": numbers, "embedding_profil_hash": "p"} for numbers in ([1, 2, 3], [1, 2]))
    kind, short = propose(proposer, **two)
    _kind, long = propose(proposer, **three)
    builder.store(**three)
    fault = decided(services.approve, kind, short)
    assert isinstance(fault, BrainError)
    assert fault.feld == "embedding"
    assert isinstance(decided(services.approve, kind, long), services.Done)


@pytest.mark.parametrize("decide", [services.approve, services.reject])
def test_case_98_a_hundred_decisions_take_as_many_statements_as_ten(proposer: Agent, decide: Any) -> None:
    costs = {}
    for size in (10, 50, 100):
        rows = proposer.call("insert_brain_longterm_memory", memories=[note(tags=[])] * size)["daten"]
        keys = {parse_id(row["ID"], "ID")[1]: 1 for row in rows}
        with CaptureQueriesContext(connection) as context:
            outcomes = decide(LONGTERM, keys, by())
        assert all(isinstance(outcome, services.Done) for outcome in outcomes)
        costs[size] = len(context)
    assert costs[10] == costs[50] <= 12
    assert costs[100] <= costs[50] + 2


# What else looks at memories


def test_case_98_a_proposal_is_embedded_when_it_is_approved(there: Endpoint, builder: Agent, proposer: Agent) -> None:
    kind, key = propose(proposer, memory="Ein Welpe")
    call_command("embed_pending", stdout=StringIO())
    assert "Welpe" not in str(there.asked)
    embedder = derived.serving()
    assert embedder is not None
    text = derived.text_of(kind.memories.objects.get(pk=key))
    made = Made(kind, key, checksum(text), embedder.embed_query(text))
    assert derived.store(derived.profile_of(embedder), [made]) == 0
    assert not SearchEntry.objects.exists()
    decided(services.approve, kind, key)
    call_command("embed_pending", stdout=StringIO())
    assert found(builder, "Hund") == [f"{kind.typ}_{key}"]
    assert_sound()


def test_case_98_proposals_are_no_near_duplicates_and_are_not_merged(builder: Agent, proposer: Agent) -> None:
    kind, key = propose(proposer)
    _kind, other = parse_id(builder.store(), "ID")
    assert duplicates.find(100) == 1
    wish = services.Merge(other, {other: 1, key: 1})
    outcome = services.merge(kind, wish, by(SYSTEM))
    assert isinstance(outcome, BrainError)
    assert outcome.code == "ungueltig"
    decided(services.approve, kind, key)
    duplicates.find(100)
    assert duplicates.DuplicatePair.objects.count() == 1


def test_case_98_a_proposal_goes_out_and_comes_in_as_one(tmp_path: Path, builder: Agent, proposer: Agent) -> None:
    keys = [propose(proposer, memory=f"{MARK} {number}")[1] for number in range(4)]
    builder.store(memory="gewöhnlich")
    services.update(LONGTERM, [services.Change(keys[1], {"memory": "geändert"})], by())
    decided(services.approve, LONGTERM, keys[2])
    decided(services.reject, LONGTERM, keys[3])
    text = export("--with-deleted")
    told = [
        (line.get("vorgeschlagen"), [v["stand"].get("vorgeschlagen") for v in line["versionen"]])
        for line in lines_of(text)
    ]
    assert told == [
        (True, [True]),
        (True, [True, True]),
        (None, [True, None]),
        (True, [True, True]),
        (None, [None]),
    ]
    become_another_installation()
    path = file_of(tmp_path, text)
    assert run_import(path)[0] == {"neu": 5, "geaendert": 0, "gleich": 0, "fehlerhaft": 0}
    assert run_import(path)[0]["gleich"] == 5
    state = LONGTERM.memories.objects.order_by("pk").values_list("vorgeschlagen", flat=True)
    assert list(state) == [True, True, False, False]
    assert len(found(agent_of("an outsider's key"), MARK)) == 0
    assert_sound()


def test_case_98_an_import_goes_on_with_the_approval_and_changes_no_state_otherwise(
    tmp_path: Path, proposer: Agent
) -> None:
    kind, key = propose(proposer, memory=MARK)
    first = export()
    decided(services.approve, kind, key)
    second = export()
    become_another_installation()
    assert run_import(file_of(tmp_path, first))[0]["neu"] == 1
    (line,) = lines_of(first)
    edited = {**line, "memory": "im Text geändert", "vorgeschlagen": False}
    del edited["versionen"]
    assert run_import(file_of(tmp_path, edited))[0]["geaendert"] == 1
    assert kind.memories.objects.get().vorgeschlagen
    become_another_installation()
    assert run_import(file_of(tmp_path, first))[0]["neu"] == 1
    assert run_import(file_of(tmp_path, second))[0]["geaendert"] == 1
    assert not kind.memories.objects.get().vorgeschlagen
    assert run_import(file_of(tmp_path, first))[0]["gleich"] == 1
    assert not kind.memories.objects.get().vorgeschlagen
    assert_sound()


def test_case_98_a_file_cannot_take_an_approval_back(tmp_path: Path, proposer: Agent) -> None:
    kind, key = propose(proposer)
    decided(services.approve, kind, key)
    (line,) = lines_of(export())
    line["versionen"].reverse()
    for number, version in enumerate(line["versionen"], 1):
        version["version"] = number
        version["zeitpunkt"] = line["aktualisiert_am"]
    become_another_installation()
    counts, told = run_import(file_of(tmp_path, line))
    assert counts["fehlerhaft"] == 1
    assert "wird nicht wieder Vorschlag" in told


def test_case_98_a_proposal_whose_validity_is_over_is_cleaned_up(proposer: Agent) -> None:
    entry = note(gueltig_bis=(timezone.now() - timedelta(days=1)).isoformat())
    assert proposer.call("insert_brain_shortterm_memory", memories=[entry])["erfolg"]
    call_command("clean_up", stdout=StringIO())
    assert not SHORTTERM.memories.objects.exists()
