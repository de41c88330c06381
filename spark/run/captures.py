"""The captures of a feed's queries, and their acknowledgement."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import Event, Thread
from typing import Final

from ...config import FILE
from ...engine.options import FeedOptions
from ..capture import client
from ..capture.captures import Captures, captures_of
from ..offsets.offset import Offset
from ..sections import SparkFeedOptions
from .options import SECTION

log = logging.getLogger("tidemill")

CLOSE_SECONDS: Final = 2.0


def lease_of(options: FeedOptions) -> str:
    """Return the lease of all queries of a feed, the same in every process."""
    return f"{options.name} of {options.data_dir.absolute()}"


def captures_to_ask(options: SparkFeedOptions) -> Captures | None:
    """Return the feed's captures. Raises ConfigError if one of their files can't be read."""
    return captures_of(options.spark, FILE, SECTION)


class Acknowledging:
    """Acknowledges to the captures the changes that all queries have.

    Uses its own thread, since a call to a capture that doesn't answer takes until its timeout.
    """

    def __init__(self, captures: Captures | None, lease: str) -> None:
        self._captures = captures
        self._lease = lease
        self._upto: Offset | None = None
        self._news = Event()
        self._over = False
        self._refused: list[str] = []
        self._thread = Thread(target=self._run, name="tidemill-acknowledging", daemon=True)
        self._thread.start()

    def reached(self, offsets: Sequence[Offset]) -> None:
        """Note the ends of the queries' last batches."""
        lowest = min(offsets, key=lambda offset: offset.ts)
        if self._captures is not None and lowest != self._upto:
            self._upto = lowest
            self._news.set()

    def close(self) -> None:
        """Stop the thread; an acknowledgement that was missed is repeated after the next start."""
        self._over = True
        self._news.set()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        told: Offset | None = None
        while not self._over:
            self._news.wait()
            self._news.clear()
            if self._upto is not None and self._upto != told:
                told = self._upto
                self._tell(told)

    def _tell(self, upto: Offset) -> None:
        assert self._captures is not None
        refused = client.acknowledge(
            self._captures.addresses, self._lease, upto, access=self._captures.access
        )
        if refused and refused != self._refused:
            log.warning("captures: %s", "; ".join(refused))
        self._refused = refused
