"""Markdown as HTML that runs and fetches nothing: no HTML of the text's own, no pictures, few kinds of links."""

from collections.abc import Iterator, Sequence

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

LONGEST = 20_000  # characters; the worst of such texts takes about a second
_LINKED = ("http://", "https://", "mailto:")
_REL = "noopener noreferrer nofollow"
_HEADINGS_ABOVE = 2  # of the page itself
_LOWEST_HEADING = 6


class _Parser(MarkdownIt):
    """CommonMark with tables; what looks like HTML is text."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False})
        self.enable(["table", "strikethrough"])

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's own name
        """Whether somebody may be led there."""
        return url.lower().startswith(_LINKED)


_parser = _Parser()
_renderer = RendererHTML()


def rendered(text: str) -> SafeString:
    """The text, of at most LONGEST characters, as HTML."""
    tokens = _parser.parse(text)
    for token in tokens:
        _fit_in(token)
        token.children = list(_without_pictures(token.children or ()))
    return mark_safe(_renderer.render(tokens, _parser.options, {}))  # noqa: S308 - every text is escaped by the renderer


def _fit_in(token: Token) -> None:
    """Headings stand below those of the page; columns are aligned by a class, since no style may stand in a tag."""
    if token.type in {"heading_open", "heading_close"}:
        token.tag = f"h{min(int(token.tag[1:]) + _HEADINGS_ABOVE, _LOWEST_HEADING)}"
    style = token.attrs.pop("style", "")
    if style:
        token.attrs["class"] = str(style).replace("text-align:", "align-")


def _without_pictures(tokens: Sequence[Token]) -> Iterator[Token]:
    """A picture becomes a link to it, inside another link just its words."""
    inside = 0
    for token in tokens:
        inside += token.nesting if token.tag == "a" else 0
        if token.type == "link_open":
            token.attrs["rel"] = _REL
        if token.type != "image":
            yield token
            continue
        words = _renderer.renderInlineAsText(token.children or (), _parser.options, {})
        told = Token("text", "", 0, content=_("Picture: %(words)s") % {"words": words or token.attrs["src"]})
        attrs = {"href": token.attrs["src"], "rel": _REL}
        yield from [told] if inside else [Token("link_open", "a", 1, attrs=attrs), told, Token("link_close", "a", -1)]
