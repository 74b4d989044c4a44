"""The history: every change writes one version a memory, copied by the database from the row it has just stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

from memories.kinds import SHORTTERM, Kind
from memories.models import Aktion, Memory, Version
from memories.principal import Origin


@dataclass(frozen=True, slots=True)
class Stamp:
    """What all versions of one change have in common; `verweise` names, by key, the other memory or version of each.

    `always` wants a version also of a memory in which nothing changed.
    """

    origin: Origin
    aktion: Aktion
    at: datetime
    verweise: Mapping[int, str] = field(default_factory=dict)
    always: bool = False

    def columns(self) -> dict[str, Any]:
        """The stamp's values by field name."""
        origin = self.origin
        return {
            "aktion": self.aktion.value,
            "zeitpunkt": self.at,
            "durch_nutzer": origin.nutzer,
            "durch_agent": origin.agent,
            "tuer": origin.tuer,
            "tool": origin.tool,
            "schluessel_id": origin.principal.key_id,
            "schluessel": origin.principal.key_name,
            "benutzer_id": origin.principal.user_id,
            "benutzer": origin.principal.user_name,
            "grund": origin.grund,
            "referenzfelder": origin.referenzfelder,
            "aufruf": origin.aufruf,
        }


def record(kind: Kind, keys: Sequence[int], stamp: Stamp, *, leaving: bool = False) -> None:
    """Write the version of each of these live rows, in one statement and inside the caller's transaction.

    The state is copied by INSERT … SELECT from the stored row, so a version cannot differ from what was stored.
    Rows that are `leaving`, about to be removed, get the number after theirs.
    """
    if not keys:
        return
    same_for_all = stamp.columns()
    quote = connection.ops.quote_name
    live, versions = kind.memories._meta, kind.versions._meta  # noqa: SLF001
    copied = [quote(str(versions.get_field(name).column)) for name in copied_fields(kind)]
    given = [versions.get_field(name) for name in same_for_all]
    other, other_values = _verweis(stamp.verweise)
    columns = ["memory_id", "version", *copied, *(quote(str(column.column)) for column in given), "verweis"]
    step = 1 if leaving else 0
    with connection.cursor() as cursor:
        cursor.execute(
            # Names of tables and columns come from the models; every value is a parameter.
            f"INSERT INTO {quote(versions.db_table)} ({', '.join(columns)}) "  # noqa: S608
            f"SELECT id, version + {step}, {', '.join(copied)}, {', '.join(['%s'] * len(given))}, {other} "
            f"FROM {quote(live.db_table)} WHERE id IN ({', '.join(['%s'] * len(keys))}) ORDER BY id",
            [
                *(column.get_db_prep_save(same_for_all[column.name], connection) for column in given),
                *other_values,
                *keys,
            ],
        )


def _verweis(verweise: Mapping[int, str]) -> tuple[str, list[Any]]:
    if not verweise:
        return "''", []
    cases = " ".join(["WHEN %s THEN %s"] * len(verweise))
    return f"CASE id {cases} ELSE '' END", [part for pair in verweise.items() for part in pair]


def removing(kind: Kind) -> Sequence[Aktion]:
    """The actions that end in a memory without a live row; the long-term memory of a promotion begins with it."""
    gone = (Aktion.GELOESCHT, Aktion.AUFGEGANGEN)
    return (*gone, Aktion.BEFOERDERT) if kind is SHORTTERM else gone


def copied_fields(kind: Kind) -> list[str]:
    """The names of the fields that a version shares with its memory: all of the content."""
    live = {field.name for field in kind.memories._meta.concrete_fields}  # noqa: SLF001
    versions = kind.versions._meta.concrete_fields  # noqa: SLF001
    return [field.name for field in versions if field.name in live and field.name not in {"id", "version"}]


def content_of(row: Memory | Version, kind: Kind) -> dict[str, Any]:
    """The content of a live row or a version, by field name."""
    content = {name: getattr(row, name) for name in copied_fields(kind)}
    if content["embedding"] is not None:
        content["embedding"] = bytes(content["embedding"])  # PostgreSQL gives a view of its buffer
    return content


def changed_fields(kind: Kind, before: Version, after: Version) -> list[str]:
    """The names of the content's fields in which two versions differ."""
    then, now = content_of(before, kind), content_of(after, kind)
    return [name for name in now if now[name] != then[name]]
