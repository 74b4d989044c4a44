"""Vectors beside a memory: what changes with them, and that one profile hash never holds two dimensions."""

from collections.abc import Iterable, Sequence

from django.db.models import Q
from django.utils.translation import gettext as _

from memories.errors import Invalid
from memories.kinds import KINDS, Kind
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
    memories that the caller may see count: neither a hint at the others nor a way to block them.
    """

    def __init__(
        self, memories: Iterable[Memory], principal: Principal, *, apart_from: tuple[Kind, Sequence[int]]
    ) -> None:
        """`apart_from` are the memories being changed, which do not speak against themselves. One statement."""
        pairs = {profile for profile in map(_profile, memories) if profile}
        self._expected: dict[str, int] = {}
        if not pairs:
            return
        other = Q()
        for profil_hash, dimension in pairs:
            other |= Q(embedding_profil_hash=profil_hash) & (
                Q(embedding_dimension__lt=dimension) | Q(embedding_dimension__gt=dimension)
            )
        kind, keys = apart_from
        found = [
            each.memories.objects.visible_to(principal)
            .filter(other)
            .exclude(pk__in=keys if each is kind else [])
            .order_by()
            .values_list("embedding_profil_hash", "embedding_dimension")
            for each in KINDS
        ]
        self._expected.update(found[0].union(*found[1:]))

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
