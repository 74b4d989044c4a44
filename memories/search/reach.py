"""Reach as tokens in the full-text index, so that a filter narrows a search instead of thinning out its results."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b

from memories.filters import Filter
from memories.kinds import KINDS, Kind
from memories.principal import Principal
from memories.search.engine import Groups
from memories.values import tag_key

FIRST_PART = "z1"  # on one entry of each memory
STALE = "z2"  # on entries whose text has moved on since their vector
DERIVED_VECTOR = "z3"  # on entries that hold a vector derived from the text here, and nothing else
ONE_OF_SEVERAL = "z4"  # on entries of a text that is so long that it has several
_NOBODY = "z0"  # on none


@lru_cache(maxsize=10_000)
def token(what: str, value: str) -> str:
    """The token that stands for a value: k kind, n nutzer, a agent, s scope, r record, t tag, p profile."""
    return what + blake2b(value.encode(), digest_size=6).hexdigest()


def profile_token(profil_hash: str, dimension: int) -> str:
    """The token of a profile, which is a hash and a number of numbers."""
    return token("p", f"{dimension} {profil_hash}")


def groups(principal: Principal, kinds: Sequence[Kind], only: Filter) -> Groups:
    """Of each group an entry must hold one token: what the principal may see, and what the filter wants."""
    seen = [kind.typ for kind in kinds if kind.typ in principal.sees]
    wanted: list[list[str]] = [_tokens("k", seen)] if len(seen) < len(KINDS) else []
    for what, allowed in (("n", principal.nutzer), ("a", principal.agent), ("s", principal.scope)):
        if allowed is not None:
            wanted.append(_tokens(what, allowed))
    for what, value in (("n", only.nutzer), ("a", only.agent), ("s", only.scope), ("r", only.scope_vk)):
        if value is not None:
            wanted.append([token(what, value)])
    wanted.extend([token("t", tag_key(name))] for name in only.tags)
    if only.tags_eines:
        wanted.append(_tokens("t", map(tag_key, only.tags_eines)))
    return wanted


def _tokens(what: str, values: Iterable[str]) -> list[str]:
    return [token(what, value) for value in sorted(values)] or [_NOBODY]
