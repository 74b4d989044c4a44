"""Rows of a kind, live memories or versions: who may see them, and by which tags and times."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, Self, TypeVar

from django.db import models
from django.db.models import BooleanField, F, Func, Q
from django.utils import timezone

from memories.principal import Action, Principal, Reach
from memories.values import tag_key

AnyModel = TypeVar("AnyModel", bound=models.Model)
_JOINED_TAGS = 4


class _Within(Func):
    """Whether each of these columns has one of its values: a condition of the kind that every read has.

    Written out, since lookups take the ORM longer to put together than the database to answer. Unless `indexed`, SQLite
    looks none up in an index, as it does not where a column has a sign; PostgreSQL's planner knows by itself.
    """

    output_field = BooleanField()

    def __init__(self, limits: Mapping[str, Collection[str]], *, indexed: bool) -> None:
        """Name the columns by their fields."""
        super().__init__(*map(F, limits))
        self.limits, self.indexed = list(limits.values()), indexed

    def as_sql(self, compiler: Any, connection: Any, *_function: Any, **_context: Any) -> tuple[str, tuple[str, ...]]:
        """The condition with its values."""
        sign = "+" if connection.vendor == "sqlite" and not self.indexed else ""
        columns = [compiler.compile(column)[0] for column in self.get_source_expressions()]
        # A list may be empty, which SQL does not write as such.
        lists = [", ".join(["%s"] * len(only)) or "NULL" for only in self.limits]
        parts = [f"{sign}{column} IN ({marks})" for column, marks in zip(columns, lists, strict=True)]
        return f"({' AND '.join(parts)})", tuple(value for only in self.limits for value in sorted(only))


class GuardedQuerySet(models.QuerySet[AnyModel]):
    """Rows of a kind, live ones or versions, with the one answer to who may see them."""

    def visible_to(
        self, principal: Principal, action: Action = Action.READ, *, among: Iterable[int] | None = None
    ) -> Self:
        """The rows with which the principal may do this. Every read of every door goes through here.

        With `among` those of these memories alone, read by their keys: SQLite would rather read all of an agent.
        """
        reaches = principal.reaching(action, self.model.typ)  # type: ignore[attr-defined]
        if not reaches:
            return self.none()
        conditions: dict[str, Any] = {} if principal.sees_proposed else {"vorgeschlagen": False}
        if among is not None:
            conditions[f"{self.model.KEY}__in"] = list(among)  # type: ignore[attr-defined]
        found = self.filter(**conditions)
        if not all(reach.limits() for reach in reaches):
            return found
        within = [self._within(reach, indexed=among is None) for reach in reaches]
        return found.filter(reduce(or_, within))

    def _within(self, reach: Reach, *, indexed: bool) -> Any:
        names = {"scope": self.model.SCOPE, "scope_vk": self.model.RECORD}  # type: ignore[attr-defined]
        return _Within({names.get(name, name): only for name, only in reach.limits().items()}, indexed=indexed)


class MemoryQuerySet(GuardedQuerySet[AnyModel]):
    """Live memories of one kind."""

    def visible_to(
        self,
        principal: Principal,
        action: Action = Action.READ,
        *,
        among: Iterable[int] | None = None,
        also_expired: bool = False,
    ) -> Self:
        """The rows with which the principal may do this; after `gueltig_bis` only people see a memory.

        Every write of every door goes through here as well, by its action.
        """
        found = super().visible_to(principal, action, among=among)
        return found if also_expired or principal.sees_expired else found.current(timezone.now())

    def current(self, at: datetime) -> Self:
        """Those whose validity has not ended at this moment."""
        if not self.model.EXPIRES:  # type: ignore[attr-defined]
            return self
        return self.filter(Q(gueltig_bis__isnull=True) | Q(gueltig_bis__gte=at))

    def with_all_tags(self, names: Iterable[str]) -> Self:
        """Those that carry each of these tags.

        A few are joined, which finds quickly. Of many, the rest is counted: SQLite joins 64 tables at most, and
        PostgreSQL plans a hundred of them for most of a minute.
        """
        keys = sorted({tag_key(name) for name in names})
        found = self
        for key in keys[:_JOINED_TAGS]:
            found = found.filter(tag_links__tag__schluessel=key)
        rest = keys[_JOINED_TAGS:]
        counted = self._links(rest).order_by().values("memory_id").annotate(carried=models.Count("tag_id"))
        return found.filter(models.Exists(counted.filter(carried=len(rest)))) if rest else found

    def with_any_tag(self, names: Iterable[str]) -> Self:
        """Those that carry at least one of these tags, each memory once."""
        return self.filter(models.Exists(self._links(sorted({tag_key(name) for name in names}))))

    def _links(self, keys: list[str]) -> models.QuerySet[Any]:
        """The links of an outer query's memory to these tags."""
        links: Any = self.model._meta.get_field("tag_links").related_model  # noqa: SLF001 - Django's own public-by-custom API
        found: models.QuerySet[Any] = links.objects.filter(memory_id=models.OuterRef("pk"), tag__schluessel__in=keys)
        return found
