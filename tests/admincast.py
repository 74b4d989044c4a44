"""The people of the admin's tests and what they do in it: they sign in, open forms and send them as a browser does."""

from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from memories.kinds import LONGTERM, Kind
from memories.models import Grant
from memories.principal import SYSTEM, Origin
from memories.services import Done, insert

NOTE: dict[str, Any] = {
    "kurzbeschreibung": "Frist",
    "memory": "Die Kündigungsfrist beträgt drei Monate.",
    "tag_namen": ["Vertrag"],
    "scope": "modul",
    "scope_vk": "12",
    "nutzer": "anna",
    "agent": "planer",
}


def store(kind: Kind = LONGTERM, **values: Any) -> int:
    """The key of a memory that an agent stored."""
    origin = Origin(SYSTEM, nutzer="anna", agent="planer", tuer="rest", tool="test", referenzfelder={"ticket": "T-17"})
    done = insert(kind, [NOTE | values], origin)[0]
    assert isinstance(done, Done), done
    return done.key


def person(name: str, permissions: Sequence[str] = (), *, superuser: bool = False) -> Client:
    """A staff user of these permissions, signed in, speaking English."""
    user = User.objects.create_user(name, password="a long password", is_staff=True, is_superuser=superuser)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    Grant.objects.create(user=user)
    client = Client(headers={"Accept-Language": "en"})
    client.force_login(user)
    return client


def url(name: str, *args: object, kind: str = "longterm") -> str:
    """The address of a page of the kind's memories."""
    return reverse(f"admin:memories_{kind}memory_{name}", args=args)


class Fields(HTMLParser):
    """What the forms of a page would send, by field name."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._open: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a field."""
        given = dict(attrs)
        name = given.get("name")
        if name is None or (given.get("type") in {"checkbox", "radio"} and "checked" not in given):
            if tag == "option" and "selected" in given and self._open:
                self.values[self._open] = given.get("value") or ""
            return
        if tag in {"textarea", "select"}:
            self._open = name
            self.values[name] = ""
        elif tag == "input" and given.get("type") != "submit":
            self.values[name] = given.get("value") or ""

    def handle_data(self, data: str) -> None:
        """The text of a textarea, as a browser sends it: without the first line break, with CRLF for each other."""
        if self._open and self.lasttag == "textarea":
            self.values[self._open] += data

    def handle_endtag(self, tag: str) -> None:
        """End a field."""
        if tag == "textarea" and self._open:
            text = self.values[self._open].replace("\r\n", "\n").replace("\r", "\n").removeprefix("\n")
            self.values[self._open] = text.replace("\n", "\r\n")
        if tag in {"textarea", "select"}:
            self._open = None


def form(client: Client, address: str) -> dict[str, str]:
    """What the form at the address would send unchanged."""
    response = client.get(address)
    assert response.status_code == 200, response
    return Fields(response.content.decode()).values


def messages(response: Any) -> str:
    """What the page tells."""
    return " ".join(str(message) for message in response.context["messages"])
