"""Tags in the admin: renamed, merged and removed, each with a sentence on what came of it. Case 101."""

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from memories import services
from memories.admin import retagging
from memories.kinds import LONGTERM
from memories.models import Grant, LongtermMemory, LongtermVersion, Tag
from tests.admincast import form, messages, person, store
from tests.test_merging import by

pytestmark = pytest.mark.django_db
LIST = "/admin/memories/tag/"


@pytest.fixture
def anna() -> Client:
    """Administrator."""
    return person("anna", superuser=True)


def rename_page(name: str) -> str:
    """The address of the page that renames this tag."""
    return reverse("admin:memories_tag_rename", args=[Tag.objects.get(name=name).pk])


def merge_page(*names: str) -> str:
    """The address of the page that merges these tags."""
    keys = [Tag.objects.get(name=name).pk for name in names]
    return reverse("admin:memories_tag_merge") + "?" + "&".join(f"id={key}" for key in keys)


def names() -> list[str]:
    """All tags."""
    return list(Tag.objects.order_by("schluessel").values_list("name", flat=True))


def test_a_tag_is_renamed_with_a_reason(anna: Client) -> None:
    key = store(tag_namen=["Frist"])
    assert rename_page("Frist") in anna.get(LIST).content.decode()
    assert form(anna, rename_page("Frist"))["name"] == "Frist"
    told = anna.post(rename_page("Frist"), {"name": " Termin ", "grund": "üblich"}, follow=True)
    assert "1 memory has the tag Termin now." in messages(told)
    version = LongtermVersion.objects.get(memory_id=key, version=2)
    assert (version.tag_namen, version.grund, version.tuer) == (["Termin"], "üblich", "admin")
    assert names() == ["Termin"]


def test_case_101_a_name_that_exists_leads_to_merging(anna: Client) -> None:
    keys = [store(tag_namen=["ny-seg"]), store(tag_namen=["NYSEG"])]
    told = anna.post(rename_page("ny-seg"), {"name": "nyseg"}, follow=True)
    assert told.redirect_chain[-1][0] == merge_page("ny-seg", "NYSEG")
    assert "can be merged" in messages(told)
    into = Tag.objects.get(name="NYSEG").pk
    ids = list(Tag.objects.values_list("pk", flat=True))
    anna.post(reverse("admin:memories_tag_merge"), {"id": ids, "into": into, "grund": "eins"})
    assert [LongtermMemory.objects.get(pk=key).tag_namen for key in keys] == [["NYSEG"]] * 2
    assert names() == ["NYSEG"]


def test_selected_tags_are_merged(anna: Client) -> None:
    store(tag_namen=["a", "b", "c"])
    keys = list(Tag.objects.order_by("name").values_list("pk", flat=True))
    sent = {"action": "merge_tags", "index": "0"}
    told = anna.post(LIST, sent | {"_selected_action": keys[:2]}, follow=True)
    assert told.redirect_chain[-1][0] == merge_page("a", "b")
    assert "Select 2 to 20" in messages(anna.post(LIST, sent | {"_selected_action": keys[:1]}, follow=True))


def test_unused_tags_are_listed_and_removed(anna: Client) -> None:
    key = store(tag_namen=["a", "b"])
    assert "carried by some memory" in anna.get(f"{LIST}unused/").content.decode()
    services.update(LONGTERM, [services.Change(key, {"tag_namen": ["b"]})], by())
    assert f"{LIST}unused/" in anna.get(LIST).content.decode()
    assert "<li>a</li>" in anna.get(f"{LIST}unused/").content.decode()
    assert names() == ["a", "b"]
    assert "1 tag was removed" in messages(anna.post(f"{LIST}unused/", follow=True))
    assert names() == ["b"]


@pytest.mark.parametrize("name", ["", " ", "a\u200bb", "x" * 101])
def test_a_name_that_no_tag_can_have_is_told_at_its_field(anna: Client, name: str) -> None:
    store(tag_namen=["Frist"])
    page = anna.post(rename_page("Frist"), {"name": name})
    assert "name" in page.context["form"].errors
    assert names() == ["Frist"]


def test_what_is_out_of_reach_stays_and_that_is_told() -> None:
    mine, his = store(tag_namen=["Frist"]), store(tag_namen=["Frist", "Termin"], nutzer="ben")
    rights = ["view_tag", "view_longtermmemory", "change_longtermmemory", "change_tag"]
    ben = person("curator", rights)
    Grant.objects.update(nutzer=["anna"])
    assert "its spelling is one for all" in messages(ben.post(rename_page("Frist"), {"name": "FRIST"}))
    told = messages(ben.post(rename_page("Frist"), {"name": "Termin"}, follow=True))
    assert "1 memory has the tag Termin now." in told
    assert "still there" in told
    assert LongtermMemory.objects.get(pk=mine).tag_namen == ["Termin"]
    assert LongtermMemory.objects.get(pk=his).tag_namen == ["Frist", "Termin"]


def test_a_tag_on_very_many_memories_is_left_to_the_command(anna: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retagging, "MOST_AT_ONCE", 2)
    for _ in range(3):
        store(tag_namen=["viel"])
    assert "manage.py tags" in messages(anna.post(rename_page("viel"), {"name": "mehr"}))
    assert names() == ["viel"]


def test_a_curator_may_and_a_viewer_may_not() -> None:
    store(tag_namen=["a"])
    store(tag_namen=["b"])
    pages = [rename_page("a"), merge_page("a", "b"), f"{LIST}unused/"]
    for name, allowed in (("Kurator", True), ("Betrachter", False)):
        client = person(name)
        User.objects.get(username=name).groups.add(Group.objects.get(name=name))
        shown = client.get(LIST).content.decode()
        assert (pages[0] in shown, pages[2] in shown, "merge_tags" in shown) == (allowed,) * 3
        for page in pages:
            assert client.get(page).status_code == (200 if allowed else 403)
            if not allowed:
                assert client.post(page, {"name": "x"}).status_code == 403
    assert names() == ["a", "b"]


def test_a_tag_that_is_not_there_has_no_page(anna: Client) -> None:
    for typed in ("0", "x", "9" * 5_000):
        assert anna.get(f"{LIST}{typed}/rename/").status_code == 404
    assert "not all there" in messages(anna.get(f"{LIST}merge/?id=1&id=x", follow=True))
