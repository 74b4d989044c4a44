"""The server's thread that embeds what comes without a vector, a few seconds after it was stored."""

import logging
import threading
from datetime import datetime, timedelta

from django.db import Error, connection
from django.utils import timezone

from memories.search import derived
from memories.search.embedder import Embedder, EmbedderFault

log = logging.getLogger(__name__)

_EVERY = 2.0  # seconds between two looks
_LONGEST_PAUSE = 60.0  # seconds, after faults
_LOOK_BACK = timedelta(minutes=2)  # a transaction may take that long until others see its rows
_LOOK_AT_ALL = timedelta(minutes=30)  # also what was changed before, in case something was missed


class Worker(threading.Thread):
    """A daemon: it ends with its process, and what it stored until then is stored."""

    def __init__(self, embedder: Embedder, *, every: float = _EVERY) -> None:
        super().__init__(name="embedder", daemon=True)
        self._embedder = embedder
        self._every = every
        self._stop_asked = threading.Event()

    def stop(self) -> None:
        """Ask it to end after what it is doing."""
        self._stop_asked.set()

    def run(self) -> None:
        """Look, embed, wait; wait longer while it does not work."""
        pause = self._every
        all_seen: datetime | None = None  # when it last began to look at all texts
        looked: datetime | None = None
        while not self._stop_asked.wait(pause):
            now = timezone.now()
            everything = all_seen is None or now - all_seen > _LOOK_AT_ALL
            since = None if everything or looked is None else looked - _LOOK_BACK
            try:
                derived.fill(self._embedder, derived.profile_of(self._embedder), since=since)
            except (EmbedderFault, Error) as fault:
                pause = min(2 * pause, _LONGEST_PAUSE)
                # A database's message can quote a row, which no log may hold.
                told = fault if isinstance(fault, EmbedderFault) else type(fault).__name__
                log.warning("Embedding is put off for %.0f seconds: %s", pause, told)
            else:
                pause, looked = self._every, now
                all_seen = now if everything else all_seen
            finally:
                connection.close()
