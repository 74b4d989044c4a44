"""What somebody does who curates, from signing in on, in a real browser: found, corrected, tagged, merged, moved."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from memories.kinds import LONGTERM
from memories.models import LongtermMemory
from memories.principal import SYSTEM, Origin
from memories.services import Change, update
from tests import test_admin_browser as admin
from tests.admincast import store
from tests.serving import Place, serving

pytestmark = pytest.mark.django_db(transaction=True)
browser = admin.browser
anna = admin.anna
GERMAN = {**admin.LOOKS["desktop"], "locale": "de-DE"}
LIST = "/admin/memories/longtermmemory/"


@pytest.fixture
def visitor(browser: Browser, live_server: Any, anna: User) -> Iterator[admin.Visitor]:
    """Anna at a German browser; nothing may have been wrong in its console in the end."""
    visitor = admin.Visitor(browser, live_server.url, **GERMAN)
    yield visitor
    assert visitor.trouble == []
    visitor.context.close()


def choose(page: Page, action: str, *keys: int) -> None:
    """Start an action of the list for these memories."""
    for key in keys:
        page.check(f"input[name=_selected_action][value='{key}']")
    page.select_option("select[name=action]", action)
    page.click("button[name=index]")


def test_a_memory_is_found_misspelt_corrected_compared_and_restored(visitor: admin.Visitor) -> None:
    for text in (
        "Der Zahnarzttermin ist im Mai.",
        "Die Kündigungsfrist beträgt drei Monate.",
        "Donnerstags Lieferung.",
    ):
        key = store(kurzbeschreibung=text.split()[1], memory=text)
    page = visitor.page
    visitor.sign_in()
    page.click("#content .model-longtermmemory th a")
    page.fill("#searchbar", "Kündigungfrsit")
    page.press("#searchbar", "Enter")
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    page.click("#result_list .field-kennung a")
    page.fill("#id_memory", "Die Kündigungsfrist beträgt sechs Monate.")
    page.fill("#id_grund", "Nachtrag vom Mai")
    page.click("input[name=_continue]")
    expect(page.locator(".messagelist")).to_contain_text("als Version 2 gespeichert")
    page.get_by_role("link", name="Historie").click()
    expect(page.locator("#version-2 del")).to_have_text("drei")
    expect(page.locator("#version-2 ins")).to_have_text("sechs")
    expect(page.locator("#version-2")).to_contain_text("Nachtrag vom Mai")
    page.locator("#version-1 summary").click()
    page.locator("#version-1 .restore button").click()
    expect(page.locator(".messagelist")).to_contain_text("Version 3")
    memory = LongtermMemory.objects.get(pk=key - 1)
    assert (memory.version, memory.memory) == (3, "Die Kündigungsfrist beträgt drei Monate.")


def test_fifty_memories_get_another_tag(visitor: admin.Visitor) -> None:
    for number in range(50):
        store(kurzbeschreibung=f"Frist {number}")
    other = store(kurzbeschreibung="Lieferant", memory="Donnerstags.")
    page = visitor.page
    visitor.sign_in()
    for action, name in (("add_tags", "Nachtrag"), ("remove_tags", "Vertrag")):
        page.goto(f"{LIST}?q=Frist")
        expect(page.locator("#result_list tbody tr")).to_have_count(50)
        page.check("#action-toggle")
        choose(page, action)
        page.fill("[name=schlagworte]", name)
        page.click("input.default")
        expect(page.locator("#content")).to_contain_text("50 Erinnerungen")
        expect(page.locator("#content tbody tr")).to_have_count(50)
    retagged = LongtermMemory.objects.exclude(pk=other)
    assert [memory.tag_namen for memory in retagged] == [["Nachtrag"]] * 50
    assert LongtermMemory.objects.get(pk=other).tag_namen == ["Vertrag"]


def test_three_memories_become_one_and_three_again(visitor: admin.Visitor) -> None:
    texts = ["Drei Monate.", "Drei Monate zum Quartal.", "Sechs Monate."]
    keys = [store(memory=text, tag_namen=[f"T{place}"]) for place, text in enumerate(texts)]
    page = visitor.page
    visitor.sign_in()
    page.goto(LIST)
    choose(page, "merge_selected", *keys)
    page.locator("label", has_text="zum Quartal").locator("[name=feld_memory]").check()
    page.click("input.default")
    page.click("[name=post]")
    expect(page.locator(".messagelist")).to_contain_text("3 Erinnerungen")
    merged = LongtermMemory.objects.get()
    assert (merged.memory, set(merged.tag_namen)) == ("Drei Monate zum Quartal.", {"T0", "T1", "T2"})
    page.locator(".messagelist a.button").click()
    page.click("input.default")
    expect(page.locator(".messagelist")).to_contain_text("wieder da")
    assert sorted(LongtermMemory.objects.values_list("memory", flat=True)) == sorted(texts)


def test_an_export_comes_into_an_empty_brain_as_it_went_out(
    visitor: admin.Visitor, browser: Browser, tmp_path: Path
) -> None:
    key = store(kurzbeschreibung="Kündigungsfrist", memory="Drei Monate,\r\nzum „Quartal“.", tag_namen=["Büro"])
    changed = {"memory": "Sechs Monate."}
    update(LONGTERM, [Change(key, changed)], Origin(SYSTEM, "ben", "planer", "rest", "test", grund="Nachtrag"))
    store(kurzbeschreibung="Lieferant", memory="Donnerstags.")
    visitor.sign_in()
    went_out = downloaded(visitor.page, tmp_path / "out.jsonl")
    place = Place(tmp_path)
    place.environment["BRAIN_ADMIN_PASSWORD"] = admin.PASSWORD
    with serving(place) as empty:
        other = admin.Visitor(browser, f"http://127.0.0.1:{empty.port}", **GERMAN)
        other.sign_in("admin")
        bring_in(other.page, tmp_path / "out.jsonl", 2)
        came_in = downloaded(other.page, tmp_path / "in.jsonl")
        other.page.locator("#result_list tr", has_text="Kündigungsfrist").locator(".field-kennung a").click()
        other.page.get_by_role("link", name="Historie").click()
        expect(other.page.locator("#version-2 ins")).to_have_text("Sechs")
        expect(other.page.locator("#version-2")).to_contain_text("Nachtrag")
        assert other.trouble == []
        other.context.close()
    assert came_in == went_out


def bring_in(page: Page, path: Path, number: int) -> None:
    """Import the file, all of whose memories are new."""
    page.goto(LIST)
    expect(page.locator("#result_list")).to_have_count(0)
    page.get_by_role("link", name="Importieren").click()
    page.set_input_files("#id_datei", path)
    page.get_by_role("button", name="Vorschau").click()
    page.get_by_role("button", name="Jetzt importieren").click()
    expect(page.get_by_role("heading", name=f"Neu: {number}")).to_be_visible()


def downloaded(page: Page, path: Path) -> list[str]:
    """The lines of the export with histories, which are kept there, but for the first, which names the program."""
    page.goto(LIST)
    with page.expect_download() as download:
        page.get_by_role("link", name="Mit Historien exportieren").click()
    download.value.save_as(path)
    return path.read_text(encoding="utf-8").splitlines()[1:]
