"""An import in a real browser: its steps follow each other by themselves, under the CSP, on every screen."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, expect

from memories.models import LongtermMemory
from tests import test_admin_browser as admin
from tests.admincast import store
from tests.transferring import become_another_installation, export

pytestmark = pytest.mark.django_db(transaction=True)
browser = admin.browser
anna = admin.anna


@pytest.mark.parametrize("look", ["desktop", "phone"])
def test_a_person_imports_a_file(
    browser: Browser, live_server: Any, anna: User, look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memories.transfer.jobs._SECONDS_A_STEP", 0.0001)
    monkeypatch.setattr("memories.transfer.jobs.AT_ONCE", 1)
    for number in range(3):
        store(memory=f"Frist {number}", kurzbeschreibung="Kündigungsfrist des Mietvertrags für die Lagerhalle in Süd")
    text = export() + '{"typ": "longterm", "kurzbeschreibung": "Ohne Text"}\n'
    become_another_installation()
    visitor = admin.Visitor(browser, live_server.url, **admin.LOOKS[look])
    page = visitor.page
    visitor.sign_in()
    page.goto("/admin/memories/longtermmemory/")
    page.get_by_role("link", name="Import", exact=True).click()
    admin.picture(page, "import-upload", look)
    page.set_input_files("#id_datei", {"name": "brain.jsonl", "mimeType": "application/jsonl", "buffer": text.encode()})
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Import now").click()
    expect(page.get_by_role("status")).to_contain_text("Done: 4 of 4 rows")
    expect(page.get_by_role("heading", name="New: 3")).to_be_visible()
    expect(page.get_by_role("heading", name="Faulty: 1")).to_be_visible()
    admin.picture(page, "import-job", look)
    assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth + 1")
    assert LongtermMemory.objects.count() == 3
    assert visitor.trouble == []
    visitor.context.close()
