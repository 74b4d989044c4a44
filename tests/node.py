"""Programs of Node.js for tests: the official test suite and clients of MCP, as tests/npm pins them."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

NPM = Path(__file__).parent / "npm"
MODULES = NPM / "node_modules"
OLDEST = 22
MISSING = (
    f"Left out: Node.js {OLDEST} with the test suite and the clients of MCP; `make node` installs them (needs npm)."
)


def node() -> str:
    """Node.js, once the pinned packages are there; leaves the test out without them, or fails where all must run."""
    found = _found()
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    return found


@cache
def _found() -> str | None:
    """The Node.js among the packages, or one of the system that is new enough."""
    if not (MODULES / ".package-lock.json").exists():
        return None
    own = [str(path) for path in sorted(MODULES.glob("node-*/bin/node"))]
    return next((path for path in [*own, shutil.which("node")] if path and _version(path) >= OLDEST), None)


def _version(program: str) -> int:
    try:
        told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        return int(told.removeprefix("v").partition(".")[0])
    except (OSError, subprocess.CalledProcessError, ValueError):
        return 0
