"""Values to offer while somebody types: those that memories in sight have, at the same cost for any number of them."""

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef

from memories import values
from memories.errors import BrainError
from memories.kinds import BRAIN, Kind
from memories.limits import limits
from memories.models import Tag
from memories.models.queries import MemoryQuerySet
from memories.principal import Action, Principal, Reach
from memories.values import tag_key

MOST = 10
LOOKED_THROUGH = 10_000  # rows, for those who see a part alone
_STEPS = 20  # along an index from each beginning; orders other than by code points mix spellings
_SCOPES = 10
_TAGS = 500


def suggested(kind: Kind, name: str, beginning: str, principal: Principal, *, scope: str = "") -> list[str]:
    """At most MOST values of `name` that begin so, in any case, in order.

    `name` is nutzer, agent, scope, scope_vk or tag; `scope` narrows the values of scope_vk. Whoever sees all is told
    what steps along an index find. Whoever sees a part is told what his grants list and what is among LOOKED_THROUGH
    memories in his sight. Nothing for what no value can begin with.
    """
    try:
        typed, scope = (values.asked_text(text, name, limits().kennung) for text in (beginning, scope))
    except BrainError:
        return []
    start = unicodedata.normalize("NFC", typed).lstrip()
    reaches = principal.reaching(Action.READ, kind.typ)
    if all(reach.limits() for reach in reaches):
        found = _in_part(kind, name, start, principal, scope)
    elif name == "tag":
        found = _tags(kind, start)
    else:
        found = _along(kind, name, [(one, at) for one in _scopes(kind, name, scope) for at in _spellings(start)])
    folded = tag_key(start)
    return sorted({value for value in found if value and tag_key(value).startswith(folded)}, key=tag_key)[:MOST]


def has_index(kind: Kind, reaches: Iterable[Reach]) -> bool:
    """Whether an index finds what lies in each of these reaches."""
    # Brain memories have a handful of scopes, so that one of them narrows little.
    narrow = {"nutzer", "agent"} if kind is BRAIN else {"nutzer", "agent", "scope"}
    return all(narrow & reach.limits().keys() for reach in reaches)


def _spellings(start: str) -> list[str]:
    return sorted({start, start.lower(), start.upper(), start.capitalize()})


def _scopes(kind: Kind, name: str, scope: str) -> Iterable[str | None]:
    """The scopes in which records are looked for; None where the scope does not matter."""
    if name != "scope_vk":
        return [None]
    return [scope] if scope else _along(kind, "scope", [(None, "")], _SCOPES)


def _along(kind: Kind, name: str, starts: Sequence[tuple[str | None, str]], steps: int = _STEPS) -> list[str]:
    """The values from each start on, a step along the index for each of them; one statement.

    A start is a value, and the scope that the rows must have, or None.
    """
    if not starts:
        return []
    quoted = connection.ops.quote_name
    model = kind.memories
    table, scope = quoted(model._meta.db_table), quoted(model.SCOPE)  # noqa: SLF001 - Django's own public-by-custom API
    column = quoted({"scope": model.SCOPE, "scope_vk": model.RECORD}.get(name, name))
    within = f"r.{scope} = s.scope AND " if name == "scope_vk" else ""
    next_one = f"(SELECT MIN(r.{column}) FROM {table} r WHERE {within}r.{column}"  # noqa: S608
    sql = (
        f"WITH RECURSIVE starts(scope, value) AS (VALUES {', '.join(['(%s, %s)'] * len(starts))}), "  # noqa: S608
        f"steps(scope, value, number) AS (SELECT s.scope, {next_one} >= s.value), 1 FROM starts s "
        f"UNION ALL SELECT s.scope, {next_one} > s.value), s.number + 1 FROM steps s "
        "WHERE s.value IS NOT NULL AND s.number < %s) "
        "SELECT DISTINCT value FROM steps WHERE value IS NOT NULL"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*(part or "" for start in starts for part in start), steps])
        return [value for (value,) in cursor.fetchall()]


def _tags(kind: Kind, start: str) -> list[str]:
    """The tags from here on that memories of the kind carry."""
    carried = Exists(kind.links.objects.filter(tag_id=OuterRef("pk")))
    tags = Tag.objects.filter(schluessel__gte=tag_key(start)).order_by("schluessel").annotate(carried=carried)
    return [name for name, used in tags.values_list("name", "carried")[:_TAGS] if used]


def _in_part(kind: Kind, name: str, start: str, principal: Principal, scope: str) -> Collection[str]:
    """The values that somebody sees whose every reach has limits."""
    reaches = principal.reaching(Action.READ, kind.typ)
    listed = [only for reach in reaches if (only := _listed(reach, name)) is not None]
    folded = tag_key(start)
    names = sorted({value for only in listed for value in only if tag_key(value).startswith(folded)})[: _STEPS * 2]
    found = set(_along(kind, name, [(None, value) for value in names], 1)) & set(names)
    if len(listed) < len(reaches):
        found |= _looked_through(kind, name, principal, scope)
    return found


def _listed(reach: Reach, name: str) -> frozenset[str] | None:
    """The values that a reach lists, when it has no other limit; a step along the index tells which of them exist."""
    only = reach.limits()
    return only[name] if only.keys() == {name} and name != "scope_vk" else None


def _looked_through(kind: Kind, name: str, principal: Principal, scope: str) -> set[str]:
    """The values of some memories in sight."""
    model = kind.memories
    rows = _some(kind, principal)
    if name == "scope_vk" and scope:
        rows = rows.filter(**{model.SCOPE: scope})
    column = {"scope": model.SCOPE, "scope_vk": model.RECORD, "tag": "tag_namen"}.get(name, name)
    found = rows.order_by().values_list(column, flat=True)[:LOOKED_THROUGH]
    return {value for row in found for value in row} if name == "tag" else set(found)


def _some(kind: Kind, principal: Principal) -> MemoryQuerySet[Any]:
    """The memories in sight; without an index that finds them, those among the newest of all."""
    rows: MemoryQuerySet[Any] = kind.memories.objects.visible_to(principal)
    if has_index(kind, principal.reaching(Action.READ, kind.typ)):
        return rows
    newest = kind.memories.objects.order_by("-erstellt_am", "-pk").values_list("erstellt_am", flat=True)
    edge = newest[LOOKED_THROUGH - 1 : LOOKED_THROUGH].first()
    return rows.filter(erstellt_am__gte=edge) if edge else rows
