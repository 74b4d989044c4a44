"""Merging in the admin: side by side, asked before, told with a button that undoes it. Case 96."""

import re
from typing import Any

import pytest
from django.test import Client

from memories import services
from memories.kinds import KINDS, LONGTERM, Kind
from memories.models import Grant, LongtermMemory, LongtermVersion
from tests.admincast import form, messages, person, store, url
from tests.test_merging import by

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna() -> Client:
    """Administrator."""
    return person("anna", superuser=True)


def three() -> list[int]:
    """The keys of three memories that say nearly the same."""
    return [
        store(memory="Drei Monate.", tag_namen=["Vertrag"]),
        store(memory="Drei Monate zum Quartal.", tag_namen=["Frist", "vertrag"], nutzer="ben"),
        store(memory="Drei Monate.", tag_namen=["Büro"]),
    ]


def page_of(*keys: int, kind: Kind = LONGTERM) -> str:
    """The address on which these stand side by side."""
    return url("merge", kind=kind.typ) + "?" + "&".join(f"id={key}" for key in keys)


def chosen(client: Client, *keys: int, kind: Kind = LONGTERM, **more: Any) -> dict[str, Any]:
    """What the page would send, with these choices."""
    return form(client, page_of(*keys, kind=kind)) | {"id": [str(key) for key in keys]} | more


def test_case_96_selected_memories_are_merged_and_undone_with_one_button(anna: Client) -> None:
    first, second, third = three()
    sent = {"action": "merge_selected", "_selected_action": [first, second, third], "index": "0"}
    page = anna.post(url("changelist"), sent, follow=True).content.decode()
    assert "<ins>" in page
    fields = chosen(anna, first, second, third, feld_memory=str(second))
    asked = anna.post(url("merge"), fields).content.decode()
    assert f"longterm_{first} lives on" in asked
    assert "zum Quartal" in asked
    assert LongtermMemory.objects.count() == 3
    told = anna.post(url("merge"), fields | {"post": "yes", "grund": "dreifach"}, follow=True)
    assert "3 memories were merged" in messages(told)
    memory = LongtermMemory.objects.get()
    assert (memory.pk, memory.memory, memory.nutzer) == (first, "Drei Monate zum Quartal.", "anna")
    assert memory.tag_namen == ["Vertrag", "Frist", "Büro"]
    assert set(LongtermVersion.objects.filter(version=2).values_list("grund", "tuer")) == {("dreifach", "admin")}
    undo = re.search(r'class="button" href="([^"]+)"', messages(told))
    assert undo is not None
    assert f"longterm_{third}" in anna.get(undo[1]).content.decode()
    assert LongtermMemory.objects.count() == 1
    assert "there again" in messages(anna.post(undo[1], {"grund": "Irrtum"}, follow=True))
    assert dict(LongtermMemory.objects.values_list("pk", "memory")) == {
        first: "Drei Monate.",
        second: "Drei Monate zum Quartal.",
        third: "Drei Monate.",
    }


def test_without_a_choice_every_value_is_that_of_the_memory_that_lives_on(anna: Client) -> None:
    first, second, third = three()
    fields = chosen(anna, first, second, third, bleibt=str(second), tags=str(third))
    anna.post(url("merge"), fields | {"post": "yes"})
    memory = LongtermMemory.objects.get()
    assert (memory.pk, memory.memory, memory.nutzer) == (second, "Drei Monate zum Quartal.", "ben")
    assert memory.tag_namen == ["Büro"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.typ)
def test_memories_of_every_kind_stand_side_by_side(anna: Client, kind: Kind) -> None:
    own = {"memory_typ": "arbeit", "titel": "T", "gueltig_bis": None}
    keys = [store(kind, **own), store(kind, **own)]
    fields = chosen(anna, *keys, kind=kind)
    assert anna.post(url("merge", kind=kind.typ), fields).status_code == 200
    anna.post(url("merge", kind=kind.typ), fields | {"post": "yes"})
    assert kind.memories.objects.get().pk == keys[0]


def test_going_back_keeps_what_was_chosen(anna: Client) -> None:
    first, second, third = three()
    fields = chosen(anna, first, second, third, bleibt=str(third), feld_nutzer=str(second))
    page = anna.post(url("merge"), fields | {"back": "1"}).content.decode()
    for name, value in (("bleibt", third), ("feld_nutzer", second)):
        assert re.search(rf'name="{name}" value="{value}"[^>]* checked', page), name
    assert LongtermMemory.objects.count() == 3


def test_a_memory_that_changed_since_is_shown_anew_and_nothing_is_merged(anna: Client) -> None:
    first, second, third = three()
    fields = chosen(anna, first, second, third)
    services.update(LONGTERM, [services.Change(second, {"memory": "später"})], by())
    told = anna.post(url("merge"), fields | {"post": "yes"}, follow=True)
    assert f"longterm_{second} was changed in the meantime" in messages(told)
    assert "später" in told.content.decode()
    assert LongtermMemory.objects.count() == 3


@pytest.mark.parametrize(
    "change",
    [{"bleibt": "0"}, {"bleibt": ""}, {"feld_memory": "999"}, {"tags": "x"}, {"version_1": "x", "bleibt": "-1"}],
)
def test_a_choice_that_is_none_merges_nothing(anna: Client, change: dict[str, str]) -> None:
    keys = three()
    page = anna.post(url("merge"), chosen(anna, *keys) | change | {"post": "yes"})
    assert page.status_code == 200
    assert "errorlist" in page.content.decode()
    assert LongtermMemory.objects.count() == 3


@pytest.mark.parametrize("query", ["", "?id=x&id=y", "?id=1", "?id=999999999&id=999999998", "?id=" + "9" * 30])
def test_memories_that_are_not_there_lead_back_to_the_list(anna: Client, query: str) -> None:
    told = anna.get(url("merge") + query, follow=True)
    assert told.redirect_chain[-1][0] == url("changelist")
    assert "not all there" in messages(told)


def test_one_memory_or_more_than_twenty_are_not_merged(anna: Client) -> None:
    keys = [store() for _ in range(21)]
    for selected in (keys[:1], keys):
        sent = {"action": "merge_selected", "_selected_action": selected, "index": "0"}
        assert "Select 2 to 20" in messages(anna.post(url("changelist"), sent, follow=True))
    assert anna.get(page_of(*keys)).status_code == 302
    assert anna.get(page_of(*keys[:20])).status_code == 200


def test_the_history_links_both_ways_and_offers_to_undo_until_something_changed(anna: Client) -> None:
    first, second, third = three()
    anna.post(url("merge"), chosen(anna, first, second, third) | {"post": "yes"})
    page = anna.get(url("history", first)).content.decode()
    undo = url("undo", first, 2)
    assert undo in page
    assert url("history", second) in page
    assert url("history", first) in anna.get(url("history", second)).content.decode()
    services.update(LONGTERM, [services.Change(first, {"memory": "neu"})], by())
    assert undo not in anna.get(url("history", first)).content.decode()
    assert "changed since the merge" in messages(anna.post(undo, follow=True))
    assert LongtermMemory.objects.count() == 1


def test_only_a_merge_has_a_page_to_undo_it(anna: Client) -> None:
    key = store()
    for number in (1, 2, 2**40):
        assert anna.get(url("undo", key, number)).status_code == 404


def test_merging_needs_the_rights_to_change_and_to_delete_and_undoing_that_to_restore() -> None:
    first, second, third = three()
    view, change = "view_longtermmemory", "change_longtermmemory"
    changer = person("carla", [view, change, "restore_longtermmemory"])
    assert changer.get(page_of(first, second)).status_code == 403
    assert "merge_selected" not in changer.get(url("changelist")).content.decode()
    ben = person("ben", [view, change, "delete_longtermmemory"])
    assert "merge_selected" in ben.get(url("changelist")).content.decode()
    told = ben.post(url("merge"), chosen(ben, first, second) | {"post": "yes"}, follow=True)
    assert "merged" in messages(told)
    assert "Undo" not in messages(told)
    assert ben.get(url("undo", first, 2)).status_code == 403
    assert changer.post(url("undo", first, 2)).status_code == 302
    assert LongtermMemory.objects.filter(pk=third).count() == 1
    assert LongtermMemory.objects.count() == 3


def test_what_is_out_of_sight_is_not_there() -> None:
    first, second, third = three()
    rights = [f"{verb}_longtermmemory" for verb in ("view", "change", "delete")]
    dora = person("dora", rights)
    Grant.objects.update(nutzer=["anna"])
    assert dora.get(page_of(first, second)).status_code == 302
    assert dora.get(page_of(first, third)).status_code == 200


def test_stored_markup_is_shown_as_text(anna: Client) -> None:
    nasty = "<script>alert(1)</script>"
    keys = [store(memory=nasty, kurzbeschreibung=nasty, tag_namen=[nasty]), store(memory=nasty * 2, nutzer=nasty)]
    fields = chosen(anna, *keys)
    pages = [anna.get(page_of(*keys)), anna.post(url("merge"), fields | {"feld_memory": str(keys[1])})]
    pages.append(anna.post(url("merge"), fields | {"post": "yes"}, follow=True))
    pages.append(anna.get(url("undo", keys[0], 2)))
    for page in pages:
        assert page.status_code == 200
        assert "<script>alert" not in page.content.decode()
