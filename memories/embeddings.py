"""Vectors beside a memory: what changes with them, and that one profile hash never holds two dimensions."""

from collections.abc import Iterable, Sequence

from django.db.models import Q
from django.utils.translation import gettext as _

from memories.errors import Invalid
from memories.kinds import Kind
from memories.models import Memory
from memories.principal import Principal

_BYTES_A_NUMBER = 4


def put_embedding(memory: Memory, packed: bytes | None) -> None:
    """Give the memory this vector, which is fresh, or take its vector away."""
    memory.embedding = packed
    memory.embedding_dimension = len(packed) // _BYTES_A_NUMBER if packed is not None else None
    memory.embedding_veraltet = False


class ProfileGuard:
    """Refuses a vector whose length differs from those that memories in sight have under the same profile hash.

    A profile hash names a model, so its vectors have one length; another one is a mistake of the caller. Only
    memories of the same kind that the caller may see count: neither a hint at the others nor a way to block them. What
    is proposed counts for nobody until it is approved.
    """

    def __init__(
        self, kind: Kind, memories: Iterable[Memory], principal: Principal, *, apart_from: Sequence[int]
    ) -> None:
        """`apart_from` are the memories being changed, which do not speak against themselves. One statement."""
        pairs = {profile for profile in map(_profile, memories) if profile}
        self._expected: dict[str, int] = {}
        if not pairs:
            return
        other = Q()
        for profil_hash, dimension in pairs:
            # Two ranges of the index, empty as a rule; "not equal" would read all vectors of the profile.
            other |= Q(embedding_profil_hash=profil_hash, embedding_dimension__lt=dimension)
            other |= Q(embedding_profil_hash=profil_hash, embedding_dimension__gt=dimension)
        found = kind.memories.objects.visible_to(principal).filter(other, vorgeschlagen=False)
        found = found.exclude(pk__in=apart_from) if apart_from else found
        self._expected.update(found.values_list("embedding_profil_hash", "embedding_dimension").distinct())

    def fault(self, memory: Memory) -> Invalid | None:
        """What is wrong with this memory's vector, or None; the first length of a new profile hash is its length."""
        profile = _profile(memory)
        if profile is None:
            return None
        expected = self._expected.setdefault(*profile)
        if memory.embedding_dimension == expected:
            return None
        return Invalid(
            _("The embedding has %(actual)d numbers, but those of this profile hash have %(expected)d.")
            % {"actual": memory.embedding_dimension, "expected": expected},
            "embedding",
        )


def _profile(memory: Memory) -> tuple[str, int] | None:
    """The memory's profile hash and the length of its vector; None when it lacks one of them."""
    if memory.embedding_profil_hash is None or memory.embedding_dimension is None:
        return None
    return memory.embedding_profil_hash, memory.embedding_dimension
