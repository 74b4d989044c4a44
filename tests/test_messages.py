"""The German texts: all are there, whole, compiled, and shown; English is what the sources say."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import django
import polib
import pytest
import rest_framework
from django.test import Client
from django.utils.translation.template import templatize

from tests.conftest import Agent
from tests.doors import fault_of
from tests.messages import COMPILED, OF_DJANGO, OF_DJANGO_JS, OURS, read, tidied

ROOT = Path(__file__).parent.parent
CODE = ("api", "brain", "memories", "oauth")
TEMPLATES = ("templates", *CODE)
CATALOGUES = (OURS, OF_DJANGO, OF_DJANGO_JS)
PLURAL = re.compile(r"^(n|np)gettext")
CONTEXT = re.compile(r"^n?pgettext")
GETTEXT = re.compile(r"^n?p?gettext(_lazy|_noop)?$")
STRING = r"""u?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
CALL = re.compile(rf"\b(n?p?gettext|_)\(({STRING}(?:, {STRING})*)")
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%[a-z]|\{\w*\}|</?strong>")

# Where Django's German says it otherwise, on purpose: ours fits both places.
OTHERWISE = {"This field is required.", "active", "History"}
SAID_BY_DJANGO = {"Change history: %s"}

Message = tuple[str | None, str]  # context, text
Messages = dict[Message, str | None]  # to the plural


def message(function: str, texts: list[str]) -> tuple[Message, str | None]:
    """The message that a call of this function of gettext asks for."""
    context = texts.pop(0) if CONTEXT.match(function) else None
    return (context, texts[0]), texts[1] if PLURAL.match(function) else None


def called_as(tree: ast.Module) -> dict[str, str]:
    """The functions of gettext by the names that this module calls them."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {
        name.asname or name.name: name.name
        for each in imports
        if each.module == "django.utils.translation"
        for name in each.names
        if GETTEXT.match(name.name)
    }


def in_code(source: str) -> Iterator[tuple[Message, str | None]]:
    """The messages of a module. Fails on a text that is put together when the program runs: nobody can translate it."""
    tree = ast.parse(source)
    names = called_as(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            function = names[node.func.id]
            count = 1 + bool(CONTEXT.match(function)) + bool(PLURAL.match(function))
            yield message(function, [ast.literal_eval(text) for text in node.args[:count]])


def in_template(source: str) -> Iterator[tuple[Message, str | None]]:
    """The messages of a template, as Django itself reads it for gettext."""
    for function, texts in CALL.findall(templatize(source)):
        yield message(function, list(ast.literal_eval(f"({texts},)")))


def collected(found: Iterator[tuple[Message, str | None]]) -> Messages:
    """A message that is used with and without a plural is one, with the plural."""
    messages: Messages = {}
    for each, plural in found:
        messages[each] = plural or messages.get(each)
    return messages


def in_the_sources() -> Iterator[tuple[Message, str | None]]:
    """The messages of all modules and templates."""
    for folder in CODE:
        for path in (ROOT / folder).rglob("*.py"):
            yield from in_code(path.read_text(encoding="utf-8"))
    for folder in TEMPLATES:
        for path in (ROOT / folder).rglob("*.html"):
            yield from in_template(path.read_text(encoding="utf-8"))


def by_message(*catalogues: polib.POFile | polib.MOFile) -> dict[Message, list[str]]:
    """The translations of each message: one, or one for each number."""
    return {
        (entry.msgctxt, entry.msgid): list(entry.msgstr_plural.values()) or [entry.msgstr]
        for catalogue in catalogues
        for entry in catalogue
    }


def of_django(name: str) -> dict[Message, list[str]]:
    """The German texts of Django and REST framework."""
    folders = (Path(package.__file__ or "").parent for package in (django, rest_framework))
    paths = [path for folder in folders for path in folder.rglob(f"locale/de/LC_MESSAGES/{name}")]
    return by_message(*(polib.mofile(str(path)) for path in paths))


def test_every_message_of_the_sources_is_in_the_catalogue_and_no_other() -> None:
    catalogue = {(entry.msgctxt, entry.msgid): entry.msgid_plural or None for entry in read(OURS)}
    assert collected(in_the_sources()) == catalogue, "run `make messages`"


def test_messages_are_found_however_they_are_written() -> None:
    code = (
        "from django.utils.translation import gettext as _, gettext_lazy, ngettext, npgettext as n, pgettext_lazy\n"
        "from elsewhere import translate\n"
        "_('a' 'b'); gettext_lazy('c'); ngettext('d', 'ds', 2); n('x', 'e', 'es', 2); pgettext_lazy('y', 'f')\n"
        "translate('not this one')\n"
    )
    assert collected(in_code(code)) == {
        (None, "ab"): None,
        (None, "c"): None,
        (None, "d"): "ds",
        ("x", "e"): "es",
        ("y", "f"): None,
    }
    template = (
        "{% load i18n %}{% translate \"it's\" %}{% translate 'to' context 'x' %}{{ _('here') }} gettext('no message')"
        "{% blocktranslate with a=b %}{{ a }} (so){% endblocktranslate %}"
        "{% blocktranslate count n=m %}one{% plural %}{{ n }}, 100 %{% endblocktranslate %}"
    )
    assert collected(in_template(template)) == {
        (None, "it's"): None,
        ("x", "to"): None,
        (None, "here"): None,
        (None, "%(a)s (so)"): None,
        (None, "one"): "%(n)s, 100 %%",
    }


def test_a_message_that_is_put_together_is_refused() -> None:
    with pytest.raises(ValueError, match="malformed"):
        list(in_code("from django.utils.translation import gettext as _\n_(f'{name} is wrong')"))


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.name)
def test_every_message_is_translated(path: Path) -> None:
    catalogue = read(path)
    assert [entry.msgid for entry in catalogue if not entry.translated()] == []
    assert [entry.msgid for entry in catalogue if entry.fuzzy or entry.obsolete] == []


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.name)
def test_translations_keep_placeholders_and_blanks_at_the_edges(path: Path) -> None:
    for entry in read(path):
        forms = [(entry.msgid, entry.msgstr)]
        if entry.msgid_plural:
            assert entry.msgstr_plural.keys() == {0, 1}, entry.msgid
            forms = [(entry.msgid, entry.msgstr_plural[0]), (entry.msgid_plural, entry.msgstr_plural[1])]
        for text, translation in forms:
            assert Counter(PLACEHOLDER.findall(text)) == Counter(PLACEHOLDER.findall(translation)), text
            assert [text[0].isspace(), text[-1].isspace()] == [translation[0].isspace(), translation[-1].isspace()], (
                text
            )


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.name)
def test_catalogues_are_tidy(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == tidied(path), "run `make messages`"


@pytest.mark.parametrize(("target", "sources"), COMPILED.items(), ids=[path.name for path in COMPILED])
def test_catalogues_are_compiled(target: Path, sources: tuple[Path, ...]) -> None:
    assert target.read_bytes() == read(*sources).to_binary(), "run `make messages`"
    assert by_message(polib.mofile(str(target))) == by_message(*map(read, sources))


def test_no_text_of_django_is_said_otherwise_by_accident() -> None:
    theirs = of_django("django.mo")
    ours = by_message(read(OURS))
    assert {text for (context, text), said in ours.items() if theirs.get((context, text), said) != said} == OTHERWISE


def test_only_what_django_lacks_is_added_for_it() -> None:
    added = by_message(read(OF_DJANGO))
    assert {text for _context, text in added.keys() & of_django("django.mo").keys()} == SAID_BY_DJANGO
    assert added.keys().isdisjoint(by_message(read(OURS)))
    assert by_message(read(OF_DJANGO_JS)).keys().isdisjoint(of_django("djangojs.mo"))


def test_faults_are_german_or_english_when_asked_for(anna: Agent) -> None:
    for language, told in (
        ("", "Ein Werkzeug nichts gibt es nicht."),
        ("de-CH,en;q=0.5", "Ein Werkzeug nichts gibt es nicht."),
        ("fr", "Ein Werkzeug nichts gibt es nicht."),
        ("en", "There is no tool nichts."),
    ):
        headers = {"Accept-Language": language} if language else {}
        fault = fault_of(anna.post("nichts", {"inhalt": {}}, **headers), 404)
        assert fault["meldung"] == told


def test_faults_of_entries_are_german(anna: Agent) -> None:
    fault = anna.call("insert_brain_longterm_memory", memories=[{}])["daten"][0]["fehler"]
    assert (fault["code"], fault["meldung"]) == ("pflichtfeld", "Dieses Feld muss angegeben werden.")
    fault = anna.call("insert_brain_longterm_memory", memories=["x"])["daten"][0]["fehler"]
    assert fault["meldung"] == "Erwartet wird: Objekt."


@pytest.mark.django_db
def test_the_page_to_sign_in_is_german_and_english_on_switch() -> None:
    client = Client()
    page = client.get("/admin/login/").content.decode()
    assert '<html lang="de"' in page
    assert "Benutzername:" in page
    assert "Anmelden" in page
    page = client.post("/i18n/setlang/", {"language": "en", "next": "/admin/login/"}, follow=True).content.decode()
    assert '<html lang="en"' in page
    assert "Username:" in page
    assert "Log in" in page


@pytest.mark.django_db
def test_the_scripts_of_the_admin_are_german(admin_client: Client) -> None:
    assert "Markierte %s entfernen" in admin_client.get("/admin/jsi18n/").content.decode()
