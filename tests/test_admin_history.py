"""The history in the admin: what changed from version to version, by whom, and the way back."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memories.admin.difference import tag_difference, text_difference
from memories.kinds import LONGTERM
from memories.models import LongtermMemory, LongtermVersion
from memories.principal import SYSTEM, Origin
from memories.services import Change, update
from tests.admincast import form, messages, person, store, url

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna() -> Client:
    """Administrator."""
    return person("anna", superuser=True)


def test_the_timeline_tells_what_changed_who_did_it_and_how(anna: Client) -> None:
    key = store()
    changed = {"memory": "Die Kündigungsfrist beträgt sechs Monate.", "schlagworte": "Frist", "grund": "Nachtrag"}
    anna.post(url("change", key), form(anna, url("change", key)) | changed)
    page = anna.get(url("history", key)).content.decode()
    assert "Die Kündigungsfrist beträgt <del>drei</del><ins>sechs</ins> Monate." in page
    assert '<del class="tag">Vertrag</del> <ins class="tag">Frist</ins>' in page
    for text in ("Version 2", "Version 1", "Nachtrag", "T-17", "admin", "rest", "planer"):
        assert text in page
    assert page.index("Version 2") < page.index("Version 1")


def test_one_version_is_shown_as_a_whole(anna: Client) -> None:
    key = store(memory="erste\nFassung", embedding=b"\0\0\x80?")
    update(LONGTERM, [Change(key, {"memory": "zweite"})], Origin(SYSTEM, "ben", "", "rest", "test"))
    page = anna.get(url("version", key, 1)).content.decode()
    assert "erste\nFassung" in page
    assert "fresh, 1 numbers" in page
    assert "stale, 1 numbers" in anna.get(url("version", key, 2)).content.decode()
    for number in (3, 2**31, 10**30):
        assert anna.get(url("version", key, number)).status_code == 404


def test_a_deleted_memory_is_restored_from_its_history(anna: Client) -> None:
    key = store()
    anna.post(url("change", key), form(anna, url("change", key)) | {"memory": "neu", "schlagworte": ""})
    anna.post(url("delete", key), {"post": "yes"})
    page = anna.get(url("history", key)).content.decode()
    assert "was deleted" in page
    assert page.count("/restore/") == 3
    response = anna.post(url("restore", key, 1), {"grund": "Versehen"}, follow=True)
    assert "Restored. This is version 4." in messages(response)
    memory = LongtermMemory.objects.get(pk=key)
    assert (memory.version, memory.tag_namen) == (4, ["Vertrag"])
    assert memory.memory.startswith("Die Kündigungsfrist")
    version = LongtermVersion.objects.get(memory_id=key, version=4)
    assert (version.aktion, version.grund, version.tuer) == ("wiederhergestellt", "Versehen", "admin")
    assert version.durch_nutzer == version.benutzer == "anna"


def test_restoring_what_already_is_so_writes_no_version(anna: Client) -> None:
    key = store()
    assert "already is" in messages(anna.post(url("restore", key, 1), follow=True))
    assert "no version of this number" in messages(anna.post(url("restore", key, 9), follow=True))
    assert "no version" in messages(anna.post(url("restore", key, 10**30), follow=True))
    assert anna.get(url("restore", key, 1)).status_code == 405
    assert LongtermVersion.objects.count() == 1


def test_a_long_history_is_paged(anna: Client) -> None:
    key = store()
    origin = Origin(SYSTEM, "ben", "", "rest", "test")
    for number in range(2, 46):
        update(LONGTERM, [Change(key, {"memory": f"Fassung {number}"})], origin)
    seen: list[int] = []
    address = url("history", key)
    while address:
        response = anna.get(address)
        seen += [entry.version.version for entry in response.context["entries"]]
        weiter = response.context["weiter"]
        address = f"{url('history', key)}?weiter={weiter}" if weiter else ""
    assert seen == list(range(45, 0, -1))
    response = anna.get(url("history", key), {"weiter": "x"}, follow=True)
    assert "cursor does not belong" in messages(response)


@pytest.mark.parametrize("key", ["999", "0", "x", "9" * 30, "1_0", "٥", "1/../2"])
def test_there_is_no_history_of_what_never_was(anna: Client, key: str) -> None:
    assert anna.get(f"/admin/memories/longtermmemory/{key}/history/").status_code == 404


def test_texts_are_compared_by_words_and_escaped() -> None:
    assert text_difference("a b c", "a x c") == "a <del>b</del><ins>x</ins> c"
    assert text_difference("", "<b>") == "<ins>&lt;b&gt;</ins>"
    assert text_difference("a\nb", "a\r\nb") == "a<del>\n</del><ins>\r\n</ins>b"
    assert text_difference("same", "same") == "same"


def test_long_stretches_that_stayed_are_cut_short() -> None:
    text = "wort " * 1_000
    html = text_difference(f"{text}alt {text}", f"{text}neu {text}")
    assert "<del>alt</del><ins>neu</ins>" in html
    assert len(html) < 500


def test_two_long_texts_that_have_nothing_in_common_are_compared_at_once() -> None:
    html = text_difference("a b " * 250_000, "c d " * 250_000)
    assert len(html) < 50_000


def test_tags_are_told_as_removed_and_added() -> None:
    assert tag_difference(["a", "b"], ["b", "<c>"]) == '<del class="tag">a</del> <ins class="tag">&lt;c&gt;</ins>'
    assert tag_difference(["a", "b"], ["b", "a"]) == "<del>a, b</del> <ins>b, a</ins>"


def test_any_two_versions_are_compared_word_by_word(anna: Client) -> None:
    key = store()
    for changed in (
        {"memory": "Etwas ganz anderes."},
        {"memory": "Die Frist beträgt sechs Monate.", "tag_namen": ["X"]},
    ):
        update(LONGTERM, [Change(key, changed)], Origin(SYSTEM, "ben", "", "rest", "test"))
    history = anna.get(url("history", key)).content.decode()
    assert history.count('form="compare" name="von"') == history.count('form="compare" name="bis"') == 3
    chosen = form(anna, url("history", key))
    assert (chosen["von"], chosen["bis"]) == ("2", "3")
    page = anna.get(url("compare", key), {"von": "1", "bis": "3"}).content.decode()
    assert "Die <del>Kündigungsfrist</del><ins>Frist</ins> beträgt <del>drei</del><ins>sechs</ins> Monate." in page
    assert '<del class="tag">Vertrag</del> <ins class="tag">X</ins>' in page
    back = anna.get(url("compare", key), {"von": "3", "bis": "1"}).content.decode()
    assert "<del>Frist</del><ins>Kündigungsfrist</ins>" in back
    assert "hold the same" in anna.get(url("compare", key), {"von": "2", "bis": "2"}).content.decode()
    assert 'form="compare"' not in anna.get(url("history", store())).content.decode()


@pytest.mark.parametrize(
    "chosen", [{}, {"von": "1"}, {"von": "1", "bis": "9"}, {"von": "1", "bis": "9" * 30}, {"von": "²"}]
)
def test_versions_that_there_are_not_are_not_compared(anna: Client, chosen: dict[str, str]) -> None:
    key = store()
    response = anna.get(url("compare", key), chosen, follow=True)
    assert response.redirect_chain[-1][0] == url("history", key)
    assert "Choose two versions" in messages(response)
    assert anna.get(url("compare", 99), {"von": "1", "bis": "1"}).status_code == 404


def test_versions_out_of_sight_are_not_compared() -> None:
    key = store(nutzer="ben")
    client = person("vera", ["view_longtermmemory"])
    assert client.get(url("compare", key), {"von": "1", "bis": "1"}).status_code == 200
    User.objects.get(username="vera").grants.update(nutzer=["anna"])
    assert client.get(url("compare", key), {"von": "1", "bis": "1"}).status_code == 404
    assert person("carla").get(url("compare", key), {"von": "1", "bis": "1"}).status_code == 403
