"""Methods that the handles of one feed have in common: what a program asks of it while it runs."""

from __future__ import annotations

from ..engine.feed import Feed
from ..engine.status import FeedStatus
from ..engine.tables import TableStatus
from ..events import Wait


class FeedHandle:
    """A running feed of this program. Any thread."""

    _feed: Feed

    def status(self) -> FeedStatus:
        """Return the feed's state, positions, lag, speed and memory, as of about half a second ago."""
        return self._feed.status()

    def explain(self) -> list[Wait]:
        """Return what waits, on what, and since when."""
        return self._feed.explain()

    def tables(self) -> list[TableStatus]:
        """Return the state of each table, by name."""
        return self._feed.tables()

    def pause_table(self, name: str) -> None:
        """Deliver nothing more of a table, by its full name, while the others go on; returns at once.

        The feed begins again at its checkpoint: what isn't acknowledged comes again. Raises ConfigError for a
        table that isn't followed or that is parked already, and CheckpointError if the request can't be
        stored.
        """
        self._feed.pause_table(name)

    def resume_table(self, name: str) -> None:
        """Load a paused or failed table again, and follow it from there; returns at once. Raises as
        `pause_table` does."""
        self._feed.resume_table(name)

    def reload_table(self, name: str) -> None:
        """Load a table again, and follow it from there; returns at once. Raises as `pause_table` does."""
        self._feed.reload_table(name)
