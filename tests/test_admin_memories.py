"""Memories in the admin: forms that save through the services, with the same history as every other door."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memories.kinds import BRAIN, KINDS, LONGTERM, SHORTTERM, Kind
from memories.models import BrainMemory, LongtermMemory, LongtermVersion, ShorttermMemory, Tag
from memories.principal import SYSTEM, Origin
from memories.services import Change, Done, update
from tests.admincast import NOTE, form, messages, person, store, url

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna() -> Client:
    """Administrator."""
    return person("anna", superuser=True)


def test_saving_writes_a_version_that_tells_who_by_which_door_and_why(anna: Client) -> None:
    key = store()
    fields = form(anna, url("change", key))
    response = anna.post(url("change", key), fields | {"memory": "Sechs Monate.", "grund": "Nachtrag"}, follow=True)
    assert "longterm_" in messages(response)
    version = LongtermVersion.objects.get(memory_id=key, version=2)
    assert version.memory == LongtermMemory.objects.get(pk=key).memory == "Sechs Monate."
    assert (version.aktion, version.tuer, version.tool, version.grund) == ("geaendert", "admin", "admin", "Nachtrag")
    assert (version.durch_nutzer, version.durch_agent, version.benutzer) == ("anna", "", "anna")


def test_a_new_memory_is_stored_with_its_first_version(anna: Client) -> None:
    fields = form(anna, url("add"))
    assert fields["nutzer"] == "anna"
    fields |= {"kurzbeschreibung": "Neu", "memory": "Text\r\nzwei", "schlagworte": "Ä\r\n\r\n ä \r\nB  C"}
    response = anna.post(url("add"), fields | {"scope": "modul", "scope_vk": "", "agent": "planer"}, follow=True)
    memory = LongtermMemory.objects.get()
    assert (memory.memory, memory.tag_namen, memory.version) == ("Text\nzwei", ["Ä", "B C"], 1)
    assert LongtermVersion.objects.get().aktion == "angelegt"
    assert memory.kennung in messages(response)


def test_a_short_term_memory_without_validity_gets_the_default_one(anna: Client) -> None:
    address = url("add", kind="shortterm")
    fields = form(anna, address) | {"kurzbeschreibung": "K", "memory": "M", "scope": "m", "agent": "a"}
    anna.post(address, fields)
    memory = ShorttermMemory.objects.get()
    assert (memory.gueltig_bis - memory.erstellt_am).days == 7


def test_a_brain_memory_can_be_made_and_changed(anna: Client) -> None:
    address = url("add", kind="brain")
    fields = form(anna, address) | {"memory_typ": "arbeit", "titel": "T", "agent": "planer", "inhalt_json": '{"a": 1}'}
    anna.post(address, fields)
    memory = BrainMemory.objects.get()
    assert (memory.relevanz, memory.scope_typ, memory.gueltig_bis) == (50, "global", None)
    address = url("change", memory.pk, kind="brain")
    anna.post(address, form(anna, address) | {"relevanz": "80"})
    memory.refresh_from_db()
    assert (memory.relevanz, memory.version) == (80, 2)


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "a\r\nb\nc", "\n\n a \t\n", "a\rb", "  x", "{{x}}<b>&amp;\n"])
def test_an_unchanged_form_writes_no_version_and_says_so(anna: Client, text: str) -> None:
    key = store(memory=text, kurzbeschreibung=f"k{text}")
    response = anna.post(url("change", key), form(anna, url("change", key)), follow=True)
    assert "Nothing was changed" in messages(response)
    memory = LongtermMemory.objects.get(pk=key)
    assert (memory.version, memory.memory, memory.kurzbeschreibung) == (1, text, f"k{text}")


def test_a_validity_to_the_microsecond_is_not_changed_by_saving_something_else(anna: Client) -> None:
    key = store(SHORTTERM, gueltig_bis=None)
    before = ShorttermMemory.objects.get(pk=key).gueltig_bis
    address = url("change", key, kind="shortterm")
    anna.post(address, form(anna, address) | {"memory": "anders"})
    memory = ShorttermMemory.objects.get(pk=key)
    assert (memory.version, memory.gueltig_bis) == (2, before)


def test_line_breaks_are_stored_as_they_were(anna: Client) -> None:
    unix, dos = store(memory="a\nb"), store(memory="a\r\nb")
    for key in (unix, dos):
        anna.post(url("change", key), form(anna, url("change", key)) | {"memory": " a\r\nb\r\nc "})
    assert LongtermMemory.objects.get(pk=unix).memory == " a\nb\nc "
    assert LongtermMemory.objects.get(pk=dos).memory == " a\r\nb\r\nc "


def test_tags_are_edited_by_name(anna: Client) -> None:
    store(tag_namen=["Übung"])
    key = store()
    anna.post(url("change", key), form(anna, url("change", key)) | {"schlagworte": "übung\r\nNeu"})
    assert LongtermMemory.objects.get(pk=key).tag_namen == ["Übung", "Neu"]
    assert set(Tag.objects.values_list("name", flat=True)) == {"Vertrag", "Übung", "Neu"}
    anna.post(url("change", key), form(anna, url("change", key)) | {"schlagworte": ""})
    assert LongtermMemory.objects.get(pk=key).tag_namen == []
    assert not LONGTERM.links.objects.filter(memory_id=key).exists()


def test_what_is_refused_is_told_at_its_field_and_the_input_is_kept(anna: Client) -> None:
    key = store()
    wrong = {"kurzbeschreibung": "x" * 1001, "schlagworte": "gut\r\n" + "y" * 101, "memory": "mein Text"}
    response = anna.post(url("change", key), form(anna, url("change", key)) | wrong)
    errors = response.context["adminform"].form.errors
    assert set(errors) == {"kurzbeschreibung", "schlagworte"}
    assert "1000" in errors["kurzbeschreibung"][0]
    assert b"mein Text" in response.content
    assert LongtermMemory.objects.get(pk=key).version == 1


def test_a_reason_that_is_too_long_is_told_at_its_field(anna: Client) -> None:
    key = store()
    fields = form(anna, url("change", key)) | {"memory": "neu", "grund": "g" * 1001}
    response = anna.post(url("change", key), fields)
    assert set(response.context["adminform"].form.errors) == {"grund"}
    assert LongtermMemory.objects.get(pk=key).version == 1


def test_structured_fields_must_be_json(anna: Client) -> None:
    key = store(BRAIN, **brain())
    address = url("change", key, kind="brain")
    for text in ('{"a": 1, "a": 2}', "[NaN]", "[" * 65 + "]" * 65, "{"):
        response = anna.post(address, form(anna, address) | {"inhalt_json": text})
        assert set(response.context["adminform"].form.errors) == {"inhalt_json"}, text
    anna.post(address, form(anna, address) | {"inhalt_json": "[" * 64 + "]" * 64})
    assert BrainMemory.objects.get(pk=key).version == 2


def brain() -> dict[str, object]:
    """What replaces a note's fields in a brain memory."""
    return {"memory_typ": "arbeit", "titel": "T"}


def test_a_form_of_an_older_version_overwrites_nothing(anna: Client) -> None:
    key = store()
    fields = form(anna, url("change", key)) | {"memory": "von Anna", "kurzbeschreibung": "Annas Frist"}
    origin = Origin(SYSTEM, nutzer="ben", agent="planer", tuer="rest", tool="test")
    update(LONGTERM, [Change(key, {"memory": "von Ben"})], origin)
    response = anna.post(url("change", key), fields)
    page = response.content.decode()
    assert "changed by somebody else" in page
    assert "von Anna" in page
    assert url("history", key) in page
    memory = LongtermMemory.objects.get(pk=key)
    assert (memory.memory, memory.version) == ("von Ben", 2)
    again = anna.post(url("change", key), fields)
    assert "changed by somebody else" in again.content.decode()


def test_a_change_that_expects_another_version_is_a_conflict() -> None:
    key = store()
    origin = Origin(SYSTEM, nutzer="ben", agent="planer", tuer="rest", tool="test")
    outcomes = update(LONGTERM, [Change(key, {"memory": "a"}, 1), Change(key, {"memory": "b"}, 1)], origin)
    assert isinstance(outcomes[0], Done)
    assert getattr(outcomes[1], "code", "") == "konflikt"
    assert LongtermMemory.objects.get(pk=key).memory == "a"


def test_scope_and_owner_do_not_change_whatever_is_sent(anna: Client) -> None:
    key = store()
    sent = {"scope": "x", "scope_vk": "y", "nutzer": "z", "agent": "w", "version": "9", "embedding_dimension": "3"}
    anna.post(url("change", key), form(anna, url("change", key)) | sent | {"memory": "neu"})
    memory = LongtermMemory.objects.get(pk=key)
    assert (memory.scope, memory.scope_vk, memory.nutzer, memory.agent) == ("modul", "12", "anna", "planer")
    assert (memory.version, memory.embedding_dimension) == (2, None)


def test_stored_markup_is_shown_as_text(anna: Client) -> None:
    nasty = "<script>alert(1)</script>{{x}}{% y %}"
    key = store(memory=nasty, kurzbeschreibung=nasty, tag_namen=[nasty], scope=nasty, nutzer=nasty)
    anna.post(url("change", key), form(anna, url("change", key)) | {"memory": nasty * 2, "grund": nasty})
    viewer = person("vera", ["view_longtermmemory"])
    pages = [url("changelist"), url("change", key), url("history", key), url("version", key, 2), url("delete", key)]
    pages.append("/admin/memories/longtermversion/")
    for client in (anna, viewer):
        for address in pages:
            response = client.get(address)
            assert b"<script>alert" not in response.content, address
            assert response.status_code == (403 if client is viewer and "delete" in address else 200)
            assert response.status_code == 403 or b"{{x}}" in response.content, address


def test_deleting_asks_keeps_the_history_and_tells_why(anna: Client) -> None:
    key = store()
    assert b"Frist" in anna.get(url("delete", key)).content
    anna.post(url("delete", key), {"post": "yes", "grund": "doppelt"})
    assert not LongtermMemory.objects.exists()
    version = LongtermVersion.objects.get(memory_id=key, version=2)
    assert (version.aktion, version.tuer, version.grund) == ("geloescht", "admin", "doppelt")


def test_the_list_deletes_what_was_selected(anna: Client) -> None:
    keys = [store() for _ in range(3)]
    sent = {"action": "delete_selected", "_selected_action": keys[:2], "index": "0"}
    page = anna.post(url("changelist"), sent)
    assert b"Delete these 2 memories?" in page.content
    assert LongtermMemory.objects.count() == 3
    response = anna.post(url("changelist"), sent | {"post": "yes", "grund": "Aufräumen"}, follow=True)
    assert "2 memories were deleted" in messages(response)
    assert list(LongtermMemory.objects.values_list("pk", flat=True)) == keys[2:]
    assert set(LongtermVersion.objects.filter(aktion="geloescht").values_list("grund", flat=True)) == {"Aufräumen"}


@pytest.mark.parametrize("selected", ["x", "", "9" * 30, "-1"])
def test_a_selection_that_is_no_key_deletes_nothing(anna: Client, selected: str) -> None:
    store()
    sent = {"action": "delete_selected", "_selected_action": [selected], "index": "0", "post": "yes"}
    assert anna.post(url("changelist"), sent).status_code == 302
    assert LongtermMemory.objects.count() == 1


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.typ)
def test_case_24_what_was_typed_into_the_form_of_a_memory_deleted_meanwhile_is_not_lost(
    anna: Client, kind: Kind
) -> None:
    key = store(kind, memory_typ="arbeit", titel="T") if kind is BRAIN else store(kind)
    address = url("change", key, kind=kind.typ)
    fields = form(anna, address)
    anna.post(url("delete", key, kind=kind.typ), {"post": "yes"})
    text = "inhalt" if kind is BRAIN else "memory"
    typed = {text: "Eine halbe Stunde <b>Arbeit</b>", "schlagworte": "Umzug\nBüro", "grund": "Nachtrag"}
    page = anna.post(address, fields | typed).content.decode()
    for shown in ("was deleted while you wrote", "Eine halbe Stunde &lt;b&gt;Arbeit", "Umzug\nBüro", "Nachtrag"):
        assert shown in page
    assert url("history", key, kind=kind.typ) in page
    assert not kind.memories.objects.exists()
    led = anna.get(address, follow=True)
    assert led.redirect_chain[-1][0] == url("history", key, kind=kind.typ)
    assert "was deleted" in messages(led)


def test_an_embedding_shows_its_state_and_becomes_stale_with_the_text(anna: Client) -> None:
    key = store(embedding=b"\0\0\x80?" * 4, embedding_profil_hash="p1")
    assert b"fresh, 4 numbers, profile p1" in anna.get(url("change", key)).content
    anna.post(url("change", key), form(anna, url("change", key)) | {"memory": "anders"})
    assert b"stale, 4 numbers, profile p1" in anna.get(url("change", key)).content
    assert b"stale, 4 numbers" in anna.get(url("changelist")).content


@pytest.mark.django_db(transaction=True)
def test_nothing_is_told_to_be_stored_before_it_is_committed(anna: Client) -> None:
    key = store()
    fields = form(anna, url("change", key)) | {"memory": "neu"}
    for address, sent in ((url("change", key), fields), (url("delete", key), {"post": "yes"})):
        with CaptureQueriesContext(connection) as queries:
            assert anna.post(address, sent).status_code == 302
        statements = [query["sql"].split(" ")[0] for query in queries.captured_queries]
        assert "SAVEPOINT" not in statements
        assert "COMMIT" in statements


def test_the_draft_of_the_cast_is_what_an_agent_stores() -> None:
    key = store()
    memory = LongtermMemory.objects.get(pk=key)
    assert {name: getattr(memory, name) for name in NOTE} == NOTE
