"""`search_brain` through the door: what it answers and refuses, what a text finds, what a vector finds, and both."""

from datetime import UTC, datetime
from typing import Any

import jsonschema_rs
import pytest

from api.tools import TOOLS
from memories.search import candidates, scoring
from memories.search.reach import token
from tests.conftest import Agent, note
from tests.doors import BRAIN, change, fault_of, faults, now
from tests.searching import PROFILE, found, listed, search

TOOL = "search_brain"
INSERT = "insert_brain_longterm_memory"


def refused(agent: Agent, status: int = 400, **inhalt: Any) -> set[tuple[str, str | None]]:
    """Code and field of all faults of a search that is refused."""
    response = agent.post(TOOL, {"inhalt": {"nutzer": agent.nutzer, "agent": agent.agent, **inhalt}})
    return faults(fault_of(response, status))


def one_of_each(anna: Agent, text: str, **fields: Any) -> list[str]:
    """The IDs of a memory of each kind that hold this text."""
    made = [anna.store(memory=text, **fields)]
    made.append(anna.call("insert_brain_shortterm_memory", memories=[note(memory=text, **fields)])["daten"][0]["ID"])
    made.append(anna.call("insert_brain_memory", **BRAIN, inhalt=text)["daten"][0]["ID"])
    return made


# The answer


def test_a_row_is_that_of_select_with_rank_and_points(anna: Agent) -> None:
    made = one_of_each(anna, "Quarzit", embedding=[1, 2], **PROFILE)
    rows = search(anna, suche="Quarzit")["daten"]
    assert sorted(row["ID"] for row in rows) == sorted(made)
    assert [row["rang"] for row in rows] == [1, 2, 3]
    assert [row["index"] for row in rows] == [0, 1, 2]
    for row in rows:
        selected = now(anna, row["ID"])
        selected.pop("embedding")
        assert {**selected, "index": row["index"], "rang": row["rang"], "punkte": row["punkte"]} == row


def test_the_answer_is_as_the_tool_declares_it(anna: Agent) -> None:
    one_of_each(anna, "Quarzit", embedding=[1, 2], **PROFILE)
    schema = next(tool.output_schema for tool in TOOLS if tool.name == TOOL)
    check = jsonschema_rs.validator_for(schema)
    for inhalt in (
        {"suche": "Quarzit"},
        {"suche": "nichts davon"},
        {"suche": "Quarzit", "embedding": [1, 1], **PROFILE, "erklaeren": 1},
        {"embedding": [1, 1, 1], **PROFILE, "mit_veralteten": 1},
        {"suche": "Quarzit", "stand": "2999-01-01", "erklaeren": 1},
    ):
        answer = search(anna, **inhalt)
        check.validate(answer)
        assert answer["anzahl"] == {
            "gesamt": len(answer["daten"]),
            "erfolgreich": len(answer["daten"]),
            "fehlgeschlagen": 0,
        }
        assert answer["durchsucht"].keys() == {"in_reichweite", "genau", "ausgelassen"}
        assert all(0 <= row["punkte"] <= 1 for row in answer["daten"])


def test_the_references_come_back_and_nothing_is_written(anna: Agent) -> None:
    kennung = anna.store(memory="Quarzit")
    before = now(anna, kennung)
    answer = anna.call(TOOL, suche="Quarzit", referenzfelder={"ticket": "T-17"})
    assert answer["referenzfelder"] == {"ticket": "T-17"}
    assert now(anna, kennung) == before


def test_ten_rows_come_when_nobody_says_how_many(anna: Agent) -> None:
    anna.call(INSERT, memories=[note(memory="Quarzit") for _ in range(30)])
    assert len(search(anna, suche="Quarzit")["daten"]) == 10
    for limit in (1, 9, 30):
        assert len(search(anna, suche="Quarzit", limit=limit)["daten"]) == limit
    assert len(search(anna, suche="Quarzit", limit=100)["daten"]) == 30


def test_a_smaller_limit_gives_the_beginning_of_a_larger_one(anna: Agent) -> None:
    texts = ["Quarzit " * n + "Sand " * (20 - n) for n in range(1, 20)]
    anna.call(INSERT, memories=[note(memory=text) for text in texts])
    whole = found(anna, "Quarzit Granit")
    assert len(whole) == 19
    assert [found(anna, "Quarzit Granit", limit=n) for n in (1, 5, 12)] == [whole[:n] for n in (1, 5, 12)]


@pytest.mark.parametrize("typen", [["longterm"], ["shortterm", "brain"], ["brain", "brain", "longterm"], []])
def test_only_the_kinds_asked_for_are_searched(anna: Agent, typen: list[str]) -> None:
    made = one_of_each(anna, "Quarzit")
    wanted = {kennung for kennung in made if kennung.partition("_")[0] in (typen or ("longterm", "shortterm", "brain"))}
    answer = search(anna, suche="Quarzit", typen=typen)
    assert {row["ID"] for row in answer["daten"]} == wanted
    assert {row["typ"] for row in answer["daten"]} == {kennung.partition("_")[0] for kennung in wanted}
    assert answer["durchsucht"]["in_reichweite"] == len(wanted)


def test_case_60_each_leg_tells_its_part_when_asked_to(anna: Agent) -> None:
    both = anna.store(memory="Quarzit", embedding=[1, 0], **PROFILE)
    text = anna.store(memory="Quarzit")
    vector = anna.store(memory="Sand", embedding=[1, 1], **PROFILE)
    inhalt: dict[str, Any] = {"suche": "Quarzit", "embedding": [1, 0], **PROFILE}
    parts = {row["ID"]: row["treffer"] for row in search(anna, **inhalt, erklaeren=1)["daten"]}
    assert parts.keys() == {both, text, vector}
    assert parts[both]["vektor"]["kosinus"] == pytest.approx(1)
    assert parts[vector]["vektor"]["kosinus"] == pytest.approx(0.5**0.5)
    assert parts[text]["vektor"] is None
    assert parts[vector]["text"] is None
    assert len(parts[both]["text"]["woerter"]) == 1
    assert parts[both]["text"]["woerter"][0].startswith("quarzit")
    assert 0 < parts[text]["text"]["punkte"] <= 1
    for quiet in ({}, {"erklaeren": 0}):
        assert all("treffer" not in row for row in search(anna, **inhalt, **quiet)["daten"])


def test_what_was_searched_and_what_was_left_out_is_told(anna: Agent) -> None:
    anna.store(memory="Quarzit", embedding=[1, 0], **PROFILE)
    stale = anna.store(memory="Quarzit", embedding=[1, 0], **PROFILE)
    change(anna, stale, memory="Granit")
    anna.store(memory="Quarzit", embedding=[1, 0], embedding_profil_hash="q")
    anna.store(memory="Quarzit", embedding=[1, 0])
    anna.store(memory="Quarzit")
    assert search(anna, suche="Quarzit")["durchsucht"] == {
        "in_reichweite": 5,
        "genau": True,
        "ausgelassen": {"abgelaufen": 0},
    }
    answer = search(anna, embedding=[1, 0], **PROFILE)
    assert answer["durchsucht"]["ausgelassen"] == {
        "abgelaufen": 0,
        "ohne_vektor_dieses_profils": 3,
        "vektor_veraltet": 1,
    }
    assert answer["anzahl"]["gesamt"] == 5 - 3 - 1
    answer = search(anna, embedding=[1, 0], **PROFILE, mit_veralteten=1)
    assert answer["durchsucht"]["ausgelassen"] == {"abgelaufen": 0, "ohne_vektor_dieses_profils": 3}
    assert answer["anzahl"]["gesamt"] == 2


def test_a_long_text_counts_once(anna: Agent) -> None:
    anna.store(memory="Quarzit " * 20_000, embedding=[1, 0], **PROFILE)
    anna.store(memory="Granit", embedding=[1, 0], **PROFILE)
    long = anna.store(memory="Quarzit " * 20_000)
    for only in ({}, {"nutzer_filter": "anna"}, {"stand": datetime.now(UTC).isoformat()}):
        told = search(anna, embedding=[1, 0], **PROFILE, **only)["durchsucht"]
        assert (told["in_reichweite"], told["ausgelassen"]["ohne_vektor_dieses_profils"]) == (3, 1)
    anna.call("delete_brain_longterm_memory", IDs=[long])
    assert search(anna, suche="Quarzit")["durchsucht"]["in_reichweite"] == 2


def test_nothing_is_found_where_there_is_nothing(anna: Agent) -> None:
    for inhalt in ({"suche": "Quarzit"}, {"embedding": [1], **PROFILE}, {"suche": "Quarzit", "stand": "2026-01-01"}):
        answer = search(anna, **inhalt)
        assert answer["daten"] == []
        assert answer["durchsucht"]["in_reichweite"] == 0


# Refusals

WRONG: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "nothing to search for": ({}, ("ungueltig", "inhalt.suche")),
    "an empty text": ({"suche": ""}, ("ungueltig", "inhalt.suche")),
    "blanks": ({"suche": " \t\n"}, ("ungueltig", "inhalt.suche")),
    "filters alone": ({"tags": ["a"]}, ("ungueltig", "inhalt.suche")),
    "no vector and no hash": ({"embedding": None, "embedding_profil_hash": None}, ("ungueltig", "inhalt.suche")),
    "a vector without a hash": ({"embedding": [1]}, ("ungueltig", "inhalt.embedding_profil_hash")),
    "a vector with the hash null": (
        {"embedding": [1], "embedding_profil_hash": None},
        ("ungueltig", "inhalt.embedding_profil_hash"),
    ),
    "a hash without a vector": ({"embedding_profil_hash": "p"}, ("ungueltig", "inhalt.embedding")),
    "an old hash without a vector": ({"ebedding_profil_haash": "p"}, ("ungueltig", "inhalt.embedding")),
    "a text with half a vector": (
        {"suche": "x", "embedding": [1]},
        ("ungueltig", "inhalt.embedding_profil_hash"),
    ),
    "a zero vector": ({"embedding": [0, 0.0, -0.0], **PROFILE}, ("ungueltig", "inhalt.embedding")),
    "an empty vector": ({"embedding": [], **PROFILE}, ("ungueltig", "inhalt.embedding")),
    "a number beyond float32": ({"embedding": [1, 1e39], **PROFILE}, ("ungueltig", "inhalt.embedding[1]")),
    "a text as a number": ({"embedding": [1, "2"], **PROFILE}, ("ungueltig", "inhalt.embedding[1]")),
    "a truth as a number": ({"embedding": [True], **PROFILE}, ("ungueltig", "inhalt.embedding[0]")),
    "a vector too long": ({"embedding": [1] * 16_001, **PROFILE}, ("zu_gross", "inhalt.embedding")),
    "a blank hash": ({"embedding": [1], "embedding_profil_hash": " "}, ("ungueltig", "inhalt.embedding_profil_hash")),
    "two hashes": (
        {"embedding": [1], "embedding_profil_hash": "p", "ebedding_profil_haash": "q"},
        ("ungueltig", "inhalt.ebedding_profil_haash"),
    ),
    "an unknown kind": ({"suche": "x", "typen": ["longterm", "tag"]}, ("ungueltig", "inhalt.typen[1]")),
    "a kind in capitals": ({"suche": "x", "typen": ["Longterm"]}, ("ungueltig", "inhalt.typen[0]")),
    "a kind that is a number": ({"suche": "x", "typen": [1]}, ("ungueltig", "inhalt.typen[0]")),
    "a kind that is no list": ({"suche": "x", "typen": "longterm"}, ("ungueltig", "inhalt.typen")),
    "too many kinds": ({"suche": "x", "typen": ["brain"] * 4}, ("zu_gross", "inhalt.typen")),
    "a moment that does not exist": ({"suche": "x", "stand": "2026-02-30"}, ("ungueltig", "inhalt.stand")),
    "a moment the clock skips": ({"suche": "x", "stand": "2026-03-29T02:30"}, ("ungueltig", "inhalt.stand")),
    "no moment": ({"suche": "x", "stand": "gestern"}, ("ungueltig", "inhalt.stand")),
    "a blank moment": ({"suche": "x", "stand": " "}, ("ungueltig", "inhalt.stand")),
    "a bare number as a moment": ({"suche": "x", "stand": 1767225600}, ("ungueltig", "inhalt.stand")),
    "a limit of none": ({"suche": "x", "limit": 0}, ("ungueltig", "inhalt.limit")),
    "a limit too high": ({"suche": "x", "limit": 101}, ("ungueltig", "inhalt.limit")),
    "a limit of a half": ({"suche": "x", "limit": 1.5}, ("ungueltig", "inhalt.limit")),
    "a text that is none": ({"suche": ["x"]}, ("ungueltig", "inhalt.suche")),
    "a text too long": ({"suche": "x" * 1_001}, ("zu_gross", "inhalt.suche")),
    "NUL": ({"suche": "a\0b"}, ("ungueltig", "inhalt.suche")),
    "NUL in a tag": ({"suche": "x", "tags": ["a\0"]}, ("ungueltig", "inhalt.tags[0]")),
    "half a pair": ({"suche": "a\ud800"}, ("ungueltig", "inhalt.suche")),
    "half a pair in a hash": (
        {"embedding": [1], "embedding_profil_hash": "\udfff"},
        ("ungueltig", "inhalt.embedding_profil_hash"),
    ),
    "an unknown field": ({"suche": "x", "query": "y"}, ("unbekanntes_feld", "inhalt.query")),
    "a cursor": ({"suche": "x", "weiter": "y"}, ("unbekanntes_feld", "inhalt.weiter")),
    "IDs": ({"suche": "x", "IDs": ["longterm_1"]}, ("unbekanntes_feld", "inhalt.IDs")),
    "an order": ({"suche": "x", "sortierung": "neueste"}, ("unbekanntes_feld", "inhalt.sortierung")),
    "a bad filter": ({"suche": "x", "scope": 1.5}, ("ungueltig", "inhalt.scope")),
    "an unknown field of time": ({"suche": "x", "zeitfeld": "gueltig_bis"}, ("ungueltig", "inhalt.zeitfeld")),
}


@pytest.mark.parametrize(("inhalt", "expected"), WRONG.values(), ids=WRONG)
def test_a_question_that_makes_no_sense_is_refused(anna: Agent, inhalt: Any, expected: tuple[str, str]) -> None:
    anna.store(memory="x")
    assert refused(anna, **inhalt) == {expected}


def test_all_that_is_wrong_is_told_at_once(anna: Agent) -> None:
    assert refused(anna, suche="x" * 1_001, stand="x", tags=[""], embedding=[0], **PROFILE) == {
        ("zu_gross", "inhalt.suche"),
        ("ungueltig", "inhalt.stand"),
        ("ungueltig", "inhalt.tags[0]"),
        ("ungueltig", "inhalt.embedding"),
    }


def test_the_caller_must_be_named_and_allowed(anna: Agent) -> None:
    fault = fault_of(anna.post(TOOL, {"inhalt": {"suche": "x"}}), 400)
    assert faults(fault) == {("pflichtfeld", "inhalt.nutzer"), ("pflichtfeld", "inhalt.agent")}
    fault = fault_of(anna.post(TOOL, {"inhalt": {"suche": "x", "nutzer": "carla", "agent": "planer"}}), 403)
    assert (fault["code"], fault["feld"]) == ("nicht_erlaubt", "inhalt.nutzer")


def test_null_stands_for_a_vector_that_is_not_given(anna: Agent) -> None:
    kennung = anna.store(memory="Quarzit")
    assert found(anna, "Quarzit", embedding=None, embedding_profil_hash=None) == [kennung]


def test_help_tells_every_parameter_and_searches_nothing(anna: Agent) -> None:
    anna.store(memory="Quarzit")
    (definition,) = anna.post(TOOL, {"help": 1, "inhalt": {"suche": "Quarzit"}}).json()["daten"]
    assert definition["name"] == TOOL
    assert definition == anna.http.get(f"/api/tools/{TOOL}/").json() | {
        name: definition[name] for name in ("index", "typ", "erfolg") if name in definition
    }
    named = {row["name"]: row for row in definition["parameter"]}
    own = {"suche", "embedding", "embedding_profil_hash", "typen", "stand", "erklaeren", "mit_veralteten", "limit"}
    filters = {"scope", "scope_vk", "agent_filter", "nutzer_filter", "tags", "tags_eines", "von", "bis", "zeitfeld"}
    assert {f"inhalt.{name}" for name in own | filters | {"nutzer", "agent"}} <= named.keys()
    assert definition["spalten"]["ebedding_profil_haash"] == "embedding_profil_hash"
    assert definition["grenzen"]["embedding"] == 16_000
    assert "Quarzit" not in str(definition)


def test_the_example_of_the_definition_works(anna: Agent) -> None:
    kennung = anna.store(memory="Kündigungsfrist")
    example = next(tool.beispiel for tool in TOOLS if tool.name == TOOL)
    assert example is not None
    answer = anna.post(example["tool"], example["arguments"]).json()
    assert [row["ID"] for row in answer["daten"]] == [kennung]


def test_the_search_stands_in_the_open_api_document(anna: Agent) -> None:
    document = anna.http.get("/api/schema/", headers={"Accept": "application/json"}).json()
    operation = document["paths"][f"/api/tools/{TOOL}/"]["post"]
    inhalt = operation["requestBody"]["content"]["application/json"]["schema"]["properties"]["inhalt"]["properties"]
    assert {"suche", "embedding", "typen", "stand", "erklaeren"} <= inhalt.keys()


def test_a_reading_key_may_search(agent_with: Any, anna: Agent) -> None:
    kennung = anna.store(memory="Quarzit")
    assert found(agent_with("anna", nutzer=["anna"], may_write=False), "Quarzit") == [kennung]


# Text


@pytest.mark.parametrize(
    ("text", "suche"),
    [
        ("Die Kündigung liegt vor.", "kuendigung"),
        ("Die Kuendigung liegt vor.", "KÜNDIGUNG"),
        ("Die Kündigung liegt vor.", "Kündigungen"),
        ("In den Häusern brennt Licht.", "Haus"),
        ("Er wohnt in der Bahnhofstraße.", "bahnhofstrasse"),
        ("Er wohnt in der BAHNHOFSTRASSE.", "Bahnhofstraße"),
        ("Wir treffen uns im Café.", "cafe"),
        ("Das Cafe\u0301 hat zu.", "CAFÉ"),
        ("Verträge sind zu prüfen.", "Vertrag"),
        ("The meetings were cancelled.", "meeting"),
        ("Kündigungsfrist", "Frist"),
        ("Frist", "Kündigungsfrist"),
        ("Der Kaffeevollautomat ist defekt.", "Kaffee"),
        ("Die Buchhaltung ist umgezogen.", "Buchaltung"),
        ("Die Buchhaltung ist umgezogen.", "Buhchhaltung"),
        ("Das Protokoll liegt bei.", "Protokol"),
        ("Rechnung 4711 ist offen.", "4711"),
        ("Paragraf § 12 Abs. 3", "Paragraf 12"),
        ("Ключ лежит у Сергея", "КЛЮЧ"),
        ("Το κλειδί είναι εδώ", "κλειδι"),
        ("Frage 🙂 offen", "🙂 Frage"),
    ],
)
def test_a_word_is_found_in_other_forms_and_spellings(anna: Agent, text: str, suche: str) -> None:
    anna.store(kurzbeschreibung="k", memory="Etwas ganz anderes über Birnen", tags=[])
    kennung = anna.store(kurzbeschreibung="k", memory=text, tags=[])
    assert found(anna, suche) == [kennung]


@pytest.mark.parametrize("field", ["kurzbeschreibung", "memory", "tags"])
def test_all_texts_of_a_note_and_its_tags_are_searched(anna: Agent, field: str) -> None:
    kennung = anna.store(**{field: ["Quarzit"] if field == "tags" else "Quarzit"})
    assert found(anna, "quarzit") == [kennung]


@pytest.mark.parametrize("field", ["titel", "inhalt", "inhalt_json"])
def test_all_texts_of_a_brain_memory_are_searched(anna: Agent, field: str) -> None:
    text = '{"ort": "Quarzit"}' if field == "inhalt_json" else "Quarzit"
    kennung = anna.call("insert_brain_memory", **(BRAIN | {field: text}))["daten"][0]["ID"]
    assert found(anna, "quarzit") == [kennung]


@pytest.fixture
def phrases(anna: Agent) -> dict[str, str]:
    """Memories by what they hold."""
    texts = {
        "in order": "Die drei Monate sind um.",
        "turned": "Monate hat das Jahr, und drei sind um.",
        "apart": "Die drei langen Monate sind um.",
        "months": "Viele Monate später.",
    }
    return {name: anna.store(kurzbeschreibung="k", memory=text, tags=[]) for name, text in texts.items()}


@pytest.mark.parametrize(
    ("suche", "expected"),
    [
        ("drei Monate", {"in order", "turned", "apart", "months"}),
        ('"drei Monate"', {"in order"}),
        ('"Drei  MONATE"', {"in order"}),
        ('"drei Monate" Jahr', {"in order"}),
        ('"drei" "Monate"', {"in order", "turned", "apart"}),
        ('"drei lange Monate"', {"apart"}),
        ("Monate -drei", {"months"}),
        ("Monate -Jahr", {"in order", "apart", "months"}),
        ('Monate -"drei Monate"', {"turned", "apart", "months"}),
        ("Monate -nirgends", {"in order", "turned", "apart", "months"}),
        ("-drei", set()),
        ('-"drei Monate"', set()),
        ('"Monate drei"', set()),
        ('"drei Monate', {"in order", "turned", "apart", "months"}),
        ('drei Monate"', {"in order", "turned", "apart", "months"}),
        ('""', set()),
        ('"" Monate', {"in order", "turned", "apart", "months"}),
        ('"…" Jahr', {"turned"}),
        ("Monate - drei", {"in order", "turned", "apart", "months"}),
        ("Monate --drei", {"in order", "turned", "apart", "months"}),
        ("Monate –drei", {"in order", "turned", "apart", "months"}),
    ],
)
def test_quotes_ask_for_a_phrase_and_a_minus_excludes(
    anna: Agent, phrases: dict[str, str], suche: str, expected: set[str]
) -> None:
    names = {kennung: name for name, kennung in phrases.items()}
    assert {names[kennung] for kennung in found(anna, suche)} == expected


def test_words_that_look_like_marks_of_the_index_are_words(anna: Agent) -> None:
    """The index marks what a memory is and whose; no text may pass for such a mark, and no search reach it."""
    marks = [
        "z1",
        "z2",
        "z3",
        *(token("n", "anna"), token("k", "longterm"), token("s", "modul"), token("t", "vertrag")),
    ]
    plain = anna.store(memory="Quarzit", embedding=[1], **PROFILE)
    told = search(anna, embedding=[1], **PROFILE)["durchsucht"]
    for mark in marks:
        assert found(anna, mark) == [], mark
        assert found(anna, f'"{mark}"') == [], mark
        assert found(anna, f"Quarzit -{mark}") == [plain], mark
        assert listed(anna, mark) == [], mark
    assert anna.call(INSERT, memories=[note(memory=mark, nutzer="ben", tags=[], scope="s") for mark in marks])["erfolg"]
    assert search(anna, embedding=[1], **PROFILE, nutzer_filter="anna")["durchsucht"] == told
    for only in ({"nutzer_filter": "anna"}, {"scope": "modul"}, {"tags": ["Vertrag"]}):
        assert search(anna, suche="Quarzit", **only)["durchsucht"]["in_reichweite"] == 1


def test_a_phrase_far_inside_a_long_text_is_found_as_well(anna: Agent) -> None:
    """Beyond the 16,383rd word, and after hundreds of the same word, PostgreSQL's index knows no places any more."""
    filling = " ".join(["drei"] * 400 + ["a b c d"] * 4_800)
    hit = anna.store(memory=f"{filling} drei Monate")
    miss = anna.store(memory=f"{filling} Monate drei")
    assert found(anna, '"drei Monate"') == [hit]
    assert found(anna, 'drei -"drei Monate"') == [miss]


def test_what_means_nothing_finds_nothing(anna: Agent) -> None:
    anna.store(memory="Der Kaffeevollautomat der Küche ist defekt.")
    for suche in ("qzxv blorp", "!!!", "§", "…", "-", '"', "''", "()", "🙂", "a\u0301\u0301 \u0301", "0815"):
        assert found(anna, suche) == [], suche


HOSTILE = [
    *("E-Mail", "C++", "C#", "F#", ".NET", "node.js", "@nasa", "#wichtig", "50%", "50 %", "a'b", "O'Brien", "don’t"),
    *('"offen', 'offen"', 'a"b', '""offen""', '"', '"""', "'", "''offen''", "`offen`", "„offen“", "»offen«"),
    *("AND", "OR", "NOT", "NEAR", "offen AND", "AND offen", "offen OR", "NOT offen", "offen NOT", "a AND NOT b"),
    *("NEAR(", "NEAR(offen", "NEAR(offen geheim, 2)", "offen NEAR/3 geheim", "multi-agent", "offen-", "--offen"),
    *("-", "--", "- -", "offen*", "*offen", "*", "^offen", "offen^2", "stamm:offen", "geltung:z1", "{stamm geltung}"),
    *("{stamm}: offen", "rowid:1", "(offen", "offen)", "((((", "()", "offen & geheim", "offen | geheim", "!offen"),
    *("offen <-> geheim", "offen <2> geheim", ":*", "offen:*", "offen:A", "\\", "\\offen", "offen\\", "\\'", "E'\\x'"),
    *("'; DROP TABLE memories_searchentry; --", "' OR '1'='1", "%s", "%(name)s", "%", "100%%", "_", "off_n", "o%n"),
    *("{{offen}}", "{% offen %}", "<b>offen</b>", "<script>", "&amp;", "http://a.de/b?c=d&e=f#g", "a@b.de", "C:\\a\\b"),
    *("\u202eoffen", "\ufeffoffen", "of\u00adfen", "z1", "z2", "-z1", "null", "None", "true", "1e999", "½", "x²", "ﬁ"),
    *("\U0001e900\U0001e923\U0001e925", "\U0002b820", "Ǆ", "ŉ", "ﷺ", "ΐ", "ß", "ſ", "İ", "ı", "\u0345", "\U0001d400"),
]


def test_no_text_is_an_error_whatever_it_holds(anna: Agent) -> None:
    anna.store(memory="Ein offener Punkt, geheim.")
    for suche in HOSTILE:
        for more in ({}, {"embedding": [1], **PROFILE, "stand": "2999-01-01"}):
            search(anna, suche=suche, **more)
        assert anna.call("select_brain_longterm_memory", suche=suche)["erfolg"] is True, suche


def test_every_text_that_has_a_letter_finds_itself(anna: Agent) -> None:
    texts = [text for text in dict.fromkeys(HOSTILE) if any(c.isalnum() for c in text) and not text.startswith("-")]
    assert len(texts) > 60
    made = {}
    for start in range(0, len(texts), 100):
        part = texts[start : start + 100]
        memories = [note(kurzbeschreibung="·", memory=text, tags=[]) for text in part]
        rows = anna.call(INSERT, memories=memories)["daten"]
        made |= dict(zip(part, (row["ID"] for row in rows), strict=True))
    missed = [text for text in texts if made[text] not in found(anna, text.replace('"', " "))]
    assert missed == []


@pytest.mark.parametrize(
    "suche",
    [
        "Quarzit " + "x" * 992,
        "Quarzit " + " ".join("abcdefghij"[n % 10] for n in range(496)),
        "Quarzit " + " ".join(f"{n:03}" for n in range(248)),
        "Quarzit" + " -a" * 331,
        "Quarzit" + "".join(f" -{chr(0x4E00 + n)}" for n in range(331)),
        "Quarzit " + ' ""' * 330,
        "Quarzit " + "(" * 992,
        "Quarzit " + "ﷺ" * 992,
        "Quarzit " + "a-" * 496,
        "Quarzit " + '"' * 991,
        "Quarzit " + "東" * 992,
    ],
)
def test_a_query_of_a_thousand_characters_is_answered(anna: Agent, suche: str) -> None:
    kennung = anna.store(kurzbeschreibung="k", memory="Quarzit", tags=[])
    assert len(suche) <= 1_000
    assert found(anna, suche) == [kennung]


def test_hundreds_of_phrases_are_answered(anna: Agent) -> None:
    letters = [chr(0x61 + n % 26) + chr(0x61 + n // 26) for n in range(190)]
    kennung = anna.store(memory=" ".join(letters))
    assert found(anna, " ".join(f'"{word}"' for word in letters)) == [kennung]
    assert found(anna, " ".join(f'"{word}"' for word in letters) + ' "xx"') == []


def test_a_text_of_any_words_can_be_stored_and_found(anna: Agent) -> None:
    """Long words are cut, and none of them is too long for the vocabulary or the full-text index."""
    texts = [
        "a" * 40 + "++",
        "b" * 500 + "#",
        "c-" * 300 + "++",
        "ﷺ" * 200,
        "東" * 500,
        "d" * 2_000 + " e",
        "'" * 99 + "f",
    ]
    answer = anna.call(INSERT, memories=[note(memory=text, tags=[]) for text in texts])
    assert [row.get("fehler") for row in answer["daten"]] == [None] * len(texts)
    for row, text in zip(answer["daten"], texts, strict=True):
        assert row["ID"] in found(anna, text[:1_000])


# Ranking by text


def test_points_fall_with_the_rank_and_differ(anna: Agent) -> None:
    texts = ["Quarzit", "Quarzit Granit", "Quarzit Sand " * 3, "Sand " * 40 + "Quarzit", "Quarzit " + "Lehm " * 100]
    anna.call(INSERT, memories=[note(kurzbeschreibung="k", memory=text, tags=[]) for text in texts])
    points = [row["punkte"] for row in search(anna, suche="Quarzit Granit")["daten"]]
    assert len(points) == len(texts)
    assert points == sorted(points, reverse=True)
    assert len(set(points)) >= 4
    assert 0 < points[-1] < points[0] <= 1


def test_the_word_itself_comes_before_a_compound_and_a_compound_before_a_near_spelling(anna: Agent) -> None:
    near = anna.store(kurzbeschreibung="k", memory="Die Kündigunk liegt auf dem Tisch", tags=[])
    compound = anna.store(kurzbeschreibung="k", memory="Die Kündigungsfrist steht im Vertrag", tags=[])
    exact = anna.store(kurzbeschreibung="k", memory="Die Kündigung liegt auf dem Tisch", tags=[])
    hits = found(anna, "Kündigung")
    assert hits[:2] == [exact, compound]
    assert hits[2:] in ([], [near])


def test_more_of_the_words_come_before_fewer_and_rare_before_common(anna: Agent) -> None:
    for n in range(20):
        anna.store(kurzbeschreibung="k", memory=f"Sitzung am {n}. Tag", tags=[])
    both = anna.store(kurzbeschreibung="k", memory="Sitzung mit Quarzit als Thema", tags=[])
    rare = anna.store(kurzbeschreibung="k", memory="Ein Brocken Quarzit als Thema", tags=[])
    assert found(anna, "Sitzung Quarzit")[:2] == [both, rare]


# Vectors


def test_vectors_come_by_their_cosine(anna: Agent) -> None:
    vectors = {"same": [2, 0, 0], "near": [3, 1, 0], "right": [0, 5, 0], "away": [-1, 2, 0], "against": [-1, 0, 0]}
    made = {name: anna.store(embedding=vectors[name], **PROFILE) for name in reversed(vectors)}
    rows = search(anna, embedding=[0.5, 0, 0], **PROFILE, erklaeren=1)["daten"]
    assert [row["ID"] for row in rows] == [made[name] for name in vectors]
    cosines = [row["treffer"]["vektor"]["kosinus"] for row in rows]
    assert cosines == pytest.approx([1, 3 / 10**0.5, 0, -(5**-0.5), -1], abs=1e-6)
    assert [row["punkte"] for row in rows] == pytest.approx([1, 0.9487, 0, 0, 0], abs=1e-4)


@pytest.mark.parametrize("scale", [1e-45, 1e-30, 1, 1e30, 3.4e38])
def test_the_length_of_a_vector_does_not_matter(anna: Agent, scale: float) -> None:
    far = anna.store(embedding=[1, -1], **PROFILE)
    hit = anna.store(embedding=[scale, scale], **PROFILE)
    rows = search(anna, embedding=[scale, scale], **PROFILE)["daten"]
    assert [row["ID"] for row in rows] == [hit, far]
    assert rows[0]["punkte"] == pytest.approx(1, abs=1e-3)


def test_the_hash_may_come_under_its_old_name(anna: Agent) -> None:
    kennung = anna.store(embedding=[1, 2], ebedding_profil_haash="p")
    for hashes in ({"ebedding_profil_haash": "p"}, PROFILE, {"ebedding_profil_haash": "p", **PROFILE}):
        assert found(anna, embedding=[1, 2], **hashes) == [kennung]


def test_a_vector_of_another_length_or_profile_finds_nothing_and_says_so(anna: Agent) -> None:
    anna.store(embedding=[1, 2, 3], **PROFILE)
    for embedding, profile in (([1, 2], "p"), ([1, 2, 3, 4], "p"), ([1, 2, 3], "P"), ([1, 2, 3], "p ")):
        answer = search(anna, embedding=embedding, embedding_profil_hash=profile)
        assert answer["daten"] == []
        assert answer["durchsucht"]["in_reichweite"] == 1
        assert answer["durchsucht"]["ausgelassen"]["ohne_vektor_dieses_profils"] == 1
    assert found(anna, "Frist", embedding=[1, 2], **PROFILE) != []


def test_two_lengths_under_one_hash_are_never_compared(anna: Agent) -> None:
    """The length is the kind's own, so memories of two kinds may differ in it."""
    long = anna.store(embedding=[1, 2, 3], **PROFILE)
    entry = note(embedding=[1, 2], **PROFILE)
    short = anna.call("insert_brain_shortterm_memory", memories=[entry])["daten"][0]["ID"]
    assert found(anna, embedding=[1, 2, 3], **PROFILE) == [long]
    assert found(anna, embedding=[1, 2], **PROFILE) == [short]


def test_a_stale_vector_is_left_out_unless_asked_for(anna: Agent) -> None:
    stale = anna.store(memory="alt", embedding=[1, 0], **PROFILE)
    fresh = anna.store(memory="neu", embedding=[1, 1], **PROFILE)
    change(anna, stale, memory="anders")
    assert found(anna, embedding=[1, 0], **PROFILE) == [fresh]
    assert found(anna, embedding=[1, 0], **PROFILE, mit_veralteten=0) == [fresh]
    rows = search(anna, embedding=[1, 0], **PROFILE, mit_veralteten=1)["daten"]
    assert [(row["ID"], row["embedding_veraltet"]) for row in rows] == [(stale, True), (fresh, False)]
    assert found(anna, "anders", embedding=[1, 0], **PROFILE) == [fresh, stale] or found(
        anna, "anders", embedding=[1, 0], **PROFILE
    ) == [stale, fresh]
    change(anna, stale, memory="anders", embedding=[1, 0])
    assert found(anna, embedding=[1, 0], **PROFILE) == [stale, fresh]


def test_a_vector_that_is_taken_away_or_changes_its_profile_is_found_no_more(anna: Agent) -> None:
    kennung = anna.store(memory="m", embedding=[1, 0], **PROFILE)
    change(anna, kennung, embedding_profil_hash="q")
    assert found(anna, embedding=[1, 0], **PROFILE) == []
    assert found(anna, embedding=[1, 0], embedding_profil_hash="q") == [kennung]
    change(anna, kennung, embedding_profil_hash=None)
    assert found(anna, embedding=[1, 0], embedding_profil_hash="q") == []
    change(anna, kennung, **PROFILE)
    assert found(anna, embedding=[1, 0], **PROFILE) == [kennung]
    change(anna, kennung, embedding=None)
    assert found(anna, embedding=[1, 0], **PROFILE) == []


# Both


def test_a_hit_of_one_leg_alone_comes_too_and_one_of_both_comes_first(anna: Agent) -> None:
    text = anna.store(kurzbeschreibung="k", memory="Quarzit und Sand und Lehm", tags=[])
    vector = anna.store(kurzbeschreibung="k", memory="Birnen", tags=[], embedding=[9, 1], **PROFILE)
    both = anna.store(kurzbeschreibung="k", memory="Quarzit", tags=[], embedding=[1, 0], **PROFILE)
    neither = anna.store(kurzbeschreibung="k", memory="Birnen", tags=[])
    hits = found(anna, "Quarzit", embedding=[1, 0], **PROFILE)
    assert hits[0] == both
    assert set(hits) == {both, text, vector}
    assert neither not in hits
    assert found(anna, "Quarzit") == [both, text]
    assert found(anna, embedding=[1, 0], **PROFILE) == [both, vector]


def test_one_leg_that_finds_nothing_leaves_the_other_as_it_is(anna: Agent) -> None:
    made = [anna.store(memory="Quarzit " * n, embedding=[n, 1], **PROFILE) for n in (1, 2, 3)]
    alone = search(anna, embedding=[5, 1], **PROFILE)["daten"]
    both = search(anna, suche="qzxv", embedding=[5, 1], **PROFILE)["daten"]
    assert [row["ID"] for row in alone] == made[::-1]
    assert [(row["ID"], row["punkte"]) for row in both] == [(row["ID"], row["punkte"]) for row in alone]
    alone = search(anna, suche="Quarzit")["daten"]
    both = search(anna, suche="Quarzit", embedding=[1, 2], embedding_profil_hash="other")["daten"]
    assert [(row["ID"], row["punkte"]) for row in both] == [(row["ID"], row["punkte"]) for row in alone]


def test_each_memory_comes_once_however_often_it_hits(anna: Agent) -> None:
    made = [anna.store(memory="Quarzit " * n, tags=["Quarzit"], embedding=[n, 1], **PROFILE) for n in range(1, 30)]
    hits = found(anna, 'Quarzit "Quarzit" Quarz', embedding=[1, 1], **PROFILE)
    assert sorted(hits) == sorted(made)


def test_words_that_very_many_have_choose_only_where_the_rarest_leaves_room(
    anna: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "_READABLE", 3 / 150)  # at first three entries, then eight times as many
    common = [anna.store(memory="Quarzit") for _each in range(4)]
    rarer = [anna.store(memory=memory) for memory in ("Granit", "Granit", "Granit, Quarzit")]
    hits = found(anna, "Quarzit Granit", limit=3)
    assert hits[0] == rarer[-1]
    assert set(hits) == set(rarer)
    assert set(found(anna, "Quarzit Granit", limit=10)) == {*rarer, *common}


def test_an_entry_that_changed_between_finding_and_reading_it_has_no_points() -> None:
    changed = scoring.Document(row=None, length=3, counts={}, held=())
    assert list(scoring.scores([changed], [0], 10)) == [0.0]
