"""The tool that searches, over all kinds or some."""

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from api.fields import ALIAS, EMBEDDING, PROFILE, Field, credited, local, search_text, shown, shown_memory, translated
from api.schemas import (
    OWN,
    TEXTS_ARE_DATA,
    Schema,
    answer,
    call,
    choice,
    embedding_fields,
    names,
    select_row,
    switch,
    text,
    whole_number,
)
from api.tool import Call, Reply, Row, Shape, Tool
from api.tools.selects import FILTERS, MOST, filter_schema
from memories import search, values
from memories.errors import Invalid
from memories.filters import Filter
from memories.kinds import KINDS, Kind
from memories.models import Version
from memories.search import Found, Question, Searched, derived
from memories.search.query import parse
from memories.search.vectors import Profile, VectorQuery, unit

_LIMIT = 10
_EMBEDDED = {True: "ausgefuehrt", False: "nicht verfuegbar"}
_KINDS = {kind.typ: kind for kind in KINDS}


def _kinds(value: list[str], feld: str) -> tuple[Kind, ...]:
    unknown = [f"{feld}[{place}]" for place, typ in enumerate(value) if typ not in _KINDS]
    if unknown:
        raise Invalid(_("Allowed are: %(values)s.") % {"values": ", ".join(_KINDS)}, unknown[0])
    return tuple(_KINDS[typ] for typ in dict.fromkeys(value)) or KINDS


_OWN = (
    EMBEDDING,
    PROFILE,
    Field("typen", "kinds", _kinds),
    Field("stand", "stand", values.moment),
)
_TEXT = Field("suche", "text", search_text)


def _question(inhalt: Mapping[str, Any]) -> tuple[Question, bool]:
    """What to search for, and whether to explain it."""
    given = translated(inhalt, (_TEXT, *_OWN, *(field for field in FILTERS if field.wire != "suche")))
    vector = _vector(given.pop("embedding", None), given.pop("embedding_profil_hash", None), inhalt)
    words = given.pop("text", "")
    if not words.strip() and vector is None:
        raise Invalid(_("Give a text (suche), or an embedding with its embedding_profil_hash, or both."), "suche")
    kinds, stand = given.pop("kinds", KINDS), given.pop("stand", None)
    question = Question(
        text=parse(words) if words.strip() else None,
        words=words,
        vector=vector,
        kinds=kinds,
        only=Filter(**given),
        limit=int(inhalt.get("limit", _LIMIT)),
        stand=stand,
        neighbours=inhalt.get("nachbarn") == 1,
    )
    if question.neighbours and stand is not None:
        raise Invalid(_("Neighbours (nachbarn) are found as they are now, not as of a moment (stand)."), "nachbarn")
    return question, inhalt.get("erklaeren") == 1


def _vector(packed: bytes | None, profil_hash: str | None, inhalt: Mapping[str, Any]) -> VectorQuery | None:
    if packed is None and profil_hash is None:
        return None
    if packed is None or profil_hash is None:
        missing = "embedding" if packed is None else "embedding_profil_hash"
        raise Invalid(
            _("An embedding and its embedding_profil_hash belong together: vectors of other models say nothing."),
            missing,
        )
    numbers = np.frombuffer(packed, dtype="<f4")
    return VectorQuery(unit(numbers), Profile(profil_hash, len(numbers)), also_stale=inhalt.get("mit_veralteten") == 1)


def _search(call: Call) -> Reply:
    question, explain = call.entries[0]
    result = search.search(question, call.origin.principal)
    waiting = derived.waiting(found.memory for found in result.found if not isinstance(found.memory, Version))
    rows = [_row(place, found, waiting, explain=explain) for place, found in enumerate(result.found, 1)]
    return Reply(rows, {"durchsucht": _searched(result.searched)})


def _row(rang: int, found: Found, waiting: Set[str], *, explain: bool) -> Row:
    row: Row = {"typ": found.kind.typ, **_memory(found, waiting), "rang": rang, "punkte": round(found.points, 4)}
    if explain:
        row["treffer"] = {
            "text": None if found.text is None else {"punkte": found.text.score, "woerter": list(found.text.words)},
            "vektor": None if found.vector is None else {"kosinus": found.vector.cosine},
        }
        if found.lent:
            row["treffer"]["nachbarn"] = {"punkte": found.lent}
    return row


def _memory(found: Found, waiting: Set[str]) -> Row:
    if not isinstance(found.memory, Version):
        return shown_memory(found.memory, found.kind, waiting, with_embedding=False)
    version = found.memory
    return {
        "ID": version.kennung,
        **shown(version, found.kind),
        **credited(version),
        "embedding_ausstehend": False,
        "version": version.version,
        "aktualisiert_am": local(version.zeitpunkt),
    }


def _searched(searched: Searched) -> Row:
    left_out = {
        "abgelaufen": searched.expired,
        "ohne_vektor_dieses_profils": searched.without_vector,
        "vektor_veraltet": searched.stale,
    }
    told = {
        "in_reichweite": searched.in_reach,
        "genau": searched.exact,
        "ausgelassen": {name: number for name, number in left_out.items() if number is not None},
    }
    return told if searched.embedded is None else told | {"vektorsuche": _EMBEDDED[searched.embedded]}


_TEXTS = {
    "embedding": "Nur mit embedding_profil_hash",
    "embedding_profil_hash": "Kennung des Modells; nur gleiche werden verglichen",
    ALIAS: OWN[ALIAS],
}


def _schema() -> dict[str, Schema]:
    return {
        "suche": text('Wörter einzeln, gewichtet; "…" verlangt eine Wortfolge, Minus davor schließt aus'),
        **embedding_fields(_TEXTS),
        "typen": names("longterm, shortterm, brain; Standard alle", most=len(KINDS)),
        **filter_schema("Bei brain scope_typ", "Bei brain scope_ID"),
        "stand": text("Zeitpunkt: sucht, was damals bekannt war"),
        "mit_veralteten": switch("1 = auch Embeddings mit seither geändertem Text"),
        "nachbarn": switch("1 = auch Nachbarn eines Treffers in seiner session_ID; nur brain, nicht mit stand"),
        "erklaeren": switch("1 = Anteile je Treffer"),
        "limit": whole_number(f"Standard {_LIMIT}", least=1, most=MOST),
    }


SEARCH = Tool(
    name="search_brain",
    titel="Erinnerungen suchen",
    beschreibung=(
        "Sucht über alle Arten nach Text, Embedding oder beidem, beste zuerst. Findet gebeugte und "
        "zusammengesetzte Wörter, Umlaute und ß in jeder Schreibweise und Tippfehler. Bettet der Server selbst ein, "
        'zählt auch die Bedeutung des Textes, außer mit "…" oder Minus. '
        f"{TEXTS_ARE_DATA}"
    ),
    shape=Shape.QUERY,
    input_schema=call(_schema()),
    output_schema=answer(
        {
            **select_row({}),
            "rang": {"type": "integer", "minimum": 1},
            "punkte": {"type": "number", "minimum": 0, "maximum": 1},
            "treffer": {"type": "object", "description": "Anteile von Text, Vektor und Nachbarn, nur mit erklaeren: 1"},
        },
        {
            "durchsucht": {
                "type": "object",
                "properties": {
                    "in_reichweite": {"type": "integer", "minimum": 0},
                    "genau": {"type": "boolean", "description": "false: es sind mehr, gezählt wird bis 1.000"},
                    "ausgelassen": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "vektorsuche": choice(
                        list(_EMBEDDED.values()),
                        "Ob der Server den Text selbst eingebettet hat; fehlt, wo er es nicht sollte",
                    ),
                },
            }
        },
    ),
    read=_question,
    handler=_search,
    grenzen=("embedding", "kurzbeschreibung", "tag_name"),
    spalten={"embedding_profil_hash": "embedding_profil_hash", ALIAS: "embedding_profil_hash"},
    recalls=True,
    beispiel={
        "tool": "search_brain",
        "arguments": {
            "inhalt": {"suche": "Kündigungsfrist Büro", "limit": 5, "nutzer": "anna", "agent": "planer"},
        },
    },
)
