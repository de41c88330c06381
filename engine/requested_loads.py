"""Tables that people want loaded again, until every sink has begun."""

from __future__ import annotations

from collections.abc import Iterable

from ..events import REST, STALE
from ..sink import Delivery
from .options import FeedOptions
from .requests import RequestFile


class RequestedLoads:
    """The loads in a feed's request file, by sink. Called only from the feed's thread."""

    def __init__(self, options: FeedOptions, sinks: Iterable[str], requests: RequestFile) -> None:
        self._options = options
        self._sinks = tuple(sinks)
        self._requests = requests
        self._begun: set[tuple[str, str]] = set()
        """Sinks and tables whose requested load has begun, while it hasn't for all sinks."""

    def left(self) -> dict[str, list[str]]:
        """Return the tables that a sink hasn't begun to load, by the sink's name. Raises CheckpointError."""
        return self._left(self._requests.load().load_again)

    @property
    def renews(self) -> bool:
        """True if all tables are to be loaded again. Raises CheckpointError."""
        return REST in self._requests.load().load_again

    def renewed(self) -> None:
        """Note that every sink's checkpoint has all tables to be loaded again."""
        self._requests.remove(frozenset(self._requests.load().load_again))
        self._begun.clear()

    def note(self, deliveries: Iterable[Delivery]) -> None:
        """Note which requested loads have begun; several sinks may have begun at the same time."""
        requested = self._requests.load().load_again
        for delivery in deliveries:
            at = delivery.statistics().checkpoint
            loading = (at.loading if at is not None else None) or {}
            self._begun.update((delivery.sink.name, name) for name in requested if loading.get(name) == STALE)
        left = {table for tables in self._left(requested).values() for table in tables}
        done = frozenset(requested) - left - {REST}
        self._requests.remove(done)
        self._begun = {(sink, table) for sink, table in self._begun if table not in done}

    def _left(self, requested: Iterable[str]) -> dict[str, list[str]]:
        wants, begun = self._options.wants, self._begun
        return {
            sink: [
                table
                for table in requested
                if table != REST and wants(sink, table) and (sink, table) not in begun
            ]
            for sink in self._sinks
        }
