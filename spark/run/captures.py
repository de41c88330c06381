"""What a feed's queries have from its captures, and let go of."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from threading import Event, Thread
from typing import Any, Final

from ...engine.options import FeedOptions
from ...errors import ConfigError
from ..capture import client
from ..capture.captures import Captures, captures_of
from ..offsets.offset import Offset
from ..read.options import read_options
from .feed_reads import feed_reads
from .options import SECTION, SparkOptions

log = logging.getLogger("tidemill")

CLOSE_SECONDS: Final = 2.0

_NAMES: Final = {
    "option captureTokenFile": f"{SECTION}.capture_token_file",
    "option captureCaFile": f"{SECTION}.capture_ca_file",
}
_NAMED: Final = re.compile("|".join(_NAMES))


def lease_of(options: FeedOptions) -> str:
    """One for all queries of a feed, whichever process runs them."""
    return f"{options.name} of {options.data_dir.absolute()}"


def captures_to_ask(section: Mapping[str, Any], options: FeedOptions, how: SparkOptions) -> Captures | None:
    """Raises ConfigError if a file that they need can't be read."""
    try:
        return captures_of(read_options(feed_reads(section, options) | how.captures))
    except ConfigError as error:
        raise ConfigError(_NAMED.sub(lambda found: _NAMES[found[0]], str(error))) from None


class Acknowledging:
    """Tells the captures what all queries have, in a thread of its own: one that hangs takes its time."""

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
        """Of every query the end of its last batch."""
        lowest = min(offsets, key=lambda offset: offset.ts)
        if self._captures is not None and lowest != self._upto:
            self._upto = lowest
            self._news.set()

    def close(self) -> None:
        """What can't be told by then is told after the next start."""
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
