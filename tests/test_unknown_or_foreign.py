"""What is out of sight and what is not there: the same answer, by the same statements; a refusal leaves nothing."""

import re
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from api.tools import TOOLS
from memories.kinds import KINDS
from memories.models import BrainMemory, Erasure, Grant, ImportJob, LongtermMemory, SavedView, Tag
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


# Every page that names a row

# Those of which somebody sees a part; of the others, whoever may open the list sees all.
IN_PART = {
    *("longtermmemory", "shorttermmemory", "brainmemory", "longtermversion", "shorttermversion", "brainversion"),
    *("tag", "duplicatepair", "callrecord", "recall", "importjob", "erasure"),
}
UNKNOWN = 987_654


def everything_of_others(anna: Agent) -> None:
    """Something that is anna's, or another person's, in each list of the admin."""
    for text in ("Kündigungsfrist", "Kündigungsfrist", "Anderes"):
        anna.store(memory=text)
    anna.call("insert_brain_shortterm_memory", memories=[note(), note()])
    for _each in range(2):
        anna.call("insert_brain_memory", **BRAIN)
    anna.call("search_brain", suche="Kündigungsfrist")
    call_command("find_duplicates", stdout=StringIO())
    other = User.objects.create_user("other")
    ImportJob.objects.create(user_id=other.pk, dateiname="x", format="brain", vorgaben={})
    SavedView.objects.create(user=other, typ="longterm", name="Meine")
    nobody = dict.fromkeys(("identitaet", "tuer", "benutzer", "grund", "digest"), "x")
    Erasure.objects.create(**nobody, gefunden=0, benutzer_id=other.pk)


def pages_of(model_admin: Any) -> dict[str, Callable[[int], str]]:
    """The addresses that name a row by its key, by what they are called."""
    found: dict[str, Callable[[int], str]] = {}
    for pattern in model_admin.get_urls():
        names = pattern.pattern.converters.keys()
        if not names or names == {"name"} or (pattern.name or "").endswith("memory_view"):
            continue
        key = "object_id" if "object_id" in names else "number"
        more = {name: 1 for name in names if name != key}

        def address(number: int, pattern: Any = pattern, key: str = key, more: Any = more) -> str:
            if pattern.name:
                return reverse(f"admin:{pattern.name}", kwargs={key: number, **more})
            return (
                reverse("admin:app_list", args=[model_admin.opts.app_label])
                + f"{model_admin.opts.model_name}/{number}/"
            )

        found[pattern.name or "short"] = address
    return found


def foreign(model_admin: Any, person: User) -> list[int]:
    """The keys of the rows that are out of somebody's sight."""
    request: Any = RequestFactory().get("/")
    request.user = person
    seen = list(model_admin.get_queryset(request).values_list("pk", flat=True))
    return list(model_admin.model._base_manager.exclude(pk__in=seen).values_list("pk", flat=True))  # noqa: SLF001


def told(client: Client, method: str, address: str, number: int, **sent: Any) -> tuple[int, str, str]:
    """Status, where it leads, and every text of the pages behind it, but for the key and what each page has anew."""
    client.get("/admin/")  # shows what earlier pages had to tell
    response = getattr(client, method)(address, sent, follow=True)
    list_ = re.escape(address.partition(f"/{number}/")[0])
    key = rf"(?<=“){number}(?=”)|(?<=id=){number}\b|(?<={list_}/){number}(?=/)"
    own = re.compile(rf'(csrfmiddlewaretoken" value|nonce)="[^"]*"|{key}')
    chain, text = (own.sub("N", each) for each in (str(response.redirect_chain), response.content.decode()))
    return response.status_code, chain, text


@pytest.fixture
def carla_of_all(db: None) -> Client:
    """Somebody with every permission of the admin, who sees and changes carla's memories alone."""
    client = person("carla")
    User.objects.get(username="carla").user_permissions.set(Permission.objects.all())
    Grant.objects.update(nutzer=["carla"])
    return client


@pytest.mark.django_db
def test_case_71_every_page_of_the_admin_answers_for_a_foreign_row_as_for_an_unknown_one(
    anna: Agent, carla: Agent, carla_of_all: Client
) -> None:
    for kind in ("longterm", "shortterm"):  # so that no foreign key is 1, which versions are
        carla.call(f"insert_brain_{kind}_memory", memories=[note(nutzer="carla", tags=["Carlas"])])
    carla.call("insert_brain_memory", **BRAIN)
    everything_of_others(anna)
    before = {kind.typ: kind.versions.objects.count() for kind in KINDS}
    someone = User.objects.get(username="carla")
    tried = set()
    for model, model_admin in admin.site._registry.items():  # noqa: SLF001
        keys = foreign(model_admin, someone)
        for key in keys[-1:]:
            tried.add(model_admin.opts.model_name)
            for name, address in pages_of(model_admin).items():
                for method, sent in (("get", {}), ("post", {"post": "yes", "grund": "x", "name": "Neu"})):
                    answers = [told(carla_of_all, method, address(number), number, **sent) for number in (key, UNKNOWN)]
                    assert answers[0] == answers[1], (name, method)
                    assert model._base_manager.filter(pk=key).exists()  # noqa: SLF001
    assert tried == IN_PART
    assert {kind.typ: kind.versions.objects.count() for kind in KINDS} == before
    assert set(Tag.objects.values_list("name", flat=True)) == {"Vertrag", "Carlas"}


@pytest.mark.django_db
def test_case_71_what_names_rows_beside_its_address_answers_for_foreign_ones_as_for_unknown_ones(
    anna: Agent, carla_of_all: Client
) -> None:
    everything_of_others(anna)
    view, memory = SavedView.objects.get().pk, LongtermMemory.objects.order_by("pk").values_list("pk", flat=True)[0]
    LongtermMemory.objects.filter(pk=memory).update(vorgeschlagen=True)
    queue = "/admin/memories/proposals/"
    for what in ("delete", "start", "name"):
        answers = [told(carla_of_all, "post", url("view", each), each, **{what: "x"}) for each in (view, UNKNOWN)]
        assert answers[0] == answers[1], what
    for what in ("approve", "reject"):
        sent = {"version": "1", "entscheidung": what, "grund": ""}
        answers = [
            told(carla_of_all, "post", queue, each, kennung=f"longterm_{each}", **sent) for each in (memory, UNKNOWN)
        ]
        assert answers[0] == answers[1], what
    for action in ("add_tags", "restore", "merge_selected", "delete_selected", "approve"):
        sent = {"action": action, "index": "0"}
        answers = [
            told(carla_of_all, "post", url("changelist"), each, _selected_action=str(each), **sent)
            for each in (memory, UNKNOWN)
        ]
        assert answers[0] == answers[1], action
    answers = [told(carla_of_all, "get", url("merge"), each, id=[str(each), str(each)]) for each in (memory, UNKNOWN)]
    assert answers[0] == answers[1]
    assert SavedView.objects.get().name == "Meine"
    assert LongtermMemory.objects.get(pk=memory).vorgeschlagen


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
    assert "You may not store memories with this" in refused.content.decode()
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
