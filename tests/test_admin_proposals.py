"""Case 98, for people: the queue with what is nearest, deciding on one and on many, marks in lists and pages."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memories.admin import proposals
from memories.keys import make_key
from memories.kinds import BRAIN, KINDS, LONGTERM, SHORTTERM, Kind
from memories.models import AccessKey, Grant, LongtermMemory, LongtermVersion
from memories.principal import Origin
from memories.services import Change, Done, delete, insert, update
from memories.values import embedding
from tests.admincast import NOTE, Fields, form, messages, person, store, url
from tests.test_admin_bulk import ORIGIN, asked, run, told

pytestmark = pytest.mark.django_db
QUEUE = "/admin/memories/proposals/"


def propose(kind: Kind = LONGTERM, **values: Any) -> int:
    """The key of a memory that a key under review has stored."""
    key = AccessKey.objects.filter(pruefpflicht=True).first()
    if key is None:
        key, _text = make_key(
            name="lehrling", account="lehrling", only={}, may_write=True, expires_at=None, pruefpflicht=True
        )
    own = {"memory_typ": "arbeit", "titel": "Abnahme"} if kind is BRAIN else {}
    own |= {"gueltig_bis": None} if kind is not LONGTERM else {}
    note = {
        name: value for name, value in NOTE.items() if kind is not BRAIN or name in {"nutzer", "agent", "tag_namen"}
    }
    origin = Origin(key.principal(), nutzer="anna", agent="planer", tuer="rest", tool="test")
    done = insert(kind, [note | own | values], origin)[0]
    assert isinstance(done, Done), done
    return done.key


@pytest.fixture
def kira(db: None) -> Client:
    """Curator of everything; she may not delete."""
    client = person("kira")
    User.objects.get(username="kira").groups.set(Group.objects.filter(name="Kurator"))
    return client


def shown(client: Client, **asked: str) -> dict[str, Any]:
    """The proposals on a page of the queue, by ID."""
    page = client.get(QUEUE, asked)
    assert page.status_code == 200
    return {card.proposal.memory.kennung: card for card in page.context["cards"]}


def decide(client: Client, key: int, what: str, version: int = 1, kind: str = "longterm", grund: str = "") -> str:
    """What is told after a decision."""
    sent = {"kennung": f"{kind}_{key}", "version": str(version), "entscheidung": what, "grund": grund}
    return messages(client.post(QUEUE, sent, follow=True))


def test_case_98_the_queue_shows_all_kinds_newest_first_with_who_and_what_is_nearest(kira: Client) -> None:
    near = store(memory="Die Kündigungsfrist für das Büro beträgt sechs Monate.")
    store(kurzbeschreibung="Kaffee", memory="Die Bohnen liegen im Schrank.")
    key = propose(memory="Die Kündigungsfrist im Büro beträgt zwei Monate.", tag_namen=["Büro"])
    short, brain = propose(SHORTTERM), propose(BRAIN)
    cards = shown(kira)
    assert list(cards) == [f"brain_{brain}", f"shortterm_{short}", f"longterm_{key}"]
    card = cards[f"longterm_{key}"]
    assert card.near[0].kennung == f"longterm_{near}"
    assert (card.proposal.first.schluessel, card.proposal.first.durch_nutzer) == ("lehrling", "anna")
    page = kira.get(QUEUE).content.decode()
    for text in ("zwei Monate", "sechs Monate", "lehrling", "Büro", "modul 12 · anna · planer"):
        assert text in page
    assert f"longterm_{key}" not in {each.kennung for other in cards.values() for each in other.near}


def test_case_98_what_came_with_a_vector_is_compared_by_it(kira: Client) -> None:
    def vector(*numbers: float) -> dict[str, Any]:
        return {"embedding": embedding(numbers, "embedding"), "embedding_profil_hash": "p"}

    near = store(kurzbeschreibung="Eins", memory="eins", **vector(1, 0))
    store(kurzbeschreibung="Zwei", memory="zwei", **vector(0, 1))
    key = propose(kurzbeschreibung="Drei", memory="drei", **vector(1, 0.1))
    first = shown(kira)[f"longterm_{key}"].near[0]
    assert (first.kennung, first.why) == (f"longterm_{near}", "vector 100 %")


def test_case_98_one_is_approved_and_one_rejected_with_a_reason(kira: Client) -> None:
    good, bad = propose(memory="gut"), propose(memory="schlecht")
    assert "is approved" in decide(kira, good, "approve", grund="stimmt")
    assert "is rejected and lies in the trash" in decide(kira, bad, "reject", grund="stimmt nicht")
    assert shown(kira) == {}
    assert not LongtermMemory.objects.get(pk=good).vorgeschlagen
    newest = LongtermVersion.objects.filter(version=2).order_by("memory_id")
    assert list(newest.values_list("aktion", "grund", "benutzer", "tuer", "vorgeschlagen")) == [
        ("freigegeben", "stimmt", "kira", "admin", False),
        ("geloescht", "stimmt nicht", "kira", "admin", True),
    ]
    assert "schlecht" not in kira.get(url("changelist")).content.decode()
    trash = kira.get(url("trash"))
    assert "stimmt nicht" in trash.content.decode()
    assert '<span class="proposed">' in trash.content.decode()
    fields = asked(kira, "restore", [LongtermVersion.objects.get(memory_id=bad, version=2).pk], where="trash")
    assert all(good for good, _text in told(run(kira, "restore", fields)).values())
    assert list(shown(kira)) == [f"longterm_{bad}"]


def test_case_98_a_decision_is_on_what_was_seen_and_on_nothing_else(kira: Client) -> None:
    key = propose()
    update(LONGTERM, [Change(key, {"memory": "inzwischen anders"})], ORIGIN)
    assert "at version 2 now" in decide(kira, key, "approve", version=1)
    assert "There is no memory" in decide(kira, 999, "approve")
    assert "This is no ID" in decide(kira, key, "approve", kind="quatsch")
    assert decide(kira, key, "burn", version=2) == ""
    assert "characters" in decide(kira, key, "approve", version=2, grund="x" * 2_000)
    assert LongtermMemory.objects.get(pk=key).vorgeschlagen
    ordinary = store()
    assert "does not wait for approval" in decide(kira, ordinary, "reject")
    assert LongtermMemory.objects.filter(pk=ordinary).exists()


def test_case_98_editing_leaves_it_a_proposal_and_says_so(kira: Client) -> None:
    key = propose()
    page = kira.get(url("change", key)).content.decode()
    assert "until somebody approves it" in page
    assert f"{QUEUE}?id=longterm_{key}" in page
    answer = kira.post(url("change", key), form(kira, url("change", key)) | {"memory": "verbessert"}, follow=True)
    assert "version 2" in messages(answer)
    assert list(shown(kira, id=f"longterm_{key}")) == [f"longterm_{key}"]
    assert "verbessert" in kira.get(QUEUE).content.decode()
    assert "is approved" in decide(kira, key, "approve", version=2)
    assert "until somebody approves it" not in kira.get(url("change", key)).content.decode()
    history = kira.get(url("history", key)).content.decode()
    assert "<del>yes</del> <ins>no</ins>" in history


def test_case_98_whoever_only_looks_decides_nothing_and_sees_what_he_may(kira: Client) -> None:
    own, other = propose(nutzer="anna"), propose(nutzer="ben", kurzbeschreibung="Bens")
    viewer = person("vera", ["view_longtermmemory"])
    Grant.objects.filter(user__username="vera").update(nutzer=["anna"])
    assert list(shown(viewer)) == [f"longterm_{own}"]
    page = viewer.get(QUEUE).content.decode()
    assert 'value="approve"' not in page
    assert "Bens" not in page
    assert "(1)" in page
    assert shown(viewer, id=f"longterm_{other}") == shown(viewer, id="longterm_999") == {}
    sent = {"kennung": f"longterm_{own}", "version": "1", "entscheidung": "approve"}
    assert viewer.post(QUEUE, sent).status_code == 403
    Grant.objects.filter(user__username="kira").update(nutzer=["anna"])
    assert decide(kira, other, "approve") == decide(kira, 999, "approve")
    assert LongtermMemory.objects.filter(vorgeschlagen=True).count() == 2
    nobody = person("nora")
    assert nobody.get(QUEUE).status_code == 403
    assert QUEUE not in nobody.get(reverse("admin:index")).content.decode()
    assert Client().get(QUEUE).status_code == 302


def test_case_98_the_start_page_and_the_menu_lead_there(kira: Client) -> None:
    propose()
    propose(BRAIN, nutzer="ben")
    index = kira.get(reverse("admin:index"))
    assert index.context["start"]["proposed"].number == 2
    assert index.content.decode().count(f'href="{QUEUE}"') >= 2
    Grant.objects.filter(user__username="kira").update(nutzer=["anna"])
    assert kira.get(reverse("admin:index")).context["start"]["proposed"].number == 1


def test_case_98_lists_mark_and_filter_proposals_and_decide_on_many(kira: Client) -> None:
    keys = [propose(kurzbeschreibung=f"Vorschlag {number}") for number in range(4)]
    store(kurzbeschreibung="gewöhnlich")
    everything = kira.get(url("changelist"))
    assert everything.content.decode().count('<span class="proposed">') == 4
    assert 'value="approve"' not in everything.content.decode()
    waiting = kira.get(url("changelist"), {"vorgeschlagen": "ja"})
    assert "gewöhnlich" not in waiting.content.decode()
    listed = f"{url('changelist')}?vorgeschlagen=ja"
    sent = {"action": "approve", "_selected_action": [str(key) for key in keys[:3]], "index": "0"}
    fields = Fields(kira.post(listed, sent).content.decode()).values
    delete(LONGTERM, [keys[2]], ORIGIN)
    report = told(run(kira, "approve", fields | {"grund": "alle gut"}))
    assert report[f"longterm_{keys[0]}"] == (True, "Approved.")
    assert report[f"longterm_{keys[1]}"] == (True, "Approved.")
    assert report[f"longterm_{keys[2]}"][0] is False
    again = told(run(kira, "approve", fields))
    assert again[f"longterm_{keys[0]}"] == (False, "It does not wait for approval, or no longer.")
    fields = Fields(kira.post(listed, sent | {"action": "reject", "_selected_action": [str(keys[3])]}).content.decode())
    report = told(run(kira, "reject", fields.values | {"grund": "falsch"}))
    assert report == {f"longterm_{keys[3]}": (True, "Rejected; it lies in the trash.")}
    approved = LongtermVersion.objects.filter(aktion="freigegeben")
    assert list(approved.values_list("memory_id", "grund").order_by("memory_id")) == [
        (key, "alle gut") for key in keys[:2]
    ]
    assert LongtermMemory.objects.filter(vorgeschlagen=True).count() == 0


def test_case_98_pages_of_the_queue_miss_and_repeat_nothing(kira: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "A_PAGE", 2)
    wanted = [f"{kind.typ}_{propose(kind)}" for _round in range(2) for kind in KINDS]
    at = LongtermMemory.objects.first().erstellt_am
    for kind in KINDS:
        kind.memories.objects.update(erstellt_am=at)  # all at the same moment
    seen: list[str] = []
    weiter = ""
    while weiter is not None:
        page = kira.get(QUEUE, {"weiter": weiter} if weiter else {})
        seen += [card.proposal.memory.kennung for card in page.context["cards"]]
        weiter = page.context["weiter"]
    assert sorted(seen) == sorted(wanted)
    assert len(seen) == len(wanted)
    assert "cursor does not belong" in messages(kira.get(QUEUE, {"weiter": "x"}, follow=True))
    assert "This is no ID" in messages(kira.get(QUEUE, {"id": "x"}, follow=True))


def test_case_98_the_search_of_a_list_and_its_export_know_the_state(kira: Client) -> None:
    key = propose(memory="Verschlusssache")
    assert (
        "Frist" not in kira.get(url("changelist"), {"q": "Verschlusssache"}).content.decode().split("result_list")[-1]
    )
    assert f"longterm_{key}" in kira.get(url("changelist"), {"q": f"longterm_{key}"}).content.decode()
    lines = b"".join(kira.get(url("export_jsonl"))).decode()
    assert '"vorgeschlagen":true' in lines
    assert "vorgeschlagen" in b"".join(kira.get(url("export_csv"))).decode().splitlines()[0]


def test_case_98_a_key_is_put_under_review_in_the_admin() -> None:
    chief = person("chef", superuser=True)
    address = reverse("admin:memories_accesskey_add")
    make_key(name="alt", account="konto", only={}, may_write=True, expires_at=None)
    sent = form(chief, address) | {"name": "neu", "account": str(AccessKey.objects.get().account_id)}
    chief.post(address, sent | {"may_write": "on", "pruefpflicht": "on"})
    key = AccessKey.objects.get(name="neu")
    assert key.pruefpflicht
    assert "review required" in chief.get(reverse("admin:memories_accesskey_changelist")).content.decode()
    change = reverse("admin:memories_accesskey_change", args=[key.pk])
    sent = form(chief, change)
    del sent["pruefpflicht"]
    chief.post(change, sent)
    key.refresh_from_db()
    assert not key.pruefpflicht


def test_case_98_the_queue_asks_a_bounded_number_of_questions(kira: Client) -> None:
    costs = []
    for _round in range(2):
        for kind in KINDS:
            propose(kind)
        for _more in range(10 * len(costs)):
            propose()
        kira.get(QUEUE)
        with CaptureQueriesContext(connection) as context:
            cards = len(kira.get(QUEUE).context["cards"])
        costs.append((len(context), cards))
    (few, three), (many, ten) = costs
    assert (three, ten) == (3, proposals.A_PAGE)
    assert many - few <= 12 * (ten - three)
