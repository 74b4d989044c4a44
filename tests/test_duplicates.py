"""Near-duplicates: pairs that are found and listed as hints, and nothing else happens to them. Cases 71 and 97."""

from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memories import duplicates, services
from memories.kinds import BRAIN, LONGTERM, SHORTTERM
from memories.models import DuplicatePair, EmbeddingProfile, Grant, LongtermMemory, LongtermVersion
from memories.search import derived
from memories.search.derived import Made
from memories.services import Change
from tests.admincast import NOTE, messages, person, store, url
from tests.test_merging import by

pytestmark = pytest.mark.django_db
LIST = "/admin/memories/duplicatepair/"


def find(vectors: int = 1_000) -> list[tuple[int, int, str]]:
    """The pairs after a run of the command."""
    call_command("find_duplicates", "--vectors", str(vectors), stdout=StringIO())
    return pairs()


def pairs() -> list[tuple[int, int, str]]:
    """The pairs that are listed, in whose memories nothing changed since."""
    found = DuplicatePair.objects.exclude(pk__in=DuplicatePair.objects.outdated()).filter(abgelehnt=False)
    return list(found.order_by("first_id", "second_id").values_list("first_id", "second_id", "art"))


def vector(angle: float) -> dict[str, Any]:
    """The columns of an embedding at this angle to the first axis, in degrees."""
    numbers = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle)), 0, 0], dtype="<f4")
    return {"embedding": numbers.tobytes(), "embedding_profil_hash": "p"}


def change(key: int, **values: Any) -> None:
    """Change a long-term memory."""
    services.update(LONGTERM, [Change(key, values)], by())


def test_the_same_text_is_found_case_accents_umlauts_and_blanks_aside() -> None:
    first = store(kurzbeschreibung="Kündigung", memory="Die Straße  ist\nlang.")
    second = store(kurzbeschreibung="KUENDIGUNG", memory="die strasse ist lang. ")
    store(kurzbeschreibung="Kündigung", memory="Die Straße ist kurz.")
    store(SHORTTERM, kurzbeschreibung="Kündigung", memory="Die Straße ist lang.", gueltig_bis=None)
    assert find() == [(first, second, "text")]


def test_case_97_numbers_make_another_text_and_nothing_is_merged_or_refused() -> None:
    store(memory="Rechnung 4711: 120 Euro offen")
    store(memory="Rechnung 4712: 120 Euro offen")
    same = [store(memory="Rechnung 4713: 120 Euro offen") for _ in range(2)]
    versions = LongtermVersion.objects.count()
    assert find() == [(*same, "text")]
    assert (LongtermMemory.objects.count(), LongtermVersion.objects.count()) == (4, versions)


def test_the_text_of_a_brain_memory_is_all_of_its_texts() -> None:
    own = {"memory_typ": "arbeit", "titel": "T", "gueltig_bis": None}
    first, second = (store(BRAIN, **own, inhalt="a", inhalt_json="{}") for _ in range(2))
    store(BRAIN, **own, inhalt="a", inhalt_json="[]")
    assert find() == [(first, second, "text")]


def test_close_vectors_of_one_profile_are_found_and_others_are_not() -> None:
    first = store(memory="a", **vector(0))
    second = store(memory="b", **vector(15))  # cosine 0.966
    store(memory="c", **vector(50))
    store(memory="d", **vector(0) | {"embedding_profil_hash": "q"})
    stale = store(memory="e", **vector(5))
    change(stale, memory="f")
    assert find() == [(first, second, "vektor")]
    assert DuplicatePair.objects.get().cosinus == pytest.approx(np.cos(np.radians(15)), abs=1e-4)


def test_the_setting_says_how_close(settings: Any) -> None:
    settings.BRAIN_DUPLICATE_PERCENT = 97
    store(memory="a", **vector(0))
    store(memory="b", **vector(15))
    assert find() == []


def test_vectors_that_were_derived_later_are_compared_in_a_later_run() -> None:
    first, second = store(memory="a"), store(memory="b")
    assert find() == []
    profile = EmbeddingProfile.objects.create(profil_hash="p", dimension=2, name="n")
    waiting = {each.key: each.pruefsumme for each in derived.pending(profile)}
    made = [Made(LONGTERM, key, waiting[key], np.ones(2, dtype="<f4")) for key in (first, second)]
    assert derived.store(profile, made) == 2
    assert find() == [(first, second, "vektor")]


def test_vectors_that_one_run_does_not_come_to_are_compared_in_the_next() -> None:
    keys = [store(memory=f"m{number}", **vector(90 * number)) for number in range(3)]
    twins = [store(memory=f"n{number}", **vector(90 * number)) for number in range(3)]
    for _run in range(6):
        find(vectors=1)
    assert pairs() == [(one, other, "vektor") for one, other in zip(keys, twins, strict=True)]


def test_a_pair_goes_at_once_when_one_of_its_memories_changes_or_goes_and_comes_when_it_is_so_again() -> None:
    anna = person("anna", superuser=True)
    first, second = store(memory="a"), store(memory="a")
    assert find() == [(first, second, "text")]
    change(second, memory="b")
    assert pairs() == []
    assert f"longterm_{second}" not in anna.get(LIST).content.decode()
    assert find() == []
    change(second, memory="A")
    assert find() == [(first, second, "text")]
    services.delete(LONGTERM, [first], by())
    assert pairs() == []
    assert find() == []
    assert DuplicatePair.objects.count() == 0


def test_a_second_run_reads_only_what_changed() -> None:
    services.insert(LONGTERM, [NOTE | {"memory": f"m{number}"} for number in range(60)], by())
    services.insert(LONGTERM, [NOTE | {"memory": f"M{number}"} for number in range(30)], by())
    assert len(find()) == 30
    with CaptureQueriesContext(connection) as queries:
        assert duplicates.find(100) == 0
    assert len(queries) <= 15
    store(memory="m1")
    assert duplicates.find(100) == 1


def test_of_very_many_the_same_each_is_paired_with_a_few() -> None:
    services.insert(LONGTERM, [NOTE] * 40, by())
    found = find()
    assert 39 <= len(found) <= 40 * 6
    assert {key for one, other, _art in found for key in (one, other)} == set(
        LongtermMemory.objects.values_list("pk", flat=True)
    )


def test_what_is_no_duplicate_stays_away_and_can_be_brought_back() -> None:
    anna = person("anna", superuser=True)
    first, second = store(memory="a"), store(memory="a")
    find()
    sent = {"_selected_action": [DuplicatePair.objects.get().pk], "index": "0"}
    told = anna.post(LIST, sent | {"action": "dismiss"}, follow=True)
    assert "1 pair is no duplicate" in messages(told)
    assert "Side by side" not in told.content.decode()
    change(second, kurzbeschreibung="neu")
    change(first, kurzbeschreibung="neu")
    assert find() == []
    page = anna.get(f"{LIST}?abgelehnt=ja").content.decode()
    assert "Side by side" in page
    anna.post(f"{LIST}?abgelehnt=ja", sent | {"action": "bring_back"})
    assert pairs() == [(first, second, "text")]


def test_a_pair_leads_to_merging_and_the_list_narrows_to_a_kind() -> None:
    anna = person("anna", superuser=True)
    first, second = store(memory="a"), store(memory="a", kurzbeschreibung="FRIST")
    find()
    assert "FRIST" in anna.get(LIST).content.decode()
    address = f"{url('merge')}?id={first}&id={second}"
    assert address.replace("&", "&amp;") in anna.get(f"{LIST}?typ=longterm").content.decode()
    assert anna.get(address).status_code == 200
    assert "Side by side" not in anna.get(f"{LIST}?typ=brain").content.decode()


def test_case_71_a_pair_is_seen_by_those_alone_who_see_both_memories() -> None:
    first, second = store(memory="a"), store(memory="a", nutzer="ben")
    find()
    assert DuplicatePair.objects.count() == 1
    for nutzer, seen in ((["anna"], False), (["ben"], False), (["anna", "ben"], True)):
        client: Client = person("-".join(nutzer), ["view_longtermmemory", "view_duplicatepair"])
        Grant.objects.filter(user__username="-".join(nutzer)).update(nutzer=nutzer)
        page = client.get(LIST).content.decode()
        assert (f"longterm_{first}" in page) is (f"longterm_{second}" in page) is seen
        assert 'name="action"' not in page
        assert url("merge") not in page


def test_the_page_costs_the_same_for_many_pairs_as_for_few() -> None:
    anna = person("anna", superuser=True)
    counts = []
    for number in (3, 40):
        services.insert(LONGTERM, [NOTE | {"memory": f"{number}"}] * number, by())
        find()
        anna.get(LIST)
        with CaptureQueriesContext(connection) as queries:
            assert anna.get(LIST).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 12
