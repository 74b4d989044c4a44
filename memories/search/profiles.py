"""Embedding profiles, those of callers and those derived here: how many vectors are fresh, stale, missing."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone

from memories.kinds import KINDS, Kind
from memories.models import EmbeddingProfile, SearchEntry
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


def states(typen: Iterable[str]) -> list[ProfileState]:
    """All profiles, for the valid memories of these kinds. As many statements for many profiles as for one."""
    kinds = [kind for kind in KINDS if kind.typ in set(typen)]
    known = {(row.profil_hash, row.dimension): row for row in EmbeddingProfile.objects.all()}
    fresh, stale = _derived(kinds), Counter[Key]()
    total = 0
    for kind in kinds:
        total += _count(kind, fresh, stale)
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


def _derived(kinds: list[Kind]) -> Counter[Key]:
    rows = SearchEntry.objects.filter(
        Q(gueltig_bis__isnull=True) | Q(gueltig_bis__gte=timezone.now()),
        typ__in=[kind.typ for kind in kinds],
        teil__gte=DERIVED,
    )
    counted = rows.order_by().values_list("profil_hash", "dimension").annotate(n=Count("pk"))
    return Counter({(profil_hash, dimension): n for profil_hash, dimension, n in counted})


def _count(kind: Kind, fresh: Counter[Key], stale: Counter[Key]) -> int:
    """Add the memories' own vectors, where none was derived beside; returns how many memories there are."""
    derived = SearchEntry.objects.filter(
        typ=kind.typ, memory_id=OuterRef("pk"), teil__gte=DERIVED, profil_hash=OuterRef("embedding_profil_hash")
    )
    rows = kind.memories.objects.current(timezone.now()).order_by().annotate(beside=Exists(derived))
    columns = ("embedding_profil_hash", "embedding_dimension", "embedding_veraltet", "beside")
    total = 0
    for profil_hash, dimension, veraltet, beside, n in rows.values_list(*columns).annotate(n=Count("pk")):
        total += n
        if profil_hash is not None and dimension is not None and not beside:
            (stale if veraltet else fresh)[profil_hash, dimension] += n
    return total
