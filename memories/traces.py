"""Traces of an erased person beside her memories: each goes in a step of its own, which can be repeated."""

import json
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any
from urllib.parse import parse_qsl

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from memories import values
from memories.errors import BrainError
from memories.models import (
    ErasedMemory,
    Erasure,
    ImportedMemory,
    ImportJob,
    ImportLine,
    RecalledSearch,
    RepeatableCall,
    SavedView,
    VectorBlock,
)
from memories.search import vectors
from memories.values import tag_key
from memories.writing import turn

_AT_ONCE = 200
_ID = re.compile(r"\b(longterm|shortterm|brain)_([1-9][0-9]{0,18})\b")


def _searches(_begun: Erasure, nutzer: str) -> None:
    """What she looked for, and searches of which nothing is left but what they looked for."""
    for part in _parts(RecalledSearch.objects.filter(call__nutzer=nutzer)):
        RecalledSearch.objects.filter(pk__in=[row.pk for row in part]).delete()
    for part in _parts(RecalledSearch.objects.filter(recalls__isnull=True)):
        RecalledSearch.objects.filter(pk__in=[row.pk for row in part]).delete()


def _answers(begun: Erasure, _nutzer: str) -> None:
    """Answers for repeats that name her memories, and those of calls that stored nothing: they may quote anybody."""
    for part in _parts(RepeatableCall.objects.prefetch_related("entries")):
        told = {call.pk: _ids(call) for call in part}
        gone = _erased(begun, {each for ids in told.values() for each in ids})
        failed = {call.pk for call in part if call.answer is not None and not call.entries.all()}
        keys = [key for key, ids in told.items() if ids & gone or key in failed]
        with turn():
            RepeatableCall.objects.filter(pk__in=keys).delete()


def _ids(call: Any) -> set[tuple[str, int]]:
    outcomes = [entry.outcome for entry in call.entries.all()]
    named = _ID.findall(f"{call.answer} {json.dumps(outcomes)}")
    return {(typ, int(key)) for typ, key in named} | {(told["typ"], told["key"]) for told in outcomes}


def _erased(begun: Erasure, ids: Collection[tuple[str, int]]) -> set[tuple[str, int]]:
    """Those of these memories that this erasure took away."""
    rows = begun.erased.filter(memory_id__in={key for _typ, key in ids}).values_list("typ", "memory_id")
    return set(rows) & set(ids)


def _imports(begun: Erasure, nutzer: str) -> None:
    """Rows of imports: hers, and those of which nobody can tell whose they are, since they failed."""
    touched = set()
    for part in _parts(ImportLine.objects.select_related("job")):
        ids = {line.pk: _ID.fullmatch(line.kennung) for line in part}
        known = {pk: (found[1], int(found[2])) for pk, found in ids.items() if found}
        gone = _erased(begun, known.values())
        hers = [line for line in part if known.get(line.pk) in gone or _is_hers(line, nutzer)]
        with turn():
            ImportLine.objects.filter(pk__in=[line.pk for line in hers]).delete()
        touched |= {line.job_id for line in hers}
    for job in ImportJob.objects.filter(pk__in=touched):
        with turn():
            if not job.lines.exists():
                job.delete()
            elif job.vorgaben.get("nutzer") == nutzer:
                ImportJob.objects.filter(pk=job.pk).update(vorgaben={**job.vorgaben, "nutzer": ""})


def _is_hers(line: Any, nutzer: str) -> bool:
    """Whether the row's memory, now or earlier, would be hers; also when nobody can tell."""
    if line.zeile is None:
        return not line.kennung
    try:
        told = json.loads(bytes(line.zeile))
        past = [version["stand"]["nutzer"] for version in told.get("versionen") or []]
        owners = [told.get("nutzer") or line.job.vorgaben.get("nutzer", ""), *past]
        return nutzer in {values.identifier(owner, "nutzer", may_be_empty=True) for owner in owners}
    except (ValueError, TypeError, KeyError, AttributeError, BrainError):
        return True


def _views(_begun: Erasure, nutzer: str) -> None:
    forget_views(nutzer=nutzer)


def forget_views(*, nutzer: str = "", tags: Collection[str] = ()) -> None:
    """Take away saved views that name this person, or filter by a tag of one of these keys."""
    if not nutzer and not tags:
        return
    gone = []
    for view in SavedView.objects.all():
        asked = [*parse_qsl(view.query), ("name", view.name)]
        if any(
            values.says(value, nutzer) if nutzer else name == "tag" and _key(value) in tags for name, value in asked
        ):
            gone.append(view.pk)
    SavedView.objects.filter(pk__in=gone).delete()


def _key(typed: str) -> str:
    """Which tag somebody meant; none when it can be no tag."""
    try:
        return tag_key(values.asked_tag(typed, "tag"))
    except BrainError:
        return ""


def _origins(begun: Erasure, _nutzer: str) -> None:
    """Where her memories were imported from; it goes last of them, since it tells how an export names them."""
    erased = ErasedMemory.objects.filter(erasure=begun, typ=OuterRef("typ"), memory_id=OuterRef("memory_id"))
    with turn(), transaction.atomic():
        ImportedMemory.objects.filter(Exists(erased)).delete()


def _codes(_begun: Erasure, _nutzer: str) -> None:
    """Codes in blocks that no entry needs any more: hers are among them, though nothing says which they are."""
    for key in list(VectorBlock.objects.values_list("pk", flat=True)):
        with turn():
            vectors.repack(key)


TRACES: tuple[Callable[[Erasure, str], None], ...] = (_searches, _answers, _imports, _views, _origins, _codes)


def _parts(rows: QuerySet[Any]) -> Iterator[list[Any]]:
    """The rows by key, some at a time."""
    last = 0
    while part := list(rows.filter(pk__gt=last).order_by("pk")[:_AT_ONCE]):
        last = part[-1].pk
        yield part
