"""What memories of one session lend each other: beside a hit stands its context, which other words may have said.

On LoCoMo (single turns of long conversations) the shares below found more of the evidence than any other ranking tried.
"""

from collections import defaultdict
from collections.abc import Mapping

from memories.filters import Filter
from memories.kinds import BRAIN
from memories.principal import Principal

# Of a hit's points, what the memories next to it get, and those two away.
SHARES = (0.35, 0.15)
# What a memory can have at most when all around it is worth 1, itself included.
WHOLE = 1 + 2 * sum(SHARES)


def lent(points: Mapping[int, float], principal: Principal, only: Filter) -> dict[int, float]:
    """What the points of these brain memories lend to those beside them, and to each other, by key.

    Neighbours are brain memories of the same owner and session in the order of their creation, as far as the principal
    may see them and they pass the filter: others neither get anything nor lie between.
    """
    in_reach = only.apply(BRAIN, BRAIN.memories.objects.visible_to(principal))
    sessions = set(in_reach.filter(pk__in=list(points)).exclude(session_id="").values_list("nutzer", "session_id"))
    rows = in_reach.filter(session_id__in={session for _nutzer, session in sessions}).order_by("erstellt_am", "pk")
    talks: dict[tuple[str, str], list[int]] = defaultdict(list)
    for nutzer, session, key in rows.values_list("nutzer", "session_id", "pk"):
        talks[nutzer, session].append(key)
    got: dict[int, float] = defaultdict(float)
    for talk in sessions:
        keys = talks[talk]
        for place, key in enumerate(keys):
            for away, share in enumerate(SHARES, 1) if key in points else ():
                for beside in (place - away, place + away):
                    if 0 <= beside < len(keys):
                        got[keys[beside]] += share * points[key]
    return dict(got)
