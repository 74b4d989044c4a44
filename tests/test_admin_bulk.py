"""Actions on many memories in the admin: asked before, in steps, each row told, by the rights for each row."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memories.admin import bulk
from memories.kinds import BRAIN, LONGTERM, SHORTTERM
from memories.models import BrainMemory, Grant, LongtermMemory, LongtermVersion, ShorttermMemory
from memories.principal import SYSTEM, Origin
from memories.services import Change, Outcome, delete
from tests.admincast import Fields, messages, person, store, url

pytestmark = pytest.mark.django_db
ORIGIN = Origin(SYSTEM, "ben", "planer", "rest", "test")


@pytest.fixture
def anna() -> Client:
    """Administrator."""
    return person("anna", superuser=True)


def asked(client: Client, action: str, keys: list[int], kind: str = "longterm", **more: Any) -> dict[str, str]:
    """What the page after choosing the action for these rows would send."""
    sent = {"action": action, "_selected_action": [str(key) for key in keys], "index": "0"}
    page = client.post(url(more.pop("where", "changelist"), kind=kind), sent | more)
    assert page.status_code == 200, (page.status_code, page.get("Location"))
    return Fields(page.content.decode()).values


def told(page: Any) -> dict[str, tuple[bool, str]]:
    """What the page tells of each row."""
    return {each.kennung: (each.good, each.text) for each in page.context["told"]}


def run(client: Client, action: str, fields: dict[str, str], kind: str = "longterm") -> Any:
    """The last page, after all steps."""
    page = client.post(url("bulk", action, kind=kind), fields)
    while page.context.get("keys") and "told_so_far" in page.context:
        page = client.post(url("bulk", action, kind=kind), Fields(page.content.decode()).values)
    return page


def test_tags_are_added_to_all_that_were_chosen(anna: Client) -> None:
    one, two = store(tag_namen=["Alt"]), store(tag_namen=["neu"])
    fields = asked(anna, "add_tags", [one, two])
    page = run(anna, "add_tags", fields | {"schlagworte": "Neu\r\nZwei", "grund": "Aufräumen"})
    assert told(page) == {
        f"longterm_{one}": (True, "Stored as version 2."),
        f"longterm_{two}": (True, "Stored as version 2."),
    }
    assert LongtermMemory.objects.get(pk=one).tag_namen == ["Alt", "neu", "Zwei"]
    assert LongtermMemory.objects.get(pk=two).tag_namen == ["neu", "Zwei"]
    version = LongtermVersion.objects.get(memory_id=one, version=2)
    assert (version.aktion, version.grund, version.tuer, version.benutzer) == (
        "geaendert",
        "Aufräumen",
        "admin",
        "anna",
    )


def test_tags_are_removed_from_those_that_have_them(anna: Client) -> None:
    one, two = store(tag_namen=["Übung", "B"]), store(tag_namen=["B"])
    page = run(anna, "remove_tags", asked(anna, "remove_tags", [one, two]) | {"schlagworte": "übung"})
    assert told(page)[f"longterm_{two}"] == (True, "Already so; no new version.")
    assert LongtermMemory.objects.get(pk=one).tag_namen == ["B"]
    assert LongtermMemory.objects.get(pk=two).version == 1


def test_short_term_memories_are_promoted(anna: Client) -> None:
    key = store(SHORTTERM, gueltig_bis=None)
    page = run(anna, "promote", asked(anna, "promote", [key], "shortterm"), "shortterm")
    new = LongtermMemory.objects.get()
    assert told(page) == {f"shortterm_{key}": (True, f"Now longterm_{new.pk}.")}
    assert not ShorttermMemory.objects.exists()


def test_the_validity_is_set_or_extended(anna: Client) -> None:
    own = {"memory_typ": "arbeit", "titel": "T"}
    now = timezone.now()
    over, good = now - timedelta(days=3), now + timedelta(days=3)
    keys = [store(BRAIN, **own, gueltig_bis=moment) for moment in (over, good, None)]
    fields = asked(anna, "set_expiry", keys, "brain")
    page = run(anna, "set_expiry", fields | {"tage": "10"}, "brain")
    assert [told(page)[f"brain_{key}"][0] for key in keys] == [True, True, False]
    assert "nothing to extend" in told(page)[f"brain_{keys[2]}"][1]
    first, second = (BrainMemory.objects.get(pk=key).gueltig_bis for key in keys[:2])
    assert first - timezone.now() > timedelta(days=9, hours=23)
    assert second == good + timedelta(days=10)
    run(anna, "set_expiry", fields | {"gueltig_bis": "2030-05-01T12:30"}, "brain")
    moments = set(BrainMemory.objects.values_list("gueltig_bis", flat=True))
    assert [timezone.localtime(moment).isoformat()[:16] for moment in moments] == ["2030-05-01T12:30"]


def test_deleted_memories_are_restored_from_the_trash(anna: Client) -> None:
    keys = [store(), store()]
    delete(LONGTERM, keys, ORIGIN)
    rows = list(LongtermVersion.objects.filter(aktion="geloescht").values_list("pk", flat=True))
    fields = asked(anna, "restore", rows, where="trash")
    assert set(fields["keys"].split(",")) == set(map(str, keys))
    page = run(anna, "restore", fields | {"grund": "Versehen"})
    assert {text for _ok, text in told(page).values()} == {"Stored as version 3."}
    assert set(LongtermMemory.objects.values_list("pk", flat=True)) == set(keys)
    assert LongtermVersion.objects.filter(version=3, grund="Versehen", aktion="wiederhergestellt").count() == 2
    assert anna.post(url("trash"), {"action": "restore", "_selected_action": "x", "index": "0"}).status_code == 302


@pytest.mark.parametrize(
    ("action", "wrong", "fault"),
    [
        ("add_tags", {"schlagworte": "  "}, "Name a tag."),
        ("add_tags", {"schlagworte": "gut\r\n" + "y" * 101}, "100"),
        ("add_tags", {"schlagworte": "gut", "grund": "g" * 1001}, "1000"),
        ("set_expiry", {}, "Fill in one of the two"),
        ("set_expiry", {"tage": "3", "gueltig_bis": "2030-05-01T12:30"}, "Fill in one of the two"),
        ("set_expiry", {"tage": "0", "grund": "weil"}, "1"),
    ],
)
def test_bad_input_is_told_and_nothing_is_lost(anna: Client, action: str, wrong: dict[str, str], fault: str) -> None:
    key = store(SHORTTERM, gueltig_bis=None)
    fields = asked(anna, action, [key], "shortterm") | wrong
    page = anna.post(url("bulk", action, kind="shortterm"), fields)
    assert fault in str(page.context["form"].errors)
    kept = Fields(page.content.decode()).values
    assert kept["keys"] == str(key)
    assert {name: kept[name] for name in wrong if name != "schlagworte"} == {
        name: value for name, value in wrong.items() if name != "schlagworte"
    }
    assert ShorttermMemory.objects.get(pk=key).version == 1


def test_all_that_match_the_filter_are_done_in_steps(monkeypatch: pytest.MonkeyPatch, anna: Client) -> None:
    monkeypatch.setattr(bulk, "STEP", 3)
    keys = [store(nutzer="ben") for _each in range(8)]
    other = store()
    sent = {"action": "add_tags", "_selected_action": [str(keys[0])], "select_across": "1", "index": "0"}
    page = anna.post(f"{url('changelist')}?nutzer=ben", sent)
    fields = Fields(page.content.decode()).values
    assert set(fields["keys"].split(",")) == set(map(str, keys))
    first = anna.post(url("bulk", "add_tags"), fields | {"schlagworte": "X", "grund": "G"})
    assert (first.context["done"], first.context["total"]) == (3, 8)
    assert b"steps.js" in first.content
    page = run(anna, "add_tags", Fields(first.content.decode()).values)
    assert (page.context["good"], page.context["bad"], len(told(page))) == (8, 0, 8)
    assert f'href="{url("changelist")}?nutzer=ben"' in page.content.decode()
    assert LongtermVersion.objects.filter(version=2, grund="G").count() == 8
    assert LongtermMemory.objects.get(pk=other).version == 1
    monkeypatch.setattr(bulk, "MOST_IN_BULK", 5)
    page = anna.post(f"{url('changelist')}?nutzer=ben", sent, follow=True)
    assert "At most 5 memories" in messages(page)


def test_each_row_needs_the_right(anna: Client) -> None:
    mine, seen, hidden = store(nutzer="ben"), store(nutzer="anna"), store(nutzer="carla")
    client = person("vera", ["view_longtermmemory", "change_longtermmemory"])
    vera = User.objects.get(username="vera")
    vera.grants.all().delete()
    Grant.objects.create(user=vera, nutzer=["ben"])
    Grant.objects.create(user=vera, nutzer=["anna"], may_write=False)
    fields = {"keys": f"{mine},{seen},{hidden},999", "schlagworte": "X"}
    page = run(client, "add_tags", fields)
    assert [ok for ok, _text in told(page).values()] == [True, False, False, False]
    assert told(page)[f"longterm_{seen}"][1] == "You may not do this with this memory."
    assert told(page)[f"longterm_{hidden}"] == (False, told(page)["longterm_999"][1])
    assert LongtermVersion.objects.count() == 4
    assert client.post(url("bulk", "restore"), fields).status_code == 403
    assert client.post(url("bulk", "add_tags", kind="brain"), fields).status_code == 403
    assert client.post(url("bulk", "promote"), fields).status_code == 404


def test_whoever_may_only_look_is_offered_nothing() -> None:
    key = store()
    client = person("vera", ["view_longtermmemory"])
    for where in ("changelist", "trash"):
        assert 'name="action"' not in client.get(url(where)).content.decode()
    for each in bulk.BULKS:
        answer = client.post(url("bulk", each.name), {"keys": str(key), "schlagworte": "X"})
        assert answer.status_code in {403, 404}
    assert LongtermVersion.objects.count() == 1


@pytest.mark.parametrize("keys", ["", "x", "1,x", "-1", "1" * 30, ",".join(map(str, range(1, 2_003)))])
def test_a_selection_that_makes_no_sense_does_nothing(anna: Client, keys: str) -> None:
    store()
    assert anna.post(url("bulk", "add_tags"), {"keys": keys, "schlagworte": "X"}).status_code == 302
    assert anna.get(url("bulk", "add_tags")).status_code == 302
    assert LongtermVersion.objects.count() == 1


def test_what_others_change_meanwhile_is_kept(monkeypatch: pytest.MonkeyPatch, anna: Client) -> None:
    key = store(tag_namen=["Alt"])
    stored = bulk.services.update
    others = [["Alt", "von Ben"]]

    def late(*args: Any) -> list[Outcome]:
        if others:
            stored(LONGTERM, [Change(key, {"tag_namen": others.pop()})], ORIGIN)
        return stored(*args)

    monkeypatch.setattr(bulk.services, "update", late)
    page = run(anna, "add_tags", {"keys": str(key), "schlagworte": "Neu"})
    assert told(page) == {f"longterm_{key}": (True, "Stored as version 3.")}
    assert LongtermMemory.objects.get(pk=key).tag_namen == ["Alt", "von Ben", "Neu"]


def test_a_forged_report_of_earlier_steps_is_dropped(anna: Client) -> None:
    key = store()
    page = run(anna, "add_tags", {"keys": str(key), "schlagworte": "X", "told": "[[1]]"})
    assert set(told(page)) == {f"longterm_{key}"}
