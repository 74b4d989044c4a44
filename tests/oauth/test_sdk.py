"""The OAuth client of the official Python SDK: from the refused call over discovery to a renewed token."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.admincast import person
from tests.oauth.connector import CALLBACK, HAVING, LENDING, key, registered

PACKAGES = Path(__file__).parents[2] / ".venv" / "python2"
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        not PACKAGES.exists() and os.environ.get("CI") != "true",
        reason="The client python2 is not installed; make clients does it.",
    ),
]


def test_it_connects_and_renews_its_token(live_server: Any, settings: Any) -> None:
    settings.BRAIN_OAUTH = live_server.url
    settings.OAUTH2_PROVIDER = settings.OAUTH2_PROVIDER | {"OIDC_ISS_ENDPOINT": live_server.url}
    client, lent, operator = registered(), key(), person("olga", [*LENDING, *HAVING])
    command = [sys.executable, str(Path(__file__).with_name("sdk_client.py"))]
    with subprocess.Popen(
        [*command, f"{live_server.url}/mcp", client.client_id, CALLBACK],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGES)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
    ) as sdk:
        assert sdk.stdin is not None
        assert sdk.stdout is not None
        asked = urlsplit(sdk.stdout.readline().strip())
        assert asked.path == "/oauth/authorize"
        answer = operator.post(f"{asked.path}?{asked.query}", {"key": lent.pk, "allow": "Allow"})
        sdk.stdin.write(answer["Location"] + "\n")
        sdk.stdin.flush()
        first, second = (json.loads(sdk.stdout.readline()) for _time in range(2))
    assert first["answer"]["erfolg"]
    assert second["answer"]["erfolg"]
    assert first["token"] != second["token"]
