"""The envelope: its shape in and out, whose fault a fault is, every status, and always JSON."""

import json
from typing import Any

import pytest
from django.test import Client

from api.tools import TOOLS
from memories.limits import Limits
from tests.conftest import Agent, note
from tests.doors import ENVELOPE, NAMES, fault_of, faults, inhalt_for, one_fault, raw, tool_of

INSERT = "insert_brain_longterm_memory"
SELECT = "select_brain_longterm_memory"
REFERENCES = {
    "ticket": "T-17",
    "b": 1,
    "a": {"tief": [{"z": [[1, 2.5, None, True, "ä🙂"]], "y": {}}], "": ""},
    "big": 2**80,
    "negative": -(2**70),
    "float": 0.1,
    "whole float": 1.0,
    "tiny": 5e-324,
    "large": 1.7976931348623157e308,
    "odd": 1e23,
    "minus zero": -0.0,
    "a text of JSON": '{"a": 1}',
    "Zürich": "Zu\u0308rich",
    "longer key": 1,
    "c": "<script>{{ x }}</script>\r\n\t",
}


def _stored(agent: Agent) -> int:
    total: int = agent.call(SELECT, limit=100)["anzahl"]["gesamt"]
    return total


# Out


def test_an_executed_call_has_a_row_for_each_entry_in_the_order_sent(anna: Agent) -> None:
    entries = [note(), note(tags=["a", "", "b"]), note(), note(scope=True), "nothing"]
    answer = anna.call(INSERT, memories=entries, referenzfelder={"ticket": "T-17"})
    assert answer.keys() == ENVELOPE
    assert answer["tool"] == INSERT
    assert answer["erfolg"] is False
    assert answer["anzahl"] == {"gesamt": 5, "erfolgreich": 2, "fehlgeschlagen": 3}
    assert answer["fehler"] is None
    assert answer["referenzfelder"] == {"ticket": "T-17"}
    assert [row["index"] for row in answer["daten"]] == [0, 1, 2, 3, 4]
    assert [row["erfolg"] for row in answer["daten"]] == [True, False, True, False, False]
    assert {row["typ"] for row in answer["daten"]} == {"longterm"}
    assert answer["daten"][0].keys() == {"index", "typ", "erfolg", "ID"}
    assert answer["daten"][1].keys() == {"index", "typ", "erfolg", "fehler"}
    assert answer["daten"][1]["fehler"].keys() == {"code", "feld", "meldung"}
    assert one_fault(answer, 1) == ("ungueltig", "tags[1]")
    assert one_fault(answer, 3) == ("ungueltig", "scope")
    assert answer["daten"][4]["fehler"]["code"] == "ungueltig"


def test_erfolg_is_true_only_when_every_entry_succeeded(anna: Agent) -> None:
    assert anna.call(INSERT, memories=[note(), note()])["erfolg"] is True
    assert anna.call(INSERT, memories=[note(), note(memory="")])["erfolg"] is False


def test_references_come_back_as_they_were_sent(anna: Agent) -> None:
    answer = raw(
        anna, json.dumps({"inhalt": inhalt_for(INSERT), "referenzfelder": REFERENCES}), f"/api/tools/{INSERT}/"
    )
    assert json.dumps(json.loads(answer.content)["referenzfelder"]) == json.dumps(REFERENCES)


def test_references_are_in_the_history_as_they_were_sent(anna: Agent) -> None:
    kennung = anna.call(INSERT, memories=[note()], referenzfelder=REFERENCES)["daten"][0]["ID"]
    step = anna.call("select_brain_history", ID=kennung)["daten"][0]
    assert json.dumps(step["referenzfelder"]) == json.dumps(REFERENCES)


@pytest.mark.parametrize("nothing", [None, "", "null", {}])
def test_references_sent_as_nothing_are_none(anna: Agent, nothing: Any) -> None:
    answer = anna.post(INSERT, {"inhalt": inhalt_for(INSERT), "referenzfelder": nothing}).json()
    assert answer["erfolg"] is True
    assert answer["referenzfelder"] == {}


@pytest.mark.parametrize("wrong", ["T-17", 7, [], True, "[1]", "7"])
def test_references_that_are_no_object_are_a_fault_of_the_call(anna: Agent, wrong: Any) -> None:
    fault = fault_of(anna.post(INSERT, {"inhalt": inhalt_for(INSERT), "referenzfelder": wrong}), 400)
    assert (fault["code"], fault["feld"]) == ("ungueltig", "referenzfelder")
    assert _stored(anna) == 0


def test_a_refused_call_gives_the_references_back_too(anna: Agent) -> None:
    for sent in ({"ticket": "T-17"}, '{"ticket": "T-17"}'):
        answer = anna.post(INSERT, {"inhalt": {}, "referenzfelder": sent})
        assert answer.status_code == 400
        assert answer.json()["referenzfelder"] == {"ticket": "T-17"}
        assert answer.json()["tool"] == INSERT


# In: values that arrive as texts of JSON


def test_case_5_objects_and_lists_that_arrive_as_texts_are_decoded_once(anna: Agent) -> None:
    entry = note(tags='["Vertrag", "Frist"]', embedding="[1, 2.5]", memory='{"bleibt": "Text"}')
    inhalt = {"nutzer": "anna", "agent": "planer", "memories": [entry]}
    for arguments in (
        {"inhalt": json.dumps(inhalt)},
        {"inhalt": inhalt | {"memories": json.dumps([entry])}},
        {"inhalt": inhalt | {"memories": [json.dumps(entry)]}},
        json.dumps({"inhalt": inhalt}),
        json.dumps({"inhalt": json.dumps(inhalt), "referenzfelder": json.dumps({"n": 1})}),
    ):
        answer = anna.post(INSERT, arguments).json()
        assert answer["erfolg"] is True, answer
        found = anna.call(SELECT, IDs=[answer["daten"][0]["ID"]], mit_embedding=1)["daten"][0]
        assert found["tags"] == ["Vertrag", "Frist"]
        assert found["embedding"] == [1.0, 2.5]
        assert found["memory"] == '{"bleibt": "Text"}'


def test_case_5_references_as_text_are_decoded_once_and_not_inside(anna: Agent) -> None:
    answer = anna.post(INSERT, {"inhalt": inhalt_for(INSERT), "referenzfelder": '{"a": "{\\"b\\": 1}"}'}).json()
    assert answer["referenzfelder"] == {"a": '{"b": 1}'}


def test_case_5_filters_and_ids_of_the_other_tools_are_decoded_too(anna: Agent) -> None:
    kennung = anna.store(tags=["a"])
    assert anna.call(SELECT, IDs=json.dumps([kennung]))["erfolg"] is True
    assert anna.call(SELECT, tags='["a"]')["anzahl"]["gesamt"] == 1
    assert anna.call("delete_brain_longterm_memory", IDs=json.dumps([kennung]))["erfolg"] is True


@pytest.mark.parametrize("tags", ["a", "", '"a"', "{}", '"[\\"a\\"]"', "[", "null", "7", '["a"] x', '["a", NaN]'])
def test_a_text_that_does_not_hold_the_very_type_is_the_entrys_fault(anna: Agent, tags: str) -> None:
    answer = anna.call(INSERT, memories=[note(tags=tags), note()])
    assert [row["erfolg"] for row in answer["daten"]] == [False, True]
    assert one_fault(answer) == ("ungueltig", "tags")


@pytest.mark.parametrize("memories", ['"[]"', "{}", "7", "", "null", json.dumps(json.dumps([note()]))])
def test_memories_as_a_text_of_something_else_are_the_calls_fault(anna: Agent, memories: str) -> None:
    fault = fault_of(anna.post(INSERT, {"inhalt": inhalt_for(INSERT) | {"memories": memories}}), 400)
    assert fault["feld"] == "inhalt.memories"


def test_inhalt_json_stays_the_text_that_it_is(anna: Agent) -> None:
    text = ' {"a": [1, 2.50],\r\n "ä": "\\u00e4"} '
    kennung = anna.call("insert_brain_memory", memory_typ="arbeit", titel="t", inhalt_json=text)["daten"][0]["ID"]
    assert anna.call("select_brain_memory", IDs=[kennung])["daten"][0]["inhalt_json"] == text


# Whose fault it is


@pytest.mark.parametrize(
    ("inhalt", "expected"),
    [
        ({}, {("pflichtfeld", "inhalt.memories"), ("pflichtfeld", "inhalt.nutzer"), ("pflichtfeld", "inhalt.agent")}),
        ({"nutzer": "anna", "agent": "a"}, {("pflichtfeld", "inhalt.memories")}),
        ({"nutzer": "anna", "agent": "a", "memories": []}, {("ungueltig", "inhalt.memories")}),
        ({"nutzer": "anna", "agent": "a", "memories": None}, {("ungueltig", "inhalt.memories")}),
        ({"nutzer": "anna", "agent": "a", "memories": {"0": {}}}, {("ungueltig", "inhalt.memories")}),
        (
            {"nutzer": "", "agent": " a", "memories": [{}]},
            {("ungueltig", "inhalt.nutzer"), ("ungueltig", "inhalt.agent")},
        ),
        (
            {"nutzer": True, "agent": None, "memories": [{}]},
            {("ungueltig", "inhalt.nutzer"), ("ungueltig", "inhalt.agent")},
        ),
        ({"nutzer": "anna", "agent": "a", "memories": [{}], "memory": 1}, {("unbekanntes_feld", "inhalt.memory")}),
        ("x", {("ungueltig", "inhalt")}),
        (None, {("ungueltig", "inhalt")}),
        ([], {("ungueltig", "inhalt")}),
    ],
)
def test_a_fault_of_the_call_stores_nothing_and_tells_all(anna: Agent, inhalt: Any, expected: set[Any]) -> None:
    fault = fault_of(anna.post(INSERT, {"inhalt": inhalt}), 400)
    assert faults(fault) == expected


@pytest.mark.parametrize("arguments", [None, [], 7, "x", True, "[]", "null"])
def test_arguments_that_are_no_object_are_a_fault_of_the_call(anna: Agent, arguments: Any) -> None:
    for name in NAMES:
        assert fault_of(anna.post(name, arguments), 400)["code"] == "ungueltig"


def test_without_inhalt_the_call_says_so(anna: Agent) -> None:
    for name in NAMES:
        assert faults(fault_of(anna.post(name, {}), 400)) == {("pflichtfeld", "inhalt")}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, {("pflichtfeld", "tool"), ("pflichtfeld", "arguments")}),
        ({"tool": INSERT}, {("pflichtfeld", "arguments")}),
        ({"arguments": {}}, {("pflichtfeld", "tool")}),
        ({"tool": INSERT, "arguments": {}, "id": 1}, {("unbekanntes_feld", "id")}),
        ({"tool": INSERT, "argument": {}}, {("pflichtfeld", "arguments"), ("unbekanntes_feld", "argument")}),
        ({"tool": 7, "arguments": {}}, {("ungueltig", "tool")}),
        ({"tool": None, "arguments": {}}, {("ungueltig", "tool")}),
        ([], {("ungueltig", None)}),
        ("x", {("ungueltig", None)}),
    ],
)
def test_a_faulty_frame_is_refused_with_all_its_faults(anna: Agent, body: Any, expected: set[Any]) -> None:
    response = anna.http.post("/api/tools/", json.dumps(body), content_type="application/json")
    assert faults(fault_of(response, 400)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_field_is_refused_at_every_level(anna: Agent, name: str) -> None:
    arguments = {"inhalt": inhalt_for(name)}
    response = anna.http.post(
        "/api/tools/", {"tool": name, "arguments": arguments, "tools": 1}, content_type="application/json"
    )
    assert faults(fault_of(response, 400)) == {("unbekanntes_feld", "tools")}
    fault = fault_of(anna.post(name, arguments | {"referenzfeld": {}}), 400)
    assert (fault["code"], fault["feld"]) == ("unbekanntes_feld", "referenzfeld")
    assert "referenzfelder" in fault["meldung"]
    response = anna.post(name, {"inhalt": inhalt_for(name, nutzerin="anna")})
    if tool_of(name).shape.name == "SINGLE":
        assert response.status_code == 200
        fault = response.json()["daten"][0]["fehler"]
        assert (fault["code"], fault["feld"]) == ("unbekanntes_feld", "nutzerin")
    else:
        fault = fault_of(response, 400)
        assert (fault["code"], fault["feld"]) == ("unbekanntes_feld", "inhalt.nutzerin")


def test_case_7_an_unknown_field_names_the_missing_one_the_nearest_and_those_allowed(anna: Agent) -> None:
    entry = note() | {"text": "m"}
    del entry["memory"]
    answer = anna.call(INSERT, memories=[entry, note(tag=[]), note()])
    assert [row["erfolg"] for row in answer["daten"]] == [False, False, True]
    fault = answer["daten"][0]["fehler"]
    assert faults(fault) == {("unbekanntes_feld", "text"), ("pflichtfeld", "memory")}
    assert fault["code"] == "unbekanntes_feld"
    for name in ("memory", "kurzbeschreibung", "embedding_profil_hash"):
        assert name in fault["meldung"]
    assert "tags" in answer["daten"][1]["fehler"]["meldung"].split(".")[1]


def test_all_faults_of_an_entry_are_told_at_once(anna: Agent) -> None:
    entry = note(
        kurzbeschreibung="",
        memory="a\0b",
        tags=["", "ok", 7],
        scope=" x",
        scope_vk=1.5,
        agent=True,
        embedding=[],
        embedding_profil_hash=7,
        extra=1,
    )
    del entry["nutzer"]
    fault = anna.call(INSERT, memories=[entry])["daten"][0]["fehler"]
    assert faults(fault) == {
        ("unbekanntes_feld", "extra"),
        ("pflichtfeld", "nutzer"),
        ("ungueltig", "kurzbeschreibung"),
        ("ungueltig", "memory"),
        ("ungueltig", "tags[2]"),
        ("ungueltig", "scope"),
        ("ungueltig", "scope_vk"),
        ("ungueltig", "agent"),
        ("ungueltig", "embedding"),
        ("ungueltig", "embedding_profil_hash"),
    }
    assert fault["code"] == fault["details"][0]["code"]


@pytest.mark.parametrize(
    "entry",
    [
        note(tags=[""] * 50),
        note(tags=[7] * 50),
        note(tags=["\0"] * 50),
        note(embedding=["x"] * 50),
        note(**{f"f{n}": 1 for n in range(50)}),
        note(tags=["\0"] * 15, **{f"f{n}": 1 for n in range(15)}),
    ],
    ids=["blank", "numbers", "NUL", "texts", "unknown", "several kinds"],
)
def test_at_most_twenty_faults_of_an_entry_are_told(anna: Agent, entry: Any) -> None:
    fault = anna.call(INSERT, memories=[entry])["daten"][0]["fehler"]
    assert len(fault["details"]) == 20


def test_the_faults_of_a_brain_memory_are_the_entrys(anna: Agent) -> None:
    answer = anna.call("insert_brain_memory", memory_typ="idee", relevanz="101", gueltig_bis="morgen", x="1")
    assert answer["anzahl"] == {"gesamt": 1, "erfolgreich": 0, "fehlgeschlagen": 1}
    assert faults(answer["daten"][0]["fehler"]) == {
        ("unbekanntes_feld", "x"),
        ("pflichtfeld", "titel"),
        ("ungueltig", "memory_typ"),
        ("ungueltig", "relevanz"),
        ("ungueltig", "gueltig_bis"),
    }


def test_the_faults_of_a_question_are_the_calls_all_at_once(anna: Agent) -> None:
    asked = {"scope": " x", "tags": [""], "von": "gestern", "limit": 5}
    fault = fault_of(anna.post(SELECT, {"inhalt": inhalt_for(SELECT) | asked}), 400)
    assert faults(fault) == {
        ("ungueltig", "inhalt.scope"),
        ("ungueltig", "inhalt.tags[0]"),
        ("ungueltig", "inhalt.von"),
    }


@pytest.mark.parametrize(
    ("name", "kennung", "right"),
    [
        ("update_brain_longterm_memory", "shortterm_3", "longterm_"),
        ("update_brain_longterm_memory", "brain_7", "longterm_"),
        ("update_brain_shortterm_memory", "longterm_41", "shortterm_"),
        ("update_brain_memory", "longterm_41", "brain_"),
    ],
)
def test_an_id_of_another_kind_is_told_as_such_and_not_as_none(
    anna: Agent, name: str, kennung: str, right: str
) -> None:
    fields = {"ID": kennung, "titel": "Neu"} if name == "update_brain_memory" else {}
    entry = {"ID": kennung, "kurzbeschreibung": "k", "memory": "m", "tags": []}
    answer = anna.call(name, **(fields or {"memories": [entry]}))
    assert one_fault(answer) == ("ungueltig", "ID")
    told = answer["daten"][0]["fehler"]["meldung"]
    assert told == f"Die ID {kennung} gehört zu einer anderen Art; hier muss sie mit {right} beginnen."


def test_a_number_of_more_digits_than_are_read_is_its_entrys_fault(anna: Agent) -> None:
    good, digits = json.dumps(note()), "9" * 5_000
    bad = json.dumps(note(scope=7)).replace('"scope": 7', f'"scope": {digits}')
    body = f'{{"inhalt": {{"nutzer": "anna", "agent": "planer", "memories": [{good}, {bad}]}}}}'
    answer = raw(anna, body, f"/api/tools/{INSERT}/").json()
    assert [row["erfolg"] for row in answer["daten"]] == [True, False]
    assert one_fault(answer, 1) == ("ungueltig", "scope")
    assert "zu groß" in answer["daten"][1]["fehler"]["meldung"]


def test_a_failed_row_that_names_a_memory_tells_its_id(anna: Agent) -> None:
    kennung = "longterm_999999"
    entry = {"ID": kennung, "kurzbeschreibung": "k", "memory": "m", "tags": []}
    assert anna.call("update_brain_longterm_memory", memories=[entry])["daten"][0]["ID"] == kennung
    assert anna.call("update_brain_longterm_memory", memories=[json.dumps(entry)])["daten"][0]["ID"] == kennung
    assert anna.call("delete_brain_longterm_memory", IDs=[kennung])["daten"][0]["ID"] == kennung
    row = anna.call("restore_brain_memory", ID=kennung, version=1)["daten"][0]
    assert (row["ID"], row["typ"], row["fehler"]["code"]) == (kennung, "longterm", "nicht_gefunden")
    assert "ID" not in anna.call("update_brain_longterm_memory", memories=["nothing"])["daten"][0]


def test_a_fault_beside_the_arguments_tells_the_tool_and_the_references_too(anna: Agent) -> None:
    sent = {"ticket": "T-17"}
    frame = {"tool": INSERT, "arguments": {"inhalt": inhalt_for(INSERT), "referenzfelder": sent}, "argument": 1}
    response = raw(anna, json.dumps(frame))
    fault, answer = fault_of(response, 400), response.json()
    assert (fault["code"], fault["feld"]) == ("unbekanntes_feld", "argument")
    assert (answer["tool"], answer["referenzfelder"]) == (INSERT, sent)
    answer = raw(anna, json.dumps({"tool": 7, "arguments": {"referenzfelder": json.dumps(sent)}})).json()
    assert (answer["tool"], answer["referenzfelder"]) == (None, sent)


# Statuses


def test_a_call_with_failed_entries_alone_was_executed(anna: Agent) -> None:
    response = anna.post(INSERT, {"inhalt": inhalt_for(INSERT) | {"memories": [{}]}})
    assert response.status_code == 200
    assert response.json()["fehler"] is None


@pytest.mark.parametrize("name", ["insert_brain_longterm_memories", "", " ", "x" * 10_000, "INSERT_BRAIN_MEMORY", "ä"])
def test_an_unknown_tool_is_404_by_the_envelope(anna: Agent, name: str) -> None:
    response = anna.post(name, {"inhalt": {}, "referenzfelder": {"n": 1}})
    fault = fault_of(response, 404)
    assert (fault["code"], fault["feld"]) == ("unbekanntes_tool", "tool")
    assert response.json()["referenzfelder"] == {"n": 1}
    assert response.json()["tool"] == name


def test_an_unknown_tool_names_the_nearest(anna: Agent) -> None:
    assert INSERT in fault_of(anna.post("insert_brain_longterm_memories", {}), 404)["meldung"]


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize(
    "name", ["nothing", "select_brain_tag", "%00", "%ff", "%F0%9F%99%82", "a%0Ab", "<script>", "..x"]
)
def test_an_unknown_tool_is_404_by_its_address(anna: Agent, name: str, method: str) -> None:
    response = getattr(anna.http, method)(f"/api/tools/{name}/")
    assert fault_of(response, 404)["code"] == "unbekanntes_tool"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
@pytest.mark.parametrize(
    "path", ["/api/", "/api/x", "/api/x/", "/api/tools/a/b/", "/api/tools//", "/api/%00", "/api/schema/x"]
)
def test_an_unknown_address_is_404_as_json(db: None, path: str, method: str) -> None:
    response = Client(raise_request_exception=False).generic(method, path)
    assert response.status_code == 404
    assert response["Content-Type"] == "application/json"
    if method != "HEAD":
        assert fault_of(response, 404)["code"] == "unbekannte_adresse"


@pytest.mark.parametrize("path", ["/api/tools/", f"/api/tools/{INSERT}/", "/api/tools/nothing/"])
@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_another_method_is_405_and_says_which_there_are(anna: Agent, path: str, method: str) -> None:
    response = anna.http.generic(method, path, b"{}", content_type="application/json")
    assert fault_of(response, 405)["code"] == "unbekannte_adresse"
    assert {"GET", "POST"} <= set(response["Allow"].split(", "))


@pytest.mark.parametrize("path", ["/api/tools/", f"/api/tools/{INSERT}/", "/api/schema/"])
def test_head_is_get_without_a_body(anna: Agent, path: str) -> None:
    response = anna.http.head(path)
    assert response.status_code == 200
    assert response.content == b""


@pytest.mark.parametrize("path", ["/api/tools", f"/api/tools/{INSERT}"])
def test_an_address_without_the_slash_at_its_end_is_no_redirect(anna: Agent, path: str) -> None:
    arguments = {"inhalt": inhalt_for(INSERT)}
    body = {"tool": INSERT, "arguments": arguments} if path == "/api/tools" else arguments
    response = anna.http.post(path, body, content_type="application/json")
    assert response.status_code == 200
    assert response.json()["daten"][0]["ID"]
    assert anna.http.get(path).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "a b", "[::", "localhost,evil.example"])
def test_a_host_that_is_not_ours_is_400_as_json(anna: Agent, host: str) -> None:
    response = anna.http.post("/api/tools/", "{}", content_type="application/json", headers={"Host": host})
    assert fault_of(response, 400)["code"] == "ungueltig"


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "application/jsonp",
        "application/json-patch+json",
        "json",
        "*/*",
        "\u00e4",
        "",
    ],
)
def test_a_body_that_does_not_say_that_it_is_json_is_refused(anna: Agent, kind: str) -> None:
    for path in ("/api/tools/", f"/api/tools/{INSERT}/"):
        response = raw(anna, json.dumps({"inhalt": inhalt_for(INSERT)}), path, content_type=kind)
        assert fault_of(response, 400)["code"] == "kein_json"
    assert _stored(anna) == 0


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON", "application/json; charset=utf-8", "application/json ;x"]
)
def test_json_is_recognised_however_it_is_written(anna: Agent, kind: str) -> None:
    body = json.dumps({"inhalt": inhalt_for(INSERT)})
    assert raw(anna, body, f"/api/tools/{INSERT}/", content_type=kind).status_code == 200


@pytest.mark.parametrize(
    "accept", ["text/html", "application/xml", "*/*", "", "text/html;q=0.1", "nonsense", "image/png"]
)
def test_the_answer_is_json_whatever_a_client_accepts(anna: Agent, accept: str) -> None:
    for response in (
        anna.http.get("/api/tools/", headers={"Accept": accept}),
        anna.post(INSERT, {"inhalt": inhalt_for(INSERT)}, Accept=accept),
        anna.post(INSERT, {}, Accept=accept),
    ):
        assert response["Content-Type"] == "application/json"
        json.loads(response.content)


@pytest.mark.parametrize("format_", ["?format=html", "?format=api", "?format=json", "?format=xml"])
def test_no_parameter_turns_the_answer_into_something_else(anna: Agent, format_: str) -> None:
    assert anna.http.get(f"/api/tools/{format_}")["Content-Type"] == "application/json"
    assert raw(anna, b"x", f"/api/tools/{format_}").status_code == 400


TWICE = {
    "top": rb'{"tool": "%(t)s", "arguments": {}, "tool": "%(t)s"}',
    "arguments": rb'{"tool": "%(t)s", "arguments": {"help": 1, "help": 1}}',
    "nested": rb'{"tool": "%(t)s", "arguments": {"help": 1, "referenzfelder": {"a": [{"b": {"c": 1, "c": 2}}]}}}',
    "escaped": rb'{"tool": "%(t)s", "arguments": {"help": 1, "h\u0065lp": 1}}',
    "escaped letter": rb'{"tool": "%(t)s", "arguments": {"help": 1, "referenzfelder": {"a": 1, "\u0061": 2}}}',
    "a quote in the name": rb'{"tool": "%(t)s", "arguments": {"help": 1, "referenzfelder": {"\"": 1, "\u0022": 2}}}',
    "beside colons": rb'{"tool": "%(t)s", "arguments": {"help": 1, "referenzfelder": {"a": ":", "a": ":\":"}}}',
    "an empty name": rb'{"tool": "%(t)s", "arguments": {"help": 1, "referenzfelder": {"": 1, "": 2}}}',
    "the same value": rb'{"tool": "%(t)s", "arguments": {"help": 1, "referenzfelder": {}, "referenzfelder": {}}}',
}


@pytest.mark.parametrize("body", TWICE.values(), ids=TWICE)
def test_a_key_that_is_there_twice_is_refused(anna: Agent, body: bytes) -> None:
    fault = fault_of(raw(anna, body % {b"t": INSERT.encode()}), 400)
    assert (fault["code"], fault["feld"]) == ("kein_json", None)


@pytest.mark.parametrize("spelling", ["memory", r"m\u0065mory"])
def test_a_key_that_is_there_twice_inside_an_entry_is_refused(anna: Agent, spelling: str) -> None:
    entry = json.dumps(note())[:-1] + f', "{spelling}": "x"}}'
    body = f'{{"inhalt": {{"nutzer": "anna", "agent": "a", "memories": [{entry}]}}}}'
    assert fault_of(raw(anna, body, f"/api/tools/{INSERT}/"), 400)["code"] == "kein_json"
    assert _stored(anna) == 0


def test_the_same_key_in_neighbouring_objects_is_no_fault(anna: Agent) -> None:
    sent = {"a": {"a": {"a": ":"}}, "b": [{"a": 1}, {"a": '":"'}], "\\": "\\", "ä:": {}}
    assert anna.call(INSERT, memories=[note()], referenzfelder=sent)["referenzfelder"] == sent


def _nested(levels: int) -> str:
    return '{"help": 1, "referenzfelder": ' + '{"a":' * (levels - 1) + "1" + "}" * (levels - 1) + "}"


def test_json_is_read_down_to_the_limit_and_no_deeper(anna: Agent) -> None:
    path = f"/api/tools/{INSERT}/"
    assert raw(anna, _nested(64), path).status_code == 200
    for levels in (65, 66, 1_000, 100_000):
        fault = fault_of(raw(anna, _nested(levels), path), 400)
        assert fault["code"] == "zu_gross"
        assert "64" in fault["meldung"]


def test_case_19_deeply_nested_brackets_are_a_clear_refusal(anna: Agent) -> None:
    for body in (b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000):
        assert fault_of(raw(anna, body), 400)["code"] in {"zu_gross", "kein_json"}


def test_the_nesting_limit_can_be_set(anna: Agent, settings: Any) -> None:
    settings.BRAIN_LIMITS = Limits(nesting=5)
    assert raw(anna, _nested(5), f"/api/tools/{INSERT}/").status_code == 200
    assert "5" in fault_of(raw(anna, _nested(6), f"/api/tools/{INSERT}/"), 400)["meldung"]


def test_a_body_over_the_limit_is_413_with_the_limit(anna: Agent, settings: Any) -> None:
    body = json.dumps({"tool": INSERT, "arguments": {"inhalt": inhalt_for(INSERT)}})
    settings.BRAIN_LIMITS = Limits(body=len(body))
    assert raw(anna, body).status_code == 200
    settings.BRAIN_LIMITS = Limits(body=len(body) - 1)
    fault = fault_of(raw(anna, body), 413)
    assert fault["code"] == "zu_gross"
    assert str(len(body) - 1) in fault["meldung"]
    assert fault_of(raw(anna, b"x" * len(body)), 413)["code"] == "zu_gross"
    assert _stored(anna) == 1


def test_a_limit_inside_a_call_is_no_413(anna: Agent, settings: Any) -> None:
    settings.BRAIN_LIMITS = Limits(referenzfelder=10)
    fault = fault_of(anna.post(INSERT, {"inhalt": inhalt_for(INSERT), "referenzfelder": {"a": "x" * 10}}), 400)
    assert (fault["code"], fault["feld"]) == ("zu_gross", "referenzfelder")
    assert "10" in fault["meldung"]


@pytest.mark.parametrize("body", [b"", b" ", b"null", b"[]", b'"x"', b"7", b"{}"])
def test_an_empty_body_is_refused(anna: Agent, body: bytes) -> None:
    for path in ("/api/tools/", f"/api/tools/{INSERT}/"):
        fault_of(raw(anna, body, path), 400)


@pytest.mark.parametrize("body", [b'{"tool": "\xff"}', b"\xfe\xff", '{"tool": "ö"}'.encode("latin-1"), b'{"\xc3": 1}'])
def test_a_body_that_is_not_utf_8_is_refused(anna: Agent, body: bytes) -> None:
    assert fault_of(raw(anna, body), 400)["code"] == "kein_json"


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_a_number_that_is_not_finite_is_the_calls_fault_outside_the_entries(anna: Agent, value: str) -> None:
    inhalt = json.dumps(inhalt_for(INSERT))
    body = f'{{"inhalt": {inhalt}, "referenzfelder": {{"a": [{{"b": {value}}}]}}}}'
    assert faults(fault_of(raw(anna, body, f"/api/tools/{INSERT}/"), 400)) == {("ungueltig", "referenzfelder.a[0].b")}
    body = f'{{"inhalt": {inhalt}, "referenzfelder": {{"a": [1.5, {value}]}}}}'
    assert faults(fault_of(raw(anna, body, f"/api/tools/{INSERT}/"), 400)) == {("ungueltig", "referenzfelder.a[1]")}
    assert _stored(anna) == 0


@pytest.mark.parametrize("text", [r"\u0000", r"\ud800", r"\udc00x", r"\ude00\ud83d"])
def test_text_that_no_database_keeps_is_the_calls_fault_outside_the_entries(anna: Agent, text: str) -> None:
    inhalt = json.dumps(inhalt_for(INSERT))
    path = f"/api/tools/{INSERT}/"
    response = raw(anna, f'{{"inhalt": {inhalt}, "referenzfelder": {{"a": "{text}"}}}}', path)
    assert faults(fault_of(response, 400)) == {("ungueltig", "referenzfelder.a")}
    response = raw(anna, f'{{"inhalt": {inhalt}, "referenzfelder": {{"a{text}": 1}}}}', path)
    assert faults(fault_of(response, 400)) == {("ungueltig", "referenzfelder")}
    response = raw(anna, inhalt.join(['{"inhalt": ', "}"]).replace('"planer"', f'"{text}"', 1), path)
    assert faults(fault_of(response, 400)) == {("ungueltig", "inhalt.agent")}
    assert _stored(anna) == 0


def test_a_surrogate_pair_that_is_whole_is_a_letter(anna: Agent) -> None:
    entry = json.dumps(note(memory="PLACE")).replace("PLACE", r"\ud83d\ude42")
    body = f'{{"inhalt": {{"nutzer": "anna", "agent": "a", "memories": [{entry}]}}}}'
    kennung = json.loads(raw(anna, body, f"/api/tools/{INSERT}/").content)["daten"][0]["ID"]
    assert anna.call(SELECT, IDs=[kennung])["daten"][0]["memory"] == "🙂"


def test_letters_come_back_as_letters(anna: Agent) -> None:
    anna.store(memory="Grüße 🙂")
    response = anna.post(SELECT, {"inhalt": inhalt_for(SELECT)})
    assert "Grüße 🙂".encode() in response.content


# How many


@pytest.mark.parametrize(("count", "status"), [(0, 400), (1, 200), (100, 200), (101, 400)])
def test_a_call_has_one_to_a_hundred_entries(anna: Agent, count: int, status: int) -> None:
    for name in ("insert_brain_longterm_memory", "insert_brain_shortterm_memory"):
        response = anna.post(name, {"inhalt": inhalt_for(name) | {"memories": [note(tags=[])] * count}})
        assert response.status_code == status
        if status == 200:
            assert response.json()["anzahl"]["erfolgreich"] == count
        else:
            fault = fault_of(response, 400)
            assert fault["feld"] == "inhalt.memories"
            assert ("100" in fault["meldung"]) == (count > 100)
    assert _stored(anna) == (count if status == 200 else 0)


@pytest.mark.parametrize(
    "name", [tool.name for tool in TOOLS if "IDs" in tool.input_schema["properties"]["inhalt"]["properties"]]
)
@pytest.mark.parametrize(("count", "status"), [(0, 400), (1, 200), (100, 200), (101, 400)])
def test_a_call_has_one_to_a_hundred_ids(anna: Agent, name: str, count: int, status: int) -> None:
    response = anna.post(name, {"inhalt": {"nutzer": "anna", "agent": "a", "IDs": ["longterm_999"] * count}})
    assert response.status_code == status
    if status == 200:
        assert response.json()["anzahl"]["fehlgeschlagen"] == count
    else:
        fault = fault_of(response, 400)
        assert fault["feld"] == "inhalt.IDs"
        assert ("100" in fault["meldung"]) == (count > 100)


@pytest.mark.parametrize("arguments", [[], 5, True, "x", "[]", '"{}"'])
def test_arguments_that_are_no_object_are_named_as_the_fault(anna: Agent, arguments: Any) -> None:
    fault = fault_of(anna.post("select_brain_tags", arguments), 400)
    assert (fault["code"], fault["feld"]) == ("ungueltig", "arguments")


@pytest.mark.parametrize("tool", ["select_brain_longterm_memory", "delete_brain_longterm_memory"])
def test_what_is_no_id_is_the_fault_of_its_row(anna: Agent, tool: str) -> None:
    kennung = anna.store()
    answer = anna.call(tool, IDs=[7, kennung, None, "a\0b", ["longterm_1"], "shortterm_1", 1.5, {}])
    assert [row["erfolg"] for row in answer["daten"]] == [False, True] + [False] * 6
    assert {(row["fehler"]["code"], row["fehler"]["feld"]) for row in answer["daten"] if not row["erfolg"]} == {
        ("ungueltig", "ID")
    }
