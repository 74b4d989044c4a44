"""Every call is recorded, a write before it is executed, a question afterwards, and refused when its key has used up.

What a key has used is counted by the database when the record is stored (migration 0013).
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from memories.errors import BrainError, InternalFault, TooMany, Unavailable
from memories.models import CallRecord, Recall, RecalledSearch
from memories.principal import Principal
from memories.writing import insert_rows, turn

log = logging.getLogger(__name__)

OK = "ok"
BEGUN = "begonnen"
_MINUTE = 60
_DAY = 86_400
_FORGOTTEN_AT_ONCE = 5_000


@dataclass
class Metered:
    """A call under way: what it says of itself, and, once it is executed, what came of it."""

    principal: Principal
    tuer: str
    tool: str
    writes: bool
    nutzer: str = ""
    agent: str = ""
    entries: int = 0
    size: int = 0
    gesamt: int = 0
    erfolgreich: int = 0
    fehlgeschlagen: int = 0
    code: str = OK
    suche: str = ""
    recalled: Sequence[str] = ()


@contextmanager
def metered(call: Metered) -> Iterator[Metered]:
    """Record what is executed inside.

    Raises TooMany when a limit of the key is reached. A write whose record cannot be stored is not executed; that of a
    question is missed with a line in the log.
    """
    began, now = time.perf_counter(), timezone.now()
    pk = None
    try:
        _check(call, now)
        pk = _begin(call, now) if call.writes else None
        yield call
    except BrainError as fault:
        call.code = fault.code
        raise
    except (OperationalError, InterfaceError):
        call.code = Unavailable.code
        raise
    except Exception:
        call.code = InternalFault.code
        raise
    finally:
        _end(call, now, pk, round((time.perf_counter() - began) * 1_000))


def forget(now: datetime) -> int:
    """Remove the records that are older than they are kept, earlier what searches returned; tells how many records."""
    RecalledSearch.objects.filter(call__zeitpunkt__lt=now - timedelta(days=settings.BRAIN_RECALL_DAYS)).delete()
    before = now - timedelta(days=settings.BRAIN_CALLS_DAYS)
    removed = 0
    while keys := list(
        CallRecord.objects.filter(zeitpunkt__lt=before).values_list("pk", flat=True)[:_FORGOTTEN_AT_ONCE]
    ):
        removed += CallRecord.objects.filter(pk__in=keys).delete()[0]
    return removed


def _check(call: Metered, now: datetime) -> None:
    quota = call.principal.quota
    if quota is None:
        return
    at = now.timestamp()
    minute, day = divmod(int(at), _MINUTE), divmod(int(at), _DAY)
    calls = quota.calls if quota.minute == minute[0] else 0
    entries, size = (quota.entries, quota.bytes) if quota.day == day[0] else (0, 0)
    left = [
        (quota.calls_a_minute - calls, 1, _("calls a minute"), quota.calls_a_minute, _MINUTE - minute[1]),
        (quota.entries_a_day - entries, call.entries, _("entries written a day"), quota.entries_a_day, _DAY - day[1]),
        (quota.bytes_a_day - size, call.size, _("bytes received a day"), quota.bytes_a_day, _DAY - day[1]),
    ]
    for remains, wanted, what, most, seconds in left:
        if wanted > remains:
            told = _("This key may have %(most)d %(what)s; %(left)d are left. Try again in %(seconds)d seconds.")
            values = {"most": most, "what": what, "left": max(remains, 0), "seconds": seconds}
            raise TooMany(told % values, retry_after=seconds)


def _begin(call: Metered, now: datetime) -> int:
    begun = {"gesamt": call.entries, "erfolgreich": 0, "fehlgeschlagen": 0, "code": BEGUN, "dauer_ms": None}
    with turn():
        return insert_rows(CallRecord, [_told(call, now) | begun], returning=True)


def _end(call: Metered, now: datetime, pk: int | None, dauer_ms: int) -> None:
    outcome = {
        "gesamt": call.gesamt,
        "erfolgreich": call.erfolgreich,
        "fehlgeschlagen": call.fehlgeschlagen,
        "code": call.code,
        "dauer_ms": dauer_ms,
    }
    try:
        with turn():
            if pk is not None:
                CallRecord.objects.filter(pk=pk).update(**outcome)
            elif call.recalled and settings.BRAIN_RECALL_DAYS:
                with transaction.atomic():
                    _recall(call, insert_rows(CallRecord, [_told(call, now) | outcome], returning=True))
            else:
                insert_rows(CallRecord, [_told(call, now) | outcome])
    except (DatabaseError, InterfaceError) as error:
        log.warning("The record of a call could not be stored: %s", type(error).__name__)


def _recall(call: Metered, record: int) -> None:
    """Note which memories a search gave away."""
    insert_rows(RecalledSearch, [{"call_id": record, "suche": call.suche}])
    parts = [kennung.partition("_") for kennung in call.recalled]
    insert_rows(
        Recall,
        [
            {"search_id": record, "typ": typ, "memory_id": int(key), "rang": rang}
            for rang, (typ, _underscore, key) in enumerate(parts, 1)
        ],
    )


def _told(call: Metered, now: datetime) -> dict[str, Any]:
    principal = call.principal
    return {
        "zeitpunkt": connection.ops.adapt_datetimefield_value(now),
        "tuer": call.tuer,
        "tool": call.tool,
        "schluessel_id": principal.key_id,
        "schluessel": principal.key_name,
        "konto": principal.account_name,
        "nutzer": call.nutzer,
        "agent": call.agent,
        "bytes": call.size,
    }
