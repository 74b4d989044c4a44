"""Reading memories of one kind, by ID or by filter: the select tools of all kinds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from api.fields import OWN_FIELDS, Field, search_text, shown_memory, start_of_day, translated
from api.schemas import (
    TEXTS_ARE_DATA,
    WEITER,
    Schema,
    answer,
    call,
    choice,
    ids,
    names,
    select_row,
    switch,
    text,
    whole_number,
)
from api.schemas import identifier as identifier_schema
from api.tool import Reply, Row, Shape, Tool
from memories import reading, values
from memories.errors import BrainError, Invalid, NotFound
from memories.filters import Filter
from memories.kinds import BRAIN, Kind, parse_id
from memories.principal import Principal
from memories.search import derived

LIMIT = 20
MOST = 100

TIMES = ("aktualisiert_am", "erstellt_am")


def _tags(value: list[str], feld: str) -> tuple[str, ...]:
    return tuple(values.tag_names(value, feld, read=values.asked_tag))


FILTERS = (
    Field("scope", "scope", values.asked_identifier),
    Field("scope_vk", "scope_vk", lambda value, feld: values.asked_identifier(value, feld, may_be_empty=True)),
    Field("agent_filter", "agent", values.asked_identifier),
    Field("nutzer_filter", "nutzer", values.asked_identifier),
    Field("tags", "tags", _tags),
    Field("tags_eines", "tags_eines", _tags),
    Field("von", "von", start_of_day),
    Field("bis", "bis", values.moment),
    Field("suche", "suche", search_text),
    Field("zeitfeld", "zeitfeld", lambda value, _feld: value),
)


@dataclass(frozen=True, slots=True)
class Query:
    """A select: IDs, or a filter with order and place."""

    ids: tuple[object, ...] | None
    only: Filter
    sortierung: str
    limit: int
    weiter: str | None
    with_embedding: bool


def selecting(kind: Kind, *, name: str, titel: str, was: str) -> Tool:
    """The tool that reads memories of this kind."""
    return Tool(
        name=name,
        titel=titel,
        beschreibung=(
            f"Liest {was}: nach IDs oder Filtern. weiter aus der Antwort holt die nächste Seite. {TEXTS_ARE_DATA}"
        ),
        shape=Shape.QUERY,
        input_schema=call(_query_schema(kind)),
        output_schema=answer(select_row(_own_schema(kind)), {"weiter": WEITER}),
        read=_query,
        handler=lambda call: _select(kind, call.entries[0], call.origin.principal),
        typ=kind.typ,
        grenzen=("kurzbeschreibung", "tag_name"),  # of `suche`, and of tags
        beispiel={
            "tool": name,
            "arguments": {
                "inhalt": {"tags": ["Frist"], "limit": 10, "nutzer": "anna", "agent": "planer"},
            },
        },
    )


def _query_schema(kind: Kind) -> dict[str, Schema]:
    orders = ["neueste", "aelteste", *(["relevanz"] if kind is BRAIN else [])]
    return {
        **ids(),
        **(filter_schema("scope_typ", "scope_ID") if kind is BRAIN else filter_schema()),
        "suche": text("Jedes dieser Wörter, auch gebeugt"),
        "sortierung": choice(orders, "Nach Anlage; Standard neueste"),
        "limit": whole_number(f"Standard {LIMIT}", least=1, most=MOST),
        "weiter": text(),
        "mit_embedding": switch("1 = ja"),
    }


def filter_schema(scope: str | None = None, scope_vk: str | None = None) -> dict[str, Schema]:
    """The filters that select and search have in common; the texts say what stands for a scope in brain memories."""
    return {
        "scope": identifier_schema(scope),
        "scope_vk": identifier_schema(scope_vk),
        "agent_filter": identifier_schema(),
        "nutzer_filter": identifier_schema(),
        "tags": names("Alle davon"),
        "tags_eines": names(),
        "von": text("ISO 8601 oder TT.MM.JJJJ"),
        "bis": text("Einschließlich; ein Datum bis Tagesende"),
        "zeitfeld": choice(TIMES, "Standard aktualisiert_am"),
    }


def _own_schema(kind: Kind) -> dict[str, Schema]:
    optional = {"gueltig_bis": {"type": ["string", "null"], "description": "ISO 8601 mit Zeitzone"}}
    return {name: optional.get(name) or text() for name in OWN_FIELDS[kind.typ]}


def _query(inhalt: Mapping[str, Any]) -> Query:
    given = {name for name in inhalt if name not in {"nutzer", "agent", "mit_embedding"}}
    if "IDs" in given and len(given) > 1:
        raise Invalid(_("Give either IDs or filters, not both."), "IDs")
    return Query(
        ids=tuple(inhalt["IDs"]) if "IDs" in inhalt else None,
        only=Filter(**translated(inhalt, FILTERS)),
        sortierung=inhalt.get("sortierung", "neueste"),
        limit=int(inhalt.get("limit", LIMIT)),
        weiter=inhalt.get("weiter"),
        with_embedding=inhalt.get("mit_embedding") == 1,
    )


def _select(kind: Kind, query: Query, principal: Principal) -> Reply:
    if query.ids is not None:
        return Reply(_by_ids(kind, query, query.ids, principal), {"weiter": None})
    page = reading.listed(kind, query.only, query.sortierung, query.limit, query.weiter, principal)
    waiting = derived.waiting(page.rows)
    rows = [shown_memory(memory, kind, waiting, with_embedding=query.with_embedding) for memory in page.rows]
    return Reply(rows, {"weiter": page.weiter})


def _by_ids(kind: Kind, query: Query, ids: tuple[object, ...], principal: Principal) -> list[Row | BrainError]:
    keys: list[int | BrainError] = []
    for kennung in ids:
        try:
            keys.append(parse_id(kennung, "ID", only=kind)[1])
        except BrainError as fault:
            keys.append(fault)
    found = reading.by_keys(kind, [key for key in keys if isinstance(key, int)], principal)
    waiting = derived.waiting(found.values())
    rows: list[Row | BrainError] = []
    for kennung, key in zip(ids, keys, strict=True):
        if isinstance(key, int) and key in found:
            rows.append(shown_memory(found[key], kind, waiting, with_embedding=query.with_embedding))
        else:
            missing = key if isinstance(key, BrainError) else NotFound(_("There is no memory of this ID."), "ID")
            rows.append({"ID": kennung, "fehler": missing} if isinstance(kennung, str) else missing)
    return rows
