"""Tags as a whole: renamed, merged and removed, with a version for each memory that changes. Case 101."""

import threading
from collections.abc import Callable
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from memories import services, tagging
from memories.errors import BrainError, Conflict, Invalid, NotAllowed, NotFound
from memories.kinds import BRAIN, KINDS, LONGTERM, SHORTTERM
from memories.models import LongtermMemory, LongtermVersion, Tag
from memories.principal import Principal, Reach
from memories.services import Change
from tests.admincast import NOTE, store
from tests.conftest import Agent
from tests.searching import found
from tests.test_merging import by, consistent
from tests.trouble import at_commit, beside, postgresql_only, together, wait_until_somebody_waits

pytestmark = pytest.mark.django_db
OF_ANNA = Principal(reaches=(Reach(nutzer=frozenset({"anna"})),), user_name="anna")


def key_of(name: str) -> int:
    """The tag's key."""
    return int(Tag.objects.get(name=name).pk)


def tags(key: int) -> list[str]:
    """The tags of a long-term memory."""
    names: list[str] = LongtermMemory.objects.get(pk=key).tag_namen
    return names


def names() -> list[str]:
    """All tags."""
    return list(Tag.objects.order_by("schluessel").values_list("name", flat=True))


def test_a_new_name_reaches_every_kind_with_a_version_and_a_reason_for_each() -> None:
    own = {"memory_typ": "arbeit", "titel": "T", "gueltig_bis": None}
    keys = [store(kind, tag_namen=["a", "Frist", "b"], **own) for kind in (LONGTERM, SHORTTERM, BRAIN)]
    untouched = store(tag_namen=["a"])
    seen: list[int] = []
    done = tagging.rename(key_of("Frist"), "Termin", by(grund="üblicher Name"), seen.append)
    assert done == tagging.Retagged("Termin", 3)
    assert seen == [1, 2, 3]
    for kind, key in zip(KINDS, keys, strict=True):
        memory = kind.memories.objects.get(pk=key)
        assert (memory.tag_namen, memory.version) == (["a", "Termin", "b"], 2)
        version = kind.versions.objects.get(memory_id=key, version=2)
        assert (version.aktion, version.grund, version.tag_namen) == ("geaendert", "üblicher Name", memory.tag_namen)
    assert LongtermMemory.objects.get(pk=untouched).version == 1
    assert names() == ["a", "b", "Termin"]
    assert consistent()


def test_a_new_spelling_is_one_for_all(anna: Agent) -> None:
    keys = [store(tag_namen=["ny-seg"]), store(tag_namen=["x", "NY-Seg"])]
    assert tagging.rename(key_of("ny-seg"), "NY-SEG", by()) == tagging.Retagged("NY-SEG", 2)
    assert [tags(key) for key in keys] == [["NY-SEG"], ["x", "NY-SEG"]]
    assert tags(store(tag_namen=["ny-seg"])) == ["NY-SEG"]
    assert tagging.rename(key_of("NY-SEG"), "NY-SEG", by()) == tagging.Retagged("NY-SEG", 0)
    assert LongtermVersion.objects.filter(memory_id=keys[0]).count() == 2
    assert consistent()


def test_an_embedding_stays_fresh_and_a_search_finds_the_new_name(anna: Agent) -> None:
    key = store(tag_namen=["Frist"], embedding=b"\0\0\x80?" * 4, embedding_profil_hash="p", memory="m")
    tagging.rename(key_of("Frist"), "Termin", by())
    assert LongtermMemory.objects.get(pk=key).embedding_veraltet is False
    assert found(anna, tags=["Termin"], embedding=[1.0] * 4, embedding_profil_hash="p") == [f"longterm_{key}"]
    assert found(anna, tags=["Frist"], embedding=[1.0] * 4, embedding_profil_hash="p") == []


def test_case_101_an_existing_name_is_refused_and_merging_moves_all_memories() -> None:
    first, second = store(tag_namen=["ny-seg", "x"]), store(tag_namen=["x", "NYSEG", "ny-seg"])
    with pytest.raises(Conflict):
        tagging.rename(key_of("ny-seg"), "nyseg", by())
    done = tagging.merge([key_of("ny-seg"), key_of("NYSEG")], key_of("NYSEG"), by())
    assert done == tagging.Retagged("NYSEG", 2)
    assert [tags(first), tags(second)] == [["NYSEG", "x"], ["x", "NYSEG"]]
    assert names() == ["NYSEG", "x"]
    assert set(LongtermVersion.objects.values_list("memory_id", "version")) == {
        (first, 1),
        (first, 2),
        (second, 1),
        (second, 2),
    }
    assert consistent()


def test_several_tags_are_merged_into_one() -> None:
    keys = [store(tag_namen=[name]) for name in ("a", "b", "c")]
    assert tagging.merge([key_of("a"), key_of("b")], key_of("c"), by()).changed == 2
    assert [tags(key) for key in keys] == [["c"]] * 3
    assert names() == ["c"]


def test_what_is_out_of_reach_keeps_the_old_tag_and_that_is_told() -> None:
    mine, his = store(tag_namen=["Frist"]), store(tag_namen=["Frist"], nutzer="ben")
    done = tagging.rename(key_of("Frist"), "Termin", by(OF_ANNA))
    assert done == tagging.Retagged("Termin", 1, left=True)
    assert [tags(mine), tags(his)] == [["Termin"], ["Frist"]]
    assert names() == ["Frist", "Termin"]
    assert tagging.merge([key_of("Termin")], key_of("Frist"), by(OF_ANNA)) == tagging.Retagged("Frist", 1)
    assert consistent()


def test_a_spelling_is_refused_when_a_memory_out_of_reach_carries_the_tag() -> None:
    key = store(tag_namen=["Frist"])
    store(tag_namen=["Frist"], nutzer="ben")
    with pytest.raises(NotAllowed):
        tagging.rename(key_of("Frist"), "FRIST", by(OF_ANNA))
    assert (tags(key), names()) == (["Frist"], ["Frist"])


def test_what_makes_no_sense_is_refused() -> None:
    store(tag_namen=["Frist"])
    for name in ("", " ", "a\0b", "x" * 101):
        with pytest.raises(BrainError):
            tagging.rename(key_of("Frist"), name, by())
    with pytest.raises(Invalid):
        tagging.rename(key_of("Frist"), "\u200b", by())
    for work in (lambda: tagging.rename(0, "x", by()), lambda: tagging.merge([0], key_of("Frist"), by())):
        with pytest.raises(NotFound):
            work()
    assert names() == ["Frist"]


def test_more_than_a_batch_is_changed_step_by_step() -> None:
    drafts = [NOTE | {"tag_namen": ["viel"]} for _ in range(230)]
    services.insert(LONGTERM, drafts, by())
    seen: list[int] = []
    assert tagging.rename(key_of("viel"), "mehr", by(), seen.append).changed == 230
    assert seen == [100, 200, 230]
    assert consistent()


def test_tags_that_no_memory_carries_are_removed_and_no_others() -> None:
    key = store(tag_namen=["a", "b"])
    services.update(LONGTERM, [Change(key, {"tag_namen": ["b"]})], by())
    gone = store(tag_namen=["c"])
    services.delete(LONGTERM, [gone], by())
    assert [tag.name for tag in tagging.unused().order_by("schluessel")] == ["a", "c"]
    assert tagging.remove_unused() == 2
    assert names() == ["b"]
    services.restore(LONGTERM, gone, 1, by())
    assert (tags(gone), names()) == (["c"], ["b", "c"])
    assert consistent()


def test_the_command_renames_merges_and_removes_with_progress() -> None:
    key = store(tag_namen=["a", "b"])
    for arguments in (["--rename", "a", "c"], ["--merge", "b", "C"], ["--remove-unused"]):
        out = StringIO()
        call_command("tags", *arguments, stdout=out)
        assert out.getvalue()
    assert (tags(key), names()) == (["c"], ["c"])
    assert LongtermVersion.objects.get(memory_id=key, version=3).tuer == "command"


@pytest.mark.parametrize(
    ("reason", "told"), [("x" * 1_001, "1000"), ("a\0", "NUL"), ("password AKIAIOSFODNN7EXAMPLQ", "AWS")]
)
def test_the_commands_reason_is_one_that_an_agent_could_give(reason: str, told: str) -> None:
    key = store(tag_namen=["a"])
    with pytest.raises(CommandError, match=told):
        call_command("tags", "--rename", "a", "b", "--reason", reason)
    assert (tags(key), names()) == (["a"], ["a"])


def test_the_command_knows_a_tag_by_any_spelling() -> None:
    key = store(tag_namen=["Zürich See"])
    call_command("tags", "--rename", "  zu\u0308rich  SEE ", "Bern", stdout=StringIO())
    assert tags(key) == ["Bern"]


# While others write, with a connection of their own


@postgresql_only
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["FRIST", "Termin"])
def test_a_memory_that_is_just_being_stored_with_a_tag_follows_when_it_is_renamed(name: str) -> None:
    store(tag_namen=["Frist"])
    key, ready = key_of("Frist"), threading.Event()

    def rename() -> tagging.Retagged:
        ready.wait(20)
        return tagging.rename(key, name, by())

    def begin() -> None:
        ready.set()
        wait_until_somebody_waits()

    with beside(rename) as renaming:
        with at_commit(before=begin):
            later = store(tag_namen=["frist"])
        assert renaming.result(20) == tagging.Retagged(name, 2)
    assert tags(later) == [name]
    assert names() == [name]
    assert consistent()


@postgresql_only
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("work", "spelled"),
    [
        (lambda: tagging.rename(key_of("Frist"), "FRIST", by()), "FRIST"),
        (tagging.remove_unused, "frist"),
    ],
    ids=["respelled", "removed"],
)
def test_whoever_stores_a_memory_with_a_tag_that_is_just_being_changed_waits(
    work: Callable[[], object], spelled: str
) -> None:
    services.delete(LONGTERM, [store(tag_namen=["Frist"])], by())
    ready = threading.Event()

    def later() -> int:
        ready.wait(20)
        return store(tag_namen=["frist"])

    def begin() -> None:
        ready.set()
        wait_until_somebody_waits()

    with beside(later) as storing:
        with at_commit(before=begin):
            work()
        assert tags(storing.result(20)) == [spelled]
    assert names() == [spelled]
    assert consistent()


@pytest.mark.django_db(transaction=True)
def test_tags_renamed_to_and_fro_while_others_store_memories_leave_everything_consistent() -> None:
    store(tag_namen=["a"])

    def write() -> list[int]:
        return [store(tag_namen=["a", "b"]) for _ in range(8)]

    def rename() -> None:
        for old, new in (("a", "b"), ("b", "a")) * 2:
            tagging.merge([tag.pk for tag in Tag.objects.filter(name=old)], store_tag(new), by())
            tagging.remove_unused()

    together([write, write, rename])
    assert LongtermMemory.objects.count() > 16
    assert consistent()


def store_tag(name: str) -> int:
    """The key of a tag of this name that some memory carries."""
    store(tag_namen=[name])
    return key_of(name)
