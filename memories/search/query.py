"""What somebody searches for: words that are OR-ed and ranked, phrases in quotes, and what a leading minus excludes."""

import re
from dataclasses import dataclass

from memories.search.analyser import stems

_PIECE = re.compile(r'(?P<minus>-?)"(?P<phrase>[^"]*)"|(?P<word>\S+)')
_MOST_WORDS = 64


@dataclass(frozen=True, slots=True)
class TextQuery:
    """A query as stems: words that may occur, phrases that must, and words and phrases that must not.

    The stems of a phrase have blanks between them.
    """

    words: tuple[str, ...]
    phrases: tuple[str, ...]
    excluded: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to look for; to exclude something alone finds nothing."""
        return not self.words and not self.phrases


def parse(text: str) -> TextQuery:
    """The query that a text means. No text is an error; marks that mean nothing are passed over."""
    words: list[str] = []
    phrases: list[str] = []
    excluded: list[str] = []
    for piece in _PIECE.finditer(text):
        phrase, word = piece["phrase"], piece["word"]
        if phrase is not None:
            found = " ".join(stems(phrase))
            if found:
                (excluded if piece["minus"] else phrases).append(found)
        elif word.startswith("-") and len(word) > 1 and word[1].isalnum():
            excluded.extend(stems(word[1:])[:1])
        else:
            words.extend(stems(word))
    # A word of the phrase counts for the ranking too.
    words.extend(stem for phrase in phrases for stem in phrase.split(" "))
    return TextQuery(
        words=tuple(dict.fromkeys(words))[:_MOST_WORDS],
        phrases=tuple(dict.fromkeys(phrases)),
        excluded=tuple(dict.fromkeys(excluded)),
    )
