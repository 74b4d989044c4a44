"""What changed from one version to the next, for people: texts word by word, tags as added and removed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any

from django.utils import formats, timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from memories.kinds import Kind
from memories.models import Memory, Version
from memories.reading import Step

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_MOST_WORDS = 4_000  # of both texts together; comparing takes time by the square of it
_SHOWN_AROUND = 120  # characters of what stayed, on each side of a change
_SHOWN_CHANGED = 20_000  # characters of one changed piece
_EMBEDDING = ("embedding", "embedding_dimension", "embedding_profil_hash", "embedding_veraltet")

Row = Memory | Version


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that changed: its name for people, and the change as HTML."""

    label: str
    html: SafeString


def differences(kind: Kind, step: Step) -> list[Difference]:
    """The fields in which a version differs from the one before, the embedding's columns as one."""
    return changes(kind, step.before, step.version, step.changed) if step.before else []


def changes(kind: Kind, before: Row, after: Row, names: Sequence[str]) -> list[Difference]:
    """How these fields changed, texts first, the embedding's columns as one."""
    texts_first = sorted(names, key=lambda name: name not in kind.memories.TEXTS)
    found = [
        Difference(label_of(kind, name), _shown(kind, name, before, after))
        for name in texts_first
        if name not in _EMBEDDING
    ]
    if not set(_EMBEDDING).isdisjoint(names):
        found.append(Difference(_("Embedding"), _embedding(before, after)))
    return found


def label_of(kind: Kind, name: str) -> str:
    """A field's name for people."""
    label = str(kind.memories._meta.get_field(name).verbose_name)  # noqa: SLF001
    return label[:1].upper() + label[1:]


def _shown(kind: Kind, name: str, before: Row, after: Row) -> SafeString:
    if name == "tag_namen":
        return tag_difference(before.tag_namen, after.tag_namen)
    if name in kind.memories.TEXTS:
        return text_difference(getattr(before, name), getattr(after, name))
    return _replaced(shown_value(before, name), shown_value(after, name))


def shown_value(row: Memory | Version, name: str) -> str:
    """A value as people read it: moments in the server's time zone, choices by their names."""
    value = getattr(row, name)
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, datetime):
        local = timezone.localtime(value)
        return f"{formats.date_format(local, 'DATE_FORMAT')} {local:%H:%M:%S}"
    named = getattr(row, f"get_{name}_display", None)
    return str(named() if named else "" if value is None else value)


def _replaced(before: str, after: str) -> SafeString:
    return _html([("del", before), ("", " "), ("ins", after)])


def _html(pieces: Sequence[tuple[str, str]]) -> SafeString:
    """Pieces as HTML, every text escaped; the tag of a piece is ins, del or none."""
    tagged = [(tag, text) for tag, text in pieces if text]
    return mark_safe(  # noqa: S308 - joined from escaped parts
        "".join(format_html("<{0}>{1}</{0}>", tag, text) if tag else format_html("{}", text) for tag, text in tagged)
    )


def tag_difference(before: Sequence[str], after: Sequence[str]) -> SafeString:
    """The tags that were removed and added, or that their order or spelling changed."""
    gone = [("del", name) for name in before if name not in after]
    new = [("ins", name) for name in after if name not in before]
    if not gone and not new:
        return _replaced(", ".join(before), ", ".join(after))
    return format_html_join(" ", '<{0} class="tag">{1}</{0}>', [*gone, *new])


def embedding_state(row: Memory | Version) -> str:
    """Whether there is an embedding, how long, of which profile, and whether it still stands for the text."""
    if row.embedding_dimension is None:
        return pgettext("embedding", "none")
    state = _("stale") if row.embedding_veraltet else _("fresh")
    told = _("%(state)s, %(count)d numbers") % {"state": state, "count": row.embedding_dimension}
    profile = row.embedding_profil_hash
    return told + (_(", profile %(hash)s") % {"hash": profile} if profile else "")


def _embedding(before: Row, after: Row) -> SafeString:
    old, new = embedding_state(before), embedding_state(after)
    return _replaced(old, new) if old != new else format_html("<ins>{}</ins>", _("New numbers"))


def text_difference(before: str, after: str) -> SafeString:
    """Two texts as one: what is gone in `del`, what is new in `ins`, long stretches that stayed cut short."""
    pieces = list(_compared(_WORDS.findall(before), _WORDS.findall(after)))
    last = len(pieces) - 1
    cut = [(tag, _cut(tag, text, first=place == 0, last=place == last)) for place, (tag, text) in enumerate(pieces)]
    return _html(cut)


def _compared(old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    """The pieces; common beginnings and ends are set aside first, since most changes of long texts are small."""
    head = _common(old, new)
    old, new, start = old[head:], new[head:], old[:head]
    tail = _common(old[::-1], new[::-1])
    end = old[len(old) - tail :]
    old, new = old[: len(old) - tail], new[: len(new) - tail]
    yield "", "".join(start)
    if len(old) + len(new) > _MOST_WORDS:
        yield from (("del", "".join(old)), ("ins", "".join(new)))
    else:
        for _tag, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
            same = old[a:b] == new[c:d]
            yield from [("", "".join(old[a:b]))] if same else [("del", "".join(old[a:b])), ("ins", "".join(new[c:d]))]
    yield "", "".join(end)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items both begin with."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _cut(tag: str, text: str, *, first: bool, last: bool) -> str:
    if tag:
        return text if len(text) <= _SHOWN_CHANGED else text[:_SHOWN_CHANGED] + _left_out(len(text) - _SHOWN_CHANGED)
    head = 0 if first else _SHOWN_AROUND
    tail = 0 if last else _SHOWN_AROUND
    left_out = len(text) - head - tail
    if left_out <= _SHOWN_AROUND:
        return text
    return text[:head] + _left_out(left_out) + text[len(text) - tail :]


def _left_out(count: int) -> str:
    return _(" […%(count)d characters more…] ") % {"count": count}


def whole(kind: Kind, row: Version) -> list[tuple[str, Any]]:
    """A version's fields with their names for people; the embedding as its state."""
    names: list[str] = [field.name for field in kind.memories._meta.concrete_fields if hasattr(row, field.name)]  # noqa: SLF001
    apart = {"id", "version", "tag_namen", *_EMBEDDING, *([] if row.vorgeschlagen else ["vorgeschlagen"])}
    return [
        *((label_of(kind, name), shown_value(row, name)) for name in names if name not in apart),
        (_("Tags"), ", ".join(row.tag_namen)),
        (_("Embedding"), embedding_state(row)),
    ]
