"""What every answer carries: a Content Security Policy and the other headers, whatever the address and the outcome."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse

from brain import health
from tests.admincast import person, store

pytestmark = pytest.mark.django_db
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def names(patterns: Any, space: str = "") -> Iterator[tuple[str, list[str]]]:
    """All named addresses and their parameters."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{space}{pattern.namespace}:" if pattern.namespace else space
            yield from names(pattern.url_patterns, inner)
        elif isinstance(pattern, URLPattern) and pattern.name:
            yield space + pattern.name, list(pattern.pattern.regex.groupindex)


def addresses() -> Iterator[str]:
    """All named addresses, with the first row or word that comes to mind."""
    values = {"app_label": "memories", "url": "x", "name": "nichts"}
    for name, parameters in names(get_resolver().url_patterns):
        try:
            yield reverse(name, kwargs={each: values.get(each, "1") for each in parameters})
        except NoReverseMatch:
            yield reverse(name, args=["1" for _each in parameters])


def check(response: Any, address: str) -> None:
    """The answer has the headers."""
    told = f"{address} {response.status_code}"
    for name, value in HEADERS.items():
        assert response.headers.get(name) == value, (told, name)
    policy = response.headers.get("Content-Security-Policy", "")
    assert "default-src 'self'" in policy, told
    assert "frame-ancestors 'none'" in policy, told
    assert "object-src 'none'" in policy, told
    assert "unsafe" not in policy, told
    assert "camera=()" in response.headers.get("Permissions-Policy", ""), told


def test_every_named_address_answers_with_all_headers() -> None:
    store()
    somebody, nobody = person("anna", superuser=True), Client()
    somebody.raise_request_exception = nobody.raise_request_exception = False
    seen = set()
    for address in addresses():
        for client in (nobody, somebody):
            for send in (client.get, client.post):
                response = send(address)
                check(response, address)
                seen.add(response.status_code)
                if b"<html" in getattr(response, "content", b""):
                    page = response.content.decode()
                    assert "<style" not in page, address
                    assert 'style="' not in page, address
        if "logout" in address:
            somebody = person("ben", superuser=True)
    assert {200, 302, 401, 404, 405} <= seen


@pytest.mark.parametrize("path", ["/nichts", "/api/nichts", "/admin/nichts/", "/static/brain/favicon.svg", "/static/x"])
def test_addresses_that_nobody_named_too(path: str) -> None:
    response = Client().get(path)
    check(response, path)
    response.close()


def test_refused_hosts_and_foreign_forms_too() -> None:
    client = Client(enforce_csrf_checks=True, headers={"Accept-Language": "en"})
    response = client.get("/admin/", HTTP_HOST="evil.example.org")
    assert (response.status_code, b"<style" in response.content) == (400, False)
    check(response, "another host")
    response = client.post("/admin/login/", {"username": "anna"})
    assert response.status_code == 403
    assert "Go back, load the page anew" in response.content.decode()
    check(response, "another site")


@pytest.mark.parametrize("path", ["/healthz", "/admin/login/"])
def test_a_bug_too(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: Any, **_more: Any) -> Any:
        raise RuntimeError("inside")

    monkeypatch.setattr(health, "JsonResponse", broken)
    monkeypatch.setattr("django.contrib.admin.sites.AdminSite.each_context", broken)
    response = Client(raise_request_exception=False).get(path)
    assert response.status_code == 500
    assert b"inside" not in response.content
    check(response, path)
