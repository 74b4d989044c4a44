"""Erasing a person: nothing of hers is left anywhere, nothing of others' is touched, and a nameless proof stays."""

import json
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.apps import apps
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.test import Client
from django.urls import reverse
from django.utils import translation

from memories import erasure, services, vacuum
from memories.kinds import BRAIN, KINDS, LONGTERM, SHORTTERM
from memories.models import (
    Erasure,
    Grant,
    HandledEntry,
    ImportJob,
    ImportLine,
    LongtermMemory,
    LongtermVersion,
    Recall,
    RecalledSearch,
    RepeatableCall,
    SavedView,
    SearchEntry,
    Tag,
    VectorBlock,
    Word,
)
from memories.principal import SYSTEM, Origin
from memories.search import upkeep, vectors
from tests.admincast import NOTE, Fields, messages, person, store
from tests.conftest import Agent, note
from tests.embedders import Endpoint
from tests.matrix import ANNAS, WANDAS, Side, stored
from tests.serving import MANAGE, ROOT, Place
from tests.transferring import assert_sound, export, file_of, lines_of, run_import

ORIGIN = Origin(SYSTEM, nutzer="anna", agent="planer", tuer="test", tool="test")
ADD, LIST = (reverse(f"admin:memories_erasure_{name}") for name in ("add", "changelist"))
NOBODY = "There is nobody of this name all of whose memories you may erase."
VECTOR = [float(n * n % 17 - 8) for n in range(1, 17)]
OF_OTHERS = [float(n * 5 % 13 - 6) for n in range(1, 17)]
WORDS = ("haselnuss", "birnbaum", "obstgarten")  # as they stand in anna's texts, tags and references
CHANGES = {"VectorBlock", "Word", "AccessKey", "Erasure"}  # rows that an erasure may change, beside what it removes


def erase(nutzer: str = "anna", *flags: str) -> str:
    """What the command tells."""
    out = StringIO()
    with translation.override("en"):
        call_command("erase_person", nutzer, "--reason", "Antrag 12", "--yes", *flags, stdout=out)
    return out.getvalue()


# Everything that is kept of somebody


def filled(side: Side, builder: Agent, vector: list[float]) -> Side:
    """Of each kind live, deleted and proposed memories, and what else there can be of them."""
    side = stored(side, builder)
    agent = Agent(builder.key, nutzer=side.nutzer, agent=side.agent)
    with_vector = {"embedding": vector, "embedding_profil_hash": "modell", "tags": [side.tag, "gemeinsam"]}
    text = f"{side.word} {side.secret}"
    several = [side.entry(f"{text} {n}", kurzbeschreibung=f"{side.secret} {n}", **with_vector) for n in range(6)]
    headers = {"Idempotency-Key": f"{side.nutzer} {side.secret}"}
    arguments = {"inhalt": {"nutzer": side.nutzer, "agent": side.agent, "memories": several}}
    answer = agent.post("insert_brain_longterm_memory", arguments | {"referenzfelder": {"a": side.secret}}, **headers)
    keys = [int(row["ID"].partition("_")[2]) for row in answer.json()["daten"]]
    changed = {"ID": f"longterm_{keys[5]}", "kurzbeschreibung": side.secret, "memory": text, "tags": [side.tag]}
    agent.call("update_brain_longterm_memory", memories=[changed | {"embedding": vector[::-1]}])
    agent.call("delete_brain_longterm_memory", IDs=[f"longterm_{keys[4]}"], grund=side.secret)
    wish = services.Merge(survivor=keys[0], seen={keys[0]: 1, keys[1]: 1})
    assert isinstance(services.merge(LONGTERM, wish, ORIGIN), services.Done)
    short = stored_short(agent, side)
    assert services.promote([short], ORIGIN)
    agent.call("search_brain", suche=text)
    return side


def stored_short(agent: Agent, side: Side) -> int:
    """The key of another short-term memory of the side."""
    entry = side.entry(side.secret, kurzbeschreibung=side.secret, tags=[side.tag])
    return int(agent.call("insert_brain_shortterm_memory", memories=[entry])["daten"][0]["ID"].partition("_")[2])


def imported(side: Side, folder: Path) -> None:
    """A memory that came in by a file from elsewhere, and an import whose lines wait or failed."""
    line = {"typ": "longterm", **side.entry(side.secret, kurzbeschreibung=side.secret)}
    line["herkunft"] = {"instanz": f"elsewhere-{side.nutzer}", "ID": f"note/{side.secret}"}
    assert run_import(file_of(folder, line))[0]["neu"] == 1
    job = ImportJob.objects.create(user_id=1, dateiname="x.jsonl", format="brain")
    newest = LongtermMemory.objects.filter(nutzer=side.nutzer).latest("pk")
    rows = [
        {"zeile": json.dumps(line, ensure_ascii=False).encode(), "titel": side.secret, "vorschau": "neu"},
        {"kennung": newest.kennung, "titel": side.secret, "ergebnis": "neu"},
    ]
    ImportLine.objects.bulk_create(ImportLine(job=job, number=n, **row) for n, row in enumerate(rows, 1))


def looked_at(side: Side, user: User) -> None:
    """A view of somebody else, and rows of Django's log."""
    for n, query in enumerate((f"nutzer={side.nutzer}", f"tag={side.tag}")):
        SavedView.objects.create(user=user, typ="longterm", name=f"{side.name} {n}", query=query)
    newest = LongtermMemory.objects.filter(nutzer=side.nutzer).latest("pk")
    tag = Tag.objects.get(name=side.tag)
    for row in (newest, LongtermVersion.objects.filter(memory_id=newest.pk).latest("pk"), tag):
        kind = ContentType.objects.get_for_model(row)
        values = {"user": user, "content_type": kind, "object_id": row.pk, "action_flag": CHANGE}
        LogEntry.objects.create(**values, object_repr=side.tag if row is tag else side.secret)


@pytest.fixture
def world(
    transactional_db: None,
    agent_with: Callable[..., Agent],
    there: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> tuple[Side, Side, Agent]:
    """Anna's and wanda's memories, side by side in every table that can hold some of them."""
    monkeypatch.setattr(vectors, "BLOCK", 8)
    monkeypatch.setattr(vectors, "LOOSE", 8)
    builder = agent_with("builder")
    user = User.objects.create_superuser("chef", password="a long password")
    anna = filled(ANNAS, builder, VECTOR)
    wanda = filled(WANDAS, builder, OF_OTHERS)
    for side in (anna, wanda):
        imported(side, tmp_path)
        looked_at(side, user)
    call_command("embed_pending", stdout=StringIO())
    upkeep.pack(lambda _what, _number: None)
    call_command("find_duplicates", stdout=StringIO())
    ImportLine.objects.create(job=ImportJob.objects.latest("pk"), number=9, zeile=None, ergebnis="fehlerhaft")
    return anna, wanda, builder


# Where there could be something of it


def every_value() -> Iterator[tuple[str, Any]]:
    """All values of all tables of the database, those that the full-text index keeps for itself included."""
    for table in connection.introspection.table_names():
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            names = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                yield from ((f"{table}.{name}", value) for name, value in zip(names, row, strict=True))


def traces() -> set[str]:
    """The columns that hold something of anna's: a word of hers, her vectors, or the codes of those."""
    found = set()
    for where, value in every_value():
        held = bytes(value) if isinstance(value, (bytes, memoryview)) else as_text(value).encode()
        if any(mark in held for mark in vectors_of(VECTOR)) or any(word.encode() in held.lower() for word in WORDS):
            found.add(where)
    return found


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def vectors_of(numbers: list[float]) -> list[bytes]:
    """How a vector stands in the database: as it came, of length 1, as codes of a block, and backwards likewise."""
    told = []
    for each in (numbers, numbers[::-1]):
        unit = vectors.unit(np.array(each, dtype="<f4"))
        codes, _scales = vectors.quantised(unit.reshape(1, -1))
        told += [np.array(each, dtype="<f4").tobytes(), unit.astype("<f4").tobytes(), codes.tobytes()]
    return told


def rows() -> dict[tuple[str, Any], str]:
    """All rows of all tables; of an entry without its block, which may be another one."""
    found = {}
    for model in apps.get_models():
        names = [column.name for column in model._meta.concrete_fields if column.name != "block"]  # noqa: SLF001
        for row in model._base_manager.values_list("pk", *names):  # noqa: SLF001
            found[model.__name__, row[0]] = repr([bytes(v) if isinstance(v, memoryview) else v for v in row[1:]])
    return found


def lines_digest(text: str, nutzer: str) -> str:
    """The digest that a proof has of this person, from an export with what was deleted."""
    lines = text.splitlines(keepends=True)[1:]
    owned = [line for line in lines if any(v["stand"]["nutzer"] == nutzer for v in json.loads(line)["versionen"])]
    digests = sorted(sha256(line.encode()).hexdigest() for line in owned)
    return sha256("".join(f"{digest}\n" for digest in digests).encode()).hexdigest()


# Of each table it must be known what becomes of a person's rows; `memories.erasure` says why.
GONE = {
    *("LongtermMemory", "ShorttermMemory", "BrainMemory", "LongtermVersion", "ShorttermVersion", "BrainVersion"),
    *("LongtermTag", "ShorttermTag", "BrainTag", "Tag", "SearchEntry", "PastEntry", "Word", "VectorBlock"),
    *("ComparedText", "DuplicatePair", "Recall", "RecalledSearch", "RepeatableCall", "HandledEntry", "OpenReference"),
    *("ImportJob", "ImportLine", "ImportedMemory", "SavedView", "LogEntry", "ErasedMemory"),
}
STAYS = {
    *("CallRecord", "KeyUsage", "EmbeddingProfile", "Installation", "Erasure", "AccessKey", "ServiceAccount", "Grant"),
    *("User", "Group", "Permission", "ContentType", "Session", "ListSetting", "StaticDevice", "StaticToken"),
    *("TOTPDevice", "AccessAttempt", "AccessAttemptExpiration", "AccessFailureLog", "AccessLog"),
}


def test_of_each_table_it_is_known_what_becomes_of_it() -> None:
    models = {model.__name__ for model in apps.get_models()}
    assert models == GONE | STAYS
    assert not GONE & STAYS


# Case 79


@pytest.mark.django_db(transaction=True)
def test_case_79_after_an_erasure_nothing_of_the_person_is_left_and_the_proof_stays(
    world: tuple[Side, Side, Agent], tmp_path: Path
) -> None:
    anna, wanda, builder = world
    before, exported, there = rows(), export(), traces()
    assert {name.partition(".")[0] for name in there} >= {
        *("memories_" + name for name in ("longtermmemory", "shorttermversion", "brainversion", "tag", "word")),
        *("memories_" + name for name in ("searchentry", "pastentry", "vectorblock", "recalledsearch")),
        *("memories_" + name for name in ("repeatablecall", "importedmemory", "importline", "savedview")),
        "django_admin_log",
    }
    told = erase()
    assert traces() == set()
    assert_sound()
    call_command("check_history", stdout=StringIO())
    call_command("search_index", "--check", stdout=StringIO())
    assert_others_are_as_before(before, exported)
    assert_proof(told, exported)
    assert_no_page_tells_of_her()
    # Nobody finds her by any door.
    nobody = builder.call("search_brain", suche=f"{anna.word} {anna.secret}")
    assert {row["nutzer"] for row in nobody["daten"]} <= {"wanda"}
    for kennung in (*anna.live.values(), *anna.gone.values()):
        history = builder.call("select_brain_history", ID=kennung)["daten"]
        assert [row["fehler"]["code"] for row in history] == ["nicht_gefunden"]
    assert builder.call("search_brain", suche=wanda.word)["daten"]


def assert_others_are_as_before(before: dict[tuple[str, Any], str], exported: str) -> None:
    after = rows()
    assert {key for key, row in after.items() if key[0] not in CHANGES and before.get(key) != row} == set()
    gone = {key: row for key, row in before.items() if key not in after and key[0] not in CHANGES}
    assert [key for key, row in gone.items() if "wanda" in row or "Zinnober" in row or "Opalglanz" in row] == []
    assert {key[0] for key in gone} >= {"LongtermMemory", "DuplicatePair", "ComparedText", "Recall", "HandledEntry"}
    assert lines_of(export()) == [line for line in lines_of(exported) if line["nutzer"] != "anna"]


def assert_proof(told: str, exported: str) -> None:
    proof = Erasure.objects.get()
    owned = [line for line in lines_of(exported) if line["nutzer"] == "anna"]
    assert proof.total("erinnerungen") == len(owned)
    assert proof.total("versionen") == sum(len(line["versionen"]) for line in owned)
    assert proof.total("eintraege") > 0
    assert proof.digest == lines_digest(exported, "anna")
    assert proof.digest in told
    assert proof.beendet_am
    assert proof.gereinigt_am
    assert proof.grund == "Antrag 12"
    assert not proof.erased.exists()
    assert "anna" not in repr([getattr(proof, column.name) for column in Erasure._meta.concrete_fields])  # noqa: SLF001
    assert Erasure.objects.of("anna").get() == proof


def assert_no_page_tells_of_her() -> None:
    chef = Client(headers={"Accept-Language": "en"})
    chef.force_login(User.objects.get(username="chef"))
    pages = [reverse("admin:index"), reverse("admin:memories_proposals")]
    pages += [reverse(f"admin:memories_{name}_changelist") for name in ("recall", "tag", "duplicatepair", "callrecord")]
    for kind in KINDS:
        names = (f"{kind.typ}memory_changelist", f"{kind.typ}memory_trash", f"{kind.typ}version_changelist")
        pages += [reverse(f"admin:memories_{name}") for name in names]
    for page in pages:
        text = chef.get(page).content.decode().lower()
        assert [word for word in WORDS if word in text] == [], page


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="of PostgreSQL's files nothing is promised")
def test_no_byte_of_her_is_left_in_the_files_of_sqlite(world: tuple[Side, Side, Agent]) -> None:
    file = Path(connection.settings_dict["NAME"])
    erase("anna", "--no-vacuum")
    held = file.read_bytes() + file.with_name(f"{file.name}-wal").read_bytes()
    assert b"haselnuss" in held.lower()
    assert Erasure.objects.get().gereinigt_am is None
    call_command("clean_up", stdout=StringIO())
    assert Erasure.objects.get().gereinigt_am
    for part in (file, file.with_name(f"{file.name}-wal")):
        kept = part.read_bytes()
        assert [word for word in WORDS if word.encode() in kept.lower()] == []
        assert [mark for mark in vectors_of(VECTOR) if mark in kept] == []
    assert_sound()


@pytest.mark.django_db(transaction=True)
def test_blocks_keep_the_vectors_of_others_and_find_them_as_before(
    agent_with: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "BLOCK", 8)
    monkeypatch.setattr(vectors, "LOOSE", 8)
    builder = agent_with("builder")
    for n in range(12):
        nutzer = "anna" if n % 3 == 0 else "ben"
        numbers = [float((n + 1) * place % 17) for place in range(1, 17)]
        builder.call(
            "insert_brain_longterm_memory",
            memories=[note(nutzer=nutzer, embedding=numbers, embedding_profil_hash="modell")],
        )
    upkeep.pack(lambda _what, _number: None)
    asked = {"embedding": [float(place % 7) for place in range(1, 17)], "embedding_profil_hash": "modell"}
    found = builder.call("search_brain", **asked, nutzer_filter="ben", limit=100)["daten"]
    old = set(VectorBlock.objects.values_list("pk", flat=True))
    erase()
    assert old.isdisjoint(VectorBlock.objects.values_list("pk", flat=True))
    assert {len(bytes(block.codes)) // 16 for block in VectorBlock.objects.all()} == {5}
    assert SearchEntry.objects.filter(block=VectorBlock.objects.get().pk).count() == 5
    assert builder.call("search_brain", **asked, limit=100)["daten"] == found
    assert_sound()


@pytest.mark.django_db(transaction=True)
def test_the_readme_says_how_to_compute_the_digest(tmp_path: Path) -> None:
    for n in range(3):
        services.delete(LONGTERM, [store(memory=f"Löschung {n}")] if n else [], ORIGIN)
        store(SHORTTERM, memory="Ümläut")
    (tmp_path / "anna.jsonl").write_text(export("--with-deleted", "--nutzer", "anna"), encoding="utf-8")
    (recipe,) = re.findall(r"^    (tail -n .* sha256sum)$", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    computed = subprocess.run(["sh", "-c", recipe], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    erase("anna", "--no-vacuum")
    assert Erasure.objects.get().digest == computed.split()[0]
    assert Erasure.objects.get().total("erinnerungen") == 5


# What is hers, and what is not


@pytest.mark.django_db(transaction=True)
def test_a_memory_that_was_hers_goes_and_one_of_another_that_quotes_her_stays() -> None:
    moved, kept = store(memory="einst annas"), store(nutzer="ben", memory="Anna sagt: Haselnuss", tag_namen=["Ben"])
    LongtermMemory.objects.filter(pk=moved).update(nutzer="ben", version=2)
    version = LongtermVersion.objects.get(memory_id=moved)
    version.pk, version.version, version.nutzer = None, 2, "ben"
    version.save()
    services.update(LONGTERM, [services.Change(kept, {"memory": "Anna sagt: Walnuss"})], ORIGIN)
    erase("anna", "--no-vacuum")
    assert list(LongtermMemory.objects.values_list("pk", flat=True)) == [kept]
    changed_by_her = LongtermVersion.objects.filter(memory_id=kept, version=2).get()
    assert (changed_by_her.durch_nutzer, changed_by_her.memory) == ("anna", "Anna sagt: Walnuss")
    call_command("check_history", stdout=StringIO())


@pytest.mark.django_db(transaction=True)
def test_a_memory_of_another_that_hers_was_merged_into_stays_and_the_merge_can_be_undone() -> None:
    survivor, hers = store(nutzer="ben", memory="Pacht"), store(memory="Miete")
    wish = services.Merge(survivor=survivor, seen={survivor: 1, hers: 1})
    assert isinstance(services.merge(LONGTERM, wish, ORIGIN), services.Done)
    erase("anna", "--no-vacuum")
    merged = LongtermVersion.objects.filter(memory_id=survivor).latest("version")
    assert merged.verweis == f"longterm_{hers}"
    assert isinstance(services.undo_merge(LONGTERM, merged.aufruf, ORIGIN), services.Done)
    assert not LongtermMemory.objects.filter(pk=hers).exists()
    assert_sound()


@pytest.mark.django_db(transaction=True)
def test_words_and_tags_stay_that_somebody_else_uses_or_used() -> None:
    store(memory="Quittenbaum Zwetschge", tag_namen=["Nur anna", "Alle"])
    shared = store(nutzer="ben", memory="Zwetschge", tag_namen=["Alle"])
    services.update(LONGTERM, [services.Change(shared, {"memory": "Mirabelle"})], ORIGIN)
    erase("anna", "--no-vacuum")
    assert list(Tag.objects.values_list("name", flat=True)) == ["Alle"]
    stems = set(Word.objects.values_list("stamm", flat=True))
    assert any(stem.startswith("zwetschg") for stem in stems)
    assert not any(stem.startswith("quitten") for stem in stems)
    assert_sound()


@pytest.mark.django_db(transaction=True)
def test_repeats_of_others_are_answered_as_before(anna: Agent, carla: Agent) -> None:
    calls = {
        agent: {"inhalt": {"nutzer": agent.nutzer, "agent": "planer", "memories": [note(nutzer=agent.nutzer)]}}
        for agent in (anna, carla)
    }
    first = {
        agent: agent.post("insert_brain_longterm_memory", body, **{"Idempotency-Key": "k"}).json()
        for agent, body in calls.items()
    }
    erase("anna", "--no-vacuum")
    again = carla.post("insert_brain_longterm_memory", calls[carla], **{"Idempotency-Key": "k"}).json()
    assert again == first[carla]
    assert RepeatableCall.objects.count() == HandledEntry.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_what_she_searched_goes_and_what_others_found_stays(anna: Agent, ben: Agent) -> None:
    anna.store(memory="Haselnuss")
    theirs = anna.call("insert_brain_longterm_memory", memories=[note(nutzer="ben", memory="Haselnuss")])
    for agent in (anna, ben):
        agent.call("search_brain", suche=f"Haselnuss {agent.nutzer}")
    erase("anna", "--no-vacuum")
    assert list(RecalledSearch.objects.values_list("suche", flat=True)) == ["Haselnuss ben"]
    assert [recall.kennung for recall in Recall.objects.all()] == [theirs["daten"][0]["ID"]]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("query", "goes"),
    [
        *((f"nutzer={name}", True) for name in ("Jörg+Ott", "Jo\u0308rg+Ott", "+Jörg+Ott+")),
        *((f"q={text}", True) for text in ("Jörg+Ott", "Jo\u0308rg+Ott", '"jörg+ott"', "Brief+JÖRG+OTT+Antwort")),
        *((f"tag={tag}", True) for tag in ("nussbaum", "+NUSSBAUM+")),
        *((query, False) for query in ("q=Ott", "nutzer=Jörg", "q=Jörg+Otto", "tag=nussbäume", "tag=%00")),
    ],
)
def test_case_79_a_view_goes_that_names_the_person_in_any_spelling(query: str, *, goes: bool) -> None:
    store(nutzer="Jörg Ott", tag_namen=["Nussbaum"])
    user = User.objects.create_user("ben")
    SavedView.objects.create(user=user, typ="longterm", name="Frist", query=query)
    SavedView.objects.create(user=user, typ="longterm", name="Für Jörg Ott", query="")
    erase("Jörg Ott")
    assert list(SavedView.objects.values_list("name", flat=True)) == ([] if goes else ["Frist"])


@pytest.mark.django_db(transaction=True)
def test_an_import_of_others_goes_on_without_her_lines(tmp_path: Path) -> None:
    store()
    job = ImportJob.objects.create(user_id=1, dateiname="x", format="brain", vorgaben={"nutzer": "anna"})
    lines = [{"nutzer": "anna"}, {"nutzer": "ben"}, {}, {"nutzer": "ben", "versionen": [{"stand": {"nutzer": "anna"}}]}]
    ImportLine.objects.bulk_create(
        ImportLine(job=job, number=n, zeile=json.dumps(line).encode()) for n, line in enumerate(lines)
    )
    ImportLine.objects.create(job=job, number=9, zeile=b"{torn, of whomever")
    erase("anna", "--no-vacuum")
    assert list(job.lines.values_list("number", flat=True)) == [1]
    job.refresh_from_db()
    assert job.vorgaben == {"nutzer": ""}


# The command


@pytest.mark.django_db(transaction=True)
def test_the_command_asks_for_the_name_again_and_wants_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    store()
    out = StringIO()
    with translation.override("en"):
        call_command("erase_person", "anna", "--dry-run", stdout=out)
        monkeypatch.setattr("sys.stdin", StringIO("ben\n"))
        with pytest.raises(CommandError, match="another name"):
            call_command("erase_person", "anna", "--reason", "x", stdout=out)
        with pytest.raises(CommandError, match="another name"):  # nobody types anything
            call_command("erase_person", "anna", "--reason", "x", stdout=out)
        with pytest.raises(CommandError, match="Say why"):
            call_command("erase_person", "anna", "--yes", stdout=out)
        with pytest.raises(CommandError, match="nobody of this name"):
            call_command("erase_person", "Anna", "--yes", "--reason", "x", stdout=out)
    assert "longterm: 1 memories, 1 versions" in out.getvalue()
    assert LongtermMemory.objects.exists()
    assert not Erasure.objects.exists()
    with translation.override("en"):
        monkeypatch.setattr("sys.stdin", StringIO("anna\n"))
        call_command("erase_person", "anna", "--reason", "x", "--no-vacuum", stdout=out)
    assert "until clean_up has cleaned them" in out.getvalue()
    assert not LongtermMemory.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_erasure_that_was_killed_is_completed_by_the_next_one(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assert place.manage("migrate").returncode == 0
    lines = [
        {"typ": "longterm", **note(nutzer=nutzer, memory=f"Haselnuss {nutzer} {n}")}
        for nutzer, number in (("anna", 950), ("ben", 20))
        for n in range(number)
    ]
    assert place.manage("import_memories", str(file_of(tmp_path, *lines))).returncode == 0
    command = ["erase_person", "anna", "--reason", "Antrag", "--yes"]
    with subprocess.Popen(
        [*MANAGE, *command], cwd=ROOT, env=place.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        for line in process.stdout:
            if line.startswith(("Gelöschte", "Memories erased")):
                process.send_signal(signal.SIGKILL)
                break
        assert process.wait(30) == -signal.SIGKILL
    left = place.manage("erase_person", "anna", "--dry-run")
    assert "longterm: 0 " not in left.stdout
    done = place.manage(*command)
    assert done.returncode == 0, done.stderr
    assert "950" in done.stdout
    assert place.manage("erase_person", "anna", "--dry-run").returncode == 1
    for check in (["check_history"], ["search_index", "--check"]):
        assert place.manage(*check).returncode == 0
    assert place.manage("export_memories").stdout.count("Haselnuss ben") == 40  # each now and in its version


@pytest.mark.django_db(transaction=True)
def test_an_erasure_can_be_continued_after_every_step(world: tuple[Side, Side, Agent]) -> None:
    exported = export()
    begun = erasure.begin("anna", Origin(SYSTEM, "system", "", "command", "test", grund="x"))
    steps = 1
    while not erasure.step(erasure.begin("anna", Origin(SYSTEM, "", "", "", "")), "anna", SYSTEM):
        assert_sound()
        steps += 1
    assert steps > 6
    begun.refresh_from_db()
    assert begun.digest == lines_digest(exported, "anna")
    assert erasure.step(begun, "anna", SYSTEM)
    assert vacuum.clean()
    assert traces() == set()


def writing(bens: list[int], ended: threading.Event, faults: list[object]) -> None:
    """Change ben's memories until it is over, and store some for anna."""
    turn = 0
    while not ended.is_set():
        turn += 1
        changes = [services.Change(key, {"memory": f"Haselnuss {turn}", "tag_namen": [f"T{turn}"]}) for key in bens]
        done = services.update(LONGTERM, changes, ORIGIN)
        done += services.insert(LONGTERM, [NOTE | {"tag_namen": ["Gemeinsam"]}] if turn < 20 else [], ORIGIN)
        faults.extend(each for each in done if not isinstance(each, services.Done))
    connections.close_all()


@pytest.mark.django_db(transaction=True)
def test_others_write_meanwhile_and_what_was_stored_for_her_goes_or_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(erasure, "_AT_ONCE", 5)
    for n in range(40):
        store(memory=f"Haselnuss {n}", tag_namen=["Gemeinsam", f"T{n}"])
    bens = [store(nutzer="ben", memory="Pacht", tag_namen=["Gemeinsam"]) for _n in range(5)]
    ended = threading.Event()
    faults: list[object] = []
    writer = threading.Thread(target=writing, args=(bens, ended, faults))
    writer.start()
    with suppress(CommandError):  # that some were stored meanwhile
        erase("anna", "--no-vacuum")
    ended.set()
    writer.join(30)
    assert faults == []
    assert_sound()
    if LongtermMemory.objects.filter(nutzer="anna").exists():
        erase("anna", "--no-vacuum")
    assert not LongtermVersion.objects.filter(nutzer="anna").exists()
    assert LongtermMemory.objects.count() == len(bens)
    assert_sound()


# The admin


def administrator(name: str, role: str = "Administrator", **grant: Any) -> Client:
    """Somebody of this role and grant, signed in, speaking English."""
    user = User.objects.create_user(name, is_staff=True)
    user.groups.set(Group.objects.filter(name=role))
    Grant.objects.create(user=user, **grant)
    client = Client(headers={"Accept-Language": "en"})
    client.force_login(user)
    return client


def asked(client: Client, nutzer: str = "anna", **more: str) -> Any:
    """The response to a name, and to what else is filled in."""
    return client.post(ADD, {"nutzer": nutzer, **more})


def finished(client: Client, response: Any) -> Any:
    """Press the button until it has ended; the page of the proof."""
    for _step in range(50):
        if response.status_code == 302:
            return client.get(response["Location"])
        assert response.status_code == 200
        number = response.context["begun"].pk
        page = Fields(response.content.decode()).values
        response = client.post(reverse("admin:memories_erasure_step", args=[number]), {"nutzer": page["nutzer"]})
    raise AssertionError("it does not end")


@pytest.mark.django_db
def test_a_person_is_erased_in_the_admin_after_the_name_was_typed_twice() -> None:
    for kind in KINDS:
        store(kind, memory_typ="arbeit", titel="Haselnuss") if kind is BRAIN else store(kind)
    client = administrator("chef")
    assert "Erase a person" in client.get(LIST).content.decode()
    shown = asked(client)
    assert [(memories, versions) for _name, memories, versions in shown.context["numbers"]] == [(1, 1)] * 3
    for wrong in ({"bestaetigung": "Anna", "grund": "x"}, {"bestaetigung": "anna", "grund": ""}):
        assert asked(client, **wrong).context["form"].errors
        assert not Erasure.objects.exists()
    page = finished(client, asked(client, bestaetigung="anna", grund="Antrag 12"))
    assert "3 memories were erased." in messages(page)
    assert "clean_up" in messages(page)
    text = page.content.decode()
    proof = Erasure.objects.get()
    assert proof.digest in text
    assert "Antrag 12" in text
    assert "not yet; clean_up does it" in text
    assert (proof.tuer, proof.benutzer) == ("admin", "chef")
    assert not any(kind.versions.objects.exists() for kind in KINDS)


@pytest.mark.django_db
def test_the_name_is_the_same_in_each_of_its_normal_forms() -> None:
    store(nutzer="Jörg Ott")
    client = administrator("chef")
    sent = Fields(asked(client, nutzer="Jo\u0308rg Ott").content.decode()).values
    finished(client, client.post(ADD, sent | {"bestaetigung": "Jo\u0308rg Ott", "grund": "Antrag 12"}))
    assert not LongtermVersion.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("grund", ["Antrag von anna", "ANNA will es", "(anna)"])
def test_case_79_a_reason_that_names_the_person_is_refused_since_the_proof_keeps_it(grund: str) -> None:
    store()
    client = administrator("chef")
    assert "without the name" in str(asked(client, bestaetigung="anna", grund=grund).context["form"].errors["grund"])
    with translation.override("en"), pytest.raises(CommandError, match="without the name"):
        call_command("erase_person", "anna", "--yes", "--reason", grund)
    assert not Erasure.objects.exists()
    assert asked(client, bestaetigung="anna", grund="Annahme vom 3.").status_code == 302


@pytest.mark.django_db
def test_a_closed_page_is_gone_on_with_by_erasing_the_same_person_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.admin.erasing._SECONDS_A_STEP", -1.0)
    monkeypatch.setattr(erasure, "_AT_ONCE", 2)
    for _n in range(5):
        store()
    client = administrator("chef")
    asked(client, bestaetigung="anna", grund="Antrag 12")
    begun = Erasure.objects.get()
    assert 0 < LongtermMemory.objects.count() < 5
    told = client.get(reverse("admin:memories_erasure_change", args=[begun.pk])).content.decode()
    assert "This erasure has not ended." in told
    shown = asked(client)
    assert "broken off" in shown.content.decode()
    assert Fields(shown.content.decode()).values["grund"] == "Antrag 12"
    finished(client, asked(client, bestaetigung="anna", grund="Antrag 12"))
    assert Erasure.objects.get().total("erinnerungen") == 5


@pytest.mark.django_db
def test_proofs_are_found_by_the_name_and_cannot_be_changed_or_deleted() -> None:
    for nutzer in ("anna", "ben"):
        store(nutzer=nutzer)
    client = administrator("chef")
    for nutzer in ("anna", "ben"):
        finished(client, asked(client, nutzer, bestaetigung=nutzer, grund=f"wegen {len(nutzer)}"))
    found = client.get(LIST, {"q": "anna"}).context["cl"].result_list
    assert [row.grund for row in found] == ["wegen 4"]
    assert list(client.get(LIST, {"q": "carla"}).context["cl"].result_list) == []
    proof = Erasure.objects.of("anna").get()
    for page in ("change", "delete"):
        assert (
            client.post(reverse(f"admin:memories_erasure_{page}", args=[proof.pk]), {"post": "yes"}).status_code == 403
        )
    assert Erasure.objects.count() == 2
    assert administrator("otto", "Auditor").get(LIST, {"q": "ben"}).context["cl"].result_count == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "grant",
    [
        {"nutzer": ["ben"]},
        {"agent": ["planer"]},
        {"scope": ["modul"]},
        {"scope_vk": ["12"]},
        {"typen": ["longterm", "shortterm"]},
        {"may_delete": False},
        {"nutzer": []},
    ],
    ids=str,
)
def test_whoever_does_not_reach_all_of_a_person_is_told_what_he_is_told_of_nobody(grant: dict[str, Any]) -> None:
    store()
    client = administrator("chef", **grant)
    texts = []
    for nutzer in ("anna", "nobody"):
        response = asked(client, nutzer, bestaetigung=nutzer, grund="x")
        texts.append(f"{response.status_code} {response.content.decode()}".replace(nutzer, "NAME"))
    settled = [text.split('name="csrfmiddlewaretoken"')[0] for text in texts]
    assert settled[0] == settled[1]
    assert texts[0].startswith("403") or NOBODY in texts[0]
    assert not Erasure.objects.exists()
    begun = erasure.begin("anna", Origin(SYSTEM, "system", "", "command", "test", grund="x"))
    for number in (begun.pk, 999_999):
        step = reverse("admin:memories_erasure_step", args=[number])
        assert client.post(step, {"nutzer": "anna"}).status_code in {403, 404}
    shown = list(client.get(LIST).context["cl"].result_list)
    assert shown == ([begun] if "may_delete" in grant else [])  # of everything he may read
    assert LongtermMemory.objects.count() == 1


@pytest.mark.django_db
def test_a_grant_for_the_person_is_enough_but_not_for_what_was_also_somebody_elses() -> None:
    store()
    client = administrator("chef", nutzer=["anna"])
    mixed = store()
    version = LongtermVersion.objects.get(memory_id=mixed)
    version.pk, version.version, version.nutzer = None, 2, "ben"
    version.save()
    assert NOBODY in asked(client).content.decode()
    LongtermVersion.objects.filter(memory_id=mixed).delete()
    LongtermMemory.objects.filter(pk=mixed).delete()
    page = finished(client, asked(client, bestaetigung="anna", grund="x"))
    assert "1 memory was erased." in messages(page)
    assert page.context["original"].benutzer == "chef"  # his own proof he sees
    assert client.get(LIST).context["cl"].result_count == 1


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["Betrachter", "Kurator", "Auditor"])
def test_other_roles_erase_nobody(role: str) -> None:
    store()
    client = administrator("chef", role)
    assert client.get(ADD).status_code == 403
    assert asked(client, bestaetigung="anna", grund="x").status_code == 403
    assert LongtermMemory.objects.exists()
    assert client.get(LIST).status_code == (200 if role == "Auditor" else 403)


@pytest.mark.django_db
def test_a_name_of_a_step_that_is_not_the_erasures_is_refused_and_get_does_nothing() -> None:
    for nutzer in ("anna", "ben"):
        store(nutzer=nutzer)
    begun = erasure.begin("anna", Origin(SYSTEM, "system", "", "command", "test", grund="x"))
    client = person("chef", superuser=True)
    step = reverse("admin:memories_erasure_step", args=[begun.pk])
    assert client.post(step, {"nutzer": "ben"}).status_code == 404
    assert client.post(step).status_code == 404
    assert client.get(step).status_code == 404
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="chef"))
    assert strict.post(step, {"nutzer": "anna"}).status_code == 403
    assert LongtermMemory.objects.count() == 2


@pytest.mark.django_db
def test_no_agent_has_a_tool_for_it(anna: Agent) -> None:
    assert "eras" not in anna.http.get("/api/tools/").content.decode()
