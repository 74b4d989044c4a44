"""The official test suite of MCP against the protocol kernel, for the newest revision and the one before."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node import MODULES, node
from tests.serving import Place, Server, serving

SUITE = MODULES / ".bin" / "conformance"
EXPECTED = Path(__file__).parent / "conformance" / "expected-failures.yml"
WITHIN = 120  # seconds


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of the fixtures that the suite calls."""
    node()
    place = Place(tmp_path_factory.mktemp("conformance"))
    place.environment["DJANGO_SETTINGS_MODULE"] = "tests.conformance.settings"
    with serving(place) as server:
        yield server


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_every_scenario_of_the_revision_passes(fixtures: Server, revision: str) -> None:
    options = ["--url", f"http://127.0.0.1:{fixtures.port}/mcp", "--requirements", revision]
    if revision == "2025-11-25":
        options += ["--expected-failures", str(EXPECTED)]
    outcome = subprocess.run(
        [node(), SUITE, "server", *options], capture_output=True, text=True, check=False, timeout=WITHIN
    )
    summary = outcome.stdout.partition("=== SUMMARY ===")[2]
    assert outcome.returncode == 0, f"{summary}{outcome.stderr}"
    assert summary.count("✓ ") > 20, summary
