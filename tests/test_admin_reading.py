"""Reading a memory in the admin: its text as written or as harmless Markdown, and the memories like it."""

import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from memories.admin.markdown import LONGEST
from memories.kinds import BRAIN, LONGTERM, SHORTTERM
from memories.models import Grant, RecalledSearch
from memories.principal import SYSTEM, Origin
from memories.services import delete
from memories.values import embedding
from tests.admincast import person, store, url

pytestmark = pytest.mark.django_db
MARKDOWN = {"ansicht": "markdown"}


def page(address: str, asked: dict[str, str] | None = None, name: str = "chef") -> str:
    """The page as somebody with all rights reads it."""
    client = person(f"{name}{User.objects.count()}", superuser=True)
    response = client.get(address, asked)
    assert response.status_code == 200, response
    return str(response.content.decode())


def markdown_of(text: str) -> str:
    """The Markdown view of this text."""
    shown = page(url("read", store(memory=text)), MARKDOWN)
    assert '<div class="markdown" dir="auto">' in shown
    return shown.partition('<div class="markdown" dir="auto">')[2].partition("</div>")[0]


# The text


def test_the_text_is_read_as_it_was_written() -> None:
    shown = page(url("read", store(memory="Eine Zeile\n\n  <b>noch</b> **eine**")))
    assert '<div class="written" dir="auto">Eine Zeile\n\n  &lt;b&gt;noch&lt;/b&gt; **eine**</div>' in shown
    assert "?ansicht=markdown" in shown


def test_markdown_is_shown_as_such_on_wish() -> None:
    shown = markdown_of("# Frist\n\n- *drei* Monate\n\n| a | b |\n|--:|---|\n| 1 | 2 |\n\n1. eins\n")
    assert "<h3>Frist</h3>" in shown
    assert "<em>drei</em>" in shown
    assert '<td class="align-right">1</td>' in shown
    assert "style=" not in shown
    assert "<ol>" in shown


@pytest.mark.parametrize(
    "text",
    ["<script>x</script>", "<b onclick=x>y</b>", "<!-- x -->", "[a](javascript:x)", "[a](data:a,x)", "[a](/admin/)"],
)
def test_html_and_strange_links_stay_text(text: str) -> None:
    shown = markdown_of(text)
    assert "<a" not in shown
    assert "<b" not in shown
    assert "<script" not in shown
    assert "<!--" not in shown


def test_links_lead_out_without_a_trace() -> None:
    for target in ("https://example.org/", "http://example.org/", "mailto:anna@example.org"):
        assert f'<a href="{target}" rel="noopener noreferrer nofollow">a</a>' in markdown_of(f"[a]({target})")


def test_pictures_are_not_fetched() -> None:
    shown = markdown_of("![Plan *B*](https://example.org/x.png) ![](https://example.org/y.png)")
    assert "<img" not in shown
    assert '<a href="https://example.org/x.png" rel="noopener noreferrer nofollow">Picture: Plan B</a>' in shown
    assert "Picture: https://example.org/y.png</a>" in shown
    inside = markdown_of("[![Plan](https://example.org/x.png)](https://example.org/)")
    assert inside.count("<a ") == 1
    assert "Picture: Plan</a>" in inside


HOSTILE = ["> ", "[", "![", "***a* b** ", "[a](", "`a``b```c ", "- a\n", "a|b\n-|-\n", "<a", "*a **b ", "[a]: b\n"]


@pytest.mark.parametrize("piece", [*HOSTILE, "wide table"])
def test_the_worst_markdown_takes_no_seconds(piece: str) -> None:
    text = (piece * LONGEST)[:LONGEST]
    if piece == "wide table":
        text = ("a|" * 500 + "\n" + "-|" * 500 + "\n" + "a\n" * LONGEST)[:LONGEST]
    key = store(memory=text)
    client = person("chef", superuser=True)
    began = time.process_time()
    assert client.get(url("read", key), MARKDOWN).status_code == 200
    assert time.process_time() - began < 5


def test_a_longer_text_stays_as_it_was_written_and_says_why() -> None:
    key = store(memory="**a** " * 150_000)
    began = time.process_time()
    shown = page(url("read", key), MARKDOWN)
    assert time.process_time() - began < 2
    assert "Longer than 20000 characters" in shown
    assert "**a**" in shown
    assert "<strong>a" not in shown


def test_structured_fields_are_no_markdown() -> None:
    own: dict[str, Any] = {"memory_typ": "arbeit", "titel": "T", "inhalt": "*a*", "inhalt_json": '{"a": "*b*"}'}
    shown = page(url("read", store(BRAIN, **own, gueltig_bis=None), kind="brain"), MARKDOWN)
    assert "<em>a</em>" in shown
    assert "*b*" in shown


def test_the_form_leads_to_the_pages_of_reading() -> None:
    key = store()
    shown = page(url("change", key))
    for name in ("read", "similar"):
        assert f'href="{url(name, key)}"' in shown


# What is like it


def test_similar_memories_say_why() -> None:
    vectors = [embedding(numbers, "embedding") for numbers in ([1.0, 0.0], [1.0, 0.1], [0.0, 1.0])]
    keys = [
        store(memory=text, embedding=vector, embedding_dimension=2, embedding_profil_hash="p")
        for text, vector in zip(["Miete der Lagerhalle", "Lagerhalle in Süd", "Etwas anderes"], vectors, strict=True)
    ]
    by_text = store(SHORTTERM, kurzbeschreibung="Kurz", memory="Die Lagerhalle", gueltig_bis=None)
    shown = page(url("similar", keys[0]))
    found = shown.partition("<ol>")[2].partition("</ol>")[0]
    assert f"longterm_{keys[0]}" not in found
    assert found.index(f'href="{url("change", keys[1])}"') < found.index(f"longterm_{keys[2]}")
    assert "vector 100 %" in found
    assert "text " in found
    assert f'href="{url("change", by_text, kind="shortterm")}"' in found
    assert not RecalledSearch.objects.exists()


def test_at_most_five_are_shown() -> None:
    keys = [store(memory=f"Miete der Lagerhalle {number}") for number in range(9)]
    assert page(url("similar", keys[0])).partition("<ol>")[2].count("<li>") == 5


def test_similar_memories_are_those_in_sight() -> None:
    own = store(memory="Miete der Lagerhalle")
    store(memory="Miete der Lagerhalle, geheim", nutzer="wanda")
    vera = person("vera", ["view_longtermmemory"])
    assert "longterm_" in vera.get(url("similar", own)).content.decode().partition("<ol>")[2]
    Grant.objects.update(nutzer=["anna"])
    assert "There is none." in vera.get(url("similar", own)).content.decode()


def test_a_deleted_memory_leads_to_its_history() -> None:
    key = store()
    delete(LONGTERM, [key], Origin(SYSTEM, nutzer="anna", agent="planer", tuer="rest", tool="test"))
    chef = person("chef", superuser=True)
    for name in ("read", "similar"):
        assert chef.get(url(name, key)).headers["Location"] == url("history", key)
        assert chef.get(url(name, 999)).headers["Location"] == reverse("admin:index")
