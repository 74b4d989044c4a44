"""The tool for tags."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.schemas import WEITER, answer, call, text, whole_number
from api.tool import Call, Reply, Shape, Tool
from memories import reading, values
from memories.limits import limits

_LIMIT = 100
_MOST = 1_000


@dataclass(frozen=True, slots=True)
class Query:
    """Which tags, and which page of them."""

    praefix: str
    limit: int
    weiter: str | None


def _query(inhalt: Mapping[str, Any]) -> Query:
    praefix = values.asked_text(inhalt.get("praefix", ""), "praefix", limits().tag_name)
    return Query(praefix.lstrip(), int(inhalt.get("limit", _LIMIT)), inhalt.get("weiter"))


def _select(call: Call) -> Reply:
    query: Query = call.entries[0]
    page = reading.tag_counts(query.praefix, query.limit, query.weiter, call.origin.principal)
    rows = [{"name": counted.tag.name, "anzahl": counted.anzahl} for counted in page.rows]
    return Reply(rows, {"weiter": page.weiter})


SELECT = Tool(
    name="select_brain_tags",
    titel="Tags lesen",
    beschreibung=(
        "Listet Tags alphabetisch und seitenweise mit der Anzahl ihrer Erinnerungen; praefix: nur solche, die so "
        "beginnen, groß oder klein."
    ),
    shape=Shape.QUERY,
    input_schema=call(
        {
            "praefix": text(),
            "limit": whole_number(f"Standard {_LIMIT}", least=1, most=_MOST),
            "weiter": text("Aus der letzten Antwort"),
        }
    ),
    output_schema=answer({"name": text("Tag"), "anzahl": {"type": "integer", "minimum": 1}}, {"weiter": WEITER}),
    read=_query,
    handler=_select,
    typ="tag",
    grenzen=("tag_name",),
    beispiel={
        "tool": "select_brain_tags",
        "arguments": {"inhalt": {"praefix": "Fri", "nutzer": "anna", "agent": "planer"}},
    },
)
