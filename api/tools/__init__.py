"""All tools, in the order in which they are listed."""

from api.tool import Tool
from api.tools import brain, history, longterm, search, shortterm, tags

TOOLS: tuple[Tool, ...] = (
    longterm.INSERT,
    longterm.UPDATE,
    longterm.SELECT,
    longterm.DELETE,
    shortterm.INSERT,
    shortterm.UPDATE,
    shortterm.SELECT,
    shortterm.DELETE,
    shortterm.PROMOTE,
    brain.INSERT,
    brain.UPDATE,
    brain.SELECT,
    brain.DELETE,
    search.SEARCH,
    history.SELECT,
    history.RESTORE,
    tags.SELECT,
)
