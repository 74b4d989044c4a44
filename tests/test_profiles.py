"""Embedding profiles: lists of them, vectors out and in as JSON lines, and changing the model without a stop."""

import json
import sys
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.models import EmbeddingProfile, LongtermMemory, PastEntry, SearchEntry, VectorBlock
from memories.search import derived, upkeep
from memories.search.embedder import by_name
from memories.search.index import DERIVED
from tests.admincast import person, url
from tests.conftest import Agent
from tests.doors import change, now
from tests.embedders import Endpoint, needs

NEW = {"dimension": 2, "name": "bge-base 1.5"}
HASH = "ab" * 32


def embeddings(**options: Any) -> tuple[list[str], list[str]]:
    """What the command says, and what it complains about."""
    out, err = StringIO(), StringIO()
    call_command("embeddings", stdout=out, stderr=err, **options)
    return out.getvalue().splitlines(), err.getvalue().splitlines()


def exported(profile: str = HASH, **options: Any) -> list[dict[str, str]]:
    """The lines that an export gives."""
    return [json.loads(line) for line in embeddings(export=profile, **options)[0]]


def take_back(folder: Path, lines: list[Any], profile: str = HASH, **options: Any) -> tuple[list[str], list[str]]:
    """Import these lines; texts go as they are."""
    file = folder / "vectors.jsonl"
    file.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines), "utf-8")
    return embeddings(**{"import": [profile, str(file)]}, **options)


def embedded(row: dict[str, str], vector: list[float] | None = None) -> dict[str, Any]:
    """The line that comes back for one that went out."""
    return {"ID": row["ID"], "pruefsumme": row["pruefsumme"], "embedding": vector or [1.0, 0.5]}


def near(agent: Agent, vector: list[float], profile: str = HASH) -> list[str]:
    """The IDs found by a vector of the profile."""
    answer = agent.call("search_brain", embedding=vector, embedding_profil_hash=profile)
    assert answer["erfolg"], answer
    return [row["ID"] for row in answer["daten"]]


def is_sound() -> bool:
    """Whether the index is as the memories say."""
    return list(upkeep.check(lambda _what, _number: None)) == []


# Out and in


def test_texts_go_out_and_their_vectors_come_in_and_are_found(anna: Agent, tmp_path: Path) -> None:
    one = anna.store(kurzbeschreibung="Größe", memory="Zeile eins\nZeile zwei", tags=["nicht dabei"])
    other = anna.store(kurzbeschreibung="B", memory="b")
    rows = exported(**NEW)
    assert [(row["ID"], row["text"]) for row in rows] == [(other, "B\nb"), (one, "Größe\nZeile eins\nZeile zwei")]
    told, complaints = take_back(tmp_path, [embedded(rows[0], [0, 3]), embedded(rows[1], [5, 0])])
    assert told[-1].startswith("2 ")
    assert complaints == []
    assert near(anna, [0, 1]) == [other, one]
    assert exported() == []
    assert is_sound()
    assert now(anna, one)["version"] == 1


def test_what_was_imported_is_not_exported_again_and_importing_twice_changes_nothing(
    anna: Agent, tmp_path: Path
) -> None:
    for number in range(3):
        anna.store(memory=f"{number}")
    rows = exported(**NEW)
    take_back(tmp_path, [embedded(rows[0])])
    assert [row["ID"] for row in exported()] == [row["ID"] for row in rows[1:]]
    for _ in range(2):
        told, _complaints = take_back(tmp_path, list(map(embedded, rows)))
        assert told[-1].startswith("3 ")
    assert SearchEntry.objects.filter(teil__gte=DERIVED).count() == 3
    assert PastEntry.objects.count() == 0
    assert is_sound()


def test_a_text_that_moved_on_or_is_gone_is_not_given_a_vector(anna: Agent, tmp_path: Path) -> None:
    moved, gone, kept = (anna.store(memory=text) for text in "abc")
    rows = exported(**NEW)
    change(anna, moved, memory="neu")
    anna.call("delete_brain_longterm_memory", IDs=[gone])
    told, complaints = take_back(tmp_path, list(map(embedded, rows)))
    assert (told[-1].split()[0], complaints) == ("1", [])
    assert near(anna, [1, 1]) == [kept]
    assert [row["ID"] for row in exported()] == [moved]


def test_bad_lines_are_told_by_number_and_the_others_are_stored(anna: Agent, tmp_path: Path) -> None:
    for number in range(2):
        anna.store(memory=f"{number}")
    first, second = exported(**NEW)
    lines = [
        embedded(first),
        "no JSON",
        "[1]",
        embedded(first) | {"ID": "longterm_x"},
        embedded(first) | {"ID": 7},
        embedded(first, [1.0, 2.0, 3.0]),
        embedded(first, [0.0, 0.0]),
        embedded(first) | {"embedding": ["a", "b"]},
        embedded(first) | {"mehr": 1},
        '{"ID": "longterm_1", "pruefsumme": "x", "embedding": [NaN, 1]}',
        {"ID": first["ID"], "embedding": [1, 2]},
        "\ud7ff",
        embedded(second),
    ]
    told, complaints = take_back(tmp_path, lines)
    assert [int(line.split(":")[0].split()[1]) for line in complaints] == list(range(2, 13))
    assert told[-1].split()[0] == "2"
    assert exported() == []
    assert first["text"] not in "".join(complaints)


def test_the_lines_may_come_from_the_standard_input(anna: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    anna.store()
    (row,) = exported(**NEW)
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(json.dumps(embedded(row)).encode())))
    told, _complaints = embeddings(**{"import": [HASH, "-"]})
    assert told[-1].startswith("1 ")


def test_many_lines_are_stored_in_batches(anna: Agent, tmp_path: Path) -> None:
    for _ in range(12):
        memories = [
            {"kurzbeschreibung": "k", "memory": f"{n}", "tags": [], "scope": "global", "scope_vk": ""}
            for n in range(100)
        ]
        anna.call(
            "insert_brain_longterm_memory",
            memories=[memory | {"agent": "planer", "nutzer": "anna"} for memory in memories],
        )
    rows = exported(**NEW)
    assert len({row["ID"] for row in rows}) == 1200
    told, _complaints = take_back(tmp_path, list(map(embedded, rows)))
    assert [line.split()[0] for line in told] == ["500", "1000", "1200", "1200"]
    assert SearchEntry.objects.filter(teil__gte=DERIVED).count() == 1200


def test_a_file_that_is_not_there_is_told(db: None) -> None:
    with pytest.raises(CommandError, match=r"nowhere\.jsonl"):
        embeddings(**{"import": [HASH, "nowhere.jsonl"]}, **NEW)


# Which profile


def test_a_profile_goes_by_hash_beginning_or_name(db: None) -> None:
    exported(**NEW)
    for wanted in (HASH, HASH[:8], "bge-base 1.5"):
        assert exported(wanted) == []
    for wanted in ("ab", "nothing"):
        with pytest.raises(CommandError, match="--dimension"):
            exported(wanted)
    with pytest.raises(CommandError, match="2"):
        exported(HASH, dimension=3)
    exported(HASH[:-1] + "c", **NEW)
    with pytest.raises(CommandError, match="Hash"):
        exported(HASH[:8])


@pytest.mark.parametrize(
    ("profile", "dimension", "name", "told"),
    [
        ("", 2, "n", "PROFILE"),
        (" ", 2, "n", "PROFILE"),
        ("h" * 256, 2, "n", "255"),
        ("a\0b", 2, "n", "NUL"),
        (HASH, 0, "n", "--dimension"),
        (HASH, 16_001, "n", "16000"),
        (HASH, 2, "", "--name"),
        (HASH, 2, "n" * 256, "255"),
    ],
)
def test_a_new_profile_obeys_the_limits_of_callers_vectors(
    db: None, profile: str, dimension: int, name: str, told: str
) -> None:
    with pytest.raises(CommandError, match=told):
        exported(profile, dimension=dimension, name=name)
    assert not EmbeddingProfile.objects.exists()


def test_callers_vectors_of_the_profile_are_not_asked_for_again(anna: Agent, tmp_path: Path) -> None:
    fresh = anna.store(memory="a", embedding=[1, 0], embedding_profil_hash=HASH)
    stale = anna.store(memory="b", embedding=[1, 0], embedding_profil_hash=HASH)
    change(anna, stale, memory="neu")
    other = anna.store(memory="c", embedding=[1, 0], embedding_profil_hash="q")
    rows = exported(**NEW)
    assert {row["ID"] for row in rows} == {stale, other}
    take_back(tmp_path, [embedded(row, [1, 0]) for row in rows])
    assert set(near(anna, [1, 0])) == {fresh, stale, other}
    answer = anna.call("search_brain", embedding=[1, 0], embedding_profil_hash=HASH, mit_veralteten=1)
    assert len(answer["daten"]) == 3
    assert answer["durchsucht"]["ausgelassen"]["ohne_vektor_dieses_profils"] == 0


# Changing the model


def test_two_models_side_by_side_switched_and_switched_back(anna: Agent, there: Endpoint, settings: Any) -> None:
    needs("use")
    kennung = anna.store(kurzbeschreibung="Tier", memory="Ein Hund", tags=[])
    for text in ("Die Rechnung ist fällig.", "Pizza mit Käse"):
        anna.store(kurzbeschreibung="Notiz", memory=text, tags=[])
    call_command("embed_pending", stdout=StringIO())

    def found(suche: str) -> str:
        answer = anna.call("search_brain", suche=suche)
        assert answer["durchsucht"]["vektorsuche"] == "ausgefuehrt"
        return str(answer["daten"][0]["ID"])

    assert found("welpe") == kennung
    call_command("embed_pending", embedder="use", limit=1, stdout=StringIO())
    assert found("welpe") == kennung  # the old one serves
    assert now(anna, kennung)["embedding_ausstehend"] is False
    call_command("embed_pending", embedder="use", stdout=StringIO())
    assert is_sound()

    settings.BRAIN_EMBEDDER = "use"
    asked = len(there.asked)
    assert found("a puppy") == kennung
    assert now(anna, kennung)["embedding_ausstehend"] is False
    assert len(there.asked) == asked

    settings.BRAIN_EMBEDDER = "http"
    assert found("welpe") == kennung

    use = by_name("use").profil_hash
    embeddings(forget=use)
    assert list(EmbeddingProfile.objects.values_list("name", flat=True)) == [by_name("http").name]
    assert SearchEntry.objects.filter(teil__gte=DERIVED).count() == 3
    assert is_sound()


def test_the_profile_that_serves_is_not_forgotten(anna: Agent, there: Endpoint) -> None:
    anna.store()
    call_command("embed_pending", stdout=StringIO())
    with pytest.raises(CommandError, match="BRAIN_EMBEDDER"):
        embeddings(forget=by_name("http").profil_hash)


def test_of_a_forgotten_profile_nothing_stays(anna: Agent, tmp_path: Path) -> None:
    kennung = anna.store(memory="a")
    take_back(tmp_path, list(map(embedded, exported(**NEW))))
    change(anna, kennung, memory="b")
    take_back(tmp_path, list(map(embedded, exported())))
    VectorBlock.objects.create(profil_hash=HASH, dimension=2, eintraege=b"", skalen=b"", codes=b"")
    assert PastEntry.objects.filter(teil__gte=DERIVED).exists()
    embeddings(forget=HASH)
    assert not EmbeddingProfile.objects.exists()
    assert not VectorBlock.objects.exists()
    for model in (SearchEntry, PastEntry):
        assert not model.objects.filter(teil__gte=DERIVED).exists()
    assert is_sound()


# Lists


def some_profiles(anna: Agent) -> None:
    """One memory with a derived vector, one with a fresh one of a caller, one with a stale one."""
    fresh = anna.store(memory="a", embedding=[1, 0], embedding_profil_hash="von-anna")
    stale = anna.store(memory="b", embedding=[1, 0], embedding_profil_hash="von-anna")
    change(anna, stale, memory="neu")
    anna.store(memory="c")
    assert fresh
    call_command("embed_pending", limit=2, stdout=StringIO())


def test_the_command_lists_how_complete_each_profile_is(anna: Agent, there: Endpoint) -> None:
    some_profiles(anna)
    (serving, of_callers), _complaints = embeddings(list=True)
    host = there.url.removeprefix("http://").removesuffix("/v1")
    assert serving.startswith(f"{by_name('http').profil_hash}: 3 Zahlen, 2 aktuell, 0 veraltet, 1 ohne · http {host}")
    assert of_callers == "von-anna: 2 Zahlen, 1 aktuell, 1 veraltet, 1 ohne"


def test_the_admin_lists_them_at_the_same_number_of_queries(anna: Agent, there: Endpoint, tmp_path: Path) -> None:
    some_profiles(anna)
    client = person("chef", superuser=True)
    costs = []
    for number in range(2):
        with CaptureQueriesContext(connection) as context:
            page = client.get("/admin/memories/embeddingprofile/")
        costs.append(len(context.captured_queries))
        take_back(tmp_path, [], profile=f"{number}" * 64, dimension=2 + number, name=f"n{number}")
        anna.store(embedding=[1] * (5 + number), embedding_profil_hash=f"mehr-{number}")
    assert costs[0] == costs[1] <= 10
    text = page.content.decode()
    assert "von-anna" in text
    assert f"{by_name('http').profil_hash[:12]}…" in text
    assert by_name("http").name in text
    shown = [(state.fresh, state.stale, state.without) for state in page.context["states"]]
    assert shown[0] == (2, 0, 2)


def test_only_those_who_may_see_profiles_see_them_and_count_what_they_may_see(anna: Agent, there: Endpoint) -> None:
    some_profiles(anna)
    assert person("niemand").get("/admin/memories/embeddingprofile/").status_code == 403
    page = person("wenig", ["view_embeddingprofile"]).get("/admin/memories/embeddingprofile/")
    assert [(state.fresh, state.stale, state.without) for state in page.context["states"]] == [(0, 0, 0)]


def test_the_form_of_a_memory_shows_whether_it_was_embedded(anna: Agent, there: Endpoint, settings: Any) -> None:
    anna.store()
    key = LongtermMemory.objects.get().pk
    client = person("chef", superuser=True)
    assert "pending" in client.get(url("change", key)).content.decode()
    call_command("embed_pending", stdout=StringIO())
    assert "pending" not in client.get(url("change", key)).content.decode()
    settings.BRAIN_EMBEDDER = ""
    assert "there is no embedder" in client.get(url("change", key)).content.decode()


def test_a_pending_text_is_the_same_for_all_ways(anna: Agent, there: Endpoint) -> None:
    kennung = anna.store(kurzbeschreibung="k", memory="m")
    profile = derived.profile_of(by_name("http"))
    assert [(each.kennung, each.text) for each in derived.pending(profile)] == [(kennung, "k\nm")]
    assert [row["pruefsumme"] for row in exported(profile.profil_hash)] == [derived.checksum("k\nm")]
