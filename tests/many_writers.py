"""One of several processes that write at the same time: `python -m tests.many_writers KEY IDS SEED`.

The environment names the tests' database. Prints, as JSON, what was acknowledged.
"""

import json
import random
import sys
from collections import Counter
from typing import Any

import django

CALLS = 40
SPELLINGS = (["Äpfel", "straße"], ["äpfel", "Straße"], ["STRAßE", "ÄPFEL"])


class Writer:
    """Makes calls over HTTP and remembers what was answered."""

    def __init__(self, key: str, shared: list[str], seed: int) -> None:
        from tests.conftest import Agent  # noqa: PLC0415 - Django must be set up before

        self.agent = Agent(key, nutzer="anna")
        self.shared = shared
        self.seed = seed
        self.dice = random.Random(seed)
        self.status: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.texts: list[tuple[str, str]] = []  # ID and text of each write that was acknowledged
        self.versions: Counter[str] = Counter()  # acknowledged by ID

    def call(self, tool: str, **inhalt: Any) -> list[dict[str, Any]]:
        """The rows of the answer."""
        response = self.agent.post(tool, {"inhalt": {"nutzer": "anna", "agent": "planer", **inhalt}})
        self.status[str(response.status_code)] += 1
        rows: list[dict[str, Any]] = response.json()["daten"]
        for row in rows:
            if not row["erfolg"]:
                self.faults[row["fehler"]["code"]] += 1
            elif not row.get("unveraendert"):
                self.versions[row["ID"]] += 1
        return rows

    def insert(self, number: int) -> None:
        """Five new memories, with tags that the others make at the same time."""
        texts = [f"{self.seed}/{number}/{place}" for place in range(5)]
        tags = [f"neu {number}", *self.dice.choice(SPELLINGS)]
        rows = self.call("insert_brain_longterm_memory", memories=[self.entry(text) | {"tags": tags} for text in texts])
        self.texts += [(row["ID"], text) for row, text in zip(rows, texts, strict=True) if row["erfolg"]]

    def update(self, number: int) -> None:
        """Change and retag some of the memories that the others change as well."""
        text = f"{self.seed}/{number}"
        tags = [*self.dice.choice(SPELLINGS), f"Runde {number}"]
        changes = [
            {"ID": kennung, "kurzbeschreibung": "k", "memory": text, "tags": tags}
            for kennung in self.dice.sample(self.shared, 4)
        ]
        rows = self.call("update_brain_longterm_memory", memories=changes)
        self.texts += [(row["ID"], text) for row in rows if row["erfolg"]]

    def delete_and_restore(self, number: int) -> None:
        """Delete one of them, and bring it back."""
        del number
        kennung = self.dice.choice(self.shared)
        self.call("delete_brain_longterm_memory", IDs=[kennung])
        self.call("restore_brain_memory", ID=kennung, version=1)

    def entry(self, text: str) -> dict[str, Any]:
        """An entry with this text."""
        from tests.conftest import note  # noqa: PLC0415 - Django must be set up before

        return note(memory=text)

    def run(self) -> dict[str, Any]:
        """Make all calls; what became of them."""
        verbs = (self.insert, self.update, self.delete_and_restore, self.update)
        for number in range(CALLS):
            verbs[number % len(verbs)](number)
        return {"status": self.status, "faults": self.faults, "texts": self.texts, "versions": self.versions}


if __name__ == "__main__":
    django.setup()
    json.dump(Writer(sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])).run(), sys.stdout)
