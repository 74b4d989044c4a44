"""The admin in a real browser: what a person does there, without an error in the console or against the CSP.

Pictures of every page go to BRAIN_TEST_ARTEFACTS (default: artefacts/).
"""

import os
import shutil
from base64 import b32decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django_otp.oath import TOTP

from memories.admin import bulk
from memories.duplicates import find
from memories.keys import make_key
from memories.kinds import BRAIN, LONGTERM, SHORTTERM
from memories.models import EmbeddingProfile, Grant, ImportJob, LongtermMemory, Tag
from memories.principal import SYSTEM, Origin
from memories.services import Change, delete, insert, update
from tests.admincast import NOTE, store
from tests.axe import AXE, heavy_faults
from tests.conftest import Agent

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
IN_CI = os.environ.get("CI") == "true"
try:
    from playwright.sync_api import Browser, Page, expect, sync_playwright
except ImportError:
    if IN_CI:
        raise
    pytest.skip("playwright is not installed", allow_module_level=True)
if not CHROMIUM and not IN_CI:
    pytest.skip("there is no chromium", allow_module_level=True)

pytestmark = pytest.mark.django_db(transaction=True)
PICTURES = Path(os.environ.get("BRAIN_TEST_ARTEFACTS") or Path(__file__).parent.parent / "artefacts")
PASSWORD = "a long password"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
]
LOOKS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "is_mobile": True, "has_touch": True},
}
LANGUAGES = {"en": "en-GB", "de": "de-DE"}
WITHOUT_BREAK = "Donaudampfschiff"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium.

    Playwright keeps an event loop running in this thread, in which Django would refuse its own database calls.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            yield browser
            browser.close()


class Visitor:
    """A person at a browser, whose console is listened to."""

    def __init__(self, browser: Browser, address: str, **look: Any) -> None:
        self.context = browser.new_context(base_url=address, **{"locale": "en-GB"} | look)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.trouble: list[str] = []
        self.page.on("console", lambda entry: self._note(entry.type, f"{entry.text} {self.page.url}"))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.add_init_script(
            "document.addEventListener('securitypolicyviolation', e => console.error('CSP', e.violatedDirective))"
        )

    def _note(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.trouble.append(text)

    def sign_in(self, name: str = "anna", password: str = PASSWORD) -> None:
        """Sign in, as the administrator of the tests unless somebody else is named."""
        self.page.goto("/admin/")
        self.page.fill("#id_username", name)
        self.page.fill("#id_password", password)
        self.page.click("input[type=submit]")
        expect(self.page.locator("#user-tools")).to_contain_text(name)


@pytest.fixture
def anna() -> User:
    """Administrator."""
    return User.objects.create_superuser("anna", password=PASSWORD)


def test_a_person_edits_a_memory(browser: Browser, live_server: Any, anna: User) -> None:
    store(memory="Die Kündigungsfrist\nbeträgt drei Monate.")
    visitor = Visitor(browser, live_server.url, **LOOKS["desktop"])
    page = visitor.page
    visitor.sign_in()
    page.click("#content .model-longtermmemory th a")
    page.click("#result_list .field-kennung a")
    page.fill("#id_memory", "Die Kündigungsfrist\nbeträgt sechs Monate.")
    page.fill("#id_schlagworte", "Vertrag\nNachtrag")
    page.fill("#id_grund", "Schreiben vom Mai")
    page.click("input[name=_continue]")
    expect(page.locator(".messagelist")).to_contain_text("is stored as version 2")
    page.click("input[name=_save]")
    expect(page.locator(".messagelist")).to_contain_text("Nothing was changed")
    assert visitor.trouble == []
    visitor.context.close()


def test_a_person_sees_what_changed_and_goes_back(browser: Browser, live_server: Any, anna: User) -> None:
    key = store(memory="Die Kündigungsfrist\nbeträgt drei Monate.")
    changed = {"memory": "Die Kündigungsfrist\nbeträgt sechs Monate.", "tag_namen": ["Vertrag", "Nachtrag"]}
    update(LONGTERM, [Change(key, changed)], Origin(SYSTEM, "ben", "planer", "rest", "test"))
    visitor = Visitor(browser, live_server.url, **LOOKS["desktop"])
    page = visitor.page
    visitor.sign_in()
    page.goto(f"/admin/memories/longtermmemory/{key}/change/")
    page.click("a.historylink")
    newest = page.locator("#version-2")
    expect(newest.locator("del").first).to_have_text("drei")
    expect(newest.locator("ins").first).to_have_text("sechs")
    expect(newest.locator("ins.tag")).to_have_text("Nachtrag")
    page.locator("#version-1 summary").click()
    page.locator("#version-1 [name=grund]").fill("war falsch")
    page.locator("#version-1 .restore button").click()
    expect(page.locator(".messagelist")).to_contain_text("Restored. This is version 3.")
    memory = LongtermMemory.objects.get(pk=key)
    assert (memory.version, memory.memory) == (3, "Die Kündigungsfrist\nbeträgt drei Monate.")
    page.click("button[name=language][value=de]")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.locator("#version-3")).to_be_visible()
    assert visitor.trouble == []
    visitor.context.close()


def test_two_persons_at_one_memory_lose_nothing(browser: Browser, live_server: Any, anna: User) -> None:
    key = store()
    visitor = Visitor(browser, live_server.url, **LOOKS["desktop"])
    page = visitor.page
    visitor.sign_in()
    page.goto(f"/admin/memories/longtermmemory/{key}/change/")
    update(LONGTERM, [Change(key, {"memory": "von Ben"})], Origin(SYSTEM, "ben", "planer", "rest", "test"))
    page.fill("#id_memory", "von Anna")
    page.click("input[name=_save]")
    expect(page.locator(".errornote").first).to_be_visible()
    expect(page.locator("#id_memory")).to_have_value("von Anna")
    picture(page, "conflict", "desktop")
    page.click("text=See in the history what was changed")
    expect(page.locator("#version-2")).to_contain_text("ben")
    assert LongtermMemory.objects.get(pk=key).memory == "von Ben"
    assert visitor.trouble == []
    visitor.context.close()


def test_a_key_is_made_shown_once_and_revoked(browser: Browser, live_server: Any, anna: User) -> None:
    make_key(name="alt", account="Planer", only={}, may_write=True, expires_at=None)
    visitor = Visitor(browser, live_server.url, **LOOKS["desktop"])
    page = visitor.page
    visitor.sign_in()
    page.goto("/admin/memories/accesskey/add/")
    page.select_option("#id_account", label="Planer")
    page.fill("#id_name", "Neu")
    page.fill("#id_nutzer", "anna\nben")
    page.click("input[name=_save]")
    secret = page.locator(".secret").inner_text()
    assert secret.startswith("brk_")
    picture(page, "key-made", "desktop")
    page.click("text=I have copied it")
    page.click("text=Neu")
    assert secret not in page.content()
    page.click("text=Revoke")
    picture(page, "key-revoke", "desktop")
    page.click("input[type=submit]")
    expect(page.locator(".messagelist")).to_contain_text("is revoked")
    assert visitor.trouble == []
    visitor.context.close()


@pytest.mark.parametrize("look", ["desktop", "phone"])
def test_memories_are_merged_by_keyboard_and_undone(browser: Browser, live_server: Any, anna: User, look: str) -> None:
    long = "Der Liefervertrag mit Brightwell läuft am 31.12. aus. " * 8
    keys = [store(memory=long), store(memory=long + "Kündigung bis Oktober.", tag_namen=["Einkauf"])]
    visitor = Visitor(browser, live_server.url, **LOOKS[look])
    page = visitor.page
    visitor.sign_in()
    page.goto("/admin/memories/longtermmemory/merge/?" + "&".join(f"id={key}" for key in keys))
    expect(page.locator(".merge ins")).to_contain_text("Oktober")
    picture(page, "merge", look)
    page.locator("[name=feld_memory]").first.focus()
    page.keyboard.press("ArrowUp")  # from the first to the last one
    page.keyboard.press("Enter")
    expect(page.locator("dl.differences ins").first).to_contain_text("Oktober")
    picture(page, "merge-asked", look)
    assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth + 1")
    page.locator("[name=post]").press("Enter")
    expect(page.locator(".messagelist")).to_contain_text("2 memories were merged")
    assert LongtermMemory.objects.get().memory.endswith("Oktober.")
    picture(page, "merged", look)
    page.locator(".messagelist a.button").press("Enter")
    picture(page, "merge-undo", look)
    page.locator("input.default").press("Enter")
    expect(page.locator(".messagelist")).to_contain_text("there again")
    assert LongtermMemory.objects.count() == 2
    assert visitor.trouble == []
    visitor.context.close()


@pytest.mark.parametrize("look", LOOKS)
def test_many_memories_get_a_tag_by_keyboard(
    browser: Browser, live_server: Any, anna: User, look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "STEP", 2)
    for number in range(3):
        store(kurzbeschreibung=f"Frist {number}")
    visitor = Visitor(browser, live_server.url, **LOOKS[look])
    page = visitor.page
    visitor.sign_in()
    page.goto("/admin/memories/longtermmemory/?q=Frist")
    page.locator("#action-toggle").press("Space")
    page.select_option("select[name=action]", "add_tags")
    page.locator("button[name=index]").press("Enter")
    page.fill("[name=schlagworte]", "Neu\n" + "y" * 101)
    page.locator("input.default").press("Enter")
    expect(page.locator(".errorlist")).to_contain_text("100")
    picture(page, "bulk", look)
    page.fill("[name=schlagworte]", "Neu")
    page.locator("input.default").press("Enter")
    expect(page.locator("#content tbody tr")).to_have_count(3)
    expect(page.locator("#content")).to_contain_text("3 memories are as you wanted them.")
    picture(page, "bulk-done", look)
    assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth + 1")
    page.click("text=Back to the list")
    expect(page.locator("#searchbar")).to_have_value("Frist")
    assert all("Neu" in memory.tag_namen for memory in LongtermMemory.objects.all())
    assert visitor.trouble == []
    visitor.context.close()


def test_two_versions_are_chosen_and_compared(browser: Browser, live_server: Any, anna: User) -> None:
    key = store(memory="Die Kündigungsfrist beträgt drei Monate.")
    for text in ("Etwas anderes.", "Die Kündigungsfrist beträgt sechs Monate."):
        update(LONGTERM, [Change(key, {"memory": text})], Origin(SYSTEM, "ben", "planer", "rest", "test"))
    visitor = Visitor(browser, live_server.url, **LOOKS["desktop"])
    page = visitor.page
    visitor.sign_in()
    page.goto(f"/admin/memories/longtermmemory/{key}/history/")
    page.check("#version-1 [name=von]")
    page.locator("#compare button").press("Enter")
    expect(page.locator(".differences del")).to_have_text("drei")
    expect(page.locator(".differences ins")).to_have_text("sechs")
    assert visitor.trouble == []
    visitor.context.close()


def sign_in(page: Page, password: str, code: str = "") -> None:
    """Fill in the page to sign in."""
    page.goto("/admin/login/")
    page.fill("#id_username", "anna")
    page.fill("#id_password", password)
    page.fill("#id_otp_token", code)
    page.click("input[type=submit]")


@pytest.mark.parametrize("look", LOOKS)
def test_the_second_factor_is_switched_on_and_asked_for(
    browser: Browser, live_server: Any, anna: User, look: str
) -> None:
    visitor = Visitor(browser, live_server.url, **LOOKS[look])
    page = visitor.page
    visitor.sign_in()
    page.click("#user-tools >> text=Second factor")
    expect(page.locator(".qr svg")).to_be_visible()
    assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth + 1")
    picture(page, "second-factor", look)
    secret = b32decode(page.locator(".secret").inner_text().replace(" ", ""))
    page.fill("#id_otp_token", f"{TOTP(secret).token():06d}")
    page.click("input[name=switch_on]")
    codes = page.locator(".recovery-codes code").all_inner_texts()
    picture(page, "second-factor-on", look)
    page.click("#logout-form button")
    sign_in(page, PASSWORD)
    expect(page.locator(".errornote")).to_contain_text("not right")
    picture(page, "login-refused", look)
    sign_in(page, PASSWORD, codes[0])
    expect(page.locator("#user-tools")).to_be_visible()
    page.goto("/admin/auth/user/second-factor/")
    expect(page.locator("#content")).to_contain_text("9 recovery codes are unused")
    picture(page, "second-factor-off", look)
    assert visitor.trouble == []
    visitor.context.close()


@pytest.mark.parametrize("look", LOOKS)
def test_whoever_fails_too_often_reads_when_to_try_again(
    browser: Browser, live_server: Any, anna: User, look: str
) -> None:
    visitor = Visitor(browser, live_server.url, **LOOKS[look])
    for _time in range(5):
        sign_in(visitor.page, "wrong")
    expect(visitor.page.locator("#content")).to_contain_text("Try again in 15 minutes")
    picture(visitor.page, "locked", look)
    assert [line for line in visitor.trouble if "429" not in line] == []
    visitor.context.close()


def picture(page: Page, name: str, look: str) -> None:
    """Keep a picture of the page, which must keep nobody out."""
    assert not AXE.exists() or heavy_faults(page) == []
    keep(page, name, look)


def keep(page: Page, name: str, look: str) -> None:
    """Keep a picture of the page."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"admin-{name}-{look}.png", full_page=True)


def fill_the_database() -> dict[str, int]:
    """Memories of all kinds, a long history and keys; the keys of those that are looked at."""
    origin = Origin(SYSTEM, "anna", "planer", "rest", "insert_brain_longterm_memory", referenzfelder={"ticket": "T-17"})
    insert(LONGTERM, [NOTE | {"kurzbeschreibung": f"Frist {n}", "tag_namen": [f"T{n % 7}"]} for n in range(60)], origin)
    long = "Der Liefervertrag mit Brightwell läuft am 31.12. aus.\n\n- Kündigung bis September\n- <b>nie</b> per Fax\n"
    key = store(kurzbeschreibung="Vertrag Brightwell", memory=long * 3, tag_namen=["Vertrag", "Lieferant", "Frist"])
    changed = long.replace("September", "Oktober") + long * 2 + "Neu."
    values = {"memory": changed, "tag_namen": ["Vertrag", "Einkauf"], "embedding": b"\0\0\x80?" * 8}
    update(LONGTERM, [Change(key, values | {"embedding_profil_hash": "e5-large"})], origin)
    update(LONGTERM, [Change(key, {"kurzbeschreibung": "Liefervertrag Brightwell"})], origin)
    gone = store(kurzbeschreibung="Verworfen")
    delete(LONGTERM, [gone], origin)
    short = store(SHORTTERM, kurzbeschreibung="Rückruf", gueltig_bis=None)
    own = {"memory_typ": "entscheidung", "titel": "Wir nehmen PostgreSQL", "inhalt_json": '{"grund": "Last"}'}
    brain = store(BRAIN, **own, gueltig_bis=None)
    only = {"nutzer": ["anna", "ben"], "tools": ["search_brain", "select_brain_tags"]}
    access, _text = make_key(name="Planer am Empfang", account="Planer", only=only, may_write=False, expires_at=None)
    store(kurzbeschreibung="FRIST 1")
    find(0)
    tag = Tag.objects.get(name="Vertrag").pk
    long_tag = Tag.objects.create(name=WITHOUT_BREAK * 5, schluessel=WITHOUT_BREAK.lower() * 5).pk
    unbroken = store(kurzbeschreibung=WITHOUT_BREAK * 9, memory=WITHOUT_BREAK * 30, tag_namen=[WITHOUT_BREAK * 4])
    Tag.objects.create(name="Unbenutzt", schluessel="unbenutzt")
    made = {"long": key, "gone": gone, "short": short, "brain": brain, "key": access.pk}
    return made | {"tag": tag, "long-tag": long_tag, "unbroken": unbroken} | fill_the_rest()


def fill_the_rest() -> dict[str, int]:
    """Calls, recalls, a profile, an import and a person with a grant; the keys of those that are looked at."""
    agent = Agent(
        make_key(name="Empfang", account="Planer", only={}, may_write=True, expires_at=None)[1], nutzer="anna"
    )
    for words in ("Liefervertrag", "Kündigungsfrist -Fax", "Frist"):
        agent.call("search_brain", suche=words)
    agent.post("select_brain_tags", {"inhalt": {"nutzer": "anna", "agent": "planer", "limit": 0}})
    EmbeddingProfile.objects.create(profil_hash="e5-small-2024", dimension=384, name="multilingual-e5-small")
    person = User.objects.create_user("vera", first_name="Vera", is_staff=True)
    person.groups.set(Group.objects.filter(name="Kurator"))
    Grant.objects.create(user=person, nutzer=["anna", "ben"], scope=["modul"])
    client = Client()
    client.force_login(User.objects.get(username="anna"))
    lines = '{"typ": "longterm", "kurzbeschreibung": "Ohne Text"}\n{"typ": "longterm", "kurzbeschreibung": "Neu", '
    lines += '"memory": "Text", "tags": [], "scope": "global", "scope_vk": "", "agent": "planer", "nutzer": "anna"}\n'
    client.post(
        reverse("admin:memories_importjob_add"),
        {"datei": SimpleUploadedFile("brain.jsonl", lines.encode()), "format": "brain"},
    )
    job = ImportJob.objects.get().pk
    client.post(reverse("admin:memories_importjob_step", args=[job]))  # which previews it
    return {"person": person.pk, "role": Group.objects.get(name="Kurator").pk, "import": job}


def pages(keys: dict[str, int]) -> dict[str, str]:
    """The pages that are looked at, by name."""
    longterm = "/admin/memories/longtermmemory/"
    return {
        "index": "/admin/",
        "list": longterm,
        "list-filtered": f"{longterm}?tag=T1&age=today",
        "list-searched": f"{longterm}?q=Liefervertraege+Frist",
        "trash": f"{longterm}trash/",
        "compare": f"{longterm}{keys['long']}/history/compare/?von=1&bis=3",
        "add": f"{longterm}add/",
        "change": f"{longterm}{keys['long']}/change/",
        "read": f"{longterm}{keys['long']}/read/",
        "markdown": f"{longterm}{keys['long']}/read/?ansicht=markdown",
        "similar": f"{longterm}{keys['long']}/similar/",
        "history": f"{longterm}{keys['long']}/history/",
        "history-deleted": f"{longterm}{keys['gone']}/history/",
        "version": f"{longterm}{keys['long']}/history/2/",
        "delete": f"{longterm}{keys['long']}/delete/",
        "unbroken-read": f"{longterm}{keys['unbroken']}/read/",
        "unbroken-change": f"{longterm}{keys['unbroken']}/change/",
        "unbroken-delete": f"{longterm}{keys['unbroken']}/delete/",
        "merge": f"{longterm}merge/?id={keys['long']}&id={keys['long'] - 1}&id={keys['long'] - 2}",
        "short-list": "/admin/memories/shorttermmemory/",
        "short-change": f"/admin/memories/shorttermmemory/{keys['short']}/change/",
        "brain-list": "/admin/memories/brainmemory/",
        "brain-change": f"/admin/memories/brainmemory/{keys['brain']}/change/",
        "brain-read": f"/admin/memories/brainmemory/{keys['brain']}/read/",
        "history-list": "/admin/memories/longtermversion/",
        "tags": "/admin/memories/tag/",
        "tag-rename": f"/admin/memories/tag/{keys['tag']}/rename/",
        "tag-merge": f"/admin/memories/tag/merge/?id={keys['tag']}&id={keys['long-tag']}",
        "tags-unused": "/admin/memories/tag/unused/",
        "duplicates": "/admin/memories/duplicatepair/",
        "keys": "/admin/memories/accesskey/",
        "key-add": "/admin/memories/accesskey/add/",
        "key-change": f"/admin/memories/accesskey/{keys['key']}/change/",
        "account": "/admin/memories/serviceaccount/add/",
        "calls": "/admin/memories/callrecord/",
        "recalls": "/admin/memories/recall/",
        "profiles": "/admin/memories/embeddingprofile/",
        "import-upload": "/admin/memories/importjob/add/",
        "import-job": f"/admin/memories/importjob/{keys['import']}/change/",
        "imports": "/admin/memories/importjob/",
        "people": "/admin/auth/user/",
        "person": f"/admin/auth/user/{keys['person']}/change/",
        "roles": "/admin/auth/group/",
        "role": f"/admin/auth/group/{keys['role']}/change/",
        "second-factor": "/admin/auth/user/second-factor/",
        "password": "/admin/password_change/",
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_is_whole_and_obeys_the_csp(browser: Browser, live_server: Any, anna: User, language: str) -> None:
    keys = fill_the_database()
    visitor = Visitor(browser, live_server.url, locale=LANGUAGES[language])
    page = visitor.page
    page.goto("/admin/")
    too_wide = pictured(page, "login", language)
    visitor.sign_in()
    for name, address in pages(keys).items():
        page.set_viewport_size(LOOKS["desktop"]["viewport"])
        response = page.goto(address)
        assert response is not None
        assert response.status == 200, address
        assert page.get_attribute("html", "lang") == language
        too_wide += pictured(page, name, language)
    assert too_wide == []
    assert visitor.trouble == []
    visitor.context.close()


def pictured(page: Page, name: str, language: str) -> list[str]:
    """Keep pictures of the page in every look; the names of those in which it is wider than the screen."""
    too_wide = []
    for look, how in LOOKS.items():
        page.set_viewport_size(how["viewport"])
        page.emulate_media(color_scheme=how["color_scheme"])
        page.evaluate("document.getAnimations().forEach(each => each.finish())")  # colours that are on their way
        if page.evaluate("document.documentElement.scrollWidth > window.innerWidth + 1"):
            too_wide.append(f"{name} {look}")
        keep(page, f"{name}-{language}", look)
    return too_wide
