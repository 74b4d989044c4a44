"""How the log tells of faults: where they arose and of which class, without their texts, which may quote memories."""

import copy
import logging
import threading
import traceback
from typing import Any

log = logging.getLogger(__name__)

_REFUSALS = "django.security."
_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"


class Formatter(logging.Formatter):
    """Lines with tracebacks that hold places and classes alone.

    A database quotes the row that it refuses, Python the value that it cannot convert, and a cause its own. Django
    quotes the header for which it refuses a request; the logger's name says which check it was.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line; what another formatter made of the traceback is not reused, nor ours by another."""
        if record.name.startswith(_REFUSALS):
            record = copy.copy(record)
            record.msg, record.args = "A request was refused", ()
        kept, record.exc_text = record.exc_text, None
        try:
            return super().format(record)
        finally:
            record.exc_text = kept

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        """The traceback without the exceptions' texts, the first cause first."""
        return "\n".join(_told(ei[1]))


def _told(error: BaseException | None) -> list[str]:
    lines: list[str] = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        frames = traceback.format_list(traceback.extract_tb(error.__traceback__))
        lines[:0] = ["Traceback (most recent call last):", "".join(frames).rstrip("\n"), _class(error)]
        before, how = error.__cause__, _CAUSE
        if before is None and not error.__suppress_context__:
            before, how = error.__context__, _CONTEXT
        if before is not None and id(before) not in seen:
            lines[:0] = ["", how, ""]
        error = before
    return lines


def _class(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def tell_of_threads() -> None:
    """Have what ends a thread told in the same way, instead of printed with all texts."""

    def tell(given: threading.ExceptHookArgs) -> None:
        if given.exc_value is not None:
            log.critical("A thread has ended", exc_info=given.exc_value)

    threading.excepthook = tell
