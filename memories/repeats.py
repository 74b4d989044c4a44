"""Safe repeats: a call with an idempotency key takes effect once, however often it is sent, wherever it was cut off."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from memories.errors import KeyReused
from memories.kinds import KINDS
from memories.models import HandledEntry, RepeatableCall
from memories.services import Done
from memories.writing import insert_rows

KEPT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Repeat:
    """A call under way. `answer` is that of its first execution, when that came to its end."""

    pk: int
    answer: str | None

    def handled(self, places: Sequence[int]) -> dict[int, Done]:
        """Those of these entries that are stored already. Whoever sends the same call waits here, in a transaction."""
        list(RepeatableCall.objects.select_for_update().filter(pk=self.pk).values_list("pk"))
        rows = HandledEntry.objects.filter(call_id=self.pk, place__in=places)
        return {row.place: _done(row.outcome) for row in rows}

    def keep(self, outcomes: Mapping[int, object]) -> None:
        """Note those that are stored, in the transaction that stores them."""
        done = {place: outcome for place, outcome in outcomes.items() if isinstance(outcome, Done)}
        if done:
            rows = [{"call_id": self.pk, "place": n, "outcome": json.dumps(_told(each))} for n, each in done.items()]
            insert_rows(HandledEntry, rows)

    def finish(self, answer: str) -> None:
        """Keep the answer of the first execution that came to its end."""
        RepeatableCall.objects.filter(pk=self.pk, answer__isnull=True).update(answer=answer)


def begin(schluessel_id: int, idempotency_key: str, digest: str) -> Repeat:
    """The call of this access key under this idempotency key. Raises KeyReused when that was another call."""
    now = timezone.now()
    same = RepeatableCall.objects.filter(schluessel_id=schluessel_id, idempotency_key=idempotency_key)
    forget(now, only=same)
    fresh = RepeatableCall(schluessel_id=schluessel_id, idempotency_key=idempotency_key, digest=digest, begun_at=now)
    RepeatableCall.objects.bulk_create([fresh], ignore_conflicts=True)
    call = same.get()
    if call.digest != digest:
        raise KeyReused(_("This idempotency key was used for another call in the last 24 hours."), "Idempotency-Key")
    return Repeat(call.pk, call.answer)


def forget(now: Any, *, only: Any = None) -> int:
    """Remove calls that are older than they are kept; returns how many."""
    old = (RepeatableCall.objects if only is None else only).filter(begun_at__lt=now - KEPT)
    return int(old.delete()[1].get(RepeatableCall._meta.label, 0))  # noqa: SLF001


def _told(done: Done) -> dict[str, Any]:
    return {
        "typ": done.kind.typ,
        "key": done.key,
        "version": done.version,
        "changed": done.changed,
        "verweis": done.verweis,
        "vorgeschlagen": done.vorgeschlagen,
    }


def _done(told: Mapping[str, Any]) -> Done:
    kind = next(kind for kind in KINDS if kind.typ == told["typ"])
    return Done(kind, told["key"], told["version"], told["changed"], told["verweis"], told.get("vorgeschlagen", False))
