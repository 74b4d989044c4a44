"""The measurements of `bench.quality`: load a question set as memories, ask its questions, count what was found."""

import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection

from memories import services
from memories.filters import Filter
from memories.kinds import BRAIN, KINDS, LONGTERM, Kind
from memories.principal import SYSTEM, Origin
from memories.search import Question, derived, search
from memories.search.embedder import serving
from memories.search.query import parse

_SENTENCE = re.compile(r"(?<![0-9]\.)(?<=[.!?])\s+(?=[A-ZÄÖÜ])")
_BEST = 10
_AT_ONCE = 100
_TITLE = 80
_NUTZER = "bench"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the memories that answer it, and where it is asked (a scope record, or everywhere)."""

    text: str
    wanted: frozenset[int]
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The keys that were found, best first, and the CPU milliseconds it took."""

    asked: Asked
    found: Sequence[int]
    spent: float


def measure(xquad_paths: Sequence[Path], locomo_path: Path | None, limit: int | None) -> int:
    """Measure what paths were given for; the database is emptied before each."""
    embedder = serving()
    print(f"Database: {connection.vendor}, {embedder.name if embedder else 'text alone'}", flush=True)
    for path in xquad_paths:
        _emptied()
        xquad(path, limit)
    if locomo_path:
        _emptied()
        locomo(locomo_path, limit)
    return 0


def xquad(path: Path, limit: int | None) -> None:
    """Sentences of all paragraphs; relevant are those that hold the answer's start or its text."""
    questions = load_xquad(path)
    answers = list(answered(questions[:limit]))
    hits = [fmean(bool(a.asked.wanted.intersection(a.found[:most])) for a in answers) for most in (1, 5, 10)]
    mrr = fmean(
        next((1 / place for place, key in enumerate(a.found, 1) if key in a.asked.wanted), 0.0) for a in answers
    )
    figures = "/".join(f"{hit:.3f}" for hit in hits)
    print(
        f"XQuAD {path.name}: {len(answers)} questions, hit@1/5/10 {figures}, MRR@10 {mrr:.3f}, {_times(answers)}",
        flush=True,
    )


def locomo(path: Path, limit: int | None) -> None:
    """Single turns, searched inside their conversation; R@10 is the mean share of the evidence that was found."""
    questions = load_locomo(path)
    for neighbours in (False, True):
        answers = list(answered(questions[:limit], neighbours=neighbours))
        shares = [
            fmean(len(a.asked.wanted.intersection(a.found[:most])) / len(a.asked.wanted) for a in answers)
            for most in (5, 10)
        ]
        hit = fmean(bool(a.asked.wanted.intersection(a.found)) for a in answers)
        how = "with neighbours" if neighbours else "turns alone"
        print(
            f"LoCoMo {how}: {len(answers)} questions, R@5/10 {shares[0]:.3f}/{shares[1]:.3f}, hit@10 {hit:.3f}, "
            f"{_times(answers)}",
            flush=True,
        )


def load_xquad(path: Path) -> list[Asked]:
    """Store each sentence as a long-term memory; the questions with the keys of their sentences."""
    sentences: list[str] = []
    relevant: list[tuple[str, list[int]]] = []
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            first = len(sentences)
            spans = list(_spans(paragraph["context"]))
            sentences.extend(text for _start, text in spans)
            for asked in paragraph["qas"]:
                answer = asked["answers"][0]
                holds = [
                    first + place
                    for place, (start, text) in enumerate(spans)
                    if start <= answer["answer_start"] < start + len(text) or answer["text"] in text
                ]
                relevant.append((asked["question"], holds))

    keys = _stored(LONGTERM, [{"kurzbeschreibung": "–", "memory": text, "scope": "global"} for text in sentences])
    return [Asked(question, frozenset(keys[place] for place in places)) for question, places in relevant]


def _spans(context: str) -> Iterator[tuple[int, str]]:
    start = 0
    for gap in [*(found.span() for found in _SENTENCE.finditer(context)), (len(context), len(context))]:
        yield start, context[start : gap[0]]
        start = gap[1]


def load_locomo(path: Path) -> list[Asked]:
    """Store each turn as a brain memory of its session; the questions that have evidence, with its keys."""
    turns: list[dict[str, Any]] = []
    places: dict[tuple[str, str], int] = {}
    samples = json.loads(path.read_text(encoding="utf-8"))
    for sample in samples:
        talk = sample["conversation"]
        for number in sorted(int(name.split("_")[1]) for name in talk if re.fullmatch(r"session_\d+", name)):
            for turn in talk[f"session_{number}"]:
                places[sample["sample_id"], turn["dia_id"]] = len(turns)
                turns.append(_turn(turn, sample["sample_id"], number))

    keys = _stored(BRAIN, turns)
    asked = []
    for sample in samples:
        for each in sample["qa"]:
            named = re.findall(r"D\d+:\d+", " ".join(each.get("evidence", [])))
            wanted = {
                keys[places[sample["sample_id"], name]] for name in named if (sample["sample_id"], name) in places
            }
            if wanted:
                asked.append(Asked(each["question"], frozenset(wanted), sample["sample_id"]))
    return asked


def _turn(turn: dict[str, Any], conversation: str, session: int) -> dict[str, Any]:
    caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
    text = f"{turn['speaker']}: {turn['text']}{caption}"
    return {
        "memory_typ": "erfahrung",
        "titel": text[:_TITLE],
        "inhalt": text,
        "scope_typ": "session",
        "scope_id": conversation,
        "session_id": f"{conversation}-{session}",
    }


def _stored(kind: Kind, drafts: Sequence[dict[str, Any]]) -> list[int]:
    origin = Origin(principal=SYSTEM, nutzer=_NUTZER, agent="bench", tuer="command", tool="bench")
    keys = []
    for start in range(0, len(drafts), _AT_ONCE):
        part = [{"nutzer": _NUTZER, "agent": "bench", "tag_namen": [], **each} for each in drafts[start:][:_AT_ONCE]]
        keys += [done.key for done in services.insert(kind, part, origin)]  # type: ignore[union-attr]
    _embedded()
    _analysed()
    return keys


def _embedded() -> None:
    """Give the texts the vectors that the server's own thread would give them."""
    embedder = serving()
    if embedder is None:
        return
    start = time.process_time()
    stored = derived.fill(embedder, derived.profile_of(embedder)).stored
    print(f"{stored} texts embedded, {(time.process_time() - start) * 1000 / stored:.1f} ms each", flush=True)


def answered(questions: Iterable[Asked], *, neighbours: bool = False) -> Iterator[Answered]:
    """Ask the questions one by one."""
    for asked in questions:
        start = time.process_time()
        question = Question(
            text=parse(asked.text),
            words=asked.text,
            only=Filter(scope_vk=asked.where),
            limit=_BEST,
            neighbours=neighbours,
        )
        found = [each.memory.pk for each in search(question, SYSTEM).found]
        yield Answered(asked, found, (time.process_time() - start) * 1000)


def _times(answers: Sequence[Answered]) -> str:
    spent = sorted(answer.spent for answer in answers)
    return f"{median(spent):.1f} ms a query (p95 {spent[int(len(spent) * 0.95)]:.1f})"


def _emptied() -> None:
    """Leave the database with its tables and nothing in them; SystemExit when it holds what is not of this bench."""
    call_command("migrate", verbosity=0)
    if User.objects.exists() or any(kind.versions.objects.exclude(nutzer=_NUTZER).exists() for kind in KINDS):
        sys.exit("The database that DATABASE_URL names is somebody's; nothing was done.")
    call_command("flush", verbosity=0, interactive=False)


def _analysed() -> None:
    """Do what a database does by itself in time: look at what it holds."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
