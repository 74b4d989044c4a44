"""Imports: what would become of each row, and making it so, in batches; a bad row leaves the others stored."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import groupby, islice
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories import services
from memories.errors import BrainError, Conflict, Unavailable
from memories.history import removing
from memories.kinds import KINDS, Kind, parse_id
from memories.models import ImportedMemory, Installation, Version
from memories.principal import Action, Origin
from memories.steps import Done, Outcome, no_memory, out_of_reach
from memories.transfer.adopting import adopt, append, note
from memories.transfer.exporting import other
from memories.transfer.lines import told_version
from memories.transfer.rows import Faulty, Row, sentences
from memories.values import tag_key

AT_ONCE = 100  # rows
TOOL = "import_memories"


class Verdict(TextChoices):
    """What becomes of a row."""

    NEW = "neu", gettext_lazy("new")
    CHANGED = "geaendert", gettext_lazy("changed")
    SAME = "gleich", gettext_lazy("same")
    FAULTY = "fehlerhaft", gettext_lazy("faulty")


@dataclass(frozen=True, slots=True)
class Result:
    """A row's place in the report. `kennung` is the ID here, when there is one; `hinweise` tell what was left out."""

    number: int
    verdict: Verdict
    herkunft: str = ""
    kennung: str = ""
    titel: str = ""
    meldung: str = ""
    hinweise: str = ""


class _Step(Enum):
    ADOPT = auto()
    INSERT = auto()
    APPEND = auto()
    UPDATE = auto()
    NOTHING = auto()


_VERDICTS = {
    _Step.ADOPT: Verdict.NEW,
    _Step.INSERT: Verdict.NEW,
    _Step.APPEND: Verdict.CHANGED,
    _Step.UPDATE: Verdict.CHANGED,
    _Step.NOTHING: Verdict.SAME,
}


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to do with a row; `key` is the memory here, `number` how many versions of it there are."""

    row: Row
    step: _Step
    key: int = 0
    number: int = 0


def take(rows: Iterable[Row | Faulty], origin: Origin, *, dry_run: bool = False) -> Iterator[Result]:
    """Import the rows; a result for each, in order. With `dry_run` nothing is stored.

    Raises Unavailable when the database goes away; what was stored until then is the same the next time.
    """
    left = iter(rows)
    while part := list(islice(left, AT_ONCE)):
        yield from take_batch(part, origin, dry_run=dry_run)


def take_batch(part: Sequence[Row | Faulty], origin: Origin, *, dry_run: bool = False) -> list[Result]:
    """Import some rows. Raises Unavailable, like `take`."""
    judged = _judged([row for row in part if isinstance(row, Row)], origin)
    plans = {number: plan for number, plan in judged.items() if isinstance(plan, _Plan)}
    outcomes: dict[int, Outcome] = {} if dry_run else _carried_out(list(plans.values()), origin)
    found = []
    for row in part:
        if isinstance(row, Faulty):
            found.append(Result(row.number, Verdict.FAULTY, meldung=_sayable(sentences(row.faults))))
        else:
            found.append(_result(row, judged[row.number], outcomes.get(row.number)))
    return found


def _result(row: Row, plan: _Plan | BrainError, outcome: Outcome | None) -> Result:
    fault = next((each for each in (plan, outcome) if isinstance(each, BrainError)), None)
    hints = _sayable("; ".join(row.hints))
    told = {"herkunft": f"{row.instanz}/{row.kennung}", "titel": row.titel[:200], "hinweise": hints}
    if fault is not None:
        return Result(row.number, Verdict.FAULTY, meldung=_sayable(sentences(fault.faults)), **told)
    assert isinstance(plan, _Plan)  # noqa: S101 - a plan is a fault or a plan
    key = outcome.key if isinstance(outcome, Done) else plan.key
    verdict = _VERDICTS[plan.step]
    if verdict is Verdict.CHANGED and isinstance(outcome, Done) and not outcome.changed:
        verdict = Verdict.SAME
    return Result(row.number, verdict, kennung=f"{row.kind.typ}_{key}" if key else "", **told)


def _sayable(text: str) -> str:
    """The text without what no database and no terminal takes; it may quote a file."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?")


# What is to be done


def _judged(rows: Sequence[Row], origin: Origin) -> dict[int, _Plan | BrainError]:
    known = _known(rows)
    histories = {
        kind.typ: _histories(kind, [k for typ, k, _digest in known.values() if typ == kind.typ]) for kind in KINDS
    }
    judged: dict[int, _Plan | BrainError] = {}
    seen: set[tuple[str, str]] = set()
    for row in rows:
        identity = (row.instanz, row.kennung)
        if identity in seen:
            judged[row.number] = Conflict(_("An earlier line is of the same memory."), "herkunft")
            continue
        seen.add(identity)
        typ, key, digest = known.get(identity, (row.kind.typ, 0, ""))
        judged[row.number] = (
            Conflict(_("The memory of this origin is of another kind here."), "typ")
            if typ != row.kind.typ
            else _judge(row, key, digest, histories[typ].get(key, []), origin)
        )
    return judged


def _known(rows: Sequence[Row]) -> dict[tuple[str, str], tuple[str, int, str]]:
    """Of those that are here: kind, key, and the digest of what was imported last. Own memories know themselves."""
    noted = ImportedMemory.objects.filter(kennung__in=[row.kennung for row in rows])
    known = {(each.instanz, each.kennung): (each.typ, each.memory_id, each.digest) for each in noted}
    own = Installation.own()
    for row in rows:
        if row.instanz == own and (own, row.kennung) not in known:
            kind, key = parse_id(row.kennung, "herkunft.ID")
            if key and kind.versions.objects.filter(memory_id=key).exists():
                known[own, row.kennung] = (kind.typ, key, "")
    return known


def _histories(kind: Kind, keys: Sequence[int]) -> dict[int, list[Version]]:
    rows = kind.versions.objects.filter(memory_id__in=keys).order_by("memory_id", "version")
    return {key: list(versions) for key, versions in groupby(rows, lambda version: version.memory_id)}


def _judge(row: Row, key: int, digest: str, here: Sequence[Version], origin: Origin) -> _Plan | BrainError:
    if not here:
        fault = _outside(row, origin)
        return fault or _Plan(row, _Step.ADOPT if row.past else _Step.INSERT)
    if not here[-1].allows(origin.principal, Action.WRITE):
        return no_memory()
    if digest == row.digest:
        return _Plan(row, _Step.NOTHING, key)
    if row.past and not _is_same(row, here[0], 0):
        return Conflict(_("The memory of this ID here is another one."), "herkunft")
    return _compared(row, key, here) if (fault := _outside(row, origin)) is None else fault


def _compared(row: Row, key: int, here: Sequence[Version]) -> _Plan | BrainError:
    """What to do with a memory that is here, by how its history here and in the file go on from each other."""
    agree = all(_is_same(row, version, n) for n, version in enumerate(here[: len(row.past)]))
    if row.past and agree and len(row.past) > len(here):
        return _Plan(row, _Step.APPEND, key, len(here))
    gone = here[-1].aktion in removing(row.kind)
    if row.content is None:
        if agree or gone:
            return _Plan(row, _Step.NOTHING, key)
        return Conflict(_("It was deleted at its origin, but changed here since; delete it here if it is to go."))
    if row.past and agree and not row.is_edited:
        return _Plan(row, _Step.NOTHING, key)
    if gone:
        return Conflict(_("This memory was deleted here. Restore it first if it is to be imported again."))
    same = all(_alike(name, value, getattr(here[-1], name)) for name, value in _wanted(row).items())
    return _Plan(row, _Step.NOTHING if same else _Step.UPDATE, key)


def _is_same(row: Row, version: Version, place: int) -> bool:
    """Whether the version here is the one of this place in the file, spellings of tags aside."""
    if place >= len(row.past):
        return False
    herkunft = {"instanz": row.instanz, "ID": row.kennung}
    return _folded(told_version(row.kind, version, herkunft, other)) == _folded(row.past[place].told)


def _folded(told: Mapping[str, Any]) -> dict[str, Any]:
    stand = dict(told["stand"])
    stand.setdefault("vorgeschlagen", False)
    stand["tags"] = sorted(map(tag_key, stand.get("tags") or []))
    return {**told, "stand": stand}


def _alike(name: str, there: Any, here: Any) -> bool:
    if name == "tag_namen":
        return [tag_key(tag) for tag in there] == [tag_key(tag) for tag in here]
    return bool(there == (bytes(here) if name == "embedding" and here is not None else here))


def _outside(row: Row, origin: Origin) -> BrainError | None:
    """Why the principal may not store what the row holds, now or in an earlier version."""
    states = [past.content for past in row.past] + ([row.content] if row.content is not None else [])
    found = (out_of_reach(row.kind, row.kind.memories(**content), origin, Action.WRITE) for content in states)
    return next((fault for fault in found if fault), None)


# Doing it


def _carried_out(plans: Sequence[_Plan], origin: Origin) -> dict[int, Outcome]:
    outcomes: dict[int, Outcome] = {}
    for kind in KINDS:
        _of_kind(kind, [plan for plan in plans if plan.row.kind is kind], origin, outcomes)
    for outcome in outcomes.values():
        if isinstance(outcome, Unavailable):
            raise outcome
    return outcomes


def _of_kind(kind: Kind, plans: Sequence[_Plan], origin: Origin, outcomes: dict[int, Outcome]) -> None:
    """Carry out the plans for one kind; adds their outcomes."""
    fresh = [plan.row for plan in plans if plan.step is _Step.ADOPT]
    if fresh:
        outcomes |= zip((row.number for row in fresh), adopt(kind, fresh, origin), strict=True)
    for plan in plans:
        if plan.step is _Step.APPEND:
            outcomes[plan.row.number] = append(kind, plan.row, plan.key, plan.number, origin)
    drafts = [plan.row for plan in plans if plan.step is _Step.INSERT]
    if drafts:
        contents = [{"tag_namen": [], **(row.content or {})} for row in drafts]
        done = services.insert(kind, contents, replace(origin, repeat=_Noting(drafts, origin)))
        outcomes |= zip((row.number for row in drafts), done, strict=True)
    _update(kind, plans, origin, outcomes)


def _update(kind: Kind, plans: Sequence[_Plan], origin: Origin, outcomes: dict[int, Outcome]) -> None:
    """What the file says of the present, as changes; also of histories that were just taken over."""
    wanted: list[tuple[Row, int]] = []
    for plan in plans:
        before = outcomes.get(plan.row.number)
        if plan.step is _Step.UPDATE:
            wanted.append((plan.row, plan.key))
        elif isinstance(before, Done) and plan.row.is_edited:
            wanted.append((plan.row, before.key))
    if not wanted:
        return
    changes = [services.Change(key, _wanted(row)) for row, key in wanted]
    rows = [row for row, _key in wanted]
    done = services.update(kind, changes, replace(origin, repeat=_Noting(rows, origin)))
    outcomes |= zip((row.number for row in rows), done, strict=True)


def _wanted(row: Row) -> Mapping[str, Any]:
    """What the memory is to hold; a text that was changed in the file leaves the file's vector behind.

    Whether it is proposed is a matter of its history, not of what a file says of the present.
    """
    content = dict(row.content or {})
    content.pop("vorgeschlagen", None)
    if row.past and content.get("embedding") is not None:
        newest = row.past[-1].content
        moved = any(content[name] != newest[name] for name in row.kind.memories.TEXTS)
        if moved and content["embedding"] == newest["embedding"]:
            content["embedding_veraltet"] = True
    return content


class _Noting:
    """Notes, in the transaction that stores them, which rows memories came from."""

    def __init__(self, rows: Sequence[Row], origin: Origin) -> None:
        self._rows = rows
        self._origin = origin

    def handled(self, places: Sequence[int]) -> Mapping[int, Any]:
        """None: what is imported already was left out before."""
        del places
        return {}

    def keep(self, outcomes: Mapping[int, object]) -> None:
        """Note the rows that are stored."""
        stored = [(self._rows[place], done.key) for place, done in outcomes.items() if isinstance(done, Done)]
        note(stored, self._origin)
