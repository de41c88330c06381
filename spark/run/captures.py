"""The captures of a feed's queries, and their acknowledgement."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from threading import Event, Thread
from typing import Final

from ...engine.options import FeedOptions
from ...errors import ConfigError
from ..capture import client
from ..capture.captures import Captures, captures_of
from ..offsets.offset import Offset
from ..read.options import read_options
from ..sections import SparkFeedOptions
from .feed_reads import feed_reads
from .options import SECTION

log = logging.getLogger("tidemill")

CLOSE_SECONDS: Final = 2.0

_NAMES: Final = {
    "option captureTokenFile": f"{SECTION}.capture_token_file",
    "option captureCaFile": f"{SECTION}.capture_ca_file",
}
_NAMED: Final = re.compile("|".join(_NAMES))


def lease_of(options: FeedOptions) -> str:
    """Return the lease of all queries of a feed, the same in every process."""
    return f"{options.name} of {options.data_dir.absolute()}"


def captures_to_ask(options: SparkFeedOptions) -> Captures | None:
    """Return the feed's captures. Raises ConfigError if one of their files can't be read."""
    try:
        return captures_of(read_options(feed_reads(options) | options.spark.captures))
    except ConfigError as error:
        raise ConfigError(_NAMED.sub(lambda found: _NAMES[found[0]], str(error))) from None


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
