"""Batches: each entry has its own outcome."""

from tests.conftest import Agent, note


def test_one_bad_entry_leaves_the_others_stored(anna: Agent) -> None:
    answer = anna.call("insert_brain_longterm_memory", memories=[note(), note(memory=None), note()])
    assert [row["erfolg"] for row in answer["daten"]] == [True, False, True]
    assert answer["anzahl"] == {"gesamt": 3, "erfolgreich": 2, "fehlgeschlagen": 1}
    listed = anna.call("select_brain_longterm_memory")
    assert listed["anzahl"]["gesamt"] == 2
