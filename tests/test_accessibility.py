"""No page of the admin keeps anybody out: axe-core finds no serious fault, in either colours, on either width."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import Browser

from memories.models import AccessKey, BrainMemory, LongtermMemory, ShorttermMemory, Tag
from tests import test_admin_browser as looks
from tests.axe import BY_LOOK, heavy_faults, needs_axe
from tests.test_stored_xss import addresses, pages

pytestmark = pytest.mark.django_db(transaction=True)
browser = looks.browser
anna = looks.anna
LIGHT, DARK = {"color_scheme": "light"}, {"color_scheme": "dark"}
DESKTOP, PHONE = ({"width": width, "height": 844} for width in (1280, 390))
SIGNED_OUT = ("/admin/", "/admin/memories/nowhere/", "/nowhere/")


def faults(page: Any, address: str) -> dict[str, list[Any]]:
    """What is wrong with the page at this address, by how it is looked at."""
    page.set_viewport_size(DESKTOP)
    page.emulate_media(**LIGHT)
    page.goto(address)
    found = {address: heavy_faults(page)}
    page.emulate_media(**DARK)
    page.set_viewport_size(PHONE)
    found[f"{address} dark, on a phone"] = heavy_faults(page, *BY_LOOK)
    return {where: each for where, each in found.items() if each}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="pages look the same on every database")
def test_no_page_has_a_serious_fault(browser: Browser, live_server: Any, anna: User) -> None:
    needs_axe()
    keys = looks.fill_the_database()
    models = {LongtermMemory: "long", ShorttermMemory: "short", BrainMemory: "brain", AccessKey: "key", Tag: "tag"}
    opened = pages(anna, addresses({model: keys[name] for model, name in models.items()}))
    visitor = looks.Visitor(browser, live_server.url)
    found = {}
    for address in SIGNED_OUT:
        found |= faults(visitor.page, address)
    visitor.sign_in()
    for address in opened:
        found |= faults(visitor.page, address)
    assert found == {}
    assert [line for line in visitor.trouble if "404" not in line] == []
    visitor.context.close()
