"""Nearest vectors: by whichever way they are looked for, they are those that comparing all of them gives."""

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection, transaction

from memories import services
from memories.filters import Filter
from memories.kinds import LONGTERM
from memories.models import LongtermMemory, SearchEntry, VectorBlock
from memories.principal import SYSTEM, Origin
from memories.search import Question, blocks, engine, pgvector, search, upkeep, vectors
from memories.search.reach import Bounds, groups
from memories.search.vectors import Profile, VectorQuery

ORIGIN = Origin(SYSTEM, nutzer="anna", agent="planer", tuer="test", tool="test")
SMALL, LARGE = Profile("klein", 8), Profile("gross", 12)
MANY = 10**6
# How many entries are read one by one, up to how many their keys are asked for; with pgvector up to how many the
# database compares one by one, and from how many on it has a graph.
WAYS = {
    "one by one": (MANY, MANY, 0, MANY),
    "by blocks, keys known": (0, MANY, 0, MANY),
    "by blocks, reach looked at": (0, 0, 0, MANY),
    "by the database": (0, 0, MANY, MANY),
    "by the database's graph": (0, 0, 0, 1),
}
OWNERS = ["anna", "ben", "carla"]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "BLOCK", 16)
    monkeypatch.setattr(vectors, "LOOSE", 5)
    monkeypatch.setattr(blocks, "KEPT", 3 * 16 * 8)
    monkeypatch.setattr(vectors, "_READ_AT_ONCE", 50)
    monkeypatch.setattr(vectors, "_WORTH_A_BLOCK", 0)
    monkeypatch.setattr(vectors, "_THIN", 0)


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def _way(db: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    always_exact, known_up_to, compared_up_to, indexed_from = request.param
    monkeypatch.setattr(vectors, "_ALWAYS_EXACT", always_exact)
    monkeypatch.setattr(vectors, "KNOWN_UP_TO", known_up_to)
    monkeypatch.setattr(pgvector, "COMPARED_UP_TO", compared_up_to)
    monkeypatch.setattr(pgvector, "INDEXED_FROM", indexed_from)
    if "database" in request.node.callspec.id and not pgvector.is_there():
        pytest.skip("the database does not compare vectors")


class World:
    """Memories that are stored, changed and deleted at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def vector(self, profile: Profile) -> bytes:
        """A vector of any length but 0."""
        drawn = self.numbers.standard_normal(profile.dimension) * self.random.uniform(0.01, 100)
        return bytes(drawn.astype("<f4").tobytes())

    def embedding(self) -> dict[str, Any]:
        """Mostly of the small profile, sometimes of the large one, sometimes none."""
        profile = self.random.choices([SMALL, LARGE, None], [8, 3, 1])[0]
        if profile is None:
            return {"embedding": None, "embedding_profil_hash": None}
        return {"embedding": self.vector(profile), "embedding_profil_hash": profile.profil_hash}

    def insert(self, number: int) -> None:
        """New memories; some have so much text that they have several entries."""
        drafts = [
            {
                "kurzbeschreibung": f"Frist {n}",
                "memory": "Kündigung " * (8_000 if n % 40 == 0 else 3),
                "tag_namen": self.random.sample(["rot", "blau", "gelb"], 2),
                "scope": "modul",
                "scope_vk": str(n % 4),
                "agent": "planer",
                "nutzer": self.random.choice(OWNERS),
                **self.embedding(),
            }
            for n in range(number)
        ]
        assert not [one for one in services.insert(LONGTERM, drafts, ORIGIN) if not isinstance(one, services.Done)]

    def change(self, number: int) -> None:
        """New vectors, other profiles, other owners, and texts that leave their vectors behind."""
        keys = self.random.sample(list(LongtermMemory.objects.values_list("pk", flat=True)), number)
        values: list[Callable[[], dict[str, Any]]] = [
            self.embedding,
            lambda: {"memory": f"neu {self.random.random()}"},
            lambda: {"nutzer": self.random.choice(OWNERS)},
        ]
        changes = [services.Change(key, self.random.choice(values)()) for key in keys]
        services.update(LONGTERM, changes, ORIGIN)

    def delete(self, number: int) -> None:
        """Some go."""
        keys = self.random.sample(list(LongtermMemory.objects.values_list("pk", flat=True)), number)
        services.delete(LONGTERM, keys, ORIGIN)

    def compare(self, only: Filter, *, most: int = 10, also_stale: bool = False) -> None:
        """What is found against what comparing all gives."""
        profile = self.random.choice([SMALL, LARGE])
        unit = vectors.unit(np.frombuffer(self.vector(profile), "<f4"))
        found = vectors.hits(VectorQuery(unit, profile, also_stale), Bounds(groups(SYSTEM, [LONGTERM], only)), most)
        rows = only.apply(LONGTERM, LongtermMemory.objects.all()).filter(
            embedding_profil_hash=profile.profil_hash, embedding__isnull=False
        )
        rows = rows if also_stale else rows.filter(embedding_veraltet=False)
        true = {
            row.pk: float(vectors.unit(np.frombuffer(bytes(row.embedding), "<f4")).astype(float) @ unit) for row in rows
        }
        assert len({hit.memory_id for hit in found}) == len(found) == min(most, len(true))
        assert [hit.cosine for hit in found] == pytest.approx(sorted(true.values(), reverse=True)[:most], abs=1e-5)
        assert [hit.cosine for hit in found] == pytest.approx([true[hit.memory_id] for hit in found], abs=1e-5)

    def filter(self) -> Filter:
        """Any filter that is told by tokens."""
        return self.random.choice(
            [
                Filter(),
                Filter(nutzer=self.random.choice(OWNERS)),
                Filter(scope_vk="1", tags=("rot",)),
                Filter(tags_eines=("rot", "gelb")),
                Filter(nutzer="niemand"),
            ]
        )


@pytest.mark.usefixtures("db", "_way")
@pytest.mark.parametrize("seed", range(3))
def test_what_is_found_is_what_comparing_all_gives(seed: int) -> None:
    world = World(seed)
    for _round in range(5):
        world.insert(60)
        world.change(25)
        world.delete(12)
        for _time in range(6):
            world.compare(world.filter(), also_stale=world.random.random() < 0.3)
        if world.random.random() < 0.5:
            upkeep.pack(lambda *_: None)
            world.compare(Filter())


@pytest.mark.django_db
def test_a_block_grows_with_what_comes_later_until_it_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgvector, "is_there", lambda: False)
    world = World(13)
    small = {"embedding_profil_hash": SMALL.profil_hash}
    monkeypatch.setattr(world, "embedding", lambda: {"embedding": world.vector(SMALL), **small})
    sizes = []
    for _time in range(4):
        world.insert(6)
        vectors.pack(SMALL, 1)
        sizes.append(sorted(block.size for block in VectorBlock.objects.all()))
        world.compare(Filter())
    assert sizes == [[6], [12], [6, 12], [12, 12]]
    world.insert(4)
    assert vectors.pack(SMALL, 1) == 0
    world.compare(Filter())


@pytest.mark.usefixtures("db", "_way")
def test_more_are_asked_for_than_there_are() -> None:
    world = World(7)
    world.insert(100)
    upkeep.pack(lambda *_: None)
    world.change(60)
    for only in (Filter(), Filter(nutzer="anna")):
        world.compare(only, most=1_000)


@pytest.mark.usefixtures("db", "_way")
def test_many_that_were_near_do_not_hide_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """All vectors in blocks have moved on; that they once were near must not end the search."""
    monkeypatch.setattr(vectors, "_MARGIN", 0)
    near, far, between = np.eye(3, 8, dtype="<f4")
    world = World(1)
    drafts = {
        "kurzbeschreibung": "k",
        "memory": "m",
        "tag_namen": [],
        "scope": "modul",
        "scope_vk": "",
        "agent": "planer",
        "nutzer": "anna",
        "embedding_profil_hash": "klein",
    }
    old = services.insert(LONGTERM, [drafts | {"embedding": near.tobytes()}] * 48, ORIGIN)
    services.insert(LONGTERM, [drafts | {"embedding": (near + 3 * between).tobytes()}] * 16, ORIGIN)
    upkeep.pack(lambda *_: None)
    changes = [services.Change(one.key, {"embedding": far.tobytes()}) for one in old if isinstance(one, services.Done)]
    services.update(LONGTERM, changes, ORIGIN)
    found = vectors.hits(VectorQuery(near, SMALL), Bounds(), 5)
    assert [hit.cosine for hit in found] == pytest.approx([10**-0.5] * 5)
    del world


@pytest.mark.usefixtures("db", "_way")
def test_a_block_of_a_transaction_that_was_undone_is_not_taken_for_its_successor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On SQLite the next block gets the number of the one that never came to be."""
    monkeypatch.setattr(vectors, "_MARGIN", 2)
    world = World(2)
    world.insert(48)
    with transaction.atomic():
        upkeep.pack(lambda *_: None)
        world.compare(Filter())
        transaction.set_rollback(True)
    world.change(48)
    upkeep.pack(lambda *_: None)
    for _time in range(5):
        world.compare(Filter(), most=3)


@pytest.mark.usefixtures("_way")
@pytest.mark.django_db(transaction=True)
def test_packing_and_writing_at_once_lose_nothing() -> None:
    world = World(11)
    world.insert(200)
    faults: list[Exception] = []

    def beside(what: Callable[[], Any]) -> threading.Thread:
        def work() -> None:
            try:
                for _time in range(5):
                    what()
            except Exception as fault:  # noqa: BLE001 - shown by the test
                faults.append(fault)
            finally:
                connection.close()

        return threading.Thread(target=work)

    threads = [
        beside(lambda: vectors.pack(SMALL, 3)),
        beside(lambda: vectors.pack(SMALL, 3)),
        beside(lambda: upkeep.pack(lambda *_: None)),
        beside(lambda: World(12).change(20)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    for _time in range(5):
        world.compare(world.filter())
    held = SearchEntry.objects.exclude(block=None).values_list("block", "pk")
    there = {block.pk: set(np.frombuffer(bytes(block.eintraege), "<i8")) for block in VectorBlock.objects.all()}
    assert all(key in there[block] for block, key in held)


@pytest.fixture
def searched_by() -> Iterator[list[str]]:
    """The statements that run meanwhile."""
    seen: list[str] = []

    def watch(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(watch):
        yield seen


@pytest.mark.django_db
def test_few_in_reach_are_read_without_looking_through_blocks(searched_by: list[str]) -> None:
    world = World(5)
    world.insert(100)
    upkeep.pack(lambda *_: None)
    searched_by.clear()
    world.compare(Filter(nutzer="anna"))
    assert not [sql for sql in searched_by if "codes" in sql]


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="pgvector belongs to PostgreSQL")
def test_a_large_profile_gets_a_graph_that_searches_use(
    searched_by: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not pgvector.is_there():
        pytest.skip("the server has no pgvector")
    monkeypatch.setattr(pgvector, "INDEXED_FROM", 50)
    monkeypatch.setattr(pgvector, "COMPARED_UP_TO", 10)
    world = World(3)
    world.insert(200)
    try:
        upkeep.pack(lambda *_: None)
        assert pgvector.has_graph("klein", 8)
        assert not VectorBlock.objects.filter(profil_hash="klein").exists()
        with connection.cursor() as cursor:
            cursor.execute("SHOW enable_sort")
            assert cursor.fetchone() == ("on",)
        searched_by.clear()
        for only in (Filter(), Filter(nutzer="anna"), Filter(scope_vk="1", tags=("rot",))):
            world.compare(only)
        assert [sql for sql in searched_by if "<=>" in sql]
        world.change(80)
        world.delete(40)
        for _time in range(10):
            world.compare(world.filter())
    finally:
        with connection.cursor() as cursor:
            for profile in (SMALL, LARGE):
                cursor.execute(f"DROP INDEX IF EXISTS {pgvector._name(profile.profil_hash, profile.dimension)}")  # noqa: SLF001


@pytest.mark.django_db(transaction=True)
def test_vectors_from_before_the_column_are_in_it() -> None:
    if not pgvector.is_there():
        pytest.skip("the database does not compare vectors")
    World(9).insert(30)
    sql = "SELECT id, naehe::text FROM memories_searchentry ORDER BY id"
    before = engine.rows(sql)
    call_command("migrate", "memories", "0006", verbosity=0)
    call_command("migrate", "memories", verbosity=0)
    assert engine.rows(sql) == before
    assert any(written for _key, written in before)


@pytest.mark.django_db
def test_what_is_farther_than_a_right_angle_is_still_in_order() -> None:
    World(4).insert(30)
    query = -vectors.unit(
        np.frombuffer(bytes(LongtermMemory.objects.filter(embedding_dimension=8)[0].embedding), "<f4")
    )
    found = search(Question(vector=VectorQuery(query, SMALL, also_stale=True), limit=100), SYSTEM).found
    cosines = [each.vector.cosine for each in found if each.vector]
    assert len(cosines) > 10
    assert min(cosines) == pytest.approx(-1)
    assert cosines == sorted(cosines, reverse=True)
