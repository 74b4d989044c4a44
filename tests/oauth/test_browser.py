"""The page that asks, in a real browser: the answer reaches the client in spite of the strict rules."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User

from tests.oauth.connector import Connector, key, registered
from tests.test_admin_browser import LOOKS, PASSWORD, Browser, Visitor, anna, browser, expect, picture

__all__ = ["anna", "browser"]  # fixtures
pytestmark = pytest.mark.django_db(transaction=True)


class Callback(BaseHTTPRequestHandler):
    """Where the client waits for its answer."""

    def do_GET(self) -> None:
        """Thank for the answer."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<link rel=icon href=data:,>Connected.")

    def log_message(self, *_args: Any) -> None:
        """Nothing."""


@pytest.fixture
def callback() -> Iterator[str]:
    """A client on the person's own machine that listens at a port it found free."""
    with HTTPServer(("127.0.0.1", 0), Callback) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/callback"
        server.shutdown()


@pytest.mark.parametrize("look", LOOKS)
def test_a_person_lends_the_rights_of_a_key(
    browser: Browser, live_server: Any, anna: User, callback: str, look: str
) -> None:
    client = registered(name="Claude Code", redirect_uris="http://127.0.0.1/callback")
    key(nutzer=["anna"])
    other = key("zweiter", nutzer=["anna", "ben"], tools=["search_brain", "select_brain_tags"])
    claude = Connector(client)
    visitor = Visitor(browser, live_server.url, **LOOKS[look])
    page = visitor.page
    page.goto(claude.question(redirect_uri=callback))
    page.fill("#id_username", "anna")
    page.fill("#id_password", PASSWORD)
    page.click("#login-form input[type=submit]")
    expect(page.locator("#content-main")).to_contain_text("a program on your own machine")
    picture(page, "oauth", look)
    page.get_by_label("zweiter (zweiter)").check()
    page.get_by_role("button", name="Allow", exact=True).click()
    expect(page.locator("body")).to_have_text("Connected.")
    assert visitor.trouble == []
    answer = parse_qs(urlsplit(page.url).query)
    visitor.context.close()
    tokens = claude.redeem(answer["code"][0], redirect_uri=callback).json()
    assert claude.works(tokens["access_token"])
    other.refresh_from_db()
    assert other.last_used_at is not None
