"""Values: identifiers, texts, vectors, moments, and every limit exactly at it and one above."""

import json
import unicodedata
from typing import Any

import numpy as np
import pytest

from memories.limits import Limits
from tests.conftest import Agent, note
from tests.doors import BRAIN, fault_of, inhalt_for, one_fault, raw

INSERT = "insert_brain_longterm_memory"
SELECT = "select_brain_longterm_memory"
IDENTIFIERS = ("scope", "scope_vk", "agent", "nutzer")


@pytest.fixture
def anybody(agent_with: Any) -> Agent:
    """An agent whose key may speak for everybody."""
    made: Agent = agent_with("anybody")
    return made


def _read(agent: Agent, kennung: str, **more: Any) -> dict[str, Any]:
    tool = {"l": "longterm_memory", "s": "shortterm_memory", "b": "memory"}[kennung[0]]
    answer = agent.call(f"select_brain_{tool}", IDs=[kennung], **more)
    assert answer["erfolg"], answer
    row: dict[str, Any] = answer["daten"][0]
    return row


def _brain(agent: Agent, **fields: Any) -> Any:
    """The answer to an insert of a brain memory with these fields."""
    return agent.call("insert_brain_memory", **{**BRAIN, **fields})


# Identifiers


@pytest.mark.parametrize(
    ("spellings", "kept"),
    [
        (["7", "7.0", '"7"', "7e0", "70e-1"], "7"),
        (["-7", "-7.0", '"-7"'], "-7"),
        (["0", "0.0", "-0.0", '"0"'], "0"),
        ([str(2**63), f'"{2**63}"'], str(2**63)),
        ([str(2**80)], str(2**80)),
        ([str(2**53), f"{2**53}.0"], str(2**53)),
        (['"Zu\u0308rich"', '"Zürich"'], "Zürich"),
        (['"a b"'], "a b"),
        (['"007"'], "007"),
        (['"7.0"'], "7.0"),
        (['"true"'], "true"),
        (['"東京"'], "東京"),
        (['"🙂"'], "🙂"),
        (['"\' OR 1=1 --"'], "' OR 1=1 --"),
        (['"%_*"'], "%_*"),
    ],
)
def test_case_2_an_identifier_is_one_however_it_is_written(anybody: Agent, spellings: list[str], kept: str) -> None:
    for field in IDENTIFIERS:
        for spelling in spellings:
            entry = json.dumps(note(**{field: "PLACE"})).replace('"PLACE"', spelling)
            body = f'{{"inhalt": {{"nutzer": "x", "agent": "y", "memories": [{entry}]}}}}'
            row = json.loads(raw(anybody, body, f"/api/tools/{INSERT}/").content)["daten"][0]
            assert _read(anybody, row["ID"])[field] == kept
            asked = {"agent": "agent_filter", "nutzer": "nutzer_filter"}.get(field, field)
            body = f'{{"inhalt": {{"nutzer": "x", "agent": "y", "{asked}": {spelling}}}}}'
            found = json.loads(raw(anybody, body, f"/api/tools/{SELECT}/").content)
            assert row["ID"] in [each["ID"] for each in found["daten"]]


@pytest.mark.parametrize("name", ["nutzer", "agent"])
def test_who_calls_is_an_identifier_too(anybody: Agent, name: str) -> None:
    inhalt = inhalt_for(INSERT) | {name: 7.0}
    kennung = anybody.post(INSERT, {"inhalt": inhalt}).json()["daten"][0]["ID"]
    assert anybody.call("select_brain_history", ID=kennung)["daten"][0][name] == "7"


WRONG_IDENTIFIERS = {
    "true": True,
    "false": False,
    "1.5": 1.5,
    "beyond exactness": 1e300,
    "null": None,
    "list": ["a"],
    "object": {"a": 1},
    "leading blank": " a",
    "trailing blank": "a ",
    "blank": " ",
    "no-break space": "\u00a0a",
    "ideographic space": "a\u3000",
    "line break": "a\n",
    "tab inside": "a\tb",
    "control": "a\x01b",
    "delete": "a\x7f",
    "C1 control": "a\x85b",
    "zero width space": "a\u200bb",
    "zero width joiner": "a\u200db",
    "word joiner": "\u2060a",
    "byte order mark": "\ufeffa",
    "soft hyphen": "a\u00adb",
    "right to left": "\u202ea",
    "isolate": "\u2066a\u2069",
    "Hangul filler": "\u3164",
    "combining grapheme joiner": "a\u034fb",
    "variation selector": "a\ufe0f",
    "variation selector alone": "\ufe00",
    "Mongolian variation selector": "a\u180bb",
    "variation selector of Japanese names": "葛\U000e0100",
    "reserved for what is not seen": "a\u2065\ufff0\U000e0fff",
    "line separator": "a\u2028b",
    "tag character": "a\U000e0041",
    "NUL": "a\0b",
}


@pytest.mark.parametrize("value", WRONG_IDENTIFIERS.values(), ids=WRONG_IDENTIFIERS)
def test_what_is_no_identifier_is_the_entrys_fault(anybody: Agent, value: Any) -> None:
    answer = anybody.call(INSERT, memories=[*(note(**{field: value}) for field in IDENTIFIERS), note()])
    assert [row["erfolg"] for row in answer["daten"]] == [False, False, False, False, True]
    assert [one_fault(answer, place) for place in range(4)] == [("ungueltig", field) for field in IDENTIFIERS]


@pytest.mark.parametrize("value", WRONG_IDENTIFIERS.values(), ids=WRONG_IDENTIFIERS)
def test_what_is_no_identifier_is_the_calls_fault_where_it_says_who_calls(anybody: Agent, value: Any) -> None:
    for name in ("nutzer", "agent"):
        fault = fault_of(anybody.post(INSERT, {"inhalt": inhalt_for(INSERT) | {name: value}}), 400)
        assert (fault["code"], fault["feld"]) == ("ungueltig", f"inhalt.{name}")


def test_only_the_scopes_record_may_be_empty(anybody: Agent) -> None:
    answer = anybody.call(INSERT, memories=[note(**{field: ""}) for field in IDENTIFIERS])
    assert [row["erfolg"] for row in answer["daten"]] == [False, True, False, False]
    assert _read(anybody, answer["daten"][1]["ID"])["scope_vk"] == ""


def test_identifiers_are_compared_exactly(anybody: Agent) -> None:
    for scope in ("Modul", "modul", "MODUL", "straße", "strasse", "ﬁ", "fi"):
        anybody.store(scope=scope)
        found = anybody.call(SELECT, scope=scope)["daten"]
        assert [row["scope"] for row in found] == [scope]


def test_an_identifier_has_up_to_255_characters(anybody: Agent) -> None:
    for letter in ("x", "ä", "🙂"):
        for field in IDENTIFIERS:
            answer = anybody.call(INSERT, memories=[note(**{field: letter * 255}), note(**{field: letter * 256})])
            assert [row["erfolg"] for row in answer["daten"]] == [True, False]
            assert one_fault(answer, 1) == ("zu_gross", field)
            assert "255" in answer["daten"][1]["fehler"]["meldung"]
            assert _read(anybody, answer["daten"][0]["ID"])[field] == letter * 255


def test_an_identifiers_length_is_that_of_its_composed_form(anybody: Agent) -> None:
    decomposed = unicodedata.normalize("NFD", "ä" * 255)
    assert _read(anybody, anybody.store(scope=decomposed))["scope"] == "ä" * 255


@pytest.mark.parametrize("number", [10**254, 10**255])
def test_a_whole_number_as_identifier_has_the_same_limit(anybody: Agent, number: int) -> None:
    answer = anybody.call(INSERT, memories=[note(scope=number)])
    assert answer["erfolg"] is (number < 10**255)


# Texts

TEXTS = {
    "blanks at its edges": "  a  ",
    "line breaks of all kinds": "\r\na\r\n\r\n\nb\r\tc\x0b\x0c\x85\u2028",
    "control characters": "".join(map(chr, range(1, 32))) + "x",
    "markup": "<script>alert(1)</script>&amp;&lt;",
    "case 85, a token of a model": "<|endoftext|> {{x}} {% y %} <script>",
    "format signs": "%s %(a)s {0} ${HOME} \\n \\u0041",
    "decomposed": "Zu\u0308rich",
    "composed": "Zürich",
    "zero width": "a\u200b\u200d\ufeffb",
    "right to left": "\u202eabc",
    "not characters": "\ufffe\uffff\U0010ffff",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈",
    "scripts": "東京 Сергей عربي हिन्दी",
    "quotes": "'\"`´'' -- /* */ ;",
    "JSON": '{"a": "\\u00e4"}',
    "null": "null",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_is_kept_byte_for_byte(anna: Agent, text: str) -> None:
    kennung = anna.store(kurzbeschreibung=text, memory=text)
    row = _read(anna, kennung)
    assert (row["kurzbeschreibung"], row["memory"]) == (text, text)
    state = anna.call("select_brain_history", ID=kennung)["daten"][0]["stand"]
    assert (state["kurzbeschreibung"], state["memory"]) == (text, text)
    row = _read(anna, _brain(anna, titel=text, inhalt=text)["daten"][0]["ID"])
    assert (row["titel"], row["inhalt"]) == (text, text)


@pytest.mark.parametrize(
    "blank", ["", " ", "\t\r\n", "\u00a0", "\u2003\u3000", "\x1f\x85\u2028", "\u200b", "\ufeff \u3164", "\x07\ufe0f"]
)
def test_a_blank_text_is_refused_where_something_must_be_said(anna: Agent, blank: str) -> None:
    answer = anna.call(INSERT, memories=[note(kurzbeschreibung=blank), note(memory=blank), note()])
    assert [row["erfolg"] for row in answer["daten"]] == [False, False, True]
    assert one_fault(answer, 0) == ("ungueltig", "kurzbeschreibung")
    assert one_fault(answer, 1) == ("ungueltig", "memory")
    assert one_fault(_brain(anna, titel=blank)) == ("ungueltig", "titel")


@pytest.mark.parametrize("text", ["a\0b", "\0", "a\ud800b", "\udfff", "\ude00\ud83d"])
@pytest.mark.parametrize("field", ["kurzbeschreibung", "memory", "embedding_profil_hash"])
def test_case_83_text_that_no_database_keeps_is_refused_on_both(anna: Agent, field: str, text: str) -> None:
    answer = anna.call(INSERT, memories=[note(**{field: text}), note(tags=[text]), note()])
    assert [row["erfolg"] for row in answer["daten"]] == [False, False, True]
    assert one_fault(answer, 0) == ("ungueltig", field)
    assert one_fault(answer, 1) == ("ungueltig", "tags[0]")


@pytest.mark.parametrize("value", [None, 7, 1.5, True, [], {}, ["a"]])
def test_what_is_no_text_is_refused(anna: Agent, value: Any) -> None:
    answer = anna.call(INSERT, memories=[note(kurzbeschreibung=value), note(memory=value), note(tags=[value])])
    assert [one_fault(answer, place) for place in range(3)] == [
        ("ungueltig", "kurzbeschreibung"),
        ("ungueltig", "memory"),
        ("ungueltig", "tags[0]"),
    ]


# Limits

LIMITED = {"kurzbeschreibung": 1_000, "memory": 1_000_000, "embedding_profil_hash": 255}


@pytest.mark.parametrize("letter", ["x", "ä", "🙂"])
@pytest.mark.parametrize(("field", "limit"), LIMITED.items())
def test_a_text_has_up_to_its_limit_of_characters(anna: Agent, field: str, limit: int, letter: str) -> None:
    answer = anna.call(INSERT, memories=[note(**{field: letter * (limit + 1)}), note(**{field: letter * limit})])
    assert [row["erfolg"] for row in answer["daten"]] == [False, True]
    assert one_fault(answer) == ("zu_gross", field)
    assert str(limit) in answer["daten"][0]["fehler"]["meldung"]
    assert _read(anna, answer["daten"][1]["ID"])[field] == letter * limit


@pytest.mark.parametrize(
    ("field", "limit"), {"titel": 1_000, "inhalt": 1_000_000, "scope_ID": 255, "quelle_typ": 255}.items()
)
def test_a_brain_memorys_text_has_up_to_its_limit(anna: Agent, field: str, limit: int) -> None:
    answer = _brain(anna, **{field: "ä" * (limit + 1)})
    assert one_fault(answer) == ("zu_gross", field)
    assert str(limit) in answer["daten"][0]["fehler"]["meldung"]
    assert _read(anna, _brain(anna, **{field: "ä" * limit})["daten"][0]["ID"])[field] == "ä" * limit


def test_inhalt_json_has_up_to_its_limit(anna: Agent, settings: Any) -> None:
    settings.BRAIN_LIMITS = Limits(memory=10)
    assert _brain(anna, inhalt_json="[1, 2, 34]")["erfolg"] is True
    answer = _brain(anna, inhalt_json="[1, 2, 345]")
    assert one_fault(answer) == ("zu_gross", "inhalt_json")
    assert "10" in answer["daten"][0]["fehler"]["meldung"]


def test_an_entry_has_up_to_a_hundred_tags(anna: Agent) -> None:
    answer = anna.call(
        INSERT, memories=[note(tags=[f"t{n}" for n in range(100)]), note(tags=[f"t{n}" for n in range(101)])]
    )
    assert [row["erfolg"] for row in answer["daten"]] == [True, False]
    assert one_fault(answer, 1) == ("zu_gross", "tags")
    assert "100" in answer["daten"][1]["fehler"]["meldung"]
    assert len(_read(anna, answer["daten"][0]["ID"])["tags"]) == 100


@pytest.mark.parametrize("letter", ["x", "ä", "🙂", "ß", "ΐ"])
def test_a_tag_has_up_to_a_hundred_characters(anna: Agent, letter: str) -> None:
    answer = anna.call(INSERT, memories=[note(tags=["a", letter * 101]), note(tags=[letter * 100])])
    assert [row["erfolg"] for row in answer["daten"]] == [False, True]
    assert answer["daten"][0]["fehler"]["feld"] == "tags[1]"
    assert answer["daten"][0]["fehler"]["code"] == "zu_gross"
    assert "100" in answer["daten"][0]["fehler"]["meldung"]
    assert _read(anna, answer["daten"][1]["ID"])["tags"] == [letter * 100]


def test_an_embedding_has_up_to_16_000_numbers(anna: Agent) -> None:
    answer = anna.call(INSERT, memories=[note(embedding=[0.5] * 16_000), note(embedding=[0.5] * 16_001)])
    assert [row["erfolg"] for row in answer["daten"]] == [True, False]
    assert one_fault(answer, 1) == ("zu_gross", "embedding")
    assert "16000" in answer["daten"][1]["fehler"]["meldung"]
    assert _read(anna, answer["daten"][0]["ID"], mit_embedding=1)["embedding"] == [0.5] * 16_000


def test_references_take_up_to_their_limit_of_bytes(anna: Agent) -> None:
    at_the_limit = {"a": "ä" * ((65_536 - len('{"a":""}')) // 2)}
    assert anna.call(INSERT, memories=[note()], referenzfelder=at_the_limit)["erfolg"] is True
    above = {"a": at_the_limit["a"] + "x"}
    fault = fault_of(anna.post(INSERT, {"inhalt": inhalt_for(INSERT), "referenzfelder": above}), 400)
    assert (fault["code"], fault["feld"]) == ("zu_gross", "referenzfelder")
    assert "65536" in fault["meldung"]


def test_a_reason_has_up_to_its_limit(anna: Agent) -> None:
    first, second = anna.store(), anna.store()
    assert anna.call("delete_brain_longterm_memory", IDs=[first], grund="ä" * 1_000)["erfolg"] is True
    arguments = {"inhalt": {"nutzer": "anna", "agent": "a", "IDs": [second], "grund": "ä" * 1_001}}
    fault = fault_of(anna.post("delete_brain_longterm_memory", arguments), 400)
    assert (fault["code"], fault["feld"]) == ("zu_gross", "inhalt.grund")
    assert "1000" in fault["meldung"]
    assert _read(anna, second)


@pytest.mark.parametrize(
    ("limit", "good", "bad"),
    [
        ({"kurzbeschreibung": 5}, {"kurzbeschreibung": "x" * 5}, {"kurzbeschreibung": "x" * 6}),
        ({"memory": 5}, {"memory": "x" * 5}, {"memory": "x" * 6}),
        ({"tag_name": 5}, {"tags": ["x" * 5]}, {"tags": ["x" * 6]}),
        ({"kennung": 8}, {"scope": "x" * 8}, {"scope": "x" * 9}),
        ({"embedding": 5}, {"embedding": [1] * 5}, {"embedding": [1] * 6}),
    ],
    ids=lambda value: next(iter(value)),
)
def test_a_limit_in_the_settings_is_the_one_in_force(
    anna: Agent, settings: Any, limit: Any, good: Any, bad: Any
) -> None:
    settings.BRAIN_LIMITS = Limits(**limit)
    entry = {"kurzbeschreibung": "k", "memory": "m", "tags": []}
    answer = anna.call(INSERT, memories=[note(**entry | good), note(**entry | bad)])
    assert [row["erfolg"] for row in answer["daten"]] == [True, False]
    fault = answer["daten"][1]["fehler"]
    assert fault["code"] == "zu_gross"
    assert str(next(iter(limit.values()))) in fault["meldung"]


# Vectors

WRONG_NUMBERS = {
    "case 64, zero vector": ("[0, 0, 0]", "embedding"),
    "case 64, minus zero": ("[-0.0, 0]", "embedding"),
    "vanishes in float32": ("[1e-60, 1e-300]", "embedding"),
    "case 64, NaN": ("[1, NaN]", "embedding[1]"),
    "NaN alone": ("[NaN]", "embedding[0]"),
    "case 64, Infinity": ("[1.5, Infinity]", "embedding[1]"),
    "minus Infinity": ("[-Infinity]", "embedding[0]"),
    "case 64, 1e999": ("[1.0, 1e999]", "embedding[1]"),
    "-1e999": ("[-1e999]", "embedding[0]"),
    "case 64, 1e39": ("[1, 2, 1e39]", "embedding[2]"),
    "just beyond float32": ("[3.4028236e38]", "embedding[0]"),
    "a whole number beyond float32": (f"[{10**39}]", "embedding[0]"),
    "a whole number beyond float64": (f"[{10**400}]", "embedding"),
    "case 64, true": ("[true]", "embedding[0]"),
    "true among numbers": ("[1.5, false]", "embedding[1]"),
    "case 64, a text": ('["1"]', "embedding[0]"),
    "a text among numbers": ('[1.5, "1"]', "embedding[1]"),
    "half a pair among numbers": (r'[1.5, "\ud800"]', "embedding[1]"),
    "null among numbers": ("[1.5, null]", "embedding[1]"),
    "lists": ("[[1, 2]]", "embedding[0]"),
    "case 64, empty": ("[]", "embedding"),
    "a number": ("7", "embedding"),
    "an object": ('{"0": 1}', "embedding"),
    "a text of something else": ('"abc"', "embedding"),
}


@pytest.mark.parametrize(("vector", "feld"), WRONG_NUMBERS.values(), ids=WRONG_NUMBERS)
def test_case_64_what_is_no_vector_is_that_entrys_fault_alone(anna: Agent, vector: str, feld: str) -> None:
    entry = json.dumps(note(embedding="PLACE")).replace('"PLACE"', vector)
    good = json.dumps(note(embedding=[1, 2]))
    body = f'{{"inhalt": {{"nutzer": "anna", "agent": "planer", "memories": [{good}, {entry}, {good}]}}}}'
    answer = json.loads(raw(anna, body, f"/api/tools/{INSERT}/").content)
    assert [row["erfolg"] for row in answer["daten"]] == [True, False, True]
    assert one_fault(answer, 1) == ("ungueltig", feld)


def test_a_vector_comes_back_as_the_float32_numbers_that_it_is_kept_as(anna: Agent) -> None:
    sent = [0.1, -1 / 3, 1e-45, 3.4028234e38, -0.0, 7, 2**24 + 1, 1e-60, 123456.789]
    back = _read(anna, anna.store(embedding=sent), mit_embedding=1)["embedding"]
    assert np.array(back, dtype="<f4").tobytes() == np.array(sent, dtype="<f4").tobytes()
    assert back[0] == 0.1
    again = _read(anna, anna.store(embedding=back), mit_embedding=1)["embedding"]
    assert again == back


@pytest.mark.parametrize("dimension", [1, 2, 384, 1_536, 3_072])
def test_case_67_a_vector_of_any_length_is_kept(anna: Agent, dimension: int) -> None:
    sent = [float(np.float32(np.sin(n + 1))) for n in range(dimension)]
    row = _read(anna, anna.store(embedding=sent, embedding_profil_hash="p"), mit_embedding=1)
    assert np.array_equal(np.float32(row["embedding"]), np.float32(sent))
    assert row["hat_embedding"] is True
    assert row["embedding_profil_hash"] == "p"


def test_the_vector_is_told_only_when_asked_for(anna: Agent) -> None:
    kennung = anna.store(embedding=[1])
    assert "embedding" not in _read(anna, kennung)
    assert "embedding" not in _read(anna, kennung, mit_embedding=0)
    assert _read(anna, kennung, mit_embedding=1)["embedding"] == [1.0]
    assert anna.call(SELECT, mit_embedding=1)["daten"][0]["embedding"] == [1.0]
    assert _read(anna, anna.store(), mit_embedding=1)["embedding"] is None


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"ebedding_profil_haash": "p"}, "p"),
        ({"embedding_profil_hash": "p"}, "p"),
        ({"ebedding_profil_haash": "p", "embedding_profil_hash": "p"}, "p"),
        ({"ebedding_profil_haash": None, "embedding_profil_hash": None}, None),
        ({"ebedding_profil_haash": None}, None),
        ({}, None),
    ],
)
def test_case_68_both_spellings_of_the_profile_hash_set_the_one_column(
    anna: Agent, fields: Any, kept: str | None
) -> None:
    assert _read(anna, anna.store(**fields))["embedding_profil_hash"] == kept


@pytest.mark.parametrize("pair", [("p", "q"), ("p", None), (None, "p"), ("p", "P"), ("p", "p ")])
def test_case_68_different_values_of_both_spellings_are_that_entrys_fault(anna: Agent, pair: Any) -> None:
    both = dict(zip(("ebedding_profil_haash", "embedding_profil_hash"), pair, strict=True))
    answer = anna.call(INSERT, memories=[note(**both), note()])
    assert [row["erfolg"] for row in answer["daten"]] == [False, True]
    assert one_fault(answer) == ("ungueltig", "ebedding_profil_haash")


# A brain memory's fields


@pytest.mark.parametrize("typ", ["arbeit", "entscheidung", "erfahrung", "agent"])
def test_a_brain_memory_is_of_one_of_four_types(anna: Agent, typ: str) -> None:
    assert _read(anna, _brain(anna, memory_typ=typ)["daten"][0]["ID"])["memory_typ"] == typ


@pytest.mark.parametrize("typ", ["foo", "Arbeit", "", " arbeit", "observation"])
def test_case_59_an_unknown_type_is_refused_and_those_allowed_are_named(anna: Agent, typ: str) -> None:
    answer = _brain(anna, memory_typ=typ)
    assert one_fault(answer) == ("ungueltig", "memory_typ")
    for allowed in ("arbeit", "entscheidung", "erfahrung", "agent"):
        assert allowed in answer["daten"][0]["fehler"]["meldung"]


@pytest.mark.parametrize("scope", ["global", "modul", "benutzer", "agent", "room", "element", "session"])
def test_a_brain_memorys_scope_is_one_of_seven(anna: Agent, scope: str) -> None:
    assert _read(anna, _brain(anna, scope_typ=scope)["daten"][0]["ID"])["scope_typ"] == scope


@pytest.mark.parametrize("scope", ["Global", "team", " ", "modul "])
def test_another_scope_is_refused(anna: Agent, scope: str) -> None:
    answer = _brain(anna, scope_typ=scope)
    assert one_fault(answer) == ("ungueltig", "scope_typ")
    assert "element" in answer["daten"][0]["fehler"]["meldung"]


@pytest.mark.parametrize(("relevance", "kept"), [("0", "0"), ("50", "50"), ("100", "100"), ("007", "7"), ("", "50")])
def test_the_relevance_is_a_whole_number_up_to_100(anna: Agent, relevance: str, kept: str) -> None:
    assert _read(anna, _brain(anna, relevanz=relevance)["daten"][0]["ID"])["relevanz"] == kept


@pytest.mark.parametrize(
    "relevance",
    ["101", "-1", "1.5", "50.0", "1e1", " 5", "5 ", "5\n", "+5", "1_0", "٥٠", "５０", "x", "0x10", "9" * 5_000, "null"],
)
def test_anything_else_is_no_relevance(anna: Agent, relevance: str) -> None:
    assert one_fault(_brain(anna, relevanz=relevance)) == ("ungueltig", "relevanz")


OPTIONAL = (
    "scope_typ",
    "scope_modul",
    "scope_ID",
    "agent_ID",
    "room_ID",
    "session_ID",
    "quelle_typ",
    "quelle_ID",
    "relevanz",
    "gueltig_bis",
    "inhalt",
    "inhalt_json",
)


def test_empty_texts_mean_not_given_for_a_brain_memorys_optional_fields(anna: Agent) -> None:
    empty = _read(anna, _brain(anna, **dict.fromkeys(OPTIONAL, ""))["daten"][0]["ID"])
    bare = _read(anna, _brain(anna)["daten"][0]["ID"])
    for name in OPTIONAL:
        assert empty[name] == bare[name]
    assert (bare["scope_typ"], bare["relevanz"], bare["gueltig_bis"], bare["inhalt"]) == ("global", "50", None, "")


def test_a_brain_memory_keeps_all_its_fields(anna: Agent) -> None:
    fields = {
        name: f"{name} 1" for name in OPTIONAL if name not in {"scope_typ", "relevanz", "gueltig_bis", "inhalt_json"}
    }
    row = _read(anna, _brain(anna, **fields, inhalt_json="[]")["daten"][0]["ID"])
    assert {name: row[name] for name in fields} == fields
    assert (row["nutzer"], row["agent"]) == ("anna", "planer")


@pytest.mark.parametrize("name", [*OPTIONAL, "titel", "memory_typ"])
@pytest.mark.parametrize("value", [7, True, [], {}])
def test_every_value_of_a_brain_memory_is_a_text(anna: Agent, name: str, value: Any) -> None:
    assert one_fault(_brain(anna, **{name: value})) == ("ungueltig", name)


@pytest.mark.parametrize(
    "name", [name for name in OPTIONAL if name.endswith("ID") or name in {"scope_modul", "quelle_typ"}]
)
@pytest.mark.parametrize("value", [" a", "a\u200b", "a\n"])
def test_the_records_of_a_brain_memory_are_identifiers(anna: Agent, name: str, value: str) -> None:
    assert one_fault(_brain(anna, **{name: value})) == ("ungueltig", name)


@pytest.mark.parametrize(
    "text", ['{"a": [1, 2.5, null]}', "[]", "7", '"x"', "null", " {} ", '{"a": "\\ud83d\\ude42"}', "1e308"]
)
def test_inhalt_json_is_any_json(anna: Agent, text: str) -> None:
    assert _read(anna, _brain(anna, inhalt_json=text)["daten"][0]["ID"])["inhalt_json"] == text


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "x",
        "NaN",
        '{"a": Infinity}',
        "[1e999]",
        '{"a": 1, "a": 2}',
        '{"a": 1, "\\u0061": 2}',
        "{'a': 1}",
        "[1,]",
        " ",
        "{} {}",
        "01",
        "\ufeff{}",
        '"a\nb"',
        "9" * 5_000,
    ],
)
def test_what_is_no_json_is_refused_in_inhalt_json(anna: Agent, text: str) -> None:
    assert one_fault(_brain(anna, inhalt_json=text)) == ("ungueltig", "inhalt_json")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "es endet zu früh"),
        ("{'a': 1}", "falsch ab Zeile 1, Spalte 2"),
        ('{"a": 1, "a": 2}', 'der Name "a" steht zweimal in einem Objekt'),
        ("[NaN]", "NaN ist keine Zahl in JSON"),
        ("[1e999]", "die Zahl 1e999 ist zu groß"),
        ("[" + "9" * 5_000 + "]", f"die Zahl {'9' * 20} ist zu groß"),
    ],
)
def test_why_a_text_is_no_json_is_told_in_the_callers_language(anna: Agent, text: str, why: str) -> None:
    assert _brain(anna, inhalt_json=text)["daten"][0]["fehler"]["meldung"] == f"Das ist kein gültiges JSON: {why}."


@pytest.mark.parametrize("levels", [64, 65, 100_000])
def test_inhalt_json_is_nested_down_to_the_limit(anna: Agent, levels: int) -> None:
    answer = _brain(anna, inhalt_json="[" * levels + "]" * levels)
    assert answer["erfolg"] is (levels == 64)
    if levels > 64:
        assert one_fault(answer) == ("zu_gross", "inhalt_json")
        assert "64" in answer["daten"][0]["fehler"]["meldung"]


# Moments

MOMENTS = {
    "2026-12-31": "2026-12-31T23:59:59.999999+01:00",
    "31.12.2026": "2026-12-31T23:59:59.999999+01:00",
    "1.7.2026": "2026-07-01T23:59:59.999999+02:00",
    "2026-07-01": "2026-07-01T23:59:59.999999+02:00",
    "2028-02-29": "2028-02-29T23:59:59.999999+01:00",
    "2026-12-31T14:30": "2026-12-31T14:30:00+01:00",
    "2026-12-31 14:30": "2026-12-31T14:30:00+01:00",
    "2026-07-01T14:30:15": "2026-07-01T14:30:15+02:00",
    "2026-12-31T14:30:15.25": "2026-12-31T14:30:15.250000+01:00",
    "2026-12-31T14:30:15.1234567Z": "2026-12-31T15:30:15.123456+01:00",
    "2026-12-31T14:30:15.123456789+02:00": "2026-12-31T13:30:15.123456+01:00",
    "2026-12-31 23:59:59+01": "2026-12-31T23:59:59+01:00",
    "2026-12-31T23:59:59Z": "2027-01-01T00:59:59+01:00",
    "2026-12-31T23:59:59+01:00": "2026-12-31T23:59:59+01:00",
    "2026-12-31T23:59:59-0500": "2027-01-01T05:59:59+01:00",
    "2026-10-25T02:30": "2026-10-25T02:30:00+02:00",
    "2026-10-25T02:30+01:00": "2026-10-25T02:30:00+01:00",
    "2026-03-29": "2026-03-29T23:59:59.999999+02:00",
    "2026-03-29T03:00": "2026-03-29T03:00:00+02:00",
    "2026-03-29T01:59:59": "2026-03-29T01:59:59+01:00",
    "9999-12-31": "9999-12-31T23:59:59.999999+01:00",
}
NO_MOMENTS = [
    "1767225600",
    "1767225600.5",
    "2026",
    "2026-12",
    "20261231",
    "2026-02-30",
    "30.02.2026",
    "29.02.2026",
    "2026-13-01",
    "2026-00-10",
    "0000-01-01",
    "2026-03-29T02:30:00",
    "2026-03-29T02:00",
    "2026-03-29T02:59:59.999999",
    "2026-12-31T25:00",
    "2026-12-31T23:60",
    "2026-12-31T23:59:60",
    "2026-12-31T",
    "2026-12-31T23",
    "2026-12-31T23:59+25:00",
    "2026-12-31T23:59:59.1234567890",
    "2026-12-31T23:59+1",
    "2026-12-31T23:59 Europe/Berlin",
    " 2026-12-31",
    "2026-12-31 ",
    "2026-12-31\n",
    "12/31/2026",
    "31.12.26",
    "31-12-2026",
    "٢٠٢٦-١٢-٣١",
    "2026-W53-4",
    "2026-365",
    "morgen",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
]


@pytest.mark.parametrize(("text", "moment"), MOMENTS.items())
def test_case_42_a_date_or_a_moment_is_read(anna: Agent, text: str, moment: str) -> None:
    answers = [
        _brain(anna, gueltig_bis=text),
        anna.call("insert_brain_shortterm_memory", memories=[note(gueltig_bis=text)]),
    ]
    for answer in answers:
        kennung = answer["daten"][0]["ID"]
        stand = anna.call("select_brain_history", ID=kennung)["daten"][0]["stand"]
        assert stand["gueltig_bis"] == moment


@pytest.mark.parametrize(
    ("zone", "day", "end"),
    [
        ("America/Santiago", "2027-04-03", "2027-04-03T23:59:59.999999-04:00"),  # 23:00 to 24:00 comes twice
        ("America/Santiago", "2027-09-05", "2027-09-05T23:59:59.999999-03:00"),  # begins at 01:00
        ("Asia/Kathmandu", "31.12.2026", "2026-12-31T23:59:59.999999+05:45"),
    ],
)
def test_case_41_a_day_is_whole_where_clocks_change_at_midnight(
    anna: Agent, settings: Any, zone: str, day: str, end: str
) -> None:
    settings.TIME_ZONE = zone
    kennung = _brain(anna, gueltig_bis=day)["daten"][0]["ID"]
    assert _read(anna, kennung)["gueltig_bis"] == end
    assert anna.call(SELECT, von=day, bis=day)["erfolg"] is True


def test_case_42_a_day_that_was_skipped_as_a_whole_does_not_exist(anna: Agent, settings: Any) -> None:
    settings.TIME_ZONE = "Pacific/Apia"
    for field in ("von", "bis"):
        fault = fault_of(anna.post(SELECT, {"inhalt": inhalt_for(SELECT) | {field: "2011-12-30"}}), 400)
        assert (fault["code"], fault["feld"]) == ("ungueltig", f"inhalt.{field}")


@pytest.mark.parametrize("text", NO_MOMENTS)
def test_case_42_anything_else_is_refused_and_the_format_named(anna: Agent, text: str) -> None:
    answer = _brain(anna, gueltig_bis=text)
    assert one_fault(answer) == ("ungueltig", "gueltig_bis")
    answer = anna.call("insert_brain_shortterm_memory", memories=[note(gueltig_bis=text), note()])
    assert [row["erfolg"] for row in answer["daten"]] == [False, True]
    assert one_fault(answer) == ("ungueltig", "gueltig_bis")


@pytest.mark.parametrize("value", [1767225600, 1767225600.0, True, [], {}])
def test_case_42_a_bare_number_is_no_moment(anna: Agent, value: Any) -> None:
    answer = anna.call("insert_brain_shortterm_memory", memories=[note(gueltig_bis=value)])
    assert one_fault(answer) == ("ungueltig", "gueltig_bis")


def test_moments_are_told_with_their_zone(anna: Agent) -> None:
    row = _read(anna, anna.store())
    for name in ("erstellt_am", "aktualisiert_am"):
        assert row[name][-6:] in {"+01:00", "+02:00"}
