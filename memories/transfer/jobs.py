"""Imports by people: a file is kept line by line, previewed, and imported, some lines with each request."""

import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from django.db.models import Count, Q
from django.utils import timezone

from memories import values
from memories.models import ImportJob, ImportLine, Stage
from memories.principal import Origin
from memories.transfer.importing import AT_ONCE, Result, Verdict, take_batch
from memories.transfer.rows import Faulty, NewerFormat, Row, keepable, row_of

KEPT = timedelta(days=7)
_SECONDS_A_STEP = 2.0
_LEASE = timedelta(minutes=2)
_STORED_AT_ONCE = 500
_FILLED = ("vorschau", "ergebnis", "herkunft", "kennung", "titel", "meldung", "hinweise", "zeile")


def begin(user_id: int, dateiname: str, form: str, lines: Iterable[bytes], defaults: Mapping[str, str]) -> ImportJob:
    """Keep the lines of a file, to be previewed. Raises NewerFormat for a file that cannot be read, HoldsSecret."""
    for name, value in defaults.items():
        values.without_secret(value, name)
    now = timezone.now()
    job: ImportJob = ImportJob.objects.create(
        user_id=user_id,
        dateiname=values.sayable(dateiname)[-255:] or "…",
        format=form,
        vorgaben=dict(defaults),
        leased_until=now + KEPT,  # until all lines are kept nobody begins
    )
    left = iter(enumerate(lines, 1))
    try:
        while part := list(islice(left, _STORED_AT_ONCE)):
            if part[0][0] == 1:
                row_of(1, part[0][1], now, defaults)
            ImportLine.objects.bulk_create(
                ImportLine(job=job, number=number, zeile=keepable(line)) for number, line in part if not _is_none(line)
            )
    except BaseException:
        job.delete()
        raise
    ImportJob.objects.filter(pk=job.pk).update(leased_until=None)
    return job


def _is_none(line: bytes) -> bool:
    """Whether a line holds no memory."""
    return not line.strip() or line.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b'{"brain_export"')


def step(job: ImportJob, origin: Origin) -> None:
    """Do a part of what is left, some seconds long. While another request is at it, nothing."""
    now = timezone.now()
    mine = ImportJob.objects.filter(pk=job.pk, stand__in=(Stage.PREVIEWING, Stage.RUNNING))
    if not mine.filter(Q(leased_until__isnull=True) | Q(leased_until__lt=now)).update(leased_until=now + _LEASE):
        return
    dry_run = job.stand == Stage.PREVIEWING
    until = time.monotonic() + _SECONDS_A_STEP
    try:
        while time.monotonic() < until:
            if not _batch(job, origin, dry_run=dry_run):
                mine.update(stand=Stage.PREVIEWED if dry_run else Stage.DONE)
                return
    finally:
        ImportJob.objects.filter(pk=job.pk).update(leased_until=None)


def _batch(job: ImportJob, origin: Origin, *, dry_run: bool) -> int:
    """Preview or import the next lines; returns how many there were."""
    column = "vorschau" if dry_run else "ergebnis"
    lines = list(job.lines.filter(**{column: ""}).order_by("number")[:AT_ONCE])
    now = timezone.now()
    rows = [_row(line, now, job) for line in lines]
    results = {each.number: each for each in take_batch([row for row in rows if row], origin, dry_run=dry_run)}
    for line in lines:
        _fill(line, results.get(line.number), column)
    ImportLine.objects.bulk_update(lines, _FILLED)
    return len(lines)


def _row(line: ImportLine, now: datetime, job: ImportJob) -> Row | Faulty | None:
    try:
        return row_of(line.number, bytes(line.zeile or b""), now, job.vorgaben)
    except NewerFormat as fault:
        return Faulty(line.number, fault.faults)


def _fill(line: ImportLine, result: Result | None, column: str) -> None:
    if column == "ergebnis":
        line.zeile = None
    if result is None:
        setattr(line, column, Verdict.SAME)
        return
    setattr(line, column, result.verdict.value)
    for name in ("herkunft", "kennung", "titel", "meldung", "hinweise"):
        setattr(line, name, getattr(result, name))
    line.herkunft = line.herkunft[:400]


def start(job: ImportJob) -> None:
    """Import what was previewed."""
    ImportJob.objects.filter(pk=job.pk, stand=Stage.PREVIEWED).update(stand=Stage.RUNNING)


def counts(job: ImportJob) -> dict[str, int]:
    """How many lines there are, by the verdict of the stage that the job is in; those that are left by an empty one."""
    column = column_of(job)
    found: dict[str, int] = dict(job.lines.order_by().values_list(column).annotate(n=Count("pk")))
    return found


def column_of(job: ImportJob) -> str:
    """The column of the verdicts that count at this stage."""
    return "vorschau" if job.stand in {Stage.PREVIEWING, Stage.PREVIEWED} else "ergebnis"


def report(job: ImportJob) -> Iterator[list[Any]]:
    """What became, or is to become, of each line."""
    column = column_of(job)
    names = ("number", column, "kennung", "herkunft", "titel", "meldung", "hinweise")
    for number, verdict, *rest in job.lines.order_by("number").values_list(*names).iterator(2_000):
        yield [number, Verdict(verdict).label if verdict else "", *rest]


def forget(now: datetime) -> int:
    """Remove imports that are older than they are kept; returns how many."""
    old = ImportJob.objects.filter(angelegt_am__lt=now - KEPT)
    return int(old.delete()[1].get(ImportJob._meta.label, 0))  # noqa: SLF001
