"""A person arranges a list in a real browser: values offered while typing, columns, views."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from memories.kinds import BRAIN
from memories.models import SavedView
from tests import test_admin_browser as admin
from tests.admincast import store

pytestmark = pytest.mark.django_db(transaction=True)
browser = admin.browser
anna = admin.anna


def filter_by_typing(page: Page) -> None:
    """Filter by an owner, of whom some are offered."""
    field = page.locator("input[name=nutzer]")
    field.focus()
    offered = page.locator("#values-nutzer option")
    expect(offered).to_have_count(3)
    field.press_sequentially("be")
    expect(offered).to_have_count(2)
    assert offered.evaluate_all("all => all.map(each => each.value)") == ["ben", "Bernd"]
    field.press_sequentially("n")
    field.press("Enter")
    expect(page.locator("#result_list tbody tr")).to_have_count(1)


def save_a_view(page: Page, look: str) -> None:
    """Save the list as it is, by keyboard."""
    page.locator(".arrange summary").nth(0).press("Enter")
    page.fill("#view-name", "Bens Fristen")
    admin.picture(page, "view-save", look)
    page.locator("#view-name").press("Enter")
    expect(page.locator(".messagelist")).to_contain_text("is saved")
    expect(page.locator(".arrange a[aria-current]")).to_have_text("Bens Fristen")


def choose_columns(page: Page, look: str) -> None:
    """Leave some columns of the open view out, by keyboard."""
    page.locator(".arrange summary").nth(1).press("Enter")
    for name in ("agent", "version", "embedding_zustand"):
        page.locator(f"[name=spalte][value={name}]").press("Space")
    admin.picture(page, "columns", look)
    page.locator(".arrange .button", has_text="Show these").press("Enter")
    expect(page.locator("#result_list th.column-agent")).to_have_count(0)
    assert "agent" not in SavedView.objects.get().columns


@pytest.mark.parametrize("look", admin.LOOKS)
def test_a_person_arranges_a_list_by_keyboard(browser: Browser, live_server: Any, anna: User, look: str) -> None:
    for nutzer in ("anna", "ben", "Bernd"):
        store(nutzer=nutzer, kurzbeschreibung=f"Frist von {nutzer}")
    visitor = admin.Visitor(browser, live_server.url, **admin.LOOKS[look])
    page = visitor.page
    visitor.sign_in()
    page.goto("/admin/memories/longtermmemory/")
    filter_by_typing(page)
    save_a_view(page, look)
    choose_columns(page, look)
    page.locator(".arrange a", has_text="All").press("Enter")
    expect(page.locator("#result_list tbody tr")).to_have_count(3)
    assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth + 1")
    page.click("button[name=language][value=de]")
    admin.picture(page, "view-list-german", look)
    page.locator(".arrange a.manage").press("Enter")
    page.locator("[name=start]").press("Enter")
    expect(page.locator(".starts")).to_have_text("öffnet sich mit der Liste")
    admin.picture(page, "views", look)
    assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth + 1")
    page.goto("/admin/memories/longtermmemory/")
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    assert visitor.trouble == []
    visitor.context.close()


def test_without_scripts_the_filters_are_plain_fields(browser: Browser, live_server: Any, anna: User) -> None:
    store(BRAIN, titel="T", memory_typ="arbeit", gueltig_bis=None, nutzer="ben")
    store(BRAIN, titel="T", memory_typ="arbeit", gueltig_bis=None)
    visitor = admin.Visitor(browser, live_server.url, **admin.LOOKS["desktop"], java_script_enabled=False)
    visitor.sign_in()
    visitor.page.goto("/admin/memories/brainmemory/")
    visitor.page.fill("input[name=nutzer]", "ben")
    visitor.page.locator("input[name=nutzer]").press("Enter")
    expect(visitor.page.locator("#result_list tbody tr")).to_have_count(1)
    visitor.context.close()
