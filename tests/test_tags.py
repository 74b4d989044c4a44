"""Tags: names that are made when needed, one for all spellings that differ in case alone. Cases 86 and 87."""

from typing import Any

import pytest

from memories.models import Tag
from tests.conftest import Agent, note
from tests.doors import fault_of, inhalt_for, one_fault

INSERT = "insert_brain_longterm_memory"
SELECT = "select_brain_longterm_memory"
UPDATE = "update_brain_longterm_memory"


def _tags(agent: Agent, kennung: str) -> list[str]:
    tags: list[str] = agent.call(SELECT, IDs=[kennung])["daten"][0]["tags"]
    return tags


def _retag(agent: Agent, kennung: str, tags: list[str]) -> dict[str, Any]:
    entry = {"ID": kennung, "kurzbeschreibung": "Frist", "memory": "m", "tags": tags}
    return agent.call(UPDATE, memories=[entry])


def _counts(agent: Agent, **inhalt: Any) -> dict[str, int]:
    return {row["name"]: row["anzahl"] for row in agent.call("select_brain_tags", **inhalt)["daten"]}


SAME = {
    "umlaut": ["Äpfel", "äpfel", "ÄPFEL"],
    "composed and decomposed": ["Zürich", "Zu\u0308rich", "ZU\u0308RICH"],
    "sharp s": ["Straße", "STRASSE", "strasse"],
    "sigma": ["ΟΔΟΣ", "οδος", "οδοσ"],
    "ligature": ["ﬁx", "FIX"],
    "blanks": ["some tag", " some  tag ", "Some\tTag", "some\u00a0tag", "some\r\ntag"],
    "Cyrillic": ["Сергей", "СЕРГЕЙ"],
    "Hangul": ["한글", "\u1112\u1161\u11ab\u1100\u1173\u11af"],
    "Cherokee": ["Ꭰ", "ꭰ"],
    "iota subscript": ["\u1fb4\u0301", "\u0386\u0301\u0345"],
    "grows when folded": ["ΐ", "\u03b9\u0308\u0301", "\u0399\u0308\u0301"],
}
DIFFERENT = {
    "blank and hyphen": ["some tag", "some-tag", "some_tag", "sometag"],
    "accent": ["Zurich", "Zürich"],
    "scripts": ["中文", "🙂", "тег", "tag", "تگ"],
    "dotted I": ["İstanbul", "istanbul"],
    "width": ["Ａ", "A"],
    "comma": ["a,b", "a", "b"],
    "quotes": ['"a"', "'a'", "a\\"],
    "signs of LIKE": ["%", "_", "\\"],
    "emoji": ["👍", "👍🏽", "👩‍👩‍👧"],
}


@pytest.mark.parametrize("spellings", SAME.values(), ids=SAME)
def test_case_86_spellings_that_differ_in_case_alone_are_one_tag_and_the_first_is_kept(
    anna: Agent, spellings: list[str]
) -> None:
    kennungen = [anna.store(tags=[spelling]) for spelling in spellings]
    first = _tags(anna, kennungen[0])
    assert all(_tags(anna, kennung) == first for kennung in kennungen)
    assert _counts(anna) == {first[0]: len(spellings)}
    for spelling in spellings:
        assert anna.call(SELECT, tags=[spelling])["anzahl"]["gesamt"] == len(spellings)


@pytest.mark.parametrize("spellings", SAME.values(), ids=SAME)
def test_case_86_the_same_tag_twice_in_one_list_or_in_one_call_counts_once(anna: Agent, spellings: list[str]) -> None:
    answer = anna.call(INSERT, memories=[note(tags=spellings), *(note(tags=[each]) for each in spellings)])
    assert answer["erfolg"] is True
    first = _tags(anna, answer["daten"][0]["ID"])
    assert len(first) == 1
    assert all(_tags(anna, row["ID"]) == first for row in answer["daten"])
    assert _counts(anna) == {first[0]: 1 + len(spellings)}


@pytest.mark.parametrize("names", DIFFERENT.values(), ids=DIFFERENT)
def test_case_86_other_names_are_other_tags(anna: Agent, names: list[str]) -> None:
    kennung = anna.store(tags=names)
    assert _tags(anna, kennung) == names
    assert _counts(anna) == dict.fromkeys(names, 1)
    for name in names:
        anna.store(tags=[name])
        assert anna.call(SELECT, tags=[name])["anzahl"]["gesamt"] == 2
        assert anna.call(SELECT, tags=[name], tags_eines=[name])["anzahl"]["gesamt"] == 2


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (" leer ", "leer"),
        ("a,b", "a,b"),
        ("\t a \n b ", "a b"),
        ("a\u3000b", "a b"),
        ("Zu\u0308rich", "Zürich"),
        ("<b>&amp;{{x}}", "<b>&amp;{{x}}"),
        ("  " + "x" * 100 + "  ", "x" * 100),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("❤\ufe0f", "❤\ufe0f"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("葛\U000e0100城", "葛\U000e0100城"),
        ("1", "1"),
    ],
)
def test_case_87_a_tag_is_composed_trimmed_and_its_blanks_folded(anna: Agent, sent: str, kept: str) -> None:
    assert _tags(anna, anna.store(tags=[sent])) == [kept]


@pytest.mark.parametrize(
    "bad",
    [
        *(
            "",
            " ",
            "\t\n",
            "\u00a0\u3000",
            "a\x01b",
            "a\x7f",
            "a\u200bb",
            "\ufeffa",
            "\u202ea",
            "a\0",
            "\ud800",
            "\u2060",
        ),
        *("\u3164", "a\u3164", "\u200d", "\ufe0f", "\u200c\ufe0f \u200d", "a\u034fb", "a\u2065"),
    ],
)
def test_case_87_a_tag_that_is_blank_or_cannot_be_seen_is_refused(anna: Agent, bad: str) -> None:
    answer = anna.call(INSERT, memories=[note(tags=["gut", bad]), note(tags=["gut"])])
    assert [row["erfolg"] for row in answer["daten"]] == [False, True]
    assert one_fault(answer) == ("ungueltig", "tags[1]")
    assert _counts(anna) == {"gut": 1}


def test_tags_keep_the_order_in_which_they_were_sent(anna: Agent) -> None:
    assert _tags(anna, anna.store(tags=["z", "a", "m", "A", "z"])) == ["z", "a", "m"]


def test_tags_of_an_update_replace_all_earlier_ones(anna: Agent) -> None:
    kennung = anna.store(memory="m", tags=["a", "b"])
    assert _retag(anna, kennung, ["b", "c"])["erfolg"] is True
    assert _tags(anna, kennung) == ["b", "c"]
    assert anna.call(SELECT, tags=["a"])["daten"] == []
    assert _counts(anna) == {"b": 1, "c": 1}


def test_an_empty_list_removes_all_tags(anna: Agent) -> None:
    kennung = anna.store(memory="m", tags=["a", "b"])
    _retag(anna, kennung, [])
    assert _tags(anna, kennung) == []
    assert _counts(anna) == {}


def test_the_same_tags_in_other_spelling_change_nothing(anna: Agent) -> None:
    kennung = anna.store(memory="m", tags=["Äpfel", "b"])
    assert _retag(anna, kennung, ["ÄPFEL", "B", "b"])["daten"][0]["unveraendert"] is True


def test_another_order_of_tags_is_a_change(anna: Agent) -> None:
    kennung = anna.store(memory="m", tags=["a", "b"])
    assert "unveraendert" not in _retag(anna, kennung, ["b", "a"])["daten"][0]
    assert _tags(anna, kennung) == ["b", "a"]


@pytest.mark.parametrize("tags", [None, 7, True, {}, {"a": 1}])
def test_tags_are_a_list(anna: Agent, tags: Any) -> None:
    assert one_fault(anna.call(INSERT, memories=[note(tags=tags)])) == ("ungueltig", "tags")


def test_tags_must_be_named_even_when_there_are_none(anna: Agent) -> None:
    entry = note()
    del entry["tags"]
    assert one_fault(anna.call(INSERT, memories=[entry])) == ("pflichtfeld", "tags")
    assert anna.call(INSERT, memories=[note(tags=[])])["erfolg"] is True


# select_brain_tags


def test_tags_are_counted_over_all_kinds(anna: Agent) -> None:
    kennung = anna.store(tags=["a", "b"])
    anna.store(tags=["a"])
    anna.call("insert_brain_shortterm_memory", memories=[note(tags=["A"]), note(tags=["c"], gueltig_bis="2020-01-01")])
    assert _counts(anna) == {"a": 3, "b": 1}
    anna.call("delete_brain_longterm_memory", IDs=[kennung])
    assert _counts(anna) == {"a": 2}
    anna.call("restore_brain_memory", ID=kennung, version=1)
    assert _counts(anna) == {"a": 3, "b": 1}


@pytest.mark.parametrize(
    ("praefix", "found"),
    [
        ("", ["%", "_x", "Frist", "Frist 2", "Äpfel"]),
        ("f", ["Frist", "Frist 2"]),
        ("FRI", ["Frist", "Frist 2"]),
        ("frist ", ["Frist 2"]),
        ("  fr", ["Frist", "Frist 2"]),
        ("äp", ["Äpfel"]),
        ("A\u0308p", ["Äpfel"]),
        ("%", ["%"]),
        ("_", ["_x"]),
        ("\\", []),
        ("'", []),
        ("rist", []),
    ],
)
def test_tags_are_found_by_how_they_begin(anna: Agent, praefix: str, found: list[str]) -> None:
    anna.store(tags=["Frist", "Frist 2", "Äpfel", "%", "_x"])
    assert sorted(_counts(anna, praefix=praefix)) == sorted(found)


def test_tags_come_in_pages_that_miss_and_repeat_nothing(anna: Agent) -> None:
    names = [f"t{n:02}" for n in range(25)]
    anna.store(tags=names)
    seen: list[str] = []
    weiter = None
    for page in range(10):
        answer = anna.call("select_brain_tags", limit=7, praefix="t", **({"weiter": weiter} if weiter else {}))
        seen += [row["name"] for row in answer["daten"]]
        weiter = answer["weiter"]
        anna.store(tags=[f"T{page:02}", f"a{page}", f"t2{page}x"])
        if weiter is None:
            break
    assert [name for name in seen if name in names] == names
    assert len(seen) == len(set(seen))
    assert weiter is None


def test_a_cursor_of_another_prefix_is_refused(anna: Agent) -> None:
    anna.store(tags=["a1", "a2", "b"])
    weiter = anna.call("select_brain_tags", limit=1, praefix="a")["weiter"]
    assert weiter
    for inhalt in ({"weiter": weiter}, {"weiter": weiter, "praefix": "b"}, {"weiter": "x", "praefix": "a"}):
        fault = fault_of(anna.post("select_brain_tags", {"inhalt": inhalt_for("select_brain_tags") | inhalt}), 400)
        assert (fault["code"], fault["feld"]) == ("ungueltig", "inhalt.weiter")


@pytest.mark.parametrize("limit", [0, -1, 1_001, 1.5, "10", True, 2**70])
def test_the_limit_of_a_page_of_tags_is_checked(anna: Agent, limit: Any) -> None:
    fault = fault_of(
        anna.post("select_brain_tags", {"inhalt": inhalt_for("select_brain_tags") | {"limit": limit}}), 400
    )
    assert (fault["code"], fault["feld"]) == ("ungueltig", "inhalt.limit")


def test_the_longest_prefix_is_a_tags_length(anna: Agent) -> None:
    anna.store(tags=["x" * 100])
    assert _counts(anna, praefix="x" * 100) == {"x" * 100: 1}
    inhalt = inhalt_for("select_brain_tags") | {"praefix": "x" * 101}
    fault = fault_of(anna.post("select_brain_tags", {"inhalt": inhalt}), 400)
    assert (fault["code"], fault["feld"]) == ("zu_gross", "inhalt.praefix")


def test_what_is_refused_gives_no_tag_its_spelling(anna: Agent, carla: Agent) -> None:
    kennung = anna.store(tags=[])
    entries = [note(nutzer="anna", tags=["BÜRO"]), note(nutzer="carla", tags=["Büro"])]
    refused, stored = carla.call("insert_brain_longterm_memory", memories=entries)["daten"]
    assert (refused["erfolg"], stored["erfolg"]) == (False, True)
    entry = {"ID": kennung, "kurzbeschreibung": "k", "memory": "m", "tags": ["FRIST"]}
    assert not carla.call("update_brain_longterm_memory", memories=[entry])["erfolg"]
    assert anna.store(tags=["Frist", "büro"])
    assert set(Tag.objects.values_list("name", flat=True)) == {"Büro", "Frist"}
