"""The cast and the doors of the tests: anna (owner), ben (same team), carla (outsider), each with an access key."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.db import connection
from django.test import Client
from django.utils.translation import deactivate

from memories.keys import make_key
from tests.embedders import Endpoint, endpoint


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """On SQLite the tests' database is a file, since other processes must be able to open it.

    It is thrown away, so nothing has to survive a crash of the machine.
    """
    if connection.vendor == "sqlite":
        connection.settings_dict["TEST"]["NAME"] = str(Path(os.environ["BRAIN_DATA"]) / "test.sqlite3")
        options = connection.settings_dict["OPTIONS"]
        options["init_command"] = options["init_command"].replace("synchronous = FULL", "synchronous = OFF")


@pytest.fixture(scope="session", autouse=True)
def _quick_passwords() -> None:
    """Hashes of passwords that are made here need not hold: half of the time of the admin's tests went to them."""
    Argon2PasswordHasher.time_cost, Argon2PasswordHasher.memory_cost, Argon2PasswordHasher.parallelism = 1, 8, 1


@pytest.fixture(scope="session", autouse=True)
def _no_traces() -> Iterator[None]:
    yield
    shutil.rmtree(os.environ["BRAIN_DATA"], ignore_errors=True)


@pytest.fixture(autouse=True)
def _own_language() -> Iterator[None]:
    """A request leaves its language behind in the thread; the next test begins with the default one."""
    yield
    deactivate()


class Agent:
    """An agent that calls the tools over HTTP with its key."""

    def __init__(self, key: str, *, nutzer: str, agent: str = "planer") -> None:
        self.key = key
        self.nutzer = nutzer
        self.agent = agent
        self.http = Client(headers={"Authorization": f"Bearer {key}"}, raise_request_exception=False)

    def post(self, tool: str, arguments: Any, **headers: str) -> Any:
        """The response to a call with these arguments, as they are."""
        body = {"tool": tool, "arguments": arguments}
        return self.http.post("/api/tools/", body, content_type="application/json", headers=headers)

    def call(self, tool: str, *, referenzfelder: Any = None, **inhalt: Any) -> dict[str, Any]:
        """The answer to a call that is executed; `inhalt` is completed with who calls."""
        arguments: dict[str, Any] = {"inhalt": {"nutzer": self.nutzer, "agent": self.agent, **inhalt}}
        if referenzfelder is not None:
            arguments["referenzfelder"] = referenzfelder
        response = self.post(tool, arguments)
        assert response.status_code == 200, response.content
        answer: dict[str, Any] = response.json()
        return answer

    def store(self, **fields: Any) -> str:
        """The ID of a new long-term memory."""
        answer = self.call("insert_brain_longterm_memory", memories=[note(nutzer=self.nutzer, **fields)])
        assert answer["erfolg"], answer
        return str(answer["daten"][0]["ID"])


def note(**fields: Any) -> dict[str, Any]:
    """An entry for a long-term or short-term memory, complete with what is not named."""
    return {
        "kurzbeschreibung": "Frist",
        "memory": "Die Kündigungsfrist beträgt drei Monate.",
        "tags": ["Vertrag"],
        "scope": "modul",
        "scope_vk": "12",
        "agent": "planer",
        "nutzer": "anna",
    } | fields


@pytest.fixture
def agent_with(db: None) -> Callable[..., Agent]:
    """Makes an agent with a key of these limits (lists such as nutzer, scope, tools) and flags (such as may_delete)."""

    def make(who: str = "anna", *, may_write: bool = True, expires_at: Any = None, **more: Any) -> Agent:
        only = {name: value for name, value in more.items() if isinstance(value, list)}
        flags = {name: value for name, value in more.items() if name not in only}
        _key, text = make_key(name=who, account=who, only=only, may_write=may_write, expires_at=expires_at, **flags)
        return Agent(text, nutzer=who, agent=(only.get("agent") or ["planer"])[0])

    return make


@pytest.fixture
def anna(agent_with: Callable[..., Agent]) -> Agent:
    """Owner; her key speaks for her and for ben."""
    return agent_with("anna", nutzer=["anna", "ben"])


@pytest.fixture
def ben(agent_with: Callable[..., Agent]) -> Agent:
    """Of anna's team: his key speaks for both, too."""
    return agent_with("ben", nutzer=["anna", "ben"])


@pytest.fixture
def carla(agent_with: Callable[..., Agent]) -> Agent:
    """An outsider: her key speaks for her alone."""
    return agent_with("carla", nutzer=["carla"])


@pytest.fixture
def there(settings: Any) -> Iterator[Endpoint]:
    """An endpoint that embeds, and serves: it knows dogs, deadlines and cars."""
    with endpoint() as running:
        settings.BRAIN_EMBEDDER = "http"
        settings.BRAIN_EMBEDDER_URL, settings.BRAIN_EMBEDDER_MODEL = running.url, "bedeutung"
        yield running
