"""Embedding profiles, those of callers and those derived here: how many vectors are fresh, stale, missing."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, OuterRef
from django.utils import timezone

from memories.kinds import KINDS, Kind
from memories.models import EmbeddingProfile, SearchEntry
from memories.models.queries import MemoryQuerySet
from memories.principal import Principal
from memories.search.embedder import serving
from memories.search.index import DERIVED

Key = tuple[str, int]  # hash, numbers


@dataclass(frozen=True, slots=True)
class ProfileState:
    """A profile and the memories: those with a fresh vector, with a stale one alone, without any."""

    profil_hash: str
    dimension: int
    name: str
    made_at: datetime | None
    fresh: int
    stale: int
    without: int
    serves: bool


def states(principal: Principal) -> list[ProfileState]:
    """All profiles, for the valid memories in sight. As many statements for many profiles as for one."""
    known = {(row.profil_hash, row.dimension): row for row in EmbeddingProfile.objects.all()}
    fresh, stale = Counter[Key](), Counter[Key]()
    total = 0
    for kind in KINDS:
        fresh.update(_derived(kind, principal))
        total += _count(kind, principal, fresh, stale)
    embedder = serving() if settings.BRAIN_EMBEDDER else None
    found = [
        ProfileState(
            profil_hash,
            dimension,
            known[key].name if key in known else "",
            known[key].made_at if key in known else None,
            fresh[key],
            stale[key],
            total - fresh[key] - stale[key],
            embedder is not None and embedder.profil_hash == profil_hash,
        )
        for key in {*known, *fresh, *stale}
        for profil_hash, dimension in [key]
    ]
    return sorted(found, key=lambda state: (not state.serves, -state.fresh, state.profil_hash, state.dimension))


def _derived(kind: Kind, principal: Principal) -> Counter[Key]:
    seen = _seen(kind, principal).filter(pk=OuterRef("memory_id"))
    rows = SearchEntry.objects.filter(Exists(seen), typ=kind.typ, teil__gte=DERIVED)
    counted = rows.order_by().values_list("profil_hash", "dimension").annotate(n=Count("pk"))
    return Counter({(profil_hash, dimension): n for profil_hash, dimension, n in counted})


def _seen(kind: Kind, principal: Principal) -> MemoryQuerySet[Any]:
    rows: MemoryQuerySet[Any] = kind.memories.objects.visible_to(principal).current(timezone.now())
    return rows.filter(vorgeschlagen=False)  # until it is approved, nothing is embedded


def _count(kind: Kind, principal: Principal, fresh: Counter[Key], stale: Counter[Key]) -> int:
    """Add the memories' own vectors, where none was derived beside; returns how many memories there are."""
    derived = SearchEntry.objects.filter(
        typ=kind.typ, memory_id=OuterRef("pk"), teil__gte=DERIVED, profil_hash=OuterRef("embedding_profil_hash")
    )
    rows = _seen(kind, principal).order_by().annotate(beside=Exists(derived))
    columns = ("embedding_profil_hash", "embedding_dimension", "embedding_veraltet", "beside")
    total = 0
    for profil_hash, dimension, veraltet, beside, n in rows.values_list(*columns).annotate(n=Count("pk")):
        total += n
        if profil_hash is not None and dimension is not None and not beside:
            (stale if veraltet else fresh)[profil_hash, dimension] += n
    return total
