"""Case 98 in a real browser: the queue, in which one proposal is approved and one rejected with a reason."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, expect

from memories.kinds import BRAIN, SHORTTERM
from memories.models import LongtermMemory, LongtermVersion
from tests import test_admin_browser as admin
from tests.admincast import store
from tests.test_admin_proposals import propose

pytestmark = pytest.mark.django_db(transaction=True)
browser = admin.browser
anna = admin.anna
LOOKS = admin.LOOKS | {
    "german": {**admin.LOOKS["desktop"], "locale": "de-DE"},
    "german-phone": {**admin.LOOKS["phone"], "locale": "de-DE", "color_scheme": "dark"},
}


def test_case_98_one_is_approved_and_one_rejected_with_a_reason(browser: Browser, live_server: Any, anna: User) -> None:
    store(kurzbeschreibung="Kündigungsfrist", memory="Die Kündigungsfrist beträgt sechs Monate.")
    wrong = propose(kurzbeschreibung="Frist", memory="Die Kündigungsfrist beträgt zwei Monate.")
    right = propose(kurzbeschreibung="Lieferant", memory="Brightwell liefert donnerstags.")
    visitor = admin.Visitor(browser, live_server.url, **LOOKS["desktop"])
    page = visitor.page
    visitor.sign_in()
    page.click(".figure >> text=/^2$/")
    expect(page.locator(".cards > li")).to_have_count(2)
    card = page.locator(f"#longterm_{wrong}")
    expect(card.locator(".near")).to_contain_text("sechs Monate")
    card.get_by_label("Reason").fill("Es sind sechs Monate")
    card.get_by_role("button", name="Reject").click()
    expect(page.locator(".messagelist")).to_contain_text("is rejected and lies in the trash")
    expect(page.locator(".cards > li")).to_have_count(1)
    page.get_by_label("Reason").press("Enter")  # what comes first is approving
    expect(page.locator(".messagelist")).to_contain_text("is approved")
    expect(page.locator("#content-main")).to_contain_text("Nothing waits for approval")
    assert not LongtermMemory.objects.get(pk=right).vorgeschlagen
    gone = LongtermVersion.objects.get(memory_id=wrong, version=2)
    assert (gone.aktion, gone.grund, gone.benutzer) == ("geloescht", "Es sind sechs Monate", "anna")
    assert visitor.trouble == []
    visitor.context.close()


@pytest.mark.parametrize("look", LOOKS)
def test_case_98_the_pages_are_whole_in_every_look(browser: Browser, live_server: Any, anna: User, look: str) -> None:
    store(kurzbeschreibung="Kündigungsfrist", memory="Die Kündigungsfrist beträgt sechs Monate.")
    store(kurzbeschreibung="Kündigung", memory="Eine Kündigung geht per Brief, nicht per Fax. " * 8)
    key = propose(
        kurzbeschreibung="Kündigungsfrist beim Büro",
        memory="Die Kündigungsfrist beträgt zwei Monate.\n\n- Kündigung per Brief\n" + "Donaudampfschiff" * 12,
        tag_namen=["Vertrag", "Frist", "Büro"],
    )
    propose(kurzbeschreibung="Donaudampfschiff" * 9, memory="Frist", tag_namen=["Donaudampfschiff" * 5])
    propose(SHORTTERM, kurzbeschreibung="Rückruf", memory="Herr Ott ruft zurück.")
    propose(BRAIN, titel="Wir nehmen PostgreSQL", inhalt_json='{"grund": "Last"}')
    visitor = admin.Visitor(browser, live_server.url, **LOOKS[look])
    page = visitor.page
    visitor.sign_in()
    for name, address in {
        "proposals": "/admin/memories/proposals/",
        "proposals-start": "/admin/",
        "proposals-list": "/admin/memories/longtermmemory/?vorgeschlagen=ja",
        "proposals-change": f"/admin/memories/longtermmemory/{key}/change/",
    }.items():
        page.goto(address)
        assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth + 1"), name
        admin.picture(page, name, look)
    assert visitor.trouble == []
    visitor.context.close()
