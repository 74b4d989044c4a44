"""An agent in a process of its own: `python -m tests.another_agent KEY`. Reads calls as lines of JSON, writes answers.

The environment names the tests' database.
"""

import json
import sys

import django


def answer_all(key: str) -> None:
    """Make each call that stands on a line, and write the answer on a line."""
    from tests.conftest import Agent  # noqa: PLC0415 - Django must be set up before

    agent = Agent(key, nutzer="anna")
    for line in sys.stdin:
        tool, inhalt = json.loads(line)
        print(json.dumps(agent.call(tool, **inhalt)), flush=True)


if __name__ == "__main__":
    django.setup()
    answer_all(sys.argv[1])
