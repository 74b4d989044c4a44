"""The environment of the tests with OAuth on: `python -m pytest -p tests.oauth.environment tests/oauth`."""

import os

os.environ["BRAIN_OAUTH"] = "https://brain.example.org"
