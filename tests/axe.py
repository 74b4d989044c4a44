"""axe-core, which looks through a page in the browser for what keeps people from using it."""

import os
from functools import cache
from typing import Any

import pytest

from tests.node import MODULES

AXE = MODULES / "axe-core" / "axe.min.js"
MISSING = "Left out: axe-core; `make node` installs it (needs npm)."
HEAVY = {"serious", "critical"}
BY_LOOK = ("color-contrast", "link-in-text-block", "target-size")  # what colours and width decide
# What the developer's tools run, a page's Content Security Policy does not bind; axe itself is told to load nothing.
_RUN = """rules => axe.run(document, {
    resultTypes: ["violations"], preload: false, ...(rules.length ? {runOnly: rules} : {})
}).then(found => found.violations.map(each => ({
    id: each.id,
    impact: each.impact,
    where: each.nodes.map(node => node.html.slice(0, 200) + " " + node.failureSummary)
})))"""


def needs_axe() -> None:
    """Leave the test out without axe-core, or fail where all must run."""
    if not AXE.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)


@cache
def _source() -> str:
    return AXE.read_text(encoding="utf-8")


def heavy_faults(page: Any, *rules: str) -> list[dict[str, Any]]:
    """What is seriously wrong with the page as it is shown now, or by these rules alone."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_source())
    page.evaluate("document.getAnimations().forEach(each => each.finish())")  # colours that are on their way
    found: list[dict[str, Any]] = page.evaluate(_RUN, list(rules))
    return [each for each in found if each["impact"] in HEAVY]
