"""Searching in the lists of memories: what agents' searches find by text, with all the list's filters."""

from typing import Any

from django.contrib.admin.views.main import ORDER_VAR
from django.db.models.expressions import RawSQL
from django.http import HttpRequest
from django.utils.translation import gettext as _

from memories import reading
from memories.admin.base import List
from memories.filters import Filter
from memories.models.access import principal_of

MOST_FOUND = 300
VIEW_VAR = "sicht"  # the number of the person's view that is open
WHOLE_LIST = "0"  # instead of a number: none, not even the one that opens by itself


class MemoryList(List):
    """A list whose search ranks."""

    whole_list = f"?{VIEW_VAR}={WHOLE_LIST}"
    has_more = False  # whether more was found than is shown

    def get_filters_params(self, params: Any = None) -> Any:
        """The parameters that are filters."""
        found = super().get_filters_params(params)
        found.pop(VIEW_VAR, None)
        return found

    def bounded(self, request: HttpRequest, rows: Any) -> Any:
        """What was found, the best first, unless the list is sorted by a column."""
        if not self.query.strip() or self.model_admin.is_id(self.query):
            return super().bounded(request, rows)
        chosen = {spec.found_by: spec.wanted(spec.value().strip()) for spec in self.in_use() if spec.found_by}
        unknown = any(not spec.found_by for spec in self.in_use())
        keys, self.has_more = reading.ranked(
            self.model_admin.kind,
            Filter(suche=self.query, **chosen),
            MOST_FOUND,
            principal_of(request.user),
            among=rows if unknown else None,
        )
        rows = rows.filter(pk__in=keys)
        return rows if ORDER_VAR in self.params or not keys else rows.order_by(_place_in(keys, self.opts.db_table))

    @property
    def notes(self) -> list[str]:
        """What the list leaves out."""
        if not self.has_more:
            return super().notes
        told = _("These are the %(limit)d that fit best; there are more. Another word or a filter narrows them.")
        return [told % {"limit": MOST_FOUND}]

    @property
    def further(self) -> str:
        """What was found does not go on."""
        return "" if self.query.strip() else super().further


def _place_in(keys: list[int], table: str) -> RawSQL:
    """The place of a row's key among these, to sort by."""
    places = [value for pair in zip(keys, range(len(keys)), strict=True) for value in pair]
    return RawSQL(f"CASE {table}.id {' '.join(['WHEN %s THEN %s'] * len(keys))} END", places)  # noqa: S611
