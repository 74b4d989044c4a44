"""Reach as tokens in the full-text index, so that a filter narrows a search instead of thinning out its results."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, product
from typing import Any

from memories.filters import Filter
from memories.kinds import KINDS, Kind
from memories.principal import Action, Principal, Reach
from memories.search.engine import Groups
from memories.values import tag_key

FIRST_PART = "z1"  # on one entry of each memory
STALE = "z2"  # on entries whose text has moved on since their vector
DERIVED_VECTOR = "z3"  # on entries that hold a vector derived from the text here, and nothing else
ONE_OF_SEVERAL = "z4"  # on entries of a text that is so long that it has several
_NOBODY = "z0"  # on none
_WHAT = {"nutzer": "n", "agent": "a", "scope": "s", "scope_vk": "r"}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which entries count: those in reach that fulfil a condition (on an entry as c); with `then` past ones as well.

    `few` is how many memories are in reach, where they are known to be few.
    """

    reach: Groups = ()
    where: str = ""
    parameters: Sequence[Any] = ()
    then: bool = False
    few: int | None = None

    @property
    def are_wide(self) -> bool:
        """Whether some entries are outside, and many may be inside."""
        return self.few is None and bool(self.reach or self.where)

    def has(self, geltung: str) -> bool:
        """Whether an entry with these tokens is in reach."""
        # No token is within another: they begin with a letter of their own and, with a hash, are of one length. Plain
        # loops, since each entry that is looked at comes here; all() and any() take four times as long.
        for group in self.reach:
            for each in group:
                if each in geltung:
                    break
            else:
                return False
        return True


@lru_cache(maxsize=10_000)
def token(what: str, value: str) -> str:
    """The token that stands for a value: k kind, n nutzer, a agent, s scope, r record, t tag, p profile."""
    return what + blake2b(value.encode(), digest_size=6).hexdigest()


def profile_token(profil_hash: str, dimension: int) -> str:
    """The token of a profile, which is a hash and a number of numbers."""
    return token("p", f"{dimension} {profil_hash}")


def groups(principal: Principal, kinds: Sequence[Kind], only: Filter) -> Groups:
    """Of each group an entry must hold one token: what the principal may see, and what the filter wants."""
    wanted = _seen(principal.reaching(Action.READ), {kind.typ for kind in kinds})
    for what, value in (("n", only.nutzer), ("a", only.agent), ("s", only.scope), ("r", only.scope_vk)):
        if value is not None:
            wanted.append([token(what, value)])
    wanted.extend([token("t", tag_key(name))] for name in only.tags)
    if only.tags_eines:
        wanted.append(_tokens("t", map(tag_key, only.tags_eines)))
    return wanted


def _seen(reaches: Sequence[Reach], kinds: Set[str]) -> list[list[str]]:
    """The groups for reaches of which an entry must lie in one: each takes a group of every reach."""
    narrowed = [_groups_of(reach, kinds & reach.kinds) for reach in reaches]
    if not narrowed:
        return [[_NOBODY]]
    together = {frozenset(chain.from_iterable(choice)) for choice in product(*narrowed)}
    return [sorted(group) for group in together if not any(other < group for other in together)]


def _groups_of(reach: Reach, kinds: Set[str]) -> list[list[str]]:
    found = [_tokens(_WHAT[name], only) for name, only in reach.limits().items()]
    return found if len(kinds) == len(KINDS) else [_tokens("k", kinds), *found]


def _tokens(what: str, values: Iterable[str]) -> list[str]:
    return [token(what, value) for value in sorted(values)] or [_NOBODY]
