"""Merging memories: one lives on with what was chosen, the others go and point to it, and all can be taken back."""

from collections.abc import Callable
from typing import Any

import pytest

from memories import services
from memories.drift import deviations as drift
from memories.kinds import BRAIN, KINDS, LONGTERM, SHORTTERM, Kind
from memories.models import LongtermMemory, LongtermVersion
from memories.principal import SYSTEM, Action, Origin, Principal, Reach
from memories.services import Change, Done, Merge, merge, undo_merge, update
from tests.admincast import store
from tests.conftest import Agent
from tests.searching import deviations, found
from tests.trouble import together

pytestmark = pytest.mark.django_db
VECTOR = b"\0\0\x80?" * 4


def by(principal: Principal = SYSTEM, grund: str = "") -> Origin:
    """How a change by this principal comes about."""
    return Origin(principal, nutzer="anna", agent="", tuer="admin", tool="admin", grund=grund)


def wish(survivor: int, *others: int, kind: Kind = LONGTERM, **more: Any) -> Merge:
    """A merge of these as they are now."""
    versions = dict(kind.memories.objects.filter(pk__in=[survivor, *others]).values_list("pk", "version"))
    return Merge(survivor, versions, **more)


def three() -> list[int]:
    """The keys of three memories that say nearly the same."""
    return [
        store(kurzbeschreibung="Frist", memory="Drei Monate.", tag_namen=["Vertrag", "Büro"]),
        store(kurzbeschreibung="Kündigungsfrist", memory="Drei Monate zum Quartal.", tag_namen=["büro", "Frist"]),
        store(kurzbeschreibung="frist", memory="3 Monate", tag_namen=[], nutzer="ben"),
    ]


def live() -> list[tuple[Any, ...]]:
    """What all long-term memories hold, but for version and moment."""
    skipped = {"version", "aktualisiert_am"}
    names = [column.name for column in LongtermMemory._meta.concrete_fields if column.name not in skipped]  # noqa: SLF001
    return [
        tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
        for row in LongtermMemory.objects.order_by("pk").values_list(*names)
    ]


def consistent() -> bool:
    """Whether histories, tag links and the search index agree with the memories."""
    return not deviations() and not [each for kind in KINDS for each in drift(kind)]


def code(outcome: services.Outcome) -> str:
    """The fault's code; ok for none."""
    return getattr(outcome, "code", "ok")


def test_case_96_one_lives_on_with_the_chosen_values_and_all_tags_and_the_others_point_to_it() -> None:
    first, second, third = three()
    origin = by(grund="dreifach")
    done = merge(LONGTERM, wish(first, second, third, chosen={"memory": second, "nutzer": third}), origin)
    assert done == Done(LONGTERM, first, 2)
    memory = LongtermMemory.objects.get()
    assert (memory.kurzbeschreibung, memory.memory, memory.nutzer) == ("Frist", "Drei Monate zum Quartal.", "ben")
    assert memory.tag_namen == ["Vertrag", "Büro", "Frist"]
    written = LongtermVersion.objects.filter(aufruf=origin.aufruf).order_by("memory_id")
    assert [(v.memory_id, v.version, v.aktion, v.verweis, v.grund) for v in written] == [
        (first, 2, "zusammengefuehrt", f"longterm_{second}, longterm_{third}", "dreifach"),
        (second, 2, "aufgegangen", f"longterm_{first}", "dreifach"),
        (third, 2, "aufgegangen", f"longterm_{first}", "dreifach"),
    ]
    assert consistent()


def test_the_history_names_the_merge_and_a_search_finds_the_one_alone(anna: Agent) -> None:
    first, second, third = three()
    merge(LONGTERM, wish(first, second, third), by())
    assert found(anna, "Monate") == [f"longterm_{first}"]
    newest = anna.call("select_brain_history", ID=f"longterm_{second}")["daten"][0]
    assert (newest["aktion"], newest["verweis"]) == ("aufgegangen", f"longterm_{first}")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.typ)
def test_every_kind_can_be_merged_and_taken_back(kind: Kind) -> None:
    own = {"memory_typ": "arbeit", "titel": "T", "gueltig_bis": None} if kind is not LONGTERM else {}
    first, second = store(kind, **own), store(kind, **own, tag_namen=["b"])
    origin = by()
    assert code(merge(kind, wish(second, first, kind=kind), origin)) == "ok"
    assert kind.memories.objects.get().pk == second
    assert consistent()
    assert code(undo_merge(kind, origin.aufruf, by())) == "ok"
    assert {row.pk: row.tag_namen for row in kind.memories.objects.all()} == {first: ["Vertrag"], second: ["b"]}
    assert consistent()


def test_the_tags_of_one_memory_can_be_chosen() -> None:
    first, second, third = three()
    merge(LONGTERM, wish(first, second, third, tags_of=second), by())
    assert LongtermMemory.objects.get().tag_namen == ["Büro", "Frist"]


def test_the_survivor_gets_a_version_also_when_nothing_of_it_changes() -> None:
    first, second = store(), store()
    assert merge(LONGTERM, wish(first, second), by()) == Done(LONGTERM, first, 2)
    assert LongtermVersion.objects.filter(memory_id=first).count() == 2


def test_the_embedding_stays_fresh_with_the_survivors_own_text_and_goes_stale_with_another() -> None:
    for chosen, stale in (({}, False), ({"memory": 1}, True)):
        first = store(embedding=VECTOR, embedding_profil_hash="p")
        second = store(memory="anders", embedding=VECTOR, embedding_profil_hash="p")
        picked = dict.fromkeys(chosen, second)
        merge(LONGTERM, wish(first, second, chosen=picked), by())
        memory = LongtermMemory.objects.get(pk=first)
        assert (bytes(memory.embedding), memory.embedding_veraltet) == (VECTOR, stale)
    assert consistent()


def test_undoing_brings_all_back_as_they_were_with_a_history_of_its_own() -> None:
    first, second, third = three()
    update(LONGTERM, [Change(first, {"embedding": VECTOR, "embedding_profil_hash": "p"})], by())
    before = live()
    origin, back = by(), by(grund="doch nicht")
    merge(LONGTERM, wish(first, second, third, chosen={"memory": third}), origin)
    assert undo_merge(LONGTERM, origin.aufruf, back) == Done(LONGTERM, first, 4)
    assert live() == before
    written = LongtermVersion.objects.filter(aufruf=back.aufruf).order_by("memory_id")
    assert [(v.memory_id, v.version, v.aktion, v.verweis, v.grund) for v in written] == [
        (first, 4, "wiederhergestellt", f"longterm_{first} v2", "doch nicht"),
        (second, 3, "wiederhergestellt", f"longterm_{second} v2", "doch nicht"),
        (third, 3, "wiederhergestellt", f"longterm_{third} v2", "doch nicht"),
    ]
    assert consistent()
    assert code(undo_merge(LONGTERM, origin.aufruf, by())) == "konflikt"


@pytest.mark.parametrize("whose", ["the one that lived on", "one that went"])
def test_undoing_is_refused_when_a_memory_changed_since(whose: str) -> None:
    first, second, third = three()
    origin = by()
    merge(LONGTERM, wish(first, second, third), origin)
    if whose == "one that went":
        services.restore(LONGTERM, third, 1, by())
    else:
        update(LONGTERM, [Change(first, {"memory": "später"})], by())
    before, versions = live(), LongtermVersion.objects.count()
    fault = undo_merge(LONGTERM, origin.aufruf, by())
    assert code(fault) == "konflikt"
    assert f"longterm_{first if whose != 'one that went' else third}" in str(fault)
    assert (live(), LongtermVersion.objects.count()) == (before, versions)


def test_what_is_no_merge_cannot_be_undone() -> None:
    origin = by()
    key = store()
    services.delete(LONGTERM, [key], origin)
    for aufruf in (origin.aufruf, by().aufruf):
        assert code(undo_merge(LONGTERM, aufruf, by())) == "nicht_gefunden"
    assert code(undo_merge(BRAIN, origin.aufruf, by())) == "nicht_gefunden"


def test_a_memory_that_is_no_longer_as_it_was_seen_is_a_conflict_and_nothing_is_done() -> None:
    first, second, third = three()
    for key in (first, second):
        seen = wish(first, second, third)
        update(LONGTERM, [Change(key, {"memory": f"neu {key}"})], by())
        before = live()
        fault = merge(LONGTERM, seen, by())
        assert code(fault) == "konflikt"
        assert f"longterm_{key}" in str(fault)
        assert live() == before
    seen = wish(first, second, third)
    services.delete(LONGTERM, [third], by())
    assert code(merge(LONGTERM, seen, by())) == "nicht_gefunden"
    assert LongtermMemory.objects.count() == 2


def _one_senseless(change: Callable[[int, int], dict[str, Any]]) -> str:
    first, second = store(), store()
    whole: dict[str, Any] = {"survivor": first, "seen": {first: 1, second: 1}}
    return code(merge(LONGTERM, Merge(**whole | change(first, second)), by()))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda first, _second: {"seen": {first: 1}}, "zu_gross"),
        (lambda first, _second: {"seen": {first + number: 1 for number in range(21)}}, "zu_gross"),
        (lambda _first, second: {"survivor": second + 1}, "ungueltig"),
        (lambda _first, second: {"chosen": {"memory": second + 1}}, "ungueltig"),
        (lambda _first, second: {"chosen": {"erstellt_am": second}}, "ungueltig"),
        (lambda _first, second: {"chosen": {"embedding": second}}, "ungueltig"),
        (lambda _first, second: {"chosen": {"version": second}}, "ungueltig"),
        (lambda _first, second: {"tags_of": second + 1}, "ungueltig"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(change: Callable[[int, int], dict[str, Any]], expected: str) -> None:
    assert _one_senseless(change) == expected
    assert LongtermMemory.objects.count() == 2
    assert set(LongtermMemory.objects.values_list("version", flat=True)) == {1}


def test_more_tags_than_a_memory_may_carry_are_refused() -> None:
    first = store(tag_namen=[f"a{number}" for number in range(60)])
    second = store(tag_namen=[f"b{number}" for number in range(60)])
    assert code(merge(LONGTERM, wish(first, second), by())) == "zu_gross"
    assert code(merge(LONGTERM, wish(first, second, tags_of=second), by())) == "ok"


READ, WRITE, DELETE, RESTORE = Action.READ, Action.WRITE, Action.DELETE, Action.RESTORE


@pytest.mark.parametrize(
    ("reaches", "expected"),
    [
        ([({READ, WRITE}, "anna"), ({READ, DELETE}, "ben")], "ok"),
        ([({READ, WRITE, DELETE}, "anna")], "nicht_gefunden"),
        ([({READ, WRITE, DELETE}, "anna"), ({READ, WRITE}, "ben")], "nicht_erlaubt"),
        ([({READ, DELETE}, "anna"), ({READ, DELETE}, "ben")], "nicht_erlaubt"),
        ([], "nicht_gefunden"),
    ],
)
def test_the_survivor_must_be_changeable_and_the_others_deletable(
    reaches: list[tuple[set[Action], str]], expected: str
) -> None:
    first, second = store(nutzer="anna"), store(nutzer="ben")
    principal = Principal(
        reaches=tuple(Reach(actions=frozenset(actions), nutzer=frozenset({nutzer})) for actions, nutzer in reaches)
    )
    assert code(merge(LONGTERM, wish(first, second), by(principal))) == expected
    assert LongtermMemory.objects.count() == (1 if expected == "ok" else 2)


def test_the_result_must_lie_within_reach_and_undoing_needs_the_right_to_restore_all() -> None:
    first, second = store(nutzer="anna"), store(nutzer="ben")
    writer = Reach(actions=frozenset({READ, WRITE, RESTORE}), nutzer=frozenset({"anna"}))
    deleter = Reach(actions=frozenset({READ, DELETE}), nutzer=frozenset({"ben"}))
    limited = Principal(reaches=(writer, deleter))
    origin = by(limited)
    assert code(merge(LONGTERM, wish(first, second, chosen={"nutzer": second}), by(limited))) == "nicht_erlaubt"
    assert code(merge(LONGTERM, wish(first, second), origin)) == "ok"
    assert code(undo_merge(LONGTERM, origin.aufruf, by(limited))) == "nicht_gefunden"
    assert LongtermMemory.objects.count() == 1
    assert code(undo_merge(LONGTERM, origin.aufruf, by())) == "ok"


def test_an_expired_memory_comes_back_as_it_was() -> None:
    first = store(SHORTTERM, gueltig_bis=None)
    second = store(SHORTTERM, gueltig_bis=None)
    moment = SHORTTERM.versions.objects.get(memory_id=second).zeitpunkt
    update(SHORTTERM, [Change(second, {"gueltig_bis": moment})], by())
    origin = by()
    assert code(merge(SHORTTERM, wish(first, second, kind=SHORTTERM), origin)) == "ok"
    assert code(undo_merge(SHORTTERM, origin.aufruf, by())) == "ok"
    assert SHORTTERM.memories.objects.get(pk=second).gueltig_bis == moment


@pytest.mark.django_db(transaction=True)
def test_of_two_merges_of_the_same_memories_at_once_one_is_done() -> None:
    first, second = store(), store()
    ahead, back = wish(first, second), wish(second, first)
    outcomes = together([lambda: merge(LONGTERM, ahead, by()), lambda: merge(LONGTERM, back, by())])
    assert sorted(map(code, outcomes)) == ["nicht_gefunden", "ok"]
    assert LongtermMemory.objects.count() == 1
    assert consistent()


@pytest.mark.django_db(transaction=True)
def test_of_two_undoings_at_once_one_is_done() -> None:
    first, second, third = three()
    origin = by()
    merge(LONGTERM, wish(first, second, third), origin)
    outcomes = together([lambda: undo_merge(LONGTERM, origin.aufruf, by()) for _ in range(2)])
    assert sorted(map(code, outcomes)) == ["konflikt", "ok"]
    assert LongtermMemory.objects.count() == 3
    assert consistent()
