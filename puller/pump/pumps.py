"""The pumps of a cluster and their states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from ...errors import TidemillError
from ...events import Ts
from .service.progress import DrainerProgress

State: TypeAlias = Literal["online", "pausing", "paused", "closing", "offline"]
"""A pump that is `paused` isn't pulled, one that is `offline` is forgotten; the others are pulled. Everybody
waits for all of them except those that are offline."""


class PumpStatus(Struct, frozen=True):
    """A pump as its registry shows it."""

    node_id: str
    host: str
    """Address, "host:port"."""
    state: State = "online"
    max_commit_ts: Ts = 0
    """Commit ts of its last binlog, as far as the registry knows it."""


class DrainerFeed(Protocol):
    """The feed as the drainer of its pumps. Methods are called in threads that aren't an actor's."""

    def accept(self, pumps: Sequence[PumpStatus]) -> None:
        """Return once nothing above the merged ts is delivered without all these pumps.

        Called by one thread at a time, with a newer list each time. Raises Retryable if the feed is too busy.
        """

    def looked(self, error: Exception | None, seconds: float) -> None:
        """Note that the pumps were read, or why not, and that this is done again in `seconds`; quick."""

    def progress(self) -> DrainerProgress:
        """Return the present progress; quick."""

    def ask_to_stop(self) -> None:
        """Have the feed stopped cleanly; quick."""

    def lost(self, error: TidemillError) -> None:
        """Have the feed fail; quick."""


class Pumps(Protocol):
    """Where the pumps are found. All methods are called in the feed's thread."""

    def read(self) -> Sequence[PumpStatus]:
        """Return all pumps that are known, without a start. Raises Retryable and Fatal."""

    def start(self, feed: DrainerFeed) -> None:
        """Give the feed all pumps, now or soon, and again when a pump joins or changes its state.

        Called once, when the feed knows from which ts it follows. Raises Retryable and Fatal; then `stop` is
        still to be called.
        """

    def stop(self) -> None:
        """Release all resources; called when everything is delivered that will be. Safe to repeat."""


class StaticPumps:
    """Pumps given by their addresses, which are always online."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._pumps = [PumpStatus(address, address) for address in addresses]

    def read(self) -> Sequence[PumpStatus]:
        return self._pumps

    def start(self, feed: DrainerFeed) -> None:
        feed.accept(self._pumps)

    def stop(self) -> None:
        pass
