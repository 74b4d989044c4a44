"""Who said so: one identity however it is spelled, nothing that only looks like it, and both names on what was done."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from api.tool import Shape
from api.tools import TOOLS
from memories.keys import make_key
from memories.kinds import KINDS
from memories.models import AccessKey, CallRecord, LongtermMemory, LongtermVersion
from tests.admincast import form, person
from tests.conftest import Agent, note
from tests.doors import BRAIN, NAMES, inhalt_for, tool_of
from tests.mcp import Mcp

pytestmark = pytest.mark.django_db

Make = Callable[..., Agent]
Said = Callable[[Agent, str, Any], dict[str, Any]]
INSERT, SELECT = "insert_brain_longterm_memory", "select_brain_longterm_memory"
DOORS = ["rest", "modern"]
# As it is kept, and other spellings of it.
SPELLINGS = [("Zürich", "Zu\u0308rich"), ("7", 7), ("7", 7.0), ("각", "\u1100\u1161\u11a8"), ("Å", "\u212b")]
# What only looks like anna, or is no identifier at all.
NONE_OF_HERS = [
    *(
        " anna",
        "anna ",
        "\u00a0anna",
        "anna\u3000",
        "an\u200bna",
        "anna\u200d",
        "\ufeffanna",
        "\u2060anna",
        "an\u00adna",
    ),
    *("anna\n", "an\tna", "anna\x7f", "anna\u2028", "\u202eanna", "an\u034fna", "anna\u3164", "anna\U000e0041"),
    *(True, False, 1.5, 1e300),
]


@pytest.fixture(params=DOORS)
def said(request: pytest.FixtureRequest) -> Said:
    """Sends the content of a call through a door; the answer of the envelope, whatever became of the call."""

    def send(agent: Agent, tool: str, inhalt: Any) -> dict[str, Any]:
        if request.param == "rest":
            answer: dict[str, Any] = agent.post(tool, {"inhalt": inhalt}).json()
        else:
            answer = Mcp(agent, request.param).call(tool, {"inhalt": inhalt})["structuredContent"]
        return answer

    return send


def faults(answer: dict[str, Any]) -> set[tuple[str, str]]:
    """All faults of the call and of its rows, as code and field."""
    told = [answer["fehler"], *(row.get("fehler") for row in answer["daten"])]
    return {(each["code"], each["feld"]) for fault in told if fault for each in fault.get("details", [fault])}


# One identity


@pytest.mark.parametrize(("kept", "other"), SPELLINGS)
@pytest.mark.parametrize("first", ["kept", "other"])
def test_an_identity_is_found_and_kept_as_one_however_it_is_spelled(
    agent_with: Make, said: Said, kept: str, other: Any, first: str
) -> None:
    one, two = (kept, other) if first == "kept" else (other, kept)
    key = agent_with("g")
    entry = note(nutzer=one, agent=one, scope=one, scope_vk=one)
    stored = said(key, INSERT, {"nutzer": one, "agent": one, "memories": [entry]})
    assert stored["erfolg"], stored
    brain = BRAIN | {"scope_ID": one if isinstance(one, str) else kept}
    assert said(key, "insert_brain_memory", {"nutzer": one, "agent": one, **brain})["erfolg"]
    caller = {"nutzer": two, "agent": two}
    by_all = {"nutzer_filter": two, "agent_filter": two, "scope": two, "scope_vk": two}
    for tool, query in ((SELECT, by_all), ("search_brain", {"suche": "Kündigungsfrist", **by_all})):
        found = said(key, tool, caller | query)
        assert [row["ID"] for row in found["daten"]] == [stored["daten"][0]["ID"]], found
        assert (found["daten"][0]["nutzer"], found["daten"][0]["agent"]) == (kept, kept)
    mine = said(key, "select_brain_memory", caller | {"nutzer_filter": two, "agent_filter": two})
    assert mine["anzahl"]["gesamt"] == 1
    memory = LongtermMemory.objects.get()
    assert (memory.nutzer, memory.agent, memory.scope, memory.scope_vk) == (kept,) * 4
    version = LongtermVersion.objects.get()
    assert (version.durch_nutzer, version.durch_agent) == (kept, kept)
    assert set(CallRecord.objects.values_list("nutzer", "agent")) == {(kept, kept)}


@pytest.mark.parametrize(("kept", "other"), SPELLINGS)
def test_a_pinned_key_speaks_for_its_identity_in_any_spelling(
    agent_with: Make, said: Said, kept: str, other: Any
) -> None:
    key = agent_with("g", nutzer=[other if isinstance(other, str) else kept], agent=[kept])
    for spelling in (kept, other):
        entry = note(nutzer=spelling, agent=spelling)
        assert said(key, INSERT, {"nutzer": spelling, "agent": spelling, "memories": [entry]})["erfolg"]
    assert said(key, SELECT, {"nutzer": other, "agent": kept})["anzahl"]["gesamt"] == 2


# Nothing that only looks like it


def places() -> Iterator[tuple[str, str]]:
    """Every tool with each place of it where an identity stands."""
    for tool in TOOLS:
        inhalt = tool.input_schema["properties"]["inhalt"]["properties"]
        for name in ("nutzer", "agent", "nutzer_filter", "agent_filter"):
            if name in inhalt:
                yield tool.name, f"inhalt.{name}"
        if tool.shape is Shape.MEMORIES:
            entry = inhalt["memories"]["items"]["properties"]
            yield from ((tool.name, name) for name in ("nutzer", "agent") if name in entry)


def test_the_places_of_identities_are_all_there_are() -> None:
    found = set(places())
    assert len(found) == 2 * len(TOOLS) + 2 * 4 + 2 * 2
    assert ("search_brain", "inhalt.nutzer_filter") in found


@pytest.mark.parametrize(("tool", "place"), list(places()), ids=str)
def test_what_only_looks_like_an_identity_is_refused_wherever_one_stands(
    anna: Agent, said: Said, tool: str, place: str
) -> None:
    before = LongtermMemory.objects.count()
    for value in NONE_OF_HERS:
        inhalt = inhalt_for(tool)
        name = place.removeprefix("inhalt.")
        if place == name:
            inhalt["memories"][0][name] = value
        else:
            inhalt[name] = value
        answer = said(anna, tool, inhalt)
        assert not answer["erfolg"], (value, answer)
        assert ("ungueltig", place) in faults(answer), (value, answer)
        assert (answer["daten"] == []) == (place != name)
    assert LongtermMemory.objects.count() == before


@pytest.mark.parametrize("name", ["nutzer", "agent"])
def test_a_pinned_key_can_claim_nobody_else_on_any_tool(agent_with: Make, said: Said, name: str) -> None:
    key = agent_with("anna", nutzer=["anna"], agent=["planer"])
    for tool in NAMES:
        for value in ("ben", "Anna", "ann\u0430", 7, "planer" if name == "nutzer" else "anna"):
            answer = said(key, tool, inhalt_for(tool) | {name: value})
            assert faults(answer) == {("nicht_erlaubt", f"inhalt.{name}")}, answer
    for tool in (INSERT, "insert_brain_shortterm_memory"):
        inhalt = {"nutzer": "anna", "agent": "planer", "memories": [note(**{name: "ben"})]}
        assert faults(said(key, tool, inhalt)) == {("nicht_erlaubt", name)}
    assert not any(kind.memories.objects.exists() for kind in KINDS)


# Both names


def test_what_a_gateways_key_does_names_the_key_and_whom_it_spoke_for(agent_with: Make, said: Said) -> None:
    gateway = agent_with("gateway")
    row = AccessKey.objects.select_related("account").get()
    for nutzer, agent in (("anna", "planer"), ("ben", "koch")):
        entry = note(nutzer=nutzer, agent=agent)
        stored = said(gateway, INSERT, {"nutzer": nutzer, "agent": agent, "memories": [entry]})["daten"][0]["ID"]
        record = CallRecord.objects.latest("pk")
        assert (record.schluessel_id, record.schluessel, record.konto) == (row.pk, row.name, row.account.name)
        assert (record.nutzer, record.agent, record.code) == (nutzer, agent, "ok")
        version = LongtermVersion.objects.get(memory_id=int(stored.partition("_")[2]))
        assert (version.schluessel_id, version.schluessel) == (row.pk, row.name)
        assert (version.durch_nutzer, version.durch_agent) == (nutzer, agent)
        assert version.tuer == record.tuer
        (told,) = said(gateway, "select_brain_history", {"nutzer": "carla", "agent": "x", "ID": stored})["daten"]
        assert (told["schluessel"], told["nutzer"], told["agent"]) == (row.name, nutzer, agent)


@pytest.mark.parametrize("tool", NAMES)
def test_every_tool_records_the_key_and_whom_it_spoke_for(agent_with: Make, said: Said, tool: str) -> None:
    gateway = agent_with("gateway")
    said(gateway, tool, inhalt_for(tool) | {"nutzer": "Zu\u0308rich", "agent": 7.0})
    record = CallRecord.objects.get()
    assert (record.tool, record.schluessel, record.nutzer, record.agent) == (tool, "gateway", "Zürich", "7")
    assert tool_of(tool).writes or record.code == "ok"


# The forms and the command that pin


@pytest.fixture
def boss() -> Client:
    """Administrator."""
    return person("boss", superuser=True)


LOOKALIKES = [value for value in NONE_OF_HERS if isinstance(value, str) and value == value.strip()]


def test_the_form_of_keys_pins_the_identity_itself(boss: Client) -> None:
    key, text = make_key(name="k", account="a", only={}, may_write=True, expires_at=None)
    address = f"/admin/memories/accesskey/{key.pk}/change/"
    fields = form(boss, address) | {"may_write": "on"}
    lines = {"nutzer": "Zu\u0308rich\r\n 7 \r\nZürich", "agent": "pla\u0308ner"}
    assert boss.post(address, fields | lines).status_code == 302
    key.refresh_from_db()
    assert (key.nutzer, key.agent) == (["Zürich", "7"], ["pläner"])
    agent = Agent(text, nutzer="Zürich", agent="pläner")
    assert agent.call(INSERT, memories=[note(nutzer=7, agent="pla\u0308ner")])["erfolg"]
    for value in LOOKALIKES:
        for name in ("nutzer", "agent"):
            page = boss.post(address, fields | {name: value})
            assert name in page.context["adminform"].form.errors, ascii(value)
    key.refresh_from_db()
    assert key.nutzer == ["Zürich", "7"]


@pytest.mark.parametrize("address", ["/admin/auth/user/{}/change/", "/admin/auth/group/{}/change/"])
def test_the_forms_of_grants_keep_the_identity_itself(boss: Client, address: str) -> None:
    owner: Any = User.objects.create_user("anna") if "user" in address else Group.objects.create(name="Team")
    grant = owner.grants.create()
    page = address.format(owner.pk)
    fields = {name: value for name, value in form(boss, page).items() if value or name.startswith("grants")}
    sent = fields | {"grants-0-nutzer": "Zu\u0308rich\r\n7", "grants-0-agent": "pla\u0308ner"}
    saved = boss.post(page, sent)
    assert saved.status_code == 302, saved.context["errors"]
    grant.refresh_from_db()
    assert (grant.nutzer, grant.agent) == (["Zürich", "7"], ["pläner"])
    for value in LOOKALIKES:
        refused = boss.post(page, fields | {"grants-0-nutzer": value})
        assert refused.status_code == 200, ascii(value)
    grant.refresh_from_db()
    assert grant.nutzer == ["Zürich", "7"]
