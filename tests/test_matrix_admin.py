"""Every address of the admin, by every kind of person, with own and foreign memories: from the registries."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.test import Client
from django.urls import reverse

from memories.admin.bulk import BULKS
from memories.admin.filters import ChoiceFilter, TextFilter
from memories.kinds import KINDS
from memories.models import AccessKey, CallRecord, EmbeddingProfile, Erasure, Recall, ServiceAccount, Tag
from memories.roles import ROLES
from memories.values import tag_key
from tests.admincast import form
from tests.matrix import (
    ANNAS,
    MISSING,
    PERSONS,
    WANDAS,
    Side,
    Who,
    agent_of,
    person_of,
    rows_of,
    settled,
    stored,
    tables,
    undone,
)
from tests.test_admin_rights import OWN_BUSINESS, addresses

pytestmark = pytest.mark.django_db

WATCHED = ("administrator of a nutzer", "auditor of a scope", "operator of a scope")  # they are shown the most
BLIND = [name for name, who in PERSONS.items() if who.sees is not None and "foreign" not in who.sees]
MEMORIES = {f"{kind.typ}memory": kind.typ for kind in KINDS}
VERSIONS = {f"{kind.typ}version": kind.typ for kind in KINDS}
# Whose pages they are beside those of memories, by the roles that may look at them and those that may change them.
_CALLS = ({"Auditor", "Administrator"}, set[str]())
PAGES: dict[str, tuple[set[str], set[str]]] = {
    "tag": (set(ROLES), {"Kurator", "Administrator"}),
    "duplicatepair": (set(ROLES), {"Kurator", "Administrator"}),
    "importjob": ({"Kurator", "Administrator"}, {"Kurator", "Administrator"}),
    "embeddingprofile": (set(ROLES), set()),
    "erasure": ({"Auditor", "Administrator"}, set()),
    "callrecord": _CALLS,
    "recall": _CALLS,
    "accesskey": ({"Auditor", "Administrator"}, {"Administrator"}),
    "serviceaccount": ({"Auditor", "Administrator"}, {"Administrator"}),
    "user": ({"Administrator"}, {"Administrator"}),
    "group": ({"Administrator"}, set()),
}
OWNED = {*MEMORIES, *VERSIONS, "proposals", "tag", "duplicatepair", "callrecord", "recall", "embeddingprofile"}
HISTORIES = tuple(f"/admin/memories/{kind.typ}memory/" for kind in KINDS)  # where the pages of versions are
CONTENT = [model.__name__ for kind in KINDS for model in (kind.memories, kind.versions, kind.links)]
EXPORTING = {"Kurator", "Administrator"}
# What the pages of a memory do.
DOES = {
    "changelist": "read",
    "change": "read",
    "history": "read",
    "version": "read",
    "read": "read",
    "similar": "read",
    "export_csv": "read",
    "export_jsonl": "read",
    "suggest": "read",
    "views": "read",
    "add": "write",
    "delete": "delete",
    "restore": "restore",
    # Of these no more is said here than that they show and change nothing that is foreign.
    **dict.fromkeys(("bulk", "compare", "merge", "trash", "undo", "view", "columns"), ""),
}
MADE_BY_HAND = {"duplicatepair", "importjob"}  # of these there are no rows


@dataclass
class World:
    """The two sides with the keys of their rows, by the model's name, and the people, with what they saw before."""

    own: Side
    foreign: Side
    clients: dict[str, Client]
    rows: dict[str, dict[str, int]]
    before: dict[str, dict[str, str]] = field(default_factory=dict)

    def side(self, name: str) -> Side:
        """The side of this name."""
        return self.own if name == "own" else self.foreign


def rows(side: Side) -> dict[str, int]:
    """The key of a row of each model: the side's own where it has some."""
    found = {f"{typ}memory": key for typ, _kennung, key in rows_of(side)}
    for kind in KINDS:
        version = kind.versions.objects.filter(memory_id=found[f"{kind.typ}memory"]).order_by("version").first()
        found[f"{kind.typ}version"] = version.pk if version else int(MISSING)
    others = {
        "tag": Tag.objects.filter(schluessel=tag_key(side.tag)).first(),
        "callrecord": CallRecord.objects.filter(nutzer=side.nutzer).first(),
        "recall": Recall.objects.filter(search__call__nutzer=side.nutzer).first(),
        **dict.fromkeys(MADE_BY_HAND),
        "embeddingprofile": EmbeddingProfile.objects.first(),
        "erasure": Erasure.objects.first(),
        "accesskey": AccessKey.objects.first(),
        "serviceaccount": ServiceAccount.objects.first(),
        "user": User.objects.first(),
        "group": Group.objects.first(),
    }
    return found | {name: row.pk if row else int(MISSING) for name, row in others.items()}


def model_of(name: str) -> str:
    """The model whose page the address of this name is, or the page of memories; empty for the pages of the site."""
    if name == "memories_proposals":
        return "proposals"
    parts = name.split("_")
    return parts[1] if len(parts) > 2 and parts[0] in {"memories", "auth"} else ""


def address_of(name: str, parameters: dict[str, str], keys: dict[str, int]) -> str:
    """The address, with the key of a row."""
    key = str(keys.get(model_of(name), 1))
    values = {
        "content_type_id": "1",
        "app_label": "memories",
        "url": "x",
        "number": "1",
        "object_id": key,
        "id": key,
        "name": BULKS[0].name,
    }
    return reverse(f"admin:{name}", kwargs={parameter: values[parameter] for parameter in parameters})


def questions(name: str, side: Side) -> list[dict[str, str]]:
    """What a list can be asked about the side: its search and all of its filters, and what begins like its values."""
    if name.endswith("memory_read"):
        return [{}, {"ansicht": "markdown"}]
    if not name.endswith(("_changelist", "_suggest")):
        return [{}]
    model = next(model for model in admin.site._registry if model.__name__.lower() == model_of(name))  # noqa: SLF001
    about = {
        "tag": side.tag,
        "nutzer": side.nutzer,
        "agent": side.agent,
        "scope": side.scope,
        "scope_vk": side.record,
        "tool": "search_brain",
        "schluessel": "a key without limits",
        "memory": side.live["longterm"],
    }
    if name.endswith("_suggest"):
        names = [each.suggests for each in admin.site._registry[model].list_filter if getattr(each, "suggests", "")]  # noqa: SLF001
        return [{"filter": each, "beginn": start} for each in names for start in (about[each][:1], "")]
    asked: list[dict[str, str]] = [{}, {"q": side.word}, {"q": side.nutzer}, {"q": side.live["longterm"]}, {"all": ""}]
    for each in getattr(admin.site._registry[model], "list_filter", ()):  # noqa: SLF001
        if issubclass(each, TextFilter):
            asked.append({each.parameter_name: about.get(each.parameter_name, side.word)})
        elif issubclass(each, ChoiceFilter):
            asked.append({each.parameter_name: str(each.options[0][0])})
    return asked


def pages(side_name: str = "own") -> Iterator[tuple[str, dict[str, str]]]:
    """The addresses, without those where a person minds his own business.

    Those that do not tell of memories belong to the own side alone, since they are the same for the other.
    """
    for name, parameters in addresses():
        if name not in OWN_BUSINESS and (side_name == "own" or model_of(name) in OWNED):
            yield name, parameters


def text_of(response: Any) -> str:
    """What a response says, the way on included."""
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return f"{response.status_code} {response.get('Location', '')}\n{settled(content.decode())}"


def everything_shown(client: Client, own: Side, foreign: Side, keys: tuple[dict[str, int], dict[str, int]]) -> Any:
    """All pages that the person is shown, by what was asked."""
    shown = {}
    for side, rows_of_side in zip((own, foreign.unknown()), keys, strict=True):
        for name, parameters in pages("foreign"):
            address = address_of(name, parameters, rows_of_side)
            for asked in questions(name, side):
                at = f"{address} {asked}"
                if at not in shown:
                    client.cookies.pop("messages", None)
                    with undone():
                        shown[at] = text_of(client.get(address, asked))
    return shown


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """Made once: anna's memories, what everybody is shown then, and wanda's memories."""
    with django_db_blocker.unblock(), transaction.atomic():
        builder = agent_of("a key without limits")
        EmbeddingProfile.objects.create(profil_hash="p", dimension=2, name="n")
        Erasure.objects.create(grund="g", gefunden=0)
        clients = {name: person_of(name) for name in PERSONS}
        own = stored(ANNAS, builder)
        builder.nutzer = own.nutzer
        builder.call("search_brain", suche=own.word)
        keys = (rows(own), rows(WANDAS.unknown()))
        before = {name: everything_shown(clients[name], own, WANDAS, keys) for name in WATCHED}
        foreign = stored(WANDAS, builder)
        builder.nutzer, builder.agent = foreign.nutzer, foreign.agent
        builder.call("search_brain", suche=foreign.word)
        yield World(own, foreign, clients, {"own": rows(own), "foreign": rows(foreign), "unknown": keys[1]}, before)
        transaction.set_rollback(True)


def without_traces(text: str, side: Side, asked: dict[str, str] | None = None) -> bool:
    """Whether nothing of what only the side's memories say is in the text, what was asked aside."""
    said = (asked or {}).values()
    return not any(mark in text for mark in (side.secret, side.word, side.tag) if mark not in said)


def opens(who: Who, name: str, side: Side) -> bool | None:
    """Whether the person sees the page of the side's row; None where nothing is said of that here."""
    model, _line, page = name.split("_", 1)[-1].partition("_")
    if who.sees is None or not who.roles:
        return None if model not in OWNED else False
    if model in MEMORIES:
        return opens_memory(who, page, side, MEMORIES[model])
    if model in VERSIONS:
        return page == "changelist" or (page == "change" and who.may("read", side, VERSIONS[model]))
    return bool(PAGES[model][0] & set(who.roles)) if model in PAGES and page == "changelist" else None


def opens_memory(who: Who, page: str, side: Side, kind: str) -> bool | None:
    """The same for the pages of memories."""
    match page:
        case "changelist" | "suggest" | "views":
            return True
        case "export_csv" | "export_jsonl":
            return bool(EXPORTING & set(who.roles))
        case "add":
            return "write" in who.does and kind in who.kinds and who.grant is not None
        case "restore":
            return False
    return who.may(DOES[page], side, kind) if DOES[page] else None


# That nothing is missing


def test_every_model_of_the_admin_has_rows_and_a_rule(world: World) -> None:
    models = {model.__name__.lower() for model in admin.site._registry}  # noqa: SLF001
    assert models == MEMORIES.keys() | VERSIONS.keys() | PAGES.keys()
    for side in ("own", "foreign"):
        assert models <= world.rows[side].keys()
        missing = {name for name, key in world.rows[side].items() if key == int(MISSING)}
        assert missing == MADE_BY_HAND


def test_every_page_of_a_memory_has_a_rule() -> None:
    found = {name.partition("memory_")[2] for name, _parameters in addresses() if "memory_" in name}
    assert found == set(DOES)


# What each may see


@pytest.mark.parametrize("side_name", ["own", "foreign"])
@pytest.mark.parametrize("name", list(PERSONS))
def test_a_person_sees_what_he_may_and_nothing_else(world: World, name: str, side_name: str) -> None:
    who, client, side = PERSONS[name], world.clients[name], world.side(side_name)
    before = tables()
    seen = set()
    for page, parameters in pages(side_name):
        address = address_of(page, parameters, world.rows[side_name])
        for asked in questions(page, side)[: None if side_name == "foreign" and name in BLIND else 1]:
            with undone():
                response = client.get(address, asked)
                text = text_of(response)
            allowed = opens(who, page, side)
            assert response.status_code < 500, address
            opened = response.status_code == 200 or response.get("Location", "").startswith(HISTORIES)
            assert allowed is None or opened == allowed, (address, asked, text[:200])
            for other in (world.own, world.foreign):
                visible = who.sees is not None and other.name in who.sees
                assert visible or without_traces(text, other, asked), (address, asked, text)
            if allowed and side.secret in text:
                seen.add(page)
    assert tables() == before
    if who.sees and side.name in who.sees and who.roles:
        kinds = [kind for kind in KINDS if kind.typ in who.kinds]
        for kind in kinds:
            told = {f"memories_{kind.typ}memory_{page}" for page in ("changelist", "change", "history", "version")}
            assert told <= seen
    else:
        assert seen == set()


@pytest.mark.parametrize("name", BLIND)
def test_a_foreign_row_reads_like_an_unknown_one(world: World, name: str) -> None:
    client, unknown = world.clients[name], world.rows["unknown"]
    for page, parameters in pages("foreign"):
        model = model_of(page)
        if model not in {*MEMORIES, *VERSIONS, "tag", "callrecord", "recall"} or "object_id" not in parameters:
            continue
        texts = []
        for keys in (world.rows["foreign"], unknown):
            for method in (client.get, client.post):
                client.cookies.pop("messages", None)
                with undone():
                    response = method(address_of(page, parameters, keys), follow=True)
                    text = text_of(response) + str(response.redirect_chain)
                # In both, since memories in sight may have the same number.
                key = world.rows["foreign"][model]
                texts.append(re.sub(rf"((?:memories(?:/|%2F)\w+(?:/|%2F))|_|“){key}\b", rf"\g<1>{MISSING}", text))
        assert texts[:2] == texts[2:], page


@pytest.mark.parametrize("name", WATCHED)
def test_nothing_that_a_person_is_shown_depends_on_what_he_may_not_see(world: World, name: str) -> None:
    keys = (world.rows["own"], world.rows["unknown"])
    now = everything_shown(world.clients[name], world.own, world.foreign, keys)
    assert [asked for asked, shown in now.items() if shown != world.before[name][asked]] == []


# What each may change


def sent(world: World, side_name: str, page: str, client: Client, address: str) -> list[dict[str, Any]]:
    """What somebody sends to change something: the page's own form when he is shown one, and one made up."""
    key = str(world.rows[side_name].get(model_of(page), 1))
    fields = {
        "kurzbeschreibung": "böse",
        "memory": "böse",
        "titel": "böse",
        "memory_typ": "arbeit",
        "scope_typ": world.side(side_name).scope,
        "relevanz": "1",
        "schlagworte": "böse",
        "scope": world.side(side_name).scope,
        "scope_vk": world.side(side_name).record,
        "scope_id": world.side(side_name).record,
        "nutzer": world.side(side_name).nutzer,
        "agent": world.side(side_name).agent,
        "geladene_version": "2",
        "post": "yes",
    }
    if page.endswith("_changelist"):
        action = {"action": "delete_selected", "_selected_action": [key], "post": "yes"}
        return [action, action | {"index": "0"}]
    if not page.endswith(("_add", "_change")):
        return [fields]
    with undone():
        shown = form(client, address) if client.get(address).status_code == 200 else {}
    return [shown | fields]


@pytest.mark.parametrize("side_name", ["own", "foreign"])
@pytest.mark.parametrize("name", list(PERSONS))
def test_a_person_changes_what_he_may_and_nothing_else(world: World, name: str, side_name: str) -> None:
    who, client, side = PERSONS[name], world.clients[name], world.side(side_name)
    before = tables()
    changed = set()
    for page, parameters in pages(side_name):
        model, ending = model_of(page), page.rpartition("_")[2]
        if model in PAGES and PAGES[model][1] & set(who.roles) and (side_name == "own" or who.may("write", side)):
            continue  # it is theirs to change
        address = address_of(page, parameters, world.rows[side_name])
        with undone():
            for data in sent(world, side_name, page, client, address):
                assert client.post(address, data).status_code < 500, (address, data)
            now = tables()
            if any(now[name] != before[name] for name in (now if model not in PAGES else CONTENT)):
                changed.add((model, ending))
    may_more = {
        (model, page) for model in MEMORIES for page, does in DOES.items() if not does and who.may("write", side)
    }
    changed -= may_more
    does = {"add": "write", "change": "write", "delete": "delete", "changelist": "delete", "restore": "restore"}
    assert changed == {
        (model, page)
        for model, kind in MEMORIES.items()
        for page, does_it in does.items()
        if who.roles and who.may(does_it, side, kind)
    }
