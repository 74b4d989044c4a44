"""Thirty texts that attack a browser, stored in every field that takes text: on no page of the admin does one run."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from memories.keys import make_key
from memories.kinds import BRAIN, KINDS, SHORTTERM, Kind
from memories.models import AccessKey, CallRecord, EmbeddingProfile, Grant, LongtermMemory, Recall, RecalledSearch
from memories.principal import SYSTEM, Origin
from memories.services import Change, Done, delete, insert, update
from tests.test_admin_browser import LOOKS, PASSWORD, Visitor
from tests.test_admin_browser import browser as browser  # noqa: PLC0414 - the fixture

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = [
    text.replace("!", f"hit({number})")
    for number, text in enumerate(
        [
            "<script>!</script>",
            "<img src=x onerror=!>",
            "<svg onload=!>",
            "<svg><script>!</script></svg>",
            '"><script>!</script>',
            "'><img src=x onerror=!>",
            "</textarea><script>!</script>",
            "</title></style><script>!</script>",
            "</script><script>!</script>",
            "--><script>!</script><!--",
            "]]><script>!</script>",
            '<iframe srcdoc="<script>parent.!</script>"></iframe>',
            '<a href="javascript:!">x</a>',
            "javascript:!",
            "{{constructor.constructor('!')()}}",
            "${!}`-!-`",
            "{% debug %}{{ request.user.password }}!",
            '" onmouseover="!" autofocus onfocus="!" x="',
            "' autofocus onfocus='!' x='",
            "<input autofocus onfocus=!>",
            "<details open ontoggle=!>x</details>",
            "<video><source onerror=!></video>",
            "<math><mtext><style onload=!></style></mtext></math>",
            "<body onload=!>",
            "<base href=https://evil.example/>!",
            "<meta http-equiv=refresh content=0;url=javascript:!>",
            "<object data=javascript:!></object>",
            "<form action=javascript:!><button>x</button></form>",
            "\\u003cscript\\u003e!\\u003c/script\\u003e",
            "&lt;script&gt;!&lt;/script&gt;<scr<script>ipt>",
        ]
    )
]
EVERYTHING = "\n".join(TEXTS)
WATCH = "window.ran = []; window.hit = number => window.ran.push(number);"
# What ran, elements that would run something when they are touched, and links that would.
SUSPICIOUS = """() => [
    ...window.ran.map(String),
    ...[...document.querySelectorAll("*")]
        .filter(each => [...each.attributes].some(attribute => attribute.name.startsWith("on")))
        .map(each => each.outerHTML),
    ...[...document.querySelectorAll("[href], [src], [action]")]
        .filter(each => /^\\s*javascript:/i.test(each.getAttribute("href") || each.getAttribute("src")
            || each.getAttribute("action")))
        .map(each => each.outerHTML),
    ...(document.querySelector("base") ? ["base"] : []),
]"""


def test_the_texts_are_thirty_and_short_enough_for_every_field() -> None:
    assert len(set(TEXTS)) == 30
    assert max(map(len, TEXTS)) <= 64


def draft(kind: Kind, text: str, tags: list[str]) -> dict[str, Any]:
    """A memory that has the text in every field that takes one."""
    whole = {"nutzer": text[:64], "agent": text[:64], "tag_namen": tags, "embedding_profil_hash": text[:64]}
    if kind is BRAIN:
        ids = dict.fromkeys(
            ("scope_modul", "scope_id", "agent_id", "room_id", "session_id", "quelle_typ", "quelle_id"), text[:64]
        )
        return {**whole, **ids, "titel": text, "inhalt": text, "inhalt_json": json.dumps({text: text})} | {
            "memory_typ": "arbeit",
            "scope_typ": "modul",
            "gueltig_bis": None,
        }
    note = {"kurzbeschreibung": text, "memory": text, "scope": text[:64], "scope_vk": text[:64]}
    return {**whole, **note, **({"gueltig_bis": None} if kind is SHORTTERM else {})}


def fill(kind: Kind) -> int:
    """A memory of each text, two of all texts, one of them deleted, each with a history; the key of the other."""
    keys = []
    drafts = [draft(kind, text, [text]) for text in TEXTS] + [draft(kind, EVERYTHING, TEXTS)] * 2
    for place, each in enumerate(drafts):
        text = TEXTS[place % len(TEXTS)]
        origin = Origin(SYSTEM, text, text, "rest", text, grund=text, referenzfelder={text: [text]})
        (done,) = insert(kind, [each], origin)
        assert isinstance(done, Done), done
        changed = {kind.memories.TEXTS[0]: f"{each[kind.memories.TEXTS[0]]} {text}", "tag_namen": each["tag_namen"][1:]}
        update(kind, [Change(done.key, changed)], origin)
        keys.append(done.key)
    delete(kind, keys[-1:], Origin(SYSTEM, "anna", "planer", "rest", "test", grund=EVERYTHING))
    return keys[-2]


def fill_everything(anna: User) -> dict[type[Model], int]:
    """Store the texts wherever texts are kept; the keys of the rows that have most of them."""
    rows: dict[type[Model], int] = {}
    for kind in KINDS:
        rows[kind.memories] = fill(kind)
    for text in TEXTS:
        only = dict.fromkeys(("nutzer", "agent", "scope", "scope_vk"), TEXTS)
        key, _text = make_key(name=text, account=text, only=only, may_write=True, expires_at=None)
        AccessKey.objects.filter(pk=key.pk).update(tools=TEXTS)  # which no door takes
        call = CallRecord.objects.create(
            zeitpunkt=timezone.now(), tuer="rest", tool=text, schluessel=text, konto=text, nutzer=text, agent=text
        )
        search = RecalledSearch.objects.create(call=call, suche=EVERYTHING)
        Recall.objects.create(search=search, typ="longterm", memory_id=rows[LongtermMemory], rang=1)
        EmbeddingProfile.objects.get_or_create(profil_hash=text, dimension=3, defaults={"name": text})
        group = Group.objects.create(name=text)
        person = User.objects.create(username=text, first_name=text, last_name=text, is_staff=True)
        person.groups.add(group)
        for whose in ({"user": person}, {"group": group}):
            Grant.objects.create(**whose, nutzer=TEXTS, agent=TEXTS, scope=TEXTS, scope_vk=TEXTS)
        LogEntry.objects.create(
            user=anna,
            content_type=ContentType.objects.get_for_model(AccessKey),
            object_id="1",
            object_repr=text,
            action_flag=CHANGE,
            change_message=text,
        )
    return rows


def addresses(rows: dict[type[Model], int]) -> Iterator[str]:
    """The pages of the admin: the start page and, of each model that is registered, all of its own."""
    yield reverse("admin:index")
    for model, model_admin in admin.site._registry.items():  # noqa: SLF001
        newest = rows.get(model) or model.objects.order_by("-pk").values_list("pk", flat=True).first()  # type: ignore[attr-defined]
        parts = {"object_id": newest, "id": newest, "pk": newest, "number": 2, "name": "add_tags"}
        for pattern in model_admin.get_urls():
            if pattern.name:
                needed = {name: parts[name] for name in pattern.pattern.converters}
                address = reverse(f"admin:{pattern.name}", kwargs=needed)
                yield address
                if pattern.name.endswith("memory_read"):
                    yield f"{address}?ansicht=markdown"
    for kind in KINDS:
        keys = kind.memories.objects.order_by("-pk").values_list("pk", flat=True)[:6]
        yield f"{reverse(f'admin:memories_{kind.typ}memory_merge')}?{urlencode({'id': list(keys)}, doseq=True)}"


def asked() -> Iterator[str]:
    """The lists, searched and filtered by an attack."""
    for model, model_admin in admin.site._registry.items():  # noqa: SLF001
        the_list = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")  # noqa: SLF001
        names = {str(getattr(each, "parameter_name", each)) for each in model_admin.list_filter}
        for name in ("q", *sorted(names)):
            yield f"{the_list}?{urlencode({name: TEXTS[4]})}"


def pages(anna: User, found_at: Iterable[str]) -> list[str]:
    """Those that answer with a page; the others take a POST, or are files, or are not for anybody."""
    client = Client()
    client.force_login(anna)
    found = []
    for address in dict.fromkeys(found_at):
        response = client.get(address)
        if response.status_code == 200 and response["Content-Type"].startswith("text/html"):
            found.append(address)
        response.close()
    return found


def test_no_stored_text_runs_on_any_page(request: pytest.FixtureRequest, live_server: Any) -> None:
    anna = User.objects.create_superuser("anna", password=PASSWORD)
    opened = [*pages(anna, (*addresses(fill_everything(anna)), *asked())), "/api/docs/"]
    for model in admin.site._registry:  # noqa: SLF001
        assert reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist") in opened  # noqa: SLF001
    visitor = Visitor(request.getfixturevalue("browser"), live_server.url, **LOOKS["desktop"])
    page = visitor.page
    page.add_init_script(WATCH)
    page.on("dialog", lambda dialog: visitor.trouble.append(dialog.message))  # which stays open and ends the test
    visitor.sign_in()
    suspicious = {}
    for address in opened:
        page.goto(address)
        found = page.evaluate(SUSPICIOUS)
        if found:
            suspicious[address] = found
    assert suspicious == {}
    assert visitor.trouble == []
    visitor.context.close()
