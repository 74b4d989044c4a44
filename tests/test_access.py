"""Access keys: what lies outside a key's lists cannot be spoken for, and does not exist for it. Cases of part G."""

import json
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from api.tools import TOOLS
from memories.models import AccessKey, ServiceAccount
from tests.conftest import Agent, note
from tests.doors import BRAIN, NAMES, fault_of, inhalt_for, one_fault

INSERT = "insert_brain_longterm_memory"
SELECT = "select_brain_longterm_memory"
WRITING = [tool.name for tool in TOOLS if tool.writes]
READING = [tool.name for tool in TOOLS if not tool.writes]
Make = Callable[..., Agent]


def _get(header: str | None) -> Any:
    headers = {} if header is None else {"Authorization": header}
    return Client(headers=headers, raise_request_exception=False).get("/api/tools/")


def _key_of(agent: Agent) -> AccessKey:
    key: AccessKey = AccessKey.objects.get(prefix=agent.key.partition(".")[0])
    return key


# Signing in


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        " ",
        "Bearer",
        "Bearer ",
        "Bearer  ",
        "Bearer x",
        "Bearer .",
        "Bearer brk_000000000000.",
        "Bearer \xe4\xf6.\xfc",
        "Bearer \xff\xfe",
        "Bearer \xc3\xa4.x",
        "Bearer a\0b.c",
        "Bearer a.b\0c",
        "Bearer " + "x" * 100_000,
        "Bearer a.b.c.d",
        "Bearer 'a' OR 1=1.x",
        "Basic YW5uYTphbm5h",
        "\xe4",
        "brk",
    ],
)
def test_without_a_usable_key_the_answer_is_401(db: None, header: str | None) -> None:
    response = _get(header)
    assert fault_of(response, 401)["code"] == "nicht_angemeldet"
    assert response["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("path", ["/api/tools/", f"/api/tools/{INSERT}/", "/api/tools/nothing/", "/api/tools"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "OPTIONS"])
def test_every_door_to_the_tools_asks_for_the_key_first(db: None, path: str, method: str) -> None:
    response = Client().generic(method, path, b"no JSON", content_type="text/plain")
    assert fault_of(response, 401)["code"] == "nicht_angemeldet"


def test_the_key_is_accepted_however_bearer_is_written_and_nowhere_else(anna: Agent) -> None:
    for scheme in ("Bearer ", "bearer ", "BEARER ", "Bearer   "):
        assert _get(f"{scheme}{anna.key}").status_code == 200
    for scheme in ("", "Basic ", "Token ", "Bearer:", "Bearer\t"):
        assert _get(f"{scheme}{anna.key}").status_code == 401
    assert Client().get("/api/tools/", {"key": anna.key, "access_token": anna.key}).status_code == 401


def test_the_right_prefix_with_a_wrong_secret_is_no_key(anna: Agent, ben: Agent) -> None:
    prefix, _dot, secret = anna.key.partition(".")
    others = ben.key.partition(".")[2]
    for wrong in (f"{prefix}.", prefix, f"{prefix}.{others}", f"{prefix}.{secret}x", f"{prefix}.{secret[:-1]}"):
        assert _get(f"Bearer {wrong}").status_code == 401
    assert _get(f"Bearer {prefix.upper()}.{secret}").status_code == 401
    assert _get(f"Bearer {prefix}.{secret}").status_code == 200


def test_an_expired_key_a_revoked_one_and_an_inactive_account_read_the_same(agent_with: Make) -> None:
    now = timezone.now()
    assert _get(f"Bearer {agent_with('a', expires_at=now + timedelta(hours=1)).key}").status_code == 200
    expired = agent_with("b", expires_at=now - timedelta(seconds=1))
    revoked = agent_with("c")
    AccessKey.objects.filter(pk=_key_of(revoked).pk).update(revoked_at=now)
    inactive = agent_with("d")
    ServiceAccount.objects.filter(name="d").update(is_active=False)
    answers = [_get(f"Bearer {agent.key}") for agent in (expired, revoked, inactive)] + [_get("Bearer brk_x.y")]
    assert {response.status_code for response in answers} == {401}
    assert len({response.content for response in answers}) == 1


def test_the_secret_is_kept_nowhere(anna: Agent) -> None:
    secret = anna.key.partition(".")[2]
    assert len(secret) >= 32
    assert secret not in str(AccessKey.objects.filter(pk=_key_of(anna).pk).values().get())


def test_the_last_use_is_written_at_most_once_a_minute(anna: Agent) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert anna.http.get("/api/tools/").status_code == 200
        assert anna.http.get("/api/tools/").status_code == 200
    writes = [query["sql"] for query in queries if query["sql"].startswith("UPDATE")]
    assert len(writes) == 1
    used = _key_of(anna).last_used_at
    assert used is not None
    AccessKey.objects.update(last_used_at=used - timedelta(minutes=2))
    anna.http.get("/api/tools/")
    assert _key_of(anna).last_used_at >= used


def test_a_refused_key_leaves_no_use(anna: Agent) -> None:
    _get(f"Bearer {anna.key}x")
    assert _key_of(anna).last_used_at is None


# Who calls


def test_case_69_the_call_may_not_speak_for_others(anna: Agent, agent_with: Make) -> None:
    planner = agent_with("anna", nutzer=["anna"], agent=["planer"])
    for name in NAMES:
        for who in ({"nutzer": "bert"}, {"agent": "koch"}):
            ((field, _value),) = who.items()
            fault = fault_of(planner.post(name, {"inhalt": inhalt_for(name) | who}), 403)
            assert (fault["code"], fault["feld"]) == ("nicht_erlaubt", f"inhalt.{field}")
    assert anna.call(SELECT)["daten"] == []


@pytest.mark.parametrize("nutzer", ["Anna", "ANNA", "anna2", "ann", "carla", 7])
def test_the_keys_values_are_exact(anna: Agent, nutzer: Any) -> None:
    assert anna.post(INSERT, {"inhalt": inhalt_for(INSERT) | {"nutzer": nutzer}}).status_code == 403


def test_the_keys_values_mean_the_same_however_they_are_written(agent_with: Make) -> None:
    agent = agent_with("7", nutzer=["7", "Zu\u0308rich"])
    for spelling in (7, 7.0, "7", "Zürich", "Zu\u0308rich"):
        answer = agent.call(INSERT, memories=[note(nutzer=spelling)])
        assert answer["erfolg"], answer
    assert agent.call(SELECT)["anzahl"]["gesamt"] == 5


@pytest.mark.parametrize("field", ["nutzer", "agent", "scope"])
def test_case_69_an_entry_of_others_is_that_entrys_fault(agent_with: Make, field: str) -> None:
    lists = {"nutzer": ["anna"], "agent": ["planer"], "scope": ["modul"]}
    agent = agent_with("anna", **lists)
    for name, select in ((INSERT, SELECT), ("insert_brain_shortterm_memory", "select_brain_shortterm_memory")):
        answer = agent.call(name, memories=[note(), note(**{field: "other"}), note()])
        assert [row["erfolg"] for row in answer["daten"]] == [True, False, True]
        assert one_fault(answer, 1) == ("nicht_erlaubt", field)
        assert agent.call(select)["anzahl"]["gesamt"] == 2


def test_a_brain_memorys_scope_is_its_scope_typ(agent_with: Make) -> None:
    agent = agent_with("anna", scope=["modul"])
    everybody = agent_with("admin")
    answer = agent.call("insert_brain_memory", **BRAIN)
    assert one_fault(answer) == ("nicht_erlaubt", "scope_typ")
    kennung = agent.call("insert_brain_memory", **BRAIN, scope_typ="modul")["daten"][0]["ID"]
    everybody.call("insert_brain_memory", **BRAIN)
    assert [row["ID"] for row in agent.call("select_brain_memory")["daten"]] == [kennung]
    moved = agent.call("update_brain_memory", ID=kennung, scope_typ="global")
    assert one_fault(moved) == ("nicht_erlaubt", "scope_typ")
    assert agent.call("select_brain_memory", IDs=[kennung])["daten"][0]["scope_typ"] == "modul"


def test_an_empty_list_allows_nobody(agent_with: Make, anna: Agent) -> None:
    anna.store()
    agent = agent_with("anna", nutzer=[])
    assert agent.post(SELECT, {"inhalt": inhalt_for(SELECT)}).status_code == 403
    agent = agent_with("anna", scope=[])
    assert agent.call(SELECT)["daten"] == []
    assert one_fault(agent.call(INSERT, memories=[note()])) == ("nicht_erlaubt", "scope")


# Reading and writing, and the tools


def test_case_70_a_reading_key_is_offered_and_may_call_what_reads_alone(agent_with: Make, anna: Agent) -> None:
    kennung = anna.store()
    reader = agent_with("anna", nutzer=["anna"], may_write=False)
    assert [tool["name"] for tool in reader.http.get("/api/tools/").json()["tools"]] == READING
    for name in WRITING:
        for response in (
            reader.post(name, {"inhalt": inhalt_for(name)}),
            reader.http.post(f"/api/tools/{name}/", {"inhalt": inhalt_for(name)}, content_type="application/json"),
            reader.post(name, {"help": 1}),
            reader.post(name, []),
            reader.http.get(f"/api/tools/{name}/"),
        ):
            fault = fault_of(response, 403)
            assert (fault["code"], fault["feld"]) == ("nicht_erlaubt", "tool")
    for name in READING:
        assert reader.post(name, {"inhalt": inhalt_for(name)}).status_code == 200
        assert reader.http.get(f"/api/tools/{name}/").status_code == 200
    assert [row["ID"] for row in reader.call(SELECT)["daten"]] == [kennung]


@pytest.mark.parametrize("allowed", [[SELECT], [INSERT, "select_brain_tags"], []])
def test_case_75_a_key_may_call_its_tools_alone(agent_with: Make, anna: Agent, allowed: list[str]) -> None:
    agent = agent_with("anna", tools=allowed)
    assert {tool["name"] for tool in agent.http.get("/api/tools/").json()["tools"]} == set(allowed)
    for name in NAMES:
        status = 200 if name in allowed else 403
        assert agent.post(name, {"inhalt": inhalt_for(name)}).status_code == status
        assert agent.post(name, {"help": 1}).status_code == status
        assert agent.http.get(f"/api/tools/{name}/").status_code == status
    assert fault_of(agent.post("nothing", {}), 404)["code"] == "unbekanntes_tool"


def test_case_75_a_key_without_the_tools_for_it_deletes_nothing(agent_with: Make, anna: Agent) -> None:
    kennung = anna.store()
    keeper = agent_with("anna", tools=[name for name in NAMES if not name.startswith("delete")])
    for path, body in (
        ("/api/tools/", {"tool": "delete_brain_longterm_memory", "arguments": {"inhalt": {"IDs": [kennung]}}}),
        ("/api/tools/delete_brain_longterm_memory/", {"inhalt": {"IDs": [kennung], "nutzer": "anna", "agent": "a"}}),
    ):
        assert keeper.http.post(path, body, content_type="application/json").status_code == 403
    assert anna.call(SELECT, IDs=[kennung])["erfolg"] is True


# What a key may not see


@pytest.fixture
def foreign(anna: Agent) -> dict[str, str]:
    """Memories of anna, one of each kind, each with two versions, and one of each that was deleted."""
    made = {"longterm": anna.store(memory="Geheimnis", tags=["geheim"], embedding=[1, 2], embedding_profil_hash="p")}
    entry = note(memory="Geheimnis", tags=["geheim"])
    made["shortterm"] = anna.call("insert_brain_shortterm_memory", memories=[entry])["daten"][0]["ID"]
    made["brain"] = anna.call("insert_brain_memory", **BRAIN, inhalt="Geheimnis")["daten"][0]["ID"]
    for kind in ("longterm", "shortterm"):
        change = {"ID": made[kind], "kurzbeschreibung": "Geheimnis 2", "memory": "Geheimnis 2", "tags": ["geheim"]}
        assert anna.call(f"update_brain_{kind}_memory", memories=[change])["erfolg"]
    assert anna.call("update_brain_memory", ID=made["brain"], titel="Geheimnis 2")["erfolg"]
    return made


MISSING = "999999"


def _calls(kind: str, kennung: str) -> list[tuple[str, dict[str, Any]]]:
    tool = "memory" if kind == "brain" else f"{kind}_memory"
    change = {"ID": kennung, "kurzbeschreibung": "k", "memory": "m", "tags": []}
    calls: list[tuple[str, dict[str, Any]]] = [
        (f"select_brain_{tool}", {"IDs": [kennung], "mit_embedding": 1}),
        (f"update_brain_{tool}", {"ID": kennung, "titel": "t"} if kind == "brain" else {"memories": [change]}),
        ("select_brain_history", {"ID": kennung}),
        ("restore_brain_memory", {"ID": kennung, "version": 1}),
        ("restore_brain_memory", {"ID": kennung, "version": 77}),
        (f"delete_brain_{tool}", {"IDs": [kennung]}),
    ]
    return [*calls, ("promote_brain_shortterm_memory", {"IDs": [kennung]})] if kind == "shortterm" else calls


@pytest.mark.parametrize("limit", ["nutzer", "agent", "scope"])
@pytest.mark.parametrize("kind", ["longterm", "shortterm", "brain"])
def test_case_69_a_foreign_id_reads_exactly_like_a_missing_one(
    foreign: dict[str, str], agent_with: Make, anna: Agent, kind: str, limit: str
) -> None:
    stranger = agent_with("carla", **{limit: ["carla" if limit == "nutzer" else "session"]})
    missing = f"{kind}_{MISSING}"
    for (name, inhalt), (_name, elsewhere) in zip(_calls(kind, foreign[kind]), _calls(kind, missing), strict=True):
        seen = json.dumps(stranger.call(name, **inhalt)).replace(foreign[kind], missing)
        assert seen == json.dumps(stranger.call(name, **elsewhere)), name
        assert '"nicht_gefunden"' in seen
        assert "Geheimnis" not in seen
    history = anna.call("select_brain_history", ID=foreign[kind])
    assert [row["version"] for row in history["daten"]] == [2, 1]


@pytest.mark.parametrize("kind", ["longterm", "shortterm", "brain"])
def test_a_deleted_foreign_memory_reads_like_a_missing_one_too(
    foreign: dict[str, str], carla: Agent, anna: Agent, kind: str
) -> None:
    tool = "memory" if kind == "brain" else f"{kind}_memory"
    assert anna.call(f"delete_brain_{tool}", IDs=[foreign[kind]])["erfolg"]
    missing = f"{kind}_{MISSING}"
    for (name, inhalt), (_name, elsewhere) in zip(_calls(kind, foreign[kind]), _calls(kind, missing), strict=True):
        seen = json.dumps(carla.call(name, **inhalt)).replace(foreign[kind], missing)
        assert seen == json.dumps(carla.call(name, **elsewhere)), name
    assert anna.call("restore_brain_memory", ID=foreign[kind], version=1)["erfolg"] is True


def test_case_71_no_filter_no_list_and_no_count_shows_what_is_foreign(
    foreign: dict[str, str], carla: Agent, ben: Agent
) -> None:
    filters: list[dict[str, Any]] = [
        {},
        {"tags": ["geheim"]},
        {"tags_eines": ["geheim"]},
        {"nutzer_filter": "anna"},
        {"agent_filter": "planer"},
        {"scope": "modul"},
        {"von": "2020-01-01"},
        {"sortierung": "aelteste"},
    ]
    for tool in (SELECT, "select_brain_shortterm_memory", "select_brain_memory"):
        for only in filters:
            answer = carla.call(tool, **only)
            assert (answer["daten"], answer["anzahl"]["gesamt"], answer["weiter"]) == ([], 0, None)
    assert carla.call("select_brain_tags")["daten"] == []
    assert carla.call("select_brain_tags", praefix="geh")["daten"] == []
    counted = [(row["name"], row["anzahl"]) for row in ben.call("select_brain_tags")["daten"]]
    assert counted == [("geheim", 2)]


def test_tags_are_counted_over_what_is_in_sight_alone(anna: Agent, carla: Agent) -> None:
    anna.store(tags=["gemeinsam", "annas"])
    carla.store(tags=["gemeinsam", "carlas"])
    counted = {row["name"]: row["anzahl"] for row in carla.call("select_brain_tags")["daten"]}
    assert counted == {"gemeinsam": 1, "carlas": 1}


def test_a_foreign_vector_says_nothing_about_its_profile(foreign: dict[str, str], carla: Agent, ben: Agent) -> None:
    longer = note(nutzer="carla", embedding=[1, 2, 3], embedding_profil_hash="p")
    assert carla.call(INSERT, memories=[longer])["erfolg"] is True
    assert one_fault(ben.call(INSERT, memories=[longer | {"nutzer": "ben"}])) == ("ungueltig", "embedding")


def test_the_history_shows_the_versions_that_lie_within_the_keys_scopes(agent_with: Make) -> None:
    everybody = agent_with("admin")
    kennung = everybody.call("insert_brain_memory", **BRAIN, inhalt="Geheimnis")["daten"][0]["ID"]
    everybody.call("update_brain_memory", ID=kennung, scope_typ="modul", inhalt="offen")
    everybody.call("update_brain_memory", ID=kennung, inhalt="offen 2")
    of_modules = agent_with("anna", scope=["modul"])
    of_global = agent_with("anna", scope=["global"])
    answer = of_modules.call("select_brain_history", ID=kennung)
    assert [row["version"] for row in answer["daten"]] == [3, 2]
    assert "Geheimnis" not in json.dumps(answer)
    assert answer["daten"][1]["aenderungen"] == []
    assert one_fault(of_modules.call("restore_brain_memory", ID=kennung, version=1)) == ("nicht_gefunden", "version")
    assert of_modules.call("restore_brain_memory", ID=kennung, version=2)["erfolg"] is True
    gone = of_global.call("select_brain_history", ID=kennung)
    assert one_fault(gone) == ("nicht_gefunden", "ID")
    assert one_fault(of_global.call("restore_brain_memory", ID=kennung, version=1)) == ("nicht_gefunden", "ID")


def test_a_version_that_lies_outside_leaves_no_trace_in_the_next_one(agent_with: Make) -> None:
    everybody = agent_with("admin")
    kennung = everybody.call("insert_brain_memory", **BRAIN, scope_typ="modul")["daten"][0]["ID"]
    everybody.call("update_brain_memory", ID=kennung, scope_typ="global", inhalt="Geheimnis")
    everybody.call("update_brain_memory", ID=kennung, scope_typ="modul", inhalt="offen")
    rows = agent_with("anna", scope=["modul"]).call("select_brain_history", ID=kennung)["daten"]
    assert [(row["version"], row["aenderungen"]) for row in rows] == [(3, []), (1, [])]


def test_the_team_sees_and_changes_what_both_keys_allow(anna: Agent, ben: Agent) -> None:
    kennung = anna.store()
    change = {"ID": kennung, "kurzbeschreibung": "k", "memory": "von ben", "tags": []}
    assert ben.call("update_brain_longterm_memory", memories=[change])["erfolg"] is True
    step = anna.call("select_brain_history", ID=kennung)["daten"][0]
    assert (step["nutzer"], step["schluessel"]) == ("ben", "ben")
    assert anna.call(SELECT, IDs=[kennung])["daten"][0]["nutzer"] == "anna"


# Keys made by the command


def _create_key(*arguments: str) -> str:
    out = StringIO()
    call_command("create_key", *arguments, stdout=out)
    return out.getvalue()


def _made(*arguments: str, nutzer: str = "anna", agent: str = "planer") -> Agent:
    told = json.loads(_create_key(*arguments, "--json"))
    assert told.keys() == {"name", "key"}
    return Agent(told["key"], nutzer=nutzer, agent=agent)


def test_a_key_made_without_limits_may_do_everything(db: None) -> None:
    agent = _made("ämter 1")
    assert len(agent.http.get("/api/tools/").json()["tools"]) == len(NAMES)
    kennung = agent.store(scope="x", agent="y")
    assert agent.call("select_brain_history", ID=kennung)["daten"][0]["schluessel"] == "ämter 1"


def test_a_key_is_printed_for_people_too(db: None) -> None:
    printed = _create_key("bote").split()
    assert "bote" in " ".join(printed)
    assert _get(f"Bearer {printed[-1]}").status_code == 200


def test_a_key_has_the_limits_that_the_command_names(db: None) -> None:
    agent = _made(
        "bote", "--nutzer", "anna", "--nutzer", "7", "--agent", "planer", "--scope", "modul", "--scope", "global"
    )
    assert agent.call(INSERT, memories=[note(nutzer=7), note(scope="global")])["erfolg"] is True
    answer = agent.call(INSERT, memories=[note(nutzer="ben"), note(agent="koch"), note(scope="room")])
    assert [one_fault(answer, n)[1] for n in range(3)] == ["nutzer", "agent", "scope"]


def test_a_key_for_reading_and_for_some_tools(db: None) -> None:
    reader = _made("bote", "--read-only")
    assert [tool["name"] for tool in reader.http.get("/api/tools/").json()["tools"]] == READING
    narrow = _made("bote", "--tools", SELECT, "--tools", INSERT)
    assert {tool["name"] for tool in narrow.http.get("/api/tools/").json()["tools"]} == {SELECT, INSERT}


def test_a_key_expires_after_its_days(db: None) -> None:
    agent = _made("bote", "--expires", "2")
    expires = _key_of(agent).expires_at
    assert timedelta(days=1, hours=23) < expires - timezone.now() <= timedelta(days=2)
    assert _key_of(_made("bote")).expires_at is None


def test_several_keys_can_belong_to_one_account(db: None) -> None:
    _made("alt", "--account", "planer")
    _made("neu", "--account", "planer")
    assert AccessKey.objects.filter(account__name="planer").count() == 2
    assert ServiceAccount.objects.count() == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("bote", "--expires", "0"),
        ("bote", "--expires", "-1"),
        ("bote", "--expires", "999999999"),
        ("bote", "--expires", "99999999999"),
        ("bote", "--expires", "x"),
        (" ",),
        ("x" * 151,),
        ("a\0b",),
        ("bote", "--nutzer", ""),
        ("bote", "--agent", " a"),
        ("bote", "--scope", "a\u200b"),
        ("bote", "--tools", "x" * 256),
        ("bote", "--tools", "select_brain_longterm_memori"),
        ("bote", "--tools", "search_brain", "--tools", "*"),
        ("bo\x1b[31mte",),
        ("bote\u202e",),
        (),
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(db: None, arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        _create_key(*arguments)
    assert AccessKey.objects.count() == ServiceAccount.objects.count() == 0
