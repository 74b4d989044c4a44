"""The one analyser of both databases: a text becomes stems that German and English spellings of a word share."""

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import snowballstemmer

_FOLDED = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "oe", "å": "a", "œ": "oe", "ı": "i"}
# Words, also those held together by a mark (E-Mail, node.js, AB-4711/2, don't), and names that end in one (C++, C#).
_WORD = re.compile(r"[^\W_]+(?:[-./_+:@'’&][^\W_]+)*(?:\+\+|#)?")
_PART = re.compile(r"[^\W_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_LONGEST = 40  # characters of a stem; what is longer is no word
_REMEMBERED = 50_000  # words

_german = snowballstemmer.stemmer("german")
_english = snowballstemmer.stemmer("english")
_stemming = threading.Lock()


def stems(text: str) -> list[str]:
    """The stems of a text in their order; a word held together by marks gives itself joined, and its parts."""
    return _stemmed(folded(text))


def _stemmed(plain: str) -> list[str]:
    return [stem for word in _WORD.findall(plain) for stem in _of_word(word)]


def held_by(text: str) -> list[str]:
    """What a text can be found by: its stems, and after them each sign of Chinese, Japanese and Korean by itself.

    At the end, since the words of a phrase follow each other.
    """
    plain = folded(text)
    runs = [] if plain.isascii() else _CJK.findall(plain)
    return [*_stemmed(plain), *dict.fromkeys(sign for run in runs if len(run) > 1 for sign in run)]


@lru_cache(maxsize=_REMEMBERED)
def _of_word(word: str) -> tuple[str, ...]:
    return tuple(_stems(word))


def _stems(word: str) -> Iterator[str]:
    parts = _PART.findall(word)
    if len(parts) > 1 or word[-1] in "+#":
        yield ("".join(parts) + {"+": "plusplus", "#": "sharp"}.get(word[-1], ""))[:_LONGEST]
    if len(parts) > 1 or word[-1] not in "+#":
        for part in parts:
            yield from _of_part(part)


def _of_part(part: str) -> Iterator[str]:
    start = 0
    for found in _CJK.finditer(part):
        if found.start() > start:
            yield stem(part[start : found.start()])
        run = found.group()
        yield from (run[place : place + 2] for place in range(max(len(run) - 1, 1)))
        start = found.end()
    if start < len(part):
        yield stem(part[start:])


def folded(text: str) -> str:
    """The text in lower case, with umlauts and ß spelled out and all other accents gone."""
    lower = unicodedata.normalize("NFC", text).casefold()
    for letter, spelled in _FOLDED.items():
        lower = lower.replace(letter, spelled)  # quicker than translate, which looks at every letter
    if lower.isascii():
        return lower
    plain = unicodedata.normalize("NFKD", lower)
    return unicodedata.normalize("NFC", "".join(letter for letter in plain if not unicodedata.combining(letter)))


def stem(word: str) -> str:
    """The stem of one folded word: German rules first, then English ones; numbers and other scripts stay."""
    if not (word.isascii() and word.isalpha()) or len(word) > _LONGEST:
        return word[:_LONGEST]
    with _stemming:  # a stemmer keeps the word it works on, and threads share it
        stemmed: str = _english.stemWord(_german.stemWord(word))
    return stemmed
