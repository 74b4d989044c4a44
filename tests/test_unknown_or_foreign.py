"""What is out of sight and what is not there: the same answer, by the same statements; a refusal leaves nothing."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from api.tools import TOOLS
from memories.models import BrainMemory, Grant, LongtermMemory, Tag
from tests.admincast import form, person, url
from tests.conftest import Agent, note
from tests.doors import BRAIN, one_fault

MISSING = 999_999
VERBS = ("view", "change", "delete", "restore")


def statements(agent: Agent, tool: str, inhalt: dict[str, Any], kennung: str) -> tuple[Any, list[str]]:
    """The answer and the statements of a call, with the ID in question taken out of both."""

    with CaptureQueriesContext(connection) as context:
        answer = agent.call(tool, **inhalt)
    told = [re.sub(r"'[^']*'|[0-9]+", "?", query["sql"]) for query in context.captured_queries]
    return str(answer).replace(f"'{kennung}'", "K"), told


def asking(tool: str, kennung: str) -> dict[str, Any] | None:
    """A call of this tool that names the memory, if it can."""
    kind, verb = kennung.partition("_")[0], tool.partition("_")[0]
    of_kind = tool.endswith(f"_{kind}_memory") if kind != "brain" else tool.endswith("_brain_memory")
    if tool == "select_brain_history":
        return {"ID": kennung}
    if tool == "restore_brain_memory":
        return {"ID": kennung, "version": 1}
    if not of_kind or verb == "insert":
        return None
    if verb == "update":
        entry = {"ID": kennung, "kurzbeschreibung": "k", "memory": "m", "tags": ["Neu"]}
        return {"ID": kennung, "titel": "Neu"} if kind == "brain" else {"memories": [entry]}
    return {"IDs": [kennung]}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["longterm", "shortterm", "brain"])
def test_case_71_a_foreign_id_takes_the_statements_of_an_unknown_one(anna: Agent, carla: Agent, kind: str) -> None:
    if kind == "brain":
        foreign = anna.call("insert_brain_memory", **BRAIN)["daten"][0]["ID"]
    else:
        foreign = anna.call(f"insert_brain_{kind}_memory", memories=[note()])["daten"][0]["ID"]
    asked = 0
    for tool in TOOLS:
        if asking(tool.name, foreign) is None:
            continue
        ids = (f"{kind}_{MISSING + 1}", foreign, f"{kind}_{MISSING}")  # the first one warms up
        found = [statements(carla, tool.name, asking(tool.name, each) or {}, each) for each in ids]
        asked += 1
        assert found[1] == found[2], tool.name
        assert "nicht_gefunden" in found[1][0]
    assert asked >= 5
    assert not Tag.objects.filter(name="Neu").exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "question",
    [
        {"suche": "Kündigungsfrist"},
        {"suche": '"Kündigungsfrist beträgt drei Monate"'},
        {"suche": "Kündigungsfrist", "nachbarn": 1},
        {"suche": "Kündigungsfrist", "erklaeren": 1},
        {"suche": "Kündigungsfrist", "stand": "2999-01-01"},
        {"embedding": [1, 2, 3], "embedding_profil_hash": "p"},
    ],
    ids=str,
)
def test_case_71_a_search_says_the_same_whether_others_have_what_is_asked_for_or_not(
    anna: Agent, carla: Agent, question: dict[str, Any]
) -> None:
    carla.store(memory="Anderes", kurzbeschreibung="Anderes", tags=[], embedding=[3, 2, 1], embedding_profil_hash="p")
    before = carla.call("search_brain", **question)
    for _each in range(3):
        anna.store(embedding=[1, 2, 3], embedding_profil_hash="p")
    assert carla.call("search_brain", **question) == before


# Pages of the admin


@pytest.fixture
def viewer(db: None) -> Client:
    """Somebody who may do everything with carla's memories, and see all other pages."""
    kinds = [f"{verb}_{kind}memory" for verb in VERBS for kind in ("longterm", "shortterm", "brain")]
    more = [
        "view_tag",
        "view_callrecord",
        "view_duplicatepair",
        "view_embeddingprofile",
        "add_importjob",
        "view_recall",
    ]
    versions = [f"view_{kind}version" for kind in ("longterm", "shortterm", "brain")]
    client = person("carla", [*kinds, *more, *versions])
    Grant.objects.update(nutzer=["carla"])
    return client


def shown(client: Client, address: str) -> tuple[int, str, str]:
    """Status, where it leads, and every text of the pages behind it, but for its own number and tokens."""
    response = client.get(address, follow=True)
    number = re.search(r"/(\d+)/", address)
    assert number is not None
    told = (str(response.redirect_chain), response.content.decode())
    own = re.compile(rf'(csrfmiddlewaretoken" value|nonce)="[^"]*"|(?<=[/“_]){number[1]}(?=[/”"])')
    chain, text = (own.sub("N", each) for each in told)
    return response.status_code, chain, text


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["change", "delete", "history"])
@pytest.mark.parametrize("moved", [False, True])
def test_a_memory_out_of_sight_reads_like_an_unknown_one_on_every_page(
    viewer: Client, anna: Agent, page: str, moved: bool
) -> None:
    kennung = int(anna.store().partition("_")[2])
    if moved:
        LongtermMemory.objects.filter(pk=kennung).update(nutzer="carla")
        assert shown(viewer, url("change", kennung))[0] == 200
        LongtermMemory.objects.filter(pk=kennung).update(nutzer="anna")
        viewer.get("/admin/")
    foreign, unknown = (shown(viewer, url(page, number)) for number in (kennung, 987_654))
    assert foreign == unknown


# A refusal leaves nothing


@pytest.mark.django_db
def test_a_change_that_would_move_a_memory_out_of_reach_makes_no_tag(anna: Agent) -> None:
    curator = person("carla", [f"{verb}_brainmemory" for verb in VERBS])
    Grant.objects.update(scope=["modul"])
    stored = anna.call("insert_brain_memory", **BRAIN | {"scope_typ": "modul", "scope_ID": "1"})["daten"][0]["ID"]
    address = url("change", stored.partition("_")[2], kind="brain")
    sent = form(curator, address) | {"schlagworte": "Neuland"}
    refused = curator.post(address, sent | {"scope_typ": "room"})
    assert refused.status_code == 200
    assert "may not store memories with this" in refused.content.decode()
    memory = BrainMemory.objects.get()
    assert (memory.scope_typ, memory.tag_namen, memory.version) == ("modul", [], 1)
    assert not Tag.objects.exists()
    assert curator.post(address, sent).status_code == 302
    assert Tag.objects.get().name == "Neuland"


@pytest.mark.django_db
def test_a_new_memory_out_of_reach_makes_no_tag(agent_with: Callable[..., Agent]) -> None:
    agent = agent_with("anna", scope=["modul"])
    refused = agent.call("insert_brain_longterm_memory", memories=[note(scope="room", tags=["Neuland"])])
    assert one_fault(refused) == ("nicht_erlaubt", "scope")
    assert not Tag.objects.exists()
