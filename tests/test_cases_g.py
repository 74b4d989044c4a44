"""Faults that users of such systems reported, part G: 78, secrets in texts. The others stand with the rights."""

import base64
import json
import logging
import random
import string
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import translation

from api.tools import TOOLS
from memories.credentials import credential_in
from memories.kinds import BRAIN, KINDS, Kind
from memories.models import (
    CallRecord,
    ImportJob,
    ImportLine,
    LongtermMemory,
    RecalledSearch,
    RepeatableCall,
    SavedView,
    Tag,
)
from tests.admincast import form, messages, person, store, url
from tests.conftest import Agent, note
from tests.doors import BRAIN as BRAIN_ENTRY
from tests.doors import fault_of, faults, inhalt_for, now, one_fault, tool_of
from tests.mcp import Mcp, meta
from tests.test_admin_bulk import asked
from tests.test_admin_merging import chosen as merging
from tests.test_admin_proposals import decide, propose
from tests.test_transfer_admin import finish, upload
from tests.test_transfer_admin import page as import_page
from tests.transferring import file_of, run_import

pytestmark = pytest.mark.django_db

CORE = "Zq7Geheimnisvoll42"  # what must be nowhere
SECRET = f"sk-ant-api03-{CORE}"
HIDDEN = f"Schlüssel für {SECRET}."
KEYLIKE = "A1b2C3d4E5f6G7h8I9j0" * 5
# Whose it is, and one of them.
CREDENTIALS = [
    ("Anthropic", "sk-ant-api03-AAAA"),
    ("Anthropic", "sk-ant-admin01-x_y-z"),
    ("OpenAI", "sk-proj-abc"),
    ("OpenAI", f"sk-{KEYLIKE[:48]}"),
    ("OpenAI", f"sk-svcacct-{KEYLIKE[:40]}"),
    ("OpenRouter", f"sk-or-v1-{'0f' * 32}"),
    ("Stripe", "sk_test_ABC"),
    ("Stripe", "sk_live_51H"),
    ("Stripe", "rk_test_4eC"),
    ("Stripe", "rk_live_4eC"),
    ("Stripe", "whsec_abc"),
    *(("GitHub", f"gh{kind}_{KEYLIKE[:36]}") for kind in "pousr"),
    ("GitHub", f"github_pat_{KEYLIKE[:22]}_{KEYLIKE[:59]}"),
    ("GitLab", f"glpat-{KEYLIKE[:20]}"),
    *(("Slack", f"xox{kind}-123456789012-{KEYLIKE[:12]}") for kind in "abprs"),
    ("AWS", "AKIAIOSFODNN7EXAMPLE"),
    ("AWS", "ASIAIOSFODNN7EXAMPLE"),
    ("AWS", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("AWS", 'AWS_SECRET_ACCESS_KEY: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"'),
    ("AWS", '{"SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}'),
    ("AWS", "secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'"),
    ("Google", f"AIza{KEYLIKE[:35]}"),
    ("Google", f"GOCSPX-{KEYLIKE[:28]}"),
    ("Azure", f"AccountKey={KEYLIKE[:86]}=="),
    ("Hugging Face", f"hf_{KEYLIKE[:34]}"),
    ("npm", f"npm_{KEYLIKE[:36]}"),
    ("PyPI", f"pypi-AgEIcHlwaS5vcmc{KEYLIKE}"),
    ("SendGrid", f"SG.{KEYLIKE[:22]}.{KEYLIKE[:43]}"),
    ("Groq", f"gsk_{KEYLIKE[:52]}"),
    ("Perplexity", f"pplx-{KEYLIKE[:48]}"),
    ("Replicate", f"r8_{KEYLIKE[:37]}"),
    ("Notion", f"ntn_{KEYLIKE[:46]}"),
    ("Slack", f"https://hooks.slack.com/services/T0123456789/B0123456789/{KEYLIKE[:24]}"),
    ("Discord", f"https://discord.com/api/webhooks/123456789012345678/{KEYLIKE[:68]}"),
    ("xAI", f"xai-{KEYLIKE[:80]}"),
    ("HashiCorp", f"hvs.{KEYLIKE[:90]}"),
    ("Shopify", f"shpat_{'0f' * 16}"),
    ("DigitalOcean", f"dop_v1_{'0f' * 32}"),
    ("Telegram", f"123456789:AA{KEYLIKE[:33]}"),
    ("Brain", f"brk_0123456789ab.{KEYLIKE[:43]}"),
    ("JSON Web Token", f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{KEYLIKE[:43]}"),
    ("private key", f"-----BEGIN PRIVATE KEY-----\n{KEYLIKE}\n-----END PRIVATE KEY-----"),
    ("private key", f"-----BEGIN RSA PRIVATE KEY-----\r\n{KEYLIKE}"),
    ("private key", f"-----BEGIN OPENSSH PRIVATE KEY-----\\n{KEYLIKE}"),
    ("private key", f"-----BEGIN EC PRIVATE KEY----- {KEYLIKE}"),
    ("private key", f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{KEYLIKE}"),
    ("password", "postgres://anna:hunter2@db.example.org/brain"),
    ("password", "HTTPS://anna:hunter2@example.org"),
    ("password", "redis://:hunter2@localhost:6379/0"),
    ("password", "mongodb+srv://root:Pa%24w0rt@cluster.example.net"),
]
HARMLESS = [
    *("task-ant-hill", "Risk-ant", "sk-learn", "sk-learn-pipeline-with-many-words", "risk-adjusted performance of all"),
    *("desk-abcdefghijklmnopqrstuvwxyz", "task_test_abc", "mask_live_abc", "xsk-ant-api03-AAAA", "9sk_test_ABC"),
    *(
        "Schlüssel beginnen mit sk-ant-",
        "sk-ant-api03-…",
        "sk_live_",
        "ghp_",
        "hf_home",
        "npm_config_registry",
        "xoxb-",
    ),
    *("pk_live_51HabcdefghijklmnopqrstuvW", "AIza", "AKIA", "SG.", "eyJ", "whsec", "brk_0123456789ab…", "sk-123"),
    *("DE89 3704 0044 0532 0130 00", "DE89370400440532013000", "550e8400-e29b-41d4-a716-446655440000"),
    *("d41d8cd98f00b204e9800998ecf8427e", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "0f" * 32, "0f" * 64),
    *("postgres://user:password@host:port/name", "https://user:***@host", "https://${U}:${P}@host"),
    *("https://user:<password>@host", "ssh://git@host:22/x", "git@github.com:a/b", "http://host:8080/@foo", "a:b@c"),
    *(
        "http://intranet:8080,mail@example.org",
        "http://10.0.0.1:80;mail@example.org",
        "(http://host:443)mail@example.org",
    ),
    *(
        "-----BEGIN PUBLIC KEY-----\nMIIB",
        "-----BEGIN CERTIFICATE-----\nMIIB",
        "-----BEGIN PRIVATE KEY----- steht oben",
    ),
    "Zwölf Uhr dreißig – bis 13:00; 3-fach, x_y, a.b.c; Straße 5–7, „Zitat“, 50 %.",
]


def everything_kept() -> str:
    """Every value of every column of every table, in one text, in lower case."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            found += [_as_text(value) for row in cursor.fetchall() for value in row]
    return "\n".join(found).lower()


def _as_text(value: Any) -> str:
    return bytes(value).decode("latin-1") if isinstance(value, (bytes, memoryview)) else str(value)


@pytest.fixture(autouse=True)
def nowhere(request: pytest.FixtureRequest, db: None, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """After a call or a form, unless credentials are to be kept, none is in the database or in the log."""
    with caplog.at_level(logging.DEBUG, logger="memories"):
        yield
    if {"anna", "boss"}.intersection(request.fixturenames) and "keeps" not in request.fixturenames:
        assert CORE.lower() not in everything_kept()
        assert CORE not in caplog.text


@pytest.fixture
def keeps(settings: Any) -> None:
    """The policy that credentials are kept."""
    settings.BRAIN_SECRETS = "keep"


@pytest.fixture
def boss() -> Client:
    """Administrator."""
    return person("boss", superuser=True)


# What is one


AROUND = [
    *(
        "{}",
        "凭证为{}",
        "{}是凭证",
        "凭证为{}吗",
        "für ü{}ß",
        "é{}é",
        "ключ{}ключ",
        "キー{}です",
        "키{}는",
        "مفتاح{}",
        "🔑{}🔑",
    ),
    *("\n{}\n", "\r\n{}\r\n", '"{}"', "'{}'", "`{}`", "({})", "KEY={}", "key:{}", "„{}“", "\u200b{}\u200b", "，{}，"),
    *("Zeile\\n{}", "Zeile\\f{}", "key%3D{}", "key%3d{}", "\\u51ed\\u8bc1\\u4e3a{}", "für \\u00FC{}", "\\xfc{}"),
]


@pytest.mark.parametrize(("owner", "credential"), CREDENTIALS)
def test_case_78_a_credential_is_recognised_whatever_stands_beside_it(owner: str, credential: str) -> None:
    with translation.override("en"):
        kinds = {around: credential_in(around.format(credential)) for around in AROUND}
    assert [around for around, kind in kinds.items() if owner not in (kind or "")] == []


@pytest.mark.parametrize(
    "credential",
    [
        *(f"sk-ant-api03-{KEYLIKE[:95]}", f"sk-proj-{KEYLIKE[:74]}T3BlbkFJ{KEYLIKE[:74]}", f"ghp_{KEYLIKE[:36]}"),
        f"github_pat_{KEYLIKE[:22]}_{KEYLIKE[:59]}",
    ],
)
@pytest.mark.parametrize("before", ["Schluessel", "apiKey", "KEY", "Nr1", "é1"])
def test_case_78_letters_right_before_a_whole_key_hide_none(before: str, credential: str) -> None:
    assert credential_in(f"Der {before}{credential} gilt.")


@pytest.mark.parametrize(
    "hidden",
    [
        *("\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\xad", "͏", "\u200e", "️"),
        *("\u3164", "\u180b", "\u2063", "\U000e0041", "\U000e0100"),
    ],
)
@pytest.mark.parametrize("credential", ["sk-ant-api03-AAAA", "sk_test_ABC", "AKIAIOSFODNN7EXAMPLE"])
def test_case_78_characters_that_are_not_seen_hide_no_credential(hidden: str, credential: str) -> None:
    for place in range(1, len(credential)):
        assert credential_in(f"für {credential[:place]}{hidden}{credential[place:]}"), place
    assert credential_in("凭证为" + hidden.join(credential))


def test_case_78_other_forms_of_letters_and_hyphens_hide_no_credential() -> None:
    wide = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)})
    for text in ("sk-ant-api03-AAAA", "sk_test_ABC", "ghp_" + KEYLIKE[:36]):
        assert credential_in("凭证为" + text.translate(wide))
        assert credential_in("凭证为" + text[:2].translate(wide) + text[2:])
    for hyphen in "‐‑‒–—⁃−":
        assert credential_in("für sk-ant-api03-AAAA".replace("-", hyphen))
    assert credential_in("𝐬𝐤-ant-api03-AAAA")
    for text in (r"用sk\_test\_ABC", r"für sk\-ant\-api03\-AAAA", r"**sk\_live\_51H**"):
        assert credential_in(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_case_78_what_only_looks_like_one_is_stored(anna: Agent, text: str) -> None:
    assert anna.store(memory=f"{text} ist ü{text}, 用{text}。")


def test_case_78_pictures_hashes_and_prose_are_no_credentials() -> None:
    dice = random.Random(78)
    for _picture in range(20):
        picture = base64.b64encode(dice.randbytes(75_000)).decode()
        assert credential_in(f"![Bild](data:image/png;base64,{picture}) ⚠️ Größe") is None
    root = Path(__file__).parent.parent
    for name in ("README.md", "CHANGELOG.md", "docs/clients.md"):
        assert credential_in((root / name).read_text()) is None, name
    for example in (root / "memories" / "example").glob("*.json"):
        assert credential_in(example.read_text()) is None, example.name


@pytest.mark.parametrize(
    "part",
    [
        *(
            "a",
            "sk-",
            "-----BEGIN",
            "-----BEGIN PRIVATE KEY-----\n\n",
            "-sk-ant-a ",
            "eyJ",
            ".eyJ",
            "://",
            "://a:",
            "-",
            "_",
        ),
        *("sk_live_", "SG.", "AI", "ü", "凭证", "⚠️", "a\u200b", "ｓｋ－", "00000000:AA", "\\n", "random", "%3D"),
    ],
)
def test_case_78_a_million_characters_are_looked_through_at_once(part: str) -> None:
    dice = random.Random(78)
    text = "".join(dice.choices(string.printable, k=10**6)) if part == "random" else part * (10**6 // len(part))
    took = []
    for _round in range(3):
        began = time.process_time()
        assert credential_in(text) is None
        took.append(time.process_time() - began)
    assert min(took) < 0.25  # some 0.05; what goes wrong here takes minutes


# At every door


@pytest.fixture(params=["rest", "modern", "legacy"])
def through(request: pytest.FixtureRequest) -> Callable[..., dict[str, Any]]:
    """Sends arguments through a door; the answer of the envelope, whatever became of the call."""

    def send(agent: Agent, tool: str, inhalt: Any, **more: Any) -> dict[str, Any]:
        arguments = {"inhalt": {"nutzer": "anna", "agent": "planer", **inhalt}} | more
        if request.param == "rest":
            answer: dict[str, Any] = agent.post(tool, arguments).json()
        else:
            answer = Mcp(agent, request.param).call(tool, arguments)["structuredContent"]
        return answer

    return send


@pytest.mark.parametrize("kind", ["longterm", "shortterm"])
@pytest.mark.parametrize(
    ("fields", "feld"),
    [
        ({"memory": HIDDEN}, "memory"),
        ({"kurzbeschreibung": f"凭证为{SECRET}"}, "kurzbeschreibung"),
        ({"tags": ["a", "b", HIDDEN]}, "tags[2]"),
        *(({name: SECRET}, name) for name in ("scope", "scope_vk", "agent", "nutzer", "embedding_profil_hash")),
    ],
)
def test_case_78_it_is_the_fault_of_its_entry_and_the_others_are_stored(
    anna: Agent, through: Any, kind: str, fields: dict[str, Any], feld: str
) -> None:
    answer = through(anna, f"insert_brain_{kind}_memory", {"memories": [note(), note(**fields), note()]})
    assert [row["erfolg"] for row in answer["daten"]] == [True, False, True]
    assert one_fault(answer, 1) == ("geheimnis", feld)
    assert CORE not in json.dumps(answer)
    assert "Anthropic" in answer["daten"][1]["fehler"]["meldung"]
    assert CallRecord.objects.latest("pk").fehlgeschlagen == 1


@pytest.mark.parametrize("kind", ["longterm", "shortterm"])
def test_case_78_an_update_brings_none_in(anna: Agent, through: Any, kind: str) -> None:
    entries = anna.call(f"insert_brain_{kind}_memory", memories=[note(), note()])["daten"]
    changed = [{"ID": row["ID"], "kurzbeschreibung": "Neu", "memory": "m", "tags": []} for row in entries]
    changed[0]["memory"] = HIDDEN
    answer = through(anna, f"update_brain_{kind}_memory", {"memories": changed})
    assert one_fault(answer) == ("geheimnis", "memory")
    assert [now(anna, row["ID"])["version"] for row in entries] == [1, 2]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "titel",
            "inhalt",
            "inhalt_json",
            "scope_modul",
            "scope_ID",
            "agent_ID",
            "room_ID",
            "session_ID",
            "quelle_typ",
        ),
        "quelle_ID",
    ],
)
def test_case_78_a_brain_memory_holds_none(anna: Agent, through: Any, name: str) -> None:
    text = json.dumps({"a": [{SECRET: 1}]}) if name == "inhalt_json" else SECRET
    answer = through(anna, "insert_brain_memory", BRAIN_ENTRY | {name: text})
    assert one_fault(answer) == ("geheimnis", name)
    kennung = anna.call("insert_brain_memory", **BRAIN_ENTRY)["daten"][0]["ID"]
    assert one_fault(through(anna, "update_brain_memory", {"ID": kennung, name: text})) == ("geheimnis", name)
    assert now(anna, kennung)["version"] == 1


@pytest.mark.parametrize(
    "told", [r'{"a": "\u0073k-ant-api03-%s"}', r'{"x\u00e4sk-ant-api03-%s": [1]}', '{"a": "ü\\nsk-ant-%s"}']
)
def test_case_78_escapes_of_json_hide_none(anna: Agent, told: str) -> None:
    answer = anna.call("insert_brain_memory", **BRAIN_ENTRY, inhalt_json=told % CORE)
    assert one_fault(answer) == ("geheimnis", "inhalt_json")


@pytest.mark.parametrize(
    ("references", "feld"),
    [
        ({"token": SECRET}, "referenzfelder.token"),
        ({"a": [{"b": ["x", HIDDEN]}]}, "referenzfelder.a[0].b[1]"),
        ({SECRET: 1}, "referenzfelder"),
        ({"a": {SECRET: {SECRET: SECRET}}}, "referenzfelder.a"),
        (json.dumps({"token": SECRET}), "referenzfelder.token"),
    ],
)
@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS if tool.writes])
def test_case_78_the_references_of_a_write_hold_none(anna: Agent, tool: str, references: Any, feld: str) -> None:
    response = anna.post(tool, {"inhalt": inhalt_for(tool), "referenzfelder": references})
    fault = fault_of(response, 400)
    assert faults(fault) == {("geheimnis", feld)}
    assert CORE not in json.dumps(fault)
    assert CallRecord.objects.get().code == "geheimnis"


@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS if "grund" in tool_of(tool.name).grenzen])
def test_case_78_a_reason_holds_none(anna: Agent, through: Any, tool: str) -> None:
    answer = through(anna, tool, inhalt_for(tool, grund=HIDDEN))
    assert faults(answer["fehler"]) == {("geheimnis", "inhalt.grund")}


@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS])
@pytest.mark.parametrize("name", ["nutzer", "agent"])
def test_case_78_no_record_says_that_a_credential_called(anna: Agent, tool: str, name: str) -> None:
    response = anna.post(tool, {"inhalt": inhalt_for(tool) | {name: SECRET}})
    assert {feld for _code, feld in faults(fault_of(response, 400))} >= {f"inhalt.{name}"}
    assert getattr(CallRecord.objects.get(), name) == ""


def test_case_78_what_fails_again_and_again_is_not_quoted(anna: Agent) -> None:
    for _time in range(4):
        answer = anna.call("insert_brain_longterm_memory", memories=[note(memory=HIDDEN)])
    assert "beispiel" in answer["daten"][0]["fehler"]
    assert CORE not in json.dumps(answer)


@pytest.mark.parametrize(
    "entry",
    [
        note(memory=HIDDEN),
        note() | {SECRET: 1},
        note(tags=[SECRET, 1]),
        note(scope={"a": SECRET}),
        SECRET,
    ],
)
def test_case_78_an_answer_that_is_kept_for_repeats_quotes_none(anna: Agent, entry: Any) -> None:
    arguments = {"inhalt": {"nutzer": "anna", "agent": "planer", "memories": [entry, note()]}}
    first = anna.post("insert_brain_longterm_memory", arguments, **{"Idempotency-Key": "k1"}).json()
    again = anna.post("insert_brain_longterm_memory", arguments, **{"Idempotency-Key": "k1"}).json()
    assert [row["erfolg"] for row in first["daten"]] == [False, True]
    assert first == again
    assert LongtermMemory.objects.count() == 1


@pytest.mark.parametrize(
    "tool", ["update_brain_longterm_memory", "delete_brain_longterm_memory", "restore_brain_memory"]
)
def test_case_78_a_credential_in_place_of_an_id_is_not_kept(anna: Agent, tool: str) -> None:
    inhalt = json.loads(json.dumps(inhalt_for(tool)).replace("longterm_999999", SECRET))
    response = anna.post(tool, {"inhalt": inhalt}, **{"Idempotency-Key": "k1"})
    assert response.json()["erfolg"] is False


def test_case_78_a_duplicate_name_behind_escapes_is_not_kept(anna: Agent) -> None:
    told = f'{{"x\\u00e4{SECRET}": 1, "xä{SECRET}": 2}}'
    arguments = {"inhalt": {"nutzer": "anna", "agent": "planer", **BRAIN_ENTRY, "inhalt_json": told}}
    answer = anna.post("insert_brain_memory", arguments, **{"Idempotency-Key": "k1"}).json()
    assert answer["erfolg"] is False


def test_case_78_the_key_for_repeats_is_no_credential(anna: Agent) -> None:
    arguments = {"inhalt": inhalt_for("insert_brain_longterm_memory")}
    response = anna.post("insert_brain_longterm_memory", arguments, **{"Idempotency-Key": SECRET})
    assert faults(fault_of(response, 400)) == {("geheimnis", "Idempotency-Key")}
    answer = Mcp(anna).ask(
        "tools/call",
        name="insert_brain_longterm_memory",
        arguments=arguments,
        _meta=meta() | {"idempotencyKey": SECRET},
    )
    assert answer["structuredContent"]["fehler"]["code"] == "geheimnis"
    assert not RepeatableCall.objects.exists()


def test_case_78_questions_may_ask_for_one_and_are_not_recorded_with_it(anna: Agent) -> None:
    anna.store(memory="Der Schlüssel liegt im Tresor")
    assert anna.call("search_brain", suche=f"Schlüssel {SECRET}")["daten"]
    assert RecalledSearch.objects.get().suche == ""
    assert anna.call("search_brain", suche="Schlüssel")["daten"]
    assert RecalledSearch.objects.latest("pk").suche == "Schlüssel"
    for tool, asked_for in [
        ("select_brain_longterm_memory", {"suche": SECRET}),
        (
            "select_brain_longterm_memory",
            {"scope": SECRET, "scope_vk": SECRET, "tags": [SECRET], "tags_eines": [SECRET]},
        ),
        ("select_brain_shortterm_memory", {"agent_filter": SECRET, "nutzer_filter": SECRET}),
        ("search_brain", {"suche": "Schlüssel", "tags": [SECRET]}),
        ("select_brain_tags", {"praefix": SECRET}),
    ]:
        answer = anna.call(tool, **asked_for)
        assert (answer["erfolg"], answer["daten"]) == (True, []), tool


# In the admin


TEXTS = {
    "brain": ("titel", "inhalt", "inhalt_json", "scope_modul", "scope_id", "quelle_id", "nutzer", "agent"),
    "longterm": ("kurzbeschreibung", "memory", "scope", "scope_vk", "nutzer", "agent"),
    "shortterm": ("kurzbeschreibung", "memory", "scope", "scope_vk", "nutzer", "agent"),
}
GOOD = {
    "memory_typ": "arbeit",
    "kurzbeschreibung": "k",
    "memory": "m",
    "titel": "t",
    "scope": "s",
    "nutzer": "anna",
    "agent": "planer",
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.typ)
def test_case_78_the_forms_for_memories_take_none(boss: Client, kind: Kind) -> None:
    empty = form(boss, url("add", kind=kind.typ))
    sent = empty | {name: value for name, value in GOOD.items() if name in empty}
    for name in (*TEXTS[kind.typ], "schlagworte", "grund"):
        text = json.dumps(SECRET) if name == "inhalt_json" else f"{SECRET}{CORE}"
        response = boss.post(url("add", kind=kind.typ), sent | {name: text})
        assert response.status_code == 200, name
        assert "a key or token of Anthropic" in response.content.decode(), name
    assert not kind.memories.objects.exists()
    assert boss.post(url("add", kind=kind.typ), sent).status_code == 302
    change = url("change", kind.memories.objects.get().pk, kind=kind.typ)
    for name in ("titel" if kind is BRAIN else "memory", "schlagworte", "grund"):
        response = boss.post(change, form(boss, change) | {name: f"用{SECRET}"})
        assert "a key or token of Anthropic" in response.content.decode(), name
    assert kind.memories.objects.get().version == 1
    assert CORE not in str(list(LogEntry.objects.values()))


def test_case_78_no_reason_in_the_admin_holds_one(boss: Client) -> None:
    key, other = store(), store()
    LongtermMemory.objects.filter(pk=other).update(version=1)
    reason = {"grund": HIDDEN}
    told = [
        boss.post(url("restore", key, 1), reason, follow=True),
        boss.post(url("delete", key), {"post": "yes"} | reason, follow=True),
        boss.post(url("bulk", "add_tags"), asked(boss, "add_tags", [key]) | {"schlagworte": "neu"} | reason),
        boss.post(url("bulk", "add_tags"), asked(boss, "add_tags", [key]) | {"schlagworte": SECRET}),
        boss.post(url("merge"), merging(boss, key, other) | {"post": "yes"} | reason, follow=True),
    ]
    tag = Tag.objects.get().pk
    told.append(boss.post(reverse("admin:memories_tag_rename", args=[tag]), {"name": SECRET}, follow=True))
    told.append(boss.post(reverse("admin:memories_tag_rename", args=[tag]), {"name": "Neu"} | reason, follow=True))
    for place, page in enumerate(told):
        assert "a key or token of Anthropic" in page.content.decode(), place
    assert LongtermMemory.objects.get(pk=key).version == LongtermMemory.objects.get(pk=other).version == 1
    assert Tag.objects.get().name == "Vertrag"


def test_case_78_no_reason_of_a_decision_holds_one(boss: Client) -> None:
    key = propose()
    for what in ("approve", "reject"):
        assert "a key or token of Anthropic" in decide(boss, key, what, grund=HIDDEN)
    change = url("change", key)
    assert "a key or token of Anthropic" in boss.post(change, form(boss, change) | {"memory": HIDDEN}).content.decode()
    assert LongtermMemory.objects.get().vorgeschlagen is True
    assert LongtermMemory.objects.get().version == 1


def test_case_78_a_saved_view_holds_none(boss: Client) -> None:
    for sent in ({"bezeichnung": SECRET, "query": ""}, {"bezeichnung": "Meine", "query": f"q={SECRET}"}):
        assert "a key or token of Anthropic" in messages(boss.post(url("views"), sent, follow=True))
    assert not SavedView.objects.exists()
    boss.post(url("views"), {"bezeichnung": "Meine", "query": "q=Frist"})
    own = SavedView.objects.get()
    assert "Anthropic" in messages(boss.post(url("view", own.pk), {"bezeichnung": SECRET}, follow=True))


def test_case_78_lists_may_be_searched_for_one(boss: Client, keeps: None) -> None:
    key = store(memory=HIDDEN)
    assert f"longterm_{key}" in boss.get(url("changelist"), {"q": SECRET}).content.decode()


# Files


def test_case_78_a_row_of_a_file_that_holds_one_is_reported_and_the_others_are_imported(tmp_path: Path) -> None:
    rows = [note(typ="longterm", memory="gut"), *ROWS, note(typ="longterm", memory="auch gut")]
    counts, told = run_import(file_of(tmp_path, *rows))
    assert counts == {"neu": 2, "geaendert": 0, "gleich": 0, "fehlerhaft": len(ROWS)}
    assert "Anthropic" in told
    assert CORE not in told
    assert sorted(LongtermMemory.objects.values_list("memory", flat=True)) == ["auch gut", "gut"]


ROWS: list[Any] = [
    *(
        note(typ="longterm") | {name: HIDDEN}
        for name in ("memory", "kurzbeschreibung", "scope_vk", "unbekannt", "fehler")
    ),
    note(typ="longterm", tags=[SECRET]),
    note(typ="longterm") | {"herkunft": {"instanz": SECRET, "ID": "longterm_1"}},
    note(typ="longterm") | {"hinweise": [SECRET]},
    note(typ="longterm") | {SECRET: 1},
    note(typ="longterm") | {"versionen": [{"stand": {}, "referenzfelder": {"token": SECRET}}]},
    {"typ": SECRET},
    HIDDEN,
    json.dumps({"memory": f"ü{SECRET}"}),
    f'{{"memory": "\\u0073k-ant-api03-{CORE}"}}',
    f'{{"x": 1, "x": "{SECRET}"}}',
]


def test_case_78_an_upload_keeps_no_line_that_holds_one(boss: Client) -> None:
    rows = [note(typ="longterm", memory="gut"), *ROWS]
    upload(boss, "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    assert CORE.lower() not in everything_kept()
    assert finish(boss)["fehlerhaft"] == len(ROWS)
    boss.post(import_page("start", ImportJob.objects.get().pk))
    finish(boss)
    assert [each.memory for each in LongtermMemory.objects.all()] == ["gut"]
    reasons = ImportLine.objects.filter(ergebnis="fehlerhaft").values_list("meldung", flat=True)
    assert [reason for reason in reasons if "Anthropic" not in reason] == []


@pytest.mark.parametrize("name", ["nutzer", "agent", "scope"])
def test_case_78_what_holds_for_all_rows_of_a_file_holds_none(boss: Client, name: str) -> None:
    response = upload(boss, json.dumps(note(typ="longterm")), **{name: SECRET})
    assert "a key or token of Anthropic" in response.content.decode()
    assert not ImportJob.objects.exists()


def test_case_78_the_name_of_a_file_is_not_kept_when_it_is_one(boss: Client) -> None:
    file = BytesIO(json.dumps(note(typ="longterm")).encode())
    file.name = f"{SECRET}.jsonl"
    boss.post(import_page("add"), {"datei": file, "format": "brain"})
    assert ImportJob.objects.get().dateiname == "…"


@pytest.mark.parametrize("metadata", [{"token": SECRET}, {SECRET: "x"}])
def test_case_78_what_has_no_place_here_is_not_told_with_one(boss: Client, metadata: dict[str, str]) -> None:
    told = [
        {"id": "1", "memory": "gut", "user_id": "anna"},
        {"id": "2", "memory": "m", "user_id": "anna", "metadata": metadata},
    ]
    upload(boss, json.dumps(told), format="mem0", agent="planer", scope="global")
    assert finish(boss)["fehlerhaft"] == 1


# The policy


def test_case_78_by_policy_credentials_are_kept(anna: Agent, keeps: None) -> None:
    kennung = anna.store(memory=HIDDEN, tags=[SECRET])
    assert now(anna, kennung)["memory"] == HIDDEN
    anna.call(
        "update_brain_longterm_memory",
        memories=[{"ID": kennung, "kurzbeschreibung": "k", "memory": SECRET, "tags": []}],
    )
    assert anna.call("search_brain", suche=SECRET)["daten"][0]["ID"] == kennung
    assert RecalledSearch.objects.latest("pk").suche == SECRET


def test_case_78_what_was_stored_before_is_restored_promoted_and_merged(
    anna: Agent, boss: Client, settings: Any, keeps: None
) -> None:
    kennung = anna.store(memory=HIDDEN)
    short = anna.call("insert_brain_shortterm_memory", memories=[note(memory=HIDDEN)])["daten"][0]["ID"]
    anna.call(
        "update_brain_longterm_memory", memories=[{"ID": kennung, "kurzbeschreibung": "k", "memory": "m", "tags": []}]
    )
    settings.BRAIN_SECRETS = "refuse"
    assert anna.call("restore_brain_memory", ID=kennung, version=1)["erfolg"] is True
    assert anna.call("promote_brain_shortterm_memory", IDs=[short])["erfolg"] is True
    keys = list(LongtermMemory.objects.values_list("pk", flat=True))
    assert "merged" in messages(boss.post(url("merge"), merging(boss, *keys) | {"post": "yes"}, follow=True))
    assert LongtermMemory.objects.get().memory == HIDDEN
    changed = {"ID": kennung, "kurzbeschreibung": "k", "memory": HIDDEN, "tags": []}
    assert one_fault(anna.call("update_brain_longterm_memory", memories=[changed])) == ("geheimnis", "memory")


def test_case_78_the_policy_is_one_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAIN_SECRETS", "maybe")
    outcome = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 1
    assert "BRAIN_SECRETS must be empty or one of refuse, keep" in outcome.stderr


def test_case_78_the_message_is_there_in_german_and_says_what_to_do(anna: Agent) -> None:
    arguments = {"inhalt": {"nutzer": "anna", "agent": "planer", "memories": [note(memory=HIDDEN)]}}
    german = anna.post("insert_brain_longterm_memory", arguments).json()["daten"][0]["fehler"]["meldung"]
    english = anna.post("insert_brain_longterm_memory", arguments, **{"Accept-Language": "en"}).json()
    assert "ein Schlüssel oder Token von Anthropic" in german
    assert "wo sie aufbewahrt werden" in german
    assert "write where it is kept instead" in english["daten"][0]["fehler"]["meldung"]
