"""Vectors that are derived from texts here: pending, filled in, found, and following their memories."""

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.kinds import LONGTERM
from memories.models import EmbeddingProfile, PastEntry, SearchEntry
from memories.search import derived, upkeep
from memories.search.derived import Made, checksum
from memories.search.embedder import by_name
from memories.search.index import DERIVED
from memories.search.worker import Worker
from tests.conftest import Agent, note
from tests.doors import BRAIN, change, now, restore
from tests.embedders import MODULES, Endpoint, needs

ROOT = Path(__file__).parent.parent


def embed_pending(**options: Any) -> str:
    """What the command says."""
    out = StringIO()
    call_command("embed_pending", stdout=out, **options)
    return out.getvalue()


def search(agent: Agent, suche: str, **fields: Any) -> Any:
    """The answer to a search by text."""
    answer = agent.call("search_brain", suche=suche, **fields)
    assert answer["erfolg"], answer
    return answer


def found(agent: Agent, suche: str, **fields: Any) -> list[str]:
    """The IDs found by a text, best first."""
    return [row["ID"] for row in search(agent, suche, **fields)["daten"]]


def is_sound() -> bool:
    """Whether the index is as the memories say."""
    return list(upkeep.check(lambda _what, _number: None)) == []


def entries(kennung: str) -> list[Any]:
    """The derived entries of a memory."""
    typ, _, key = kennung.partition("_")
    return list(SearchEntry.objects.filter(typ=typ, memory_id=int(key), teil__gte=DERIVED))


# From pending to found


@pytest.mark.parametrize("name", MODULES)
def test_a_paraphrase_without_a_shared_word_is_found_once_it_is_filled_in(
    anna: Agent, settings: Any, name: str
) -> None:
    needs(name)
    settings.BRAIN_EMBEDDER = name
    kennung = anna.store(kurzbeschreibung="Haustier", memory="Der Hund schläft den ganzen Tag auf dem Sofa.", tags=[])
    for text in ("Die Rechnung ist am Monatsende fällig.", "Das Auto braucht neue Reifen."):
        anna.store(kurzbeschreibung="Notiz", memory=text, tags=[])
    question = "a dog that is asleep"
    assert now(anna, kennung)["embedding_ausstehend"] is True
    assert found(anna, "Sofa") == [kennung]  # by text at once
    assert found(anna, question) == []
    assert "3 " in embed_pending()
    assert now(anna, kennung)["embedding_ausstehend"] is False
    assert found(anna, question)[0] == kennung
    assert is_sound()


def test_all_kinds_are_embedded_newest_first_each_text_as_one(anna: Agent, there: Endpoint) -> None:
    anna.store(kurzbeschreibung="Eins", memory="Hund")
    anna.call("insert_brain_shortterm_memory", memories=[note(kurzbeschreibung="Zwei", memory="Frist")])
    anna.call("insert_brain_memory", **BRAIN | {"titel": "Drei", "inhalt": "Auto", "inhalt_json": ""})
    embed_pending()
    texts = [text for _path, question in there.asked for text in question["input"] if text != "Brain"]
    assert texts == ["Drei\nAuto\n", "Zwei\nFrist", "Eins\nHund"]
    assert SearchEntry.objects.filter(teil__gte=DERIVED).count() == 3
    assert is_sound()


def test_the_callers_own_vector_and_the_history_stay_as_they_are(anna: Agent, there: Endpoint) -> None:
    kennung = anna.store(memory="Hund", embedding=[1, 2], embedding_profil_hash="p")
    before = now(anna, kennung)
    embed_pending()
    assert now(anna, kennung) == before | {"embedding_ausstehend": False}
    assert before["embedding_ausstehend"] is True
    history = anna.call("select_brain_history", ID=kennung)
    assert history["anzahl"]["gesamt"] == 1


def test_a_caller_who_brings_a_fresh_vector_of_the_profile_leaves_nothing_to_do(anna: Agent, there: Endpoint) -> None:
    profile = derived.profile_of(by_name("http"))
    own = {"embedding": [1, 0, 0], "embedding_profil_hash": profile.profil_hash}
    kennung = anna.store(memory="Hund", tags=[], **own)
    assert list(derived.pending(profile)) == []
    assert now(anna, kennung)["embedding_ausstehend"] is False
    change(anna, kennung, memory="Frist")
    assert [each.kennung for each in derived.pending(profile)] == [kennung]
    assert now(anna, kennung)["embedding_ausstehend"] is True
    embed_pending()
    assert found(anna, "Vertrag") == [kennung]


def test_without_an_embedder_nothing_is_pending_and_nothing_asked(anna: Agent) -> None:
    kennung = anna.store()
    assert now(anna, kennung)["embedding_ausstehend"] is False
    assert "vektorsuche" not in search(anna, "Frist")["durchsucht"]
    with pytest.raises(CommandError):
        embed_pending()


def test_the_page_costs_one_statement_more_however_long_it_is(anna: Agent, there: Endpoint) -> None:
    for _ in range(20):
        anna.store()
    costs = []
    for limit in (1, 20):
        with CaptureQueriesContext(connection) as context:
            anna.call("select_brain_longterm_memory", limit=limit)
        costs.append(len(context.captured_queries))
    assert costs == [4, 4]  # with the key and the record of the call


# What a search says


def test_a_search_by_text_says_that_it_searched_by_vector_too(anna: Agent, there: Endpoint) -> None:
    anna.store(memory="Hund")
    anna.store(memory="Auto")
    embed_pending(limit=1)
    searched = search(anna, "Hund")["durchsucht"]
    assert searched["vektorsuche"] == "ausgefuehrt"
    assert searched["ausgelassen"]["ohne_vektor_dieses_profils"] == 1
    assert "vektorsuche" not in search(anna, "Hund", embedding=[1], embedding_profil_hash="p")["durchsucht"]


def test_an_embedder_that_is_down_leaves_the_search_by_text(anna: Agent, there: Endpoint) -> None:
    kennung = anna.store(memory="Hund")
    embed_pending()
    there.status = 503
    answer = search(anna, "Hund")
    assert [row["ID"] for row in answer["daten"]] == [kennung]
    assert answer["durchsucht"]["vektorsuche"] == "nicht verfuegbar"
    there.status = 200
    assert search(anna, "Hund")["durchsucht"]["vektorsuche"] == "ausgefuehrt"


@pytest.mark.parametrize("suche", ['"welpe"', "hund -welpe", "-hund", "???"])
def test_what_must_or_must_not_occur_is_a_matter_of_the_text(anna: Agent, there: Endpoint, suche: str) -> None:
    anna.store(kurzbeschreibung="Welpe", memory="Hund", tags=[])
    embed_pending()
    asked = len(there.asked)
    answer = search(anna, suche)
    assert "vektorsuche" not in answer["durchsucht"]
    assert len(there.asked) == asked


# Following the memory


def test_a_new_text_is_pending_again_and_new_tags_are_not(anna: Agent, there: Endpoint) -> None:
    kennung = anna.store(kurzbeschreibung="Tier", memory="Hund", tags=["alt"])
    embed_pending()
    (entry,) = entries(kennung)
    change(anna, kennung, kurzbeschreibung="Tier", memory="Hund", tags=["neu"])
    (after,) = entries(kennung)
    assert bytes(after.vektor) == bytes(entry.vektor)
    assert (after.pk, after.version) == (entry.pk, 2)
    assert now(anna, kennung)["embedding_ausstehend"] is False
    assert found(anna, "Welpe", tags=["neu"]) == [kennung]
    assert found(anna, "Welpe", tags=["alt"]) == []
    assert is_sound()

    change(anna, kennung, kurzbeschreibung="Tier", memory="Katze", tags=["neu"])
    assert entries(kennung) == []
    assert now(anna, kennung)["embedding_ausstehend"] is True
    assert found(anna, "Welpe") == []
    assert is_sound()
    embed_pending()
    assert now(anna, kennung)["embedding_ausstehend"] is False
    assert is_sound()


def test_a_batch_may_change_texts_and_tags(anna: Agent, there: Endpoint) -> None:
    ids = [anna.store(kurzbeschreibung="k", memory="Hund", tags=[]) for _ in range(4)]
    embed_pending()
    memories = [
        {"ID": kennung, "kurzbeschreibung": "k", "memory": "Frist" if place % 2 else "Hund", "tags": ["neu"]}
        for place, kennung in enumerate(ids)
    ]
    anna.call("update_brain_longterm_memory", memories=memories)
    assert [len(entries(kennung)) for kennung in ids] == [1, 0, 1, 0]
    assert is_sound()


def test_an_end_of_validity_that_moves_is_followed(anna: Agent, there: Endpoint) -> None:
    kennung = anna.call("insert_brain_memory", **BRAIN | {"titel": "Hund"})["daten"][0]["ID"]
    embed_pending()
    for end in ((timezone.now() + timedelta(days=3)).isoformat(), None):
        assert anna.call("update_brain_memory", ID=kennung, gueltig_bis=end)["erfolg"]
        (entry,) = entries(kennung)
        assert (entry.gueltig_bis is None) == (end is None)
        assert is_sound()


def test_what_was_known_then_is_found_by_the_vector_of_then(anna: Agent, there: Endpoint) -> None:
    kennung = anna.store(kurzbeschreibung="k", memory="Hund", tags=[])
    embed_pending()
    then = timezone.now()
    change(anna, kennung, kurzbeschreibung="k", memory="Auto", tags=[])
    embed_pending()
    assert found(anna, "Welpe", stand=then.isoformat()) == [kennung]
    assert anna.call("search_brain", suche="Welpe", stand=then.isoformat())["daten"][0]["memory"] == "Hund"
    assert PastEntry.objects.filter(teil__gte=DERIVED).count() == 1
    assert is_sound()


def test_a_deleted_memory_leaves_no_vector_and_comes_back_pending(anna: Agent, there: Endpoint) -> None:
    kennung = anna.store(memory="Hund")
    embed_pending()
    anna.call("delete_brain_longterm_memory", IDs=[kennung])
    assert entries(kennung) == []
    assert found(anna, "Welpe") == []
    restore(anna, kennung, 1)
    assert now(anna, kennung)["embedding_ausstehend"] is True
    embed_pending()
    assert found(anna, "Welpe") == [kennung]
    assert is_sound()


def test_a_promoted_memory_is_pending_under_its_new_id(anna: Agent, there: Endpoint) -> None:
    old = anna.call("insert_brain_shortterm_memory", memories=[note(memory="Hund")])["daten"][0]["ID"]
    embed_pending()
    new = anna.call("promote_brain_shortterm_memory", IDs=[old])["daten"][0]["ID"]
    assert entries(old) == []
    assert now(anna, new)["embedding_ausstehend"] is True


def test_expired_memories_wait_for_nothing(anna: Agent, there: Endpoint, settings: Any) -> None:
    past = (timezone.now() - timedelta(days=1)).isoformat()
    anna.call("insert_brain_shortterm_memory", memories=[note(memory="Hund", gueltig_bis=past)])
    assert list(derived.pending(derived.profile_of(by_name("http")))) == []


# Rights


def test_rights_hold_for_derived_vectors(anna: Agent, ben: Agent, carla: Agent, there: Endpoint) -> None:
    hers = anna.store(memory="Hund")
    other = carla.store(memory="Hund")
    embed_pending()
    assert found(anna, "Welpe") == [hers]
    assert found(ben, "Welpe") == [hers]
    assert found(carla, "Welpe") == [other]
    assert search(carla, "Welpe")["durchsucht"]["in_reichweite"] == 1


# Storing


def made(profile: EmbeddingProfile, kennung: str, text: str) -> Made:
    """A vector for a text that the memory has, or had."""
    key = int(kennung.partition("_")[2])
    return Made(LONGTERM, key, checksum(text), np.ones(profile.dimension, dtype=np.float32))


def test_a_vector_of_a_text_that_moved_on_is_dropped(anna: Agent, there: Endpoint) -> None:
    profile = derived.profile_of(by_name("http"))
    kennung = anna.store(kurzbeschreibung="k", memory="alt")
    change(anna, kennung, kurzbeschreibung="k", memory="neu")
    assert derived.store(profile, [made(profile, kennung, "k\nalt")]) == 0
    assert derived.store(profile, [made(profile, kennung, "k\nneu")]) == 1
    assert derived.store(profile, [made(profile, kennung, "k\nneu")]) == 1
    assert len(entries(kennung)) == 1
    assert PastEntry.objects.filter(teil__gte=DERIVED).count() == 0
    assert is_sound()


def test_of_a_profile_that_was_forgotten_nothing_is_stored(anna: Agent, there: Endpoint) -> None:
    profile = derived.profile_of(by_name("http"))
    kennung = anna.store(kurzbeschreibung="k", memory="alt")
    derived.forget(profile)
    assert derived.store(profile, [made(profile, kennung, "k\nalt")]) == 0
    assert entries(kennung) == []


def test_another_length_under_the_same_name_is_told(anna: Agent, there: Endpoint) -> None:
    model = by_name("http")
    EmbeddingProfile.objects.create(profil_hash=model.profil_hash, dimension=4, name=model.name)
    with pytest.raises(CommandError, match="no longer 4"):
        embed_pending()


# Upkeep


def test_a_check_sees_what_is_wrong_with_derived_entries_and_a_rebuild_mends_it(anna: Agent, there: Endpoint) -> None:
    ids = [anna.store(memory="Hund") for _ in range(3)]
    embed_pending()
    assert is_sound()
    first, second, third = (entries(kennung)[0] for kennung in ids)
    SearchEntry.objects.filter(pk=first.pk).update(geltung=first.geltung.replace(" n", " m"))
    SearchEntry.objects.filter(pk=second.pk).update(teil=DERIVED + 10**6)  # of no profile
    SearchEntry.objects.filter(pk=third.pk).update(vektor=b"\0" * 8)
    told = {deviation.where for deviation in upkeep.check(lambda _what, _number: None)}
    assert told == set(ids)
    upkeep.rebuild(lambda _what, _number: None)
    assert is_sound()
    assert [len(entries(kennung)) for kennung in ids] == [1, 0, 0]
    embed_pending()
    assert found(anna, "Welpe") == sorted(ids)


# The command


def test_a_limit_is_kept_and_the_rest_comes_next(anna: Agent, there: Endpoint) -> None:
    for _ in range(5):
        anna.store(memory="Hund")
    embed_pending(limit=2)
    assert SearchEntry.objects.filter(teil__gte=DERIVED).count() == 2
    embed_pending()
    assert SearchEntry.objects.filter(teil__gte=DERIVED).count() == 5
    asked = len(there.asked)
    embed_pending()
    assert len(there.asked) == asked


def test_a_text_that_is_refused_stops_none_of_the_others(anna: Agent, there: Endpoint) -> None:
    there.refuses = "Gift"
    ids = [anna.store(memory="Gift" if place == 3 else "Hund") for place in range(8)]
    told = embed_pending()
    assert [len(entries(kennung)) for kennung in ids] == [1, 1, 1, 0, 1, 1, 1, 1]
    assert "7" in told
    assert now(anna, ids[3])["embedding_ausstehend"] is True


def test_an_embedder_that_is_down_is_told(anna: Agent, there: Endpoint) -> None:
    derived.profile_of(by_name("http"))
    anna.store(memory="Hund")
    there.status = 503
    with pytest.raises(CommandError, match="503"):
        embed_pending()


@pytest.mark.django_db(transaction=True)
def test_a_killed_command_goes_on_where_it_was(anna: Agent, there: Endpoint) -> None:
    kept = [anna.store(memory=f"Hund {number}") for number in range(200)]
    environment = os.environ | {
        "BRAIN_EMBEDDER": "http",
        "BRAIN_EMBEDDER_URL": there.url,
        "BRAIN_EMBEDDER_MODEL": "bedeutung",
        "DATABASE_URL": url_of_this_database(),
    }
    asked = there.answer

    def slow(question: Any) -> tuple[int, bytes]:
        time.sleep(0.3)
        return asked(question)

    there.answer = slow  # type: ignore[method-assign]
    held = SearchEntry.objects.filter(teil__gte=DERIVED)
    with subprocess.Popen(
        [sys.executable, "manage.py", "embed_pending"], cwd=ROOT, env=environment, stdout=subprocess.PIPE
    ) as process:
        until = time.monotonic() + 60
        while not held.exists() and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    done = held.count()
    assert 0 < done < 200
    assert is_sound()
    there.answer = asked  # type: ignore[method-assign]
    before = len(there.asked)
    assert f"{200 - done} " in embed_pending()
    texts = [text for _path, question in there.asked[before:] for text in question["input"] if text != "Brain"]
    assert len(texts) == 200 - done
    assert [len(entries(kennung)) for kennung in kept] == [1] * 200
    assert is_sound()


def url_of_this_database() -> str:
    """The address of the tests' database."""
    told = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{told['NAME']}"
    return f"postgres://{told['USER']}:{told['PASSWORD']}@{told['HOST']}:{told['PORT']}/{told['NAME']}"


# The server's thread


@pytest.mark.django_db(transaction=True)
def test_the_worker_fills_in_what_comes_and_gets_over_faults(anna: Agent, there: Endpoint) -> None:
    worker = Worker(by_name("http"), every=0.05)
    worker.start()
    try:
        first = anna.store(memory="Hund")
        eventually(lambda: len(entries(first)) == 1)
        there.status = 503
        second = anna.store(memory="Frist")
        time.sleep(0.3)
        assert entries(second) == []
        there.status = 200
        eventually(lambda: len(entries(second)) == 1)
        change(anna, first, memory="Auto")
        eventually(lambda: len(entries(first)) == 1)
        assert found(anna, "Fahrzeug")[0] == first
    finally:
        worker.stop()
        worker.join(20)
    assert not worker.is_alive()


def eventually(condition: Any) -> None:
    """Wait until it holds."""
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


# Statements


@pytest.mark.parametrize(("texts", "more"), [(False, 1), (True, 2)], ids=["tags", "texts"])
def test_an_update_costs_few_statements_more_for_its_vectors(
    anna: Agent, there: Endpoint, texts: bool, more: int
) -> None:
    ids = [anna.store(kurzbeschreibung="k", memory="Hund", tags=[]) for _ in range(10)]
    embed_pending()
    memories = [
        {"ID": kennung, "kurzbeschreibung": "neu" if texts else "k", "memory": "Hund", "tags": [] if texts else ["x"]}
        for kennung in ids
    ]
    with CaptureQueriesContext(connection) as context:
        anna.call("update_brain_longterm_memory", memories=memories)
    of_index = [query["sql"] for query in context.captured_queries if "memories_searchentry" in query["sql"]]
    assert len(of_index) == 1 + more
