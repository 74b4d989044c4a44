"""2,000 memories to search in: the example's, some that the queries are about, and distractors put together by seed.

A distractor is a title and three or four sentences of one topic, with names, places and amounts filled in. Every
sentence was written by hand (`sentences.json`); the choice is random and the same in every run.
"""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memories import services
from memories.kinds import LONGTERM
from memories.principal import SYSTEM, Origin

SIZE = 2_000
_SEED = 4711
_AT_ONCE = 100
_HERE = Path(__file__).parent
_EXAMPLE = _HERE.parent.parent / "memories" / "example"


@dataclass(frozen=True, slots=True)
class Text:
    """A memory to store; `name` is what the queries call it, and empty for a distractor."""

    name: str
    title: str
    text: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A query of a kind, and the names of the memories of which it must find one."""

    kind: str
    words: str
    names: frozenset[str]


def queries() -> list[Asked]:
    """All queries."""
    return [Asked(kind, words, frozenset(names)) for kind, words, names in _read(_HERE / "queries.json")]


def store() -> dict[str, set[int]]:
    """Store all memories, in a random order, and give their keys by name."""
    texts = [*_example(), *(Text(*each) for each in _read(_HERE / "memories.json"))]
    chance = random.Random(_SEED)
    made = _distractors(chance)
    texts += [next(made) for _place in range(SIZE - len(texts))]
    chance.shuffle(texts)
    origin = Origin(principal=SYSTEM, nutzer="anna", agent="planer", tuer="command", tool="quality")
    keys: dict[str, set[int]] = {}
    for start in range(0, len(texts), _AT_ONCE):
        part = texts[start : start + _AT_ONCE]
        for text, done in zip(part, services.insert(LONGTERM, [_draft(text) for text in part], origin), strict=True):
            assert isinstance(done, services.Done), done
            keys.setdefault(text.name, set()).add(done.key)
    return keys


def _draft(text: Text) -> dict[str, Any]:
    return {
        "kurzbeschreibung": text.title,
        "memory": text.text,
        "tag_namen": list(text.tags),
        "scope": "global",
        "scope_vk": "",
        "nutzer": "anna",
        "agent": "planer",
    }


def _example() -> Iterator[Text]:
    """The example's memories as their last change leaves them."""
    for kind in ("longterm", "shortterm", "brain"):
        for item in _read(_EXAMPLE / f"{kind}.json"):
            values = dict(item["anlage"]["werte"])
            for change in item["aenderungen"]:
                values |= change.get("werte", {}) if change["art"] == "update" else {}
            title, text = ("titel", "inhalt") if kind == "brain" else ("kurzbeschreibung", "memory")
            yield Text(item["schluessel"], values[title], values[text], tuple(values["tags"]))


def _distractors(chance: random.Random) -> Iterator[Text]:
    told = _read(_HERE / "sentences.json")

    def filled(sentence: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda slot: chance.choice(told["words"][slot[1]]), sentence)

    seen: set[str] = set()
    while True:
        topic = chance.choice(told["topics"])
        title = filled(chance.choice(topic["titles"]))
        text = " ".join(filled(each) for each in chance.sample(topic["sentences"], chance.choice((3, 4))))
        if text not in seen:
            seen.add(text)
            yield Text("", title, text)


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
