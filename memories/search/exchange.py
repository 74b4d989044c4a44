"""Embedding outside: texts go out as JSON lines, vectors come back as JSON lines, both as streams."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec
import numpy as np
from django.utils.translation import gettext as _

from memories.errors import BrainError, Invalid
from memories.kinds import parse_id
from memories.models import EmbeddingProfile
from memories.search import derived
from memories.search.derived import Filled, Made
from memories.values import embedding

_AT_ONCE = 500  # lines a transaction

Refused = Callable[[int, str], None]  # hears of the number of a line, and why it was refused


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    ID: str
    pruefsumme: str
    embedding: list[float]


def texts(profile: EmbeddingProfile) -> Iterator[str]:
    """The texts that need a vector of the profile, a line of JSON each."""
    for each in derived.pending(profile):
        line = {"ID": each.kennung, "pruefsumme": each.pruefsumme, "text": each.text}
        yield json.dumps(line, ensure_ascii=False)


def take(
    profile: EmbeddingProfile, lines: Iterable[bytes], refused: Refused, progress: Callable[[Filled], None]
) -> Filled:
    """Store the vectors of these lines, each batch committed; a bad line is reported, and the next ones go on."""
    total = Filled()
    numbered = enumerate(lines, 1)
    while part := [(number, line) for number, line in islice(numbered, _AT_ONCE)]:
        made: dict[tuple[str, int], Made] = {}
        bad = 0
        for number, line in part:
            try:
                each = _made(profile, line) if line.strip() else None
            except BrainError as fault:
                refused(number, str(fault.meldung))
                bad += 1
                continue
            if each is not None:
                made[each.kind.typ, each.key] = each  # of two for one memory the later one
        stored = derived.store(profile, list(made.values()))
        total += Filled(stored, len(made) - stored, bad)
        progress(total)
    return total


def _made(profile: EmbeddingProfile, line: bytes) -> Made:
    """The vector of a line. Raises BrainError."""
    try:
        told = msgspec.json.decode(line, type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        form = '{"ID": …, "pruefsumme": …, "embedding": […]}'
        raise Invalid(_("This is no line of the form %(form)s.") % {"form": form}) from error
    kind, key = parse_id(told.ID, "ID")
    if len(told.embedding) != profile.dimension:
        raise Invalid(
            _("The embedding has %(actual)d numbers, but those of this profile hash have %(expected)d.")
            % {"actual": len(told.embedding), "expected": profile.dimension},
            "embedding",
        )
    return Made(kind, key, told.pruefsumme, np.frombuffer(embedding(told.embedding, "embedding"), dtype="<f4"))
