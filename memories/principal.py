"""Who acts, what he may see and change, and how a change came about: frozen values that every service takes."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

ALL_KINDS = frozenset({"longterm", "shortterm", "brain"})


@dataclass(frozen=True, slots=True)
class Principal:
    """An access key or a person. Of `nutzer`, `agent`, `scope` and `tools`, None means all and a set these only.

    `portable` wishes for tool schemas that name one type for each property.
    """

    sees: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    nutzer: frozenset[str] | None = None
    agent: frozenset[str] | None = None
    scope: frozenset[str] | None = None
    tools: frozenset[str] | None = None
    sees_expired: bool = False
    portable: bool = False
    key_id: int | None = None
    key_name: str = ""
    user_id: int | None = None
    user_name: str = ""

    # Django REST framework asks this of whoever is signed in.
    is_authenticated: bool = True

    def may_call(self, tool: str) -> bool:
        """Whether the tool is among those it may call."""
        return self.tools is None or tool in self.tools

    def out_of_reach(self, **identity: str) -> str | None:
        """The first of `nutzer`, `agent`, `scope` whose value it may not speak for; None when all are within reach."""
        for name, value in identity.items():
            allowed: frozenset[str] | None = getattr(self, name)
            if allowed is not None and value not in allowed:
                return name
        return None


# The program itself, for its own commands.
SYSTEM = Principal(sees=ALL_KINDS, changes=ALL_KINDS, sees_expired=True)


@dataclass(frozen=True, slots=True)
class Origin:
    """How a change came about; written with every version. `clock` gives the moment, in UTC."""

    principal: Principal
    nutzer: str
    agent: str
    tuer: str
    tool: str
    grund: str = ""
    referenzfelder: Mapping[str, Any] = field(default_factory=dict)
    aufruf: uuid.UUID = field(default_factory=uuid.uuid4)
    clock: Callable[[], datetime] = timezone.now
