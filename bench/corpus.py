"""Made memories for measurements, always the same: texts like German ones, and clustered vectors."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

DIMENSION = 384
AT_ONCE = 10_000
_SEED = 4711
_WORDS = 65  # a memory; about 490 characters
_LEXEMES = 25_000
_COMPOUNDS = 15_000
_TOPICS, _CLUSTERS, _SUBSPACE = 50, 2_000, 64

Floats = npt.NDArray[np.float32]

# The commonest words, and what the others are made of.
_FUNCTION = (
    "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat "
    "dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis mehr "
    "durch man sein wurde sei kann gegen vom können schon wenn habe seine ihre dann unter wir soll ich eines"
)
_ONSETS = "b d f g h k l m n p r s t w z br dr fl fr gr kl kr pfl pr sch schl schr sp st str tr zw"
_NUCLEI = "a e i o u a e i ä ö ü au ei ie eu"
_CODAS = ["", "", "", "l", "m", "n", "r", "s", "t", "ch", "ck", "nd", "ng", "nt", "rt", "st", "tz"]
_ENDINGS = ["", "", "e", "en", "er", "ung", "ungen", "keit", "lich", "isch", "t", "s"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Up to AT_ONCE memories: their texts, and their vectors of length 1."""

    texts: list[str]
    vectors: Floats


class Corpus:
    """A vocabulary with Zipf frequencies and a space of clusters; the same for every run."""

    def __init__(self) -> None:
        """Draw the vocabulary and the clusters."""
        rng = np.random.default_rng(_SEED)
        self.words = [*_FUNCTION.split(), *_vocabulary(rng)]
        # Zipf's law as Mandelbrot put it.
        frequencies = 1 / (np.arange(len(self.words)) + 2.7) ** 1.07
        self._cumulated = np.cumsum(frequencies / frequencies.sum())
        topics = rng.standard_normal((_TOPICS, _SUBSPACE))
        self._centres = topics[rng.integers(_TOPICS, size=_CLUSTERS)] + rng.standard_normal((_CLUSTERS, _SUBSPACE))
        self._weights = rng.pareto(1.2, _CLUSTERS) + 0.1
        self._weights /= self._weights.sum()
        self._axes = np.linalg.qr(rng.standard_normal((DIMENSION, _SUBSPACE)))[0].T

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """So many memories."""
        for start in range(0, rows, AT_ONCE):
            yield self.chunk(start, min(AT_ONCE, rows - start))

    def chunk(self, start: int, size: int) -> Chunk:
        """So many memories from this number on."""
        rng = np.random.default_rng([_SEED, start])
        return Chunk(self._texts(rng, size, start), self.vectors(rng, size))

    def _texts(self, rng: np.random.Generator, size: int, start: int) -> list[str]:
        drawn = np.searchsorted(self._cumulated, rng.random((size, _WORDS)))
        texts = [" ".join(self.words[place] for place in row) for row in drawn]
        # Every tenth has a number of its own, as files and orders do.
        return [f"{text} AZ-{start + n}/24" if n % 10 == 0 else text for n, text in enumerate(texts)]

    def vectors(self, rng: np.random.Generator, size: int) -> Floats:
        """Fresh draws from the clusters, with noise in all directions."""
        chosen = rng.choice(_CLUSTERS, size=size, p=self._weights)
        inside = self._centres[chosen] + 0.6 * rng.standard_normal((size, _SUBSPACE))
        drawn = inside @ self._axes + 0.15 * rng.standard_normal((size, DIMENSION))
        units: Floats = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
        return units

    def queries(self, number: int) -> tuple[list[str], list[str], Floats]:
        """Queries of one to four content words, questions of eight words, and vectors."""
        rng = np.random.default_rng(_SEED + 1)
        function = _FUNCTION.split()
        content = len(function) + 50
        low, high = self._cumulated[content], self._cumulated[20_000]

        def words(count: int) -> list[str]:
            return [self.words[place] for place in np.searchsorted(self._cumulated, rng.uniform(low, high, count))]

        short = [" ".join(words(1 + place % 4)) for place in range(number)]
        questions = [" ".join([*rng.choice(function, 4), *words(4)]) for _place in range(number)]
        return short, questions, self.vectors(rng, number)


def _vocabulary(rng: np.random.Generator) -> list[str]:
    parts = (_ONSETS.split(), _NUCLEI.split(), _CODAS)

    def syllables(count: int) -> str:
        return "".join(part[rng.integers(len(part))] for _syllable in range(count) for part in parts)

    lexemes = list(dict.fromkeys(syllables(int(rng.integers(1, 4))) for _word in range(_LEXEMES)))
    inflected = [lexeme + _ENDINGS[rng.integers(len(_ENDINGS))] for lexeme in lexemes]
    pairs = rng.integers(len(lexemes), size=(_COMPOUNDS, 2))
    compounds = [lexemes[left] + ("s" if left % 3 == 0 else "") + inflected[right] for left, right in pairs]
    words = list(dict.fromkeys([*inflected, *compounds]))
    rng.shuffle(words)
    return words
