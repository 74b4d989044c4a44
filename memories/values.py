"""Canonical forms of what comes from outside: identifiers, texts, tag names, vectors, moments. Each raises Invalid."""

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any

import numpy as np
from django.utils import timezone
from django.utils.translation import gettext as _

from memories.credentials import UNSEEN, credential_in
from memories.errors import BrainError, HoldsSecret, Invalid, TooLarge
from memories.limits import limits

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANKS = re.compile(r"\s+")
_NOT_SHOWN = frozenset({"Cc", "Cf", "Zl", "Zp"})
_UNSEEN = re.compile(f"[{UNSEEN}]")
_NOTHING_SEEN = re.compile(rf"[\s\x00-\x1f\x7f-\x9f{UNSEEN}]*")
# Persian words and emoji are held together by the first two; the others choose the form of an emoji, of a letter in a
# Japanese or Mongolian name.
_HELPERS = re.compile("[\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef\u180b-\u180d\u180f]")
_LARGEST_EXACT_FLOAT = 2**53


def clean_text(text: str, feld: str | None) -> str:
    """The text, byte for byte; NUL and lone surrogates are refused since no database keeps them."""
    if "\0" in text:
        raise Invalid(_("The text contains a NUL character."), feld)
    if not text.isascii() and _LONE_SURROGATE.search(text):
        raise Invalid(_("The text contains half a surrogate pair, which is no character."), feld)
    return text


def without_secret(text: str, feld: str | None) -> str:
    """The text as it is; one that holds a credential is refused, unless the settings let credentials be kept."""
    what = credential_in(text)
    if what is not None:
        raise HoldsSecret(
            _(
                "This holds a credential: %(what)s. Many would read it, and the history keeps what is stored: write "
                "where it is kept instead."
            )
            % {"what": what},
            feld,
        )
    return text


def sayable(text: str) -> str:
    """The text, to be kept in a record; nothing when it holds a credential."""
    return text if credential_in(text) is None else ""


def secrets_in(value: Any, feld: str) -> Iterator[BrainError]:
    """The faults of all texts of a value that hold a credential, names included, each with its path."""
    if isinstance(value, str):
        try:
            without_secret(value, feld or None)
        except HoldsSecret as fault:
            yield fault
    elif isinstance(value, list):
        for place, child in enumerate(value):
            yield from secrets_in(child, f"{feld}[{place}]")
    elif isinstance(value, dict):
        for name, child in value.items():
            named = list(secrets_in(name, feld))  # then the path to what stands there says nothing
            yield from named or secrets_in(child, f"{feld}.{name[:60]}" if feld else name[:60])


def as_claimed(value: object, limit: int) -> str:
    """Whatever a caller sent as an identifier, as a text that can be kept in a record of the call: that of the
    identifier, when it is one that may be kept.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    try:
        text = str(int(value) if isinstance(value, float) and value.is_integer() else value)
    except ValueError:  # more digits than Python turns into text
        return ""
    return sayable(unicodedata.normalize("NFC", _LONE_SURROGATE.sub("?", text.replace("\0", "?"))))[:limit]


def asked_text(text: str, feld: str, limit: int) -> str:
    """The text of a question, which is not stored: byte for byte, of at most `limit` characters."""
    if len(text) > limit:
        raise TooLarge(
            _("The text has %(length)d characters; at most %(limit)d are allowed.")
            % {"length": len(text), "limit": limit},
            feld,
        )
    return clean_text(text, feld)


def limited_text(text: str, feld: str, limit: int) -> str:
    """The text, byte for byte, of at most `limit` characters, without a credential."""
    return without_secret(asked_text(text, feld, limit), feld)


def filled_text(text: str, feld: str, limit: int) -> str:
    """The text, byte for byte; one of which nothing is to be seen is refused."""
    if _NOTHING_SEEN.fullmatch(text):
        raise Invalid(_("The text is blank."), feld)
    return limited_text(text, feld, limit)


def identifier(value: object, feld: str, *, may_be_empty: bool = False) -> str:
    """The identifier as a string in NFC, without a credential: `7`, `7.0` and `"7"` are the same one."""
    return without_secret(asked_identifier(value, feld, may_be_empty=may_be_empty), feld)


def asked_identifier(value: object, feld: str, *, may_be_empty: bool = False) -> str:
    """An identifier that a question asks for, which stores nothing."""
    text = unicodedata.normalize("NFC", clean_text(_spelled_out(value, feld), feld))
    if not text and not may_be_empty:
        raise Invalid(_("The identifier is empty."), feld)
    if text != text.strip():
        raise Invalid(_("The identifier has blanks at its edges."), feld)
    if _UNSEEN.search(text) or any(unicodedata.category(c) in _NOT_SHOWN for c in text):
        raise Invalid(_("The identifier contains control or invisible characters."), feld)
    if len(text) > limits().kennung:
        raise TooLarge(
            _("The identifier has %(length)d characters; at most %(limit)d are allowed.")
            % {"length": len(text), "limit": limits().kennung},
            feld,
        )
    return text


def _spelled_out(value: object, feld: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return str(value)
        except ValueError as error:  # more digits than Python turns into text
            raise TooLarge(_("The number has too many digits for an identifier."), feld) from error
    if isinstance(value, float) and value.is_integer():
        if abs(value) > _LARGEST_EXACT_FLOAT:
            raise Invalid(_("The number is too large to be exact; send the identifier as text."), feld)
        return str(int(value))
    raise Invalid(_("An identifier is a text or a whole number."), feld)


def tag_name(name: str, feld: str) -> str:
    """The tag's name in NFC, trimmed, with inner blanks folded into one, without a credential."""
    return without_secret(asked_tag(name, feld), feld)


def asked_tag(name: str, feld: str) -> str:
    """The name of a tag that a question asks for, which stores nothing."""
    text = _BLANKS.sub(" ", unicodedata.normalize("NFC", clean_text(name, feld))).strip()
    if not text:
        raise Invalid(_("The tag is blank."), feld)
    shown = _HELPERS.sub("", text).strip()
    if not shown or _UNSEEN.search(shown) or any(unicodedata.category(c) in _NOT_SHOWN for c in shown):
        raise Invalid(_("The tag contains control or invisible characters."), feld)
    if len(text) > limits().tag_name:
        raise TooLarge(
            _("The tag has %(length)d characters; at most %(limit)d are allowed.")
            % {"length": len(text), "limit": limits().tag_name},
            feld,
        )
    return text


def tag_key(name: str) -> str:
    """What makes two tag names the same tag: they differ in case alone (Unicode 3.13, D145, on a clean name)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def says(text: str, name: str) -> bool:
    """Whether the name stands in the text as words of their own, in whatever case and normal form."""
    return re.search(rf"(?<!\w){re.escape(tag_key(name))}(?!\w)", tag_key(text)) is not None


def tag_names(names: Iterable[str], feld: str, *, read: Callable[[str, str], str] = tag_name) -> list[str]:
    """The tags' names in the order given, each tag once, in its first spelling of the list."""
    spelled: dict[str, str] = {}
    faults: list[BrainError] = []
    for place, name in enumerate(names):
        try:
            clean = read(name, f"{feld}[{place}]")
        except BrainError as fault:
            faults.append(fault)
        else:
            spelled.setdefault(tag_key(clean), clean)
    if faults:
        raise Invalid(faults[0].meldung, faults[0].feld, faults)
    return list(spelled.values())


def embedding(numbers: Sequence[float], feld: str) -> bytes:
    """The vector as little-endian float32 bytes. Refused: not finite, beyond float32, all zero, too long."""
    if len(numbers) > limits().embedding:
        raise TooLarge(
            _("The embedding has %(length)d numbers; at most %(limit)d are allowed.")
            % {"length": len(numbers), "limit": limits().embedding},
            feld,
        )
    try:
        wide = np.array(numbers, dtype=np.float64)
    except OverflowError as error:
        raise Invalid(_("The embedding holds a number that is too large for float32."), feld) from error
    with np.errstate(over="ignore"):  # what rounds to infinity is refused; 3.4028235e38 is how the largest is spelled
        narrow = wide.astype("<f4")
    finite = np.isfinite(narrow)
    if not finite.all():
        place = int(finite.argmin())
        finite_number(wide[place], f"{feld}[{place}]")
        raise Invalid(_("The number is too large for float32."), f"{feld}[{place}]")
    if not narrow.any():
        raise Invalid(_("The embedding is a zero vector, which has no direction to compare."), feld)
    return narrow.tobytes()


def numbers_of(packed: bytes) -> list[float]:
    """The vector's numbers, each in the shortest spelling that gives the same float32 again."""
    return [float(number) for number in np.frombuffer(packed, dtype="<f4").astype("U")]


def finite_number(number: float, feld: str | None) -> float:
    """The number; NaN and infinity, also as a number beyond float64 becomes one, are refused."""
    if not math.isfinite(number):
        raise Invalid(_("The number is not finite, or too large."), feld)
    return number


def strict_json(text: str, *, finite: bool = True) -> Any:
    """The JSON value. Raises ValueError, which says where it goes wrong, also for duplicate keys, and when `finite` for
    NaN, Infinity, numbers too large.

    Nesting beyond what can be read is TooLarge. Without `finite` such numbers are read, for others to refuse.
    """
    try:
        return (_STRICT if finite else _WIDE).decode(text)
    except RecursionError as error:
        raise nested_too_deeply() from error
    except json.JSONDecodeError as error:
        raise ValueError(_where(error)) from error


def utf8_text(data: bytes) -> str:
    """The text that a file holds, without a byte order mark. Raises ValueError, which says where it is none."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(_("not UTF-8 from byte %(place)d on") % {"place": error.start}) from error


def json_text(text: str, feld: str) -> str:
    """The text, byte for byte, which must hold strict JSON of bounded length and nesting; an empty one is none."""
    if not limited_text(text, feld, limits().memory):
        return text
    try:
        level = [strict_json(text)]
    except TooLarge as fault:
        raise TooLarge(fault.meldung, feld) from fault
    except ValueError as error:
        raise Invalid(_("This is not valid JSON: %(reason)s.") % {"reason": error}, feld) from error
    value = level[0]
    for _depth in range(limits().nesting + 1):
        containers = [node for node in level if isinstance(node, dict | list)]
        if not containers:
            return unescaped(text, value, feld)
        level = [child for node in containers for child in (node.values() if isinstance(node, dict) else node)]
    raise TooLarge(nested_too_deeply().meldung, feld)


def unescaped(text: str, value: Any, feld: str) -> str:
    """The JSON text, which says this value; one that holds a credential behind escapes is refused."""
    for fault in secrets_in(value, feld) if "\\" in text else ():
        raise HoldsSecret(fault.meldung, feld)
    return text


def nested_too_deeply() -> TooLarge:
    """The fault of JSON that is nested beyond the limit."""
    return TooLarge(_("The JSON is nested more than %(limit)d levels deep.") % {"limit": limits().nesting})


def _where(error: json.JSONDecodeError) -> str:
    if not error.doc[error.pos :].strip():
        return _("it ends too early")
    return _("wrong from line %(line)d, column %(column)d on") % {"line": error.lineno, "column": error.colno}


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(_("the name %(name)s stands twice in an object") % {"name": json.dumps(twice[:60])})
    return members


def _refuse_constant(name: str) -> Any:
    raise ValueError(_("%(name)s is no number in JSON") % {"name": name})


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(_("the number %(digits)s is too large") % {"digits": digits[:20]})
    return number


def _whole(digits: str, *, too_long: Callable[[str], float] = float) -> int | float:
    """The whole number; one of more digits than Python turns into a number is, as a float, infinite."""
    try:
        return int(digits)
    except ValueError:
        return too_long(digits)


_STRICT = json.JSONDecoder(
    object_pairs_hook=_without_duplicates,
    parse_constant=_refuse_constant,
    parse_float=_finite,
    parse_int=partial(_whole, too_long=_finite),
)
_WIDE = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_int=_whole)

_DATE = re.compile(r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})")
_GERMAN_DATE = re.compile(r"(?P<day>[0-9]{1,2})\.(?P<month>[0-9]{1,2})\.(?P<year>[0-9]{4})")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?"
)
_END_OF_DAY = time(23, 59, 59, 999999, fold=1)  # where clocks are put back at midnight there are two; it is the later


def moment(text: str, feld: str, *, day: time = _END_OF_DAY) -> datetime:
    """The moment in UTC. Read are 2026-12-31, 31.12.2026 and 2026-12-31T14:30 (with or without seconds and zone).

    A date alone is the time `day` of that day; without a zone the server's time zone holds. Fractions of a second have
    up to nine digits, as some languages write them, of which six count. Moments that do not exist (30.02., an hour
    skipped by the clock change) are refused.
    """
    found = _DATE.fullmatch(text) or _GERMAN_DATE.fullmatch(text)
    if not found and not _MOMENT.fullmatch(text):
        raise Invalid(_("This is no date or time. Write 2026-12-31, 31.12.2026 or 2026-12-31T14:30:00+01:00."), feld)
    try:
        if found:
            aware = _on_day(date(*(int(found[part]) for part in ("year", "month", "day"))), day)
        else:
            plain = datetime.fromisoformat(text)
            aware = plain if plain.tzinfo else _in_server_zone(plain)
        aware.astimezone(timezone.get_default_timezone())  # it must be possible to show it
        return aware.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Invalid(_("The moment %(text)s does not exist.") % {"text": text}, feld) from error


def _on_day(wanted: date, at: time) -> datetime:
    """The beginning or end of the day. Where clocks are put forward at midnight, the day begins an hour later."""
    aware = datetime.combine(wanted, at, tzinfo=timezone.get_default_timezone())
    if aware.astimezone(UTC).astimezone(aware.tzinfo).date() != wanted:
        raise ValueError("skipped by a change of the zone")
    return aware


def _in_server_zone(plain: datetime) -> datetime:
    aware = plain.replace(tzinfo=timezone.get_default_timezone())
    if aware.astimezone(UTC).astimezone(aware.tzinfo).replace(tzinfo=None) != plain:
        raise ValueError("skipped by the clock change")
    return aware


def days_from(start: datetime, days: int) -> datetime:
    """The moment `days` times 24 hours later."""
    return start + timedelta(days=days)
