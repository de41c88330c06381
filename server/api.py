"""The operations of the HTTP API: each method is one, called in a thread of its own."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Annotated, Any

from msgspec import Meta, Struct

from .. import __version__
from ..engine.status import resident_bytes
from .events import MAX_STREAMS
from .history import LIMIT, HistoryEntry
from .listing import TablesQuery, listed
from .model import (
    FeedDetail,
    FeedList,
    FeedSummary,
    Health,
    Quotas,
    Readiness,
    ServerStatus,
    SinkList,
    TableList,
    TableStatus,
    Unready,
    WaitList,
)
from .operation import operation
from .problem import Problem
from .registry import STARTING_FEEDS, Registry


class Resume(Struct, frozen=True, forbid_unknown_fields=True):
    skip: tuple[str, ...] = ()
    """Positions of schema changes to skip, as in the feed's error."""
    reload: tuple[str, ...] = ()
    """Full names of tables to load again, or "*" for all."""


class Empty(Struct, frozen=True, forbid_unknown_fields=True):
    """No body, or an empty object."""


class DeleteQuery(Struct, frozen=True, forbid_unknown_fields=True):
    data: bool = False
    """Remove the feed's data directory too."""


class HistoryQuery(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=LIMIT)] = 100


class HistoryList(Struct, frozen=True):
    history: list[HistoryEntry]
    """Entries, the newest first."""


class Api:
    """Operations on feeds. Raises Problem and TidemillError."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    @operation("GET", "/health", base="", is_open=True)
    def health(self) -> Health:
        """Answer: the process runs."""
        return Health()

    @operation("GET", "/server")
    def server(self) -> ServerStatus:
        """Describe this process."""
        states: Counter[str] = Counter(feed.status().state for feed in self._registry.feeds())
        return ServerStatus(
            version=__version__,
            started=self._registry.started,
            memory_bytes=resident_bytes(),
            threads=threading.active_count(),
            quotas=Quotas(0, 0, 0, STARTING_FEEDS, MAX_STREAMS),
            feeds=dict(states),
        )

    @operation("GET", "/feeds")
    def list_feeds(self) -> FeedList:
        """List all feeds, by name."""
        return FeedList([feed.summary() for feed in self._registry.feeds()])

    @operation("POST", "/feeds", 201)
    def create_feed(self, body: dict[str, Any], by: str) -> FeedSummary:
        """Create a feed and start it; the body is the document of a feed.toml as JSON."""
        return self._registry.create(body, by).summary()

    @operation("GET", "/feeds/{feed}")
    def get_feed(self, feed: str) -> FeedDetail:
        """Return a feed's status and options."""
        found = self._registry.feed(feed)
        return FeedDetail(found.summary(), found.status(), dict(found.document()))

    @operation("PUT", "/feeds/{feed}")
    def replace_feed(self, feed: str, body: dict[str, Any], by: str) -> FeedSummary:
        """Replace a feed's options; a running feed restarts from its checkpoint.

        A value that is "***" as in the answer of GET keeps the stored secret.
        """
        return self._registry.replace(feed, body, by).summary()

    @operation("DELETE", "/feeds/{feed}")
    def delete_feed(self, feed: str, query: DeleteQuery, by: str) -> Empty:
        """Stop a feed and forget it."""
        self._registry.managed(feed).remove(by, removes_data=query.data)
        return Empty()

    @operation("POST", "/feeds/{feed}/pause")
    def pause_feed(self, feed: str, body: Empty, by: str) -> FeedSummary:  # noqa: ARG002
        """Stop a feed, its checkpoints saved; it stays stopped over restarts of the server."""
        found = self._registry.managed(feed)
        found.pause(by)
        return found.summary()

    @operation("POST", "/feeds/{feed}/resume")
    def resume_feed(self, feed: str, body: Resume, by: str) -> FeedSummary:
        """Run a feed again from its checkpoint, also after a failure."""
        found = self._registry.managed(feed)
        found.resume(by, body.skip, body.reload)
        return found.summary()

    @operation("GET", "/feeds/{feed}/tables")
    def list_tables(self, feed: str, query: TablesQuery) -> TableList:
        """List tables of a feed: those that are searched for, sorted, a page of them."""
        return listed(self._registry.feed(feed).tables(), query)

    @operation("GET", "/feeds/{feed}/tables/{table}")
    def get_table(self, feed: str, table: str) -> TableStatus:
        """Return the state of a table, by its full name."""
        for one in self._registry.feed(feed).tables():
            if one.name == table:
                return one
        raise Problem(404, f"feed {feed} doesn't follow a table {table!r}")

    @operation("GET", "/feeds/{feed}/sinks")
    def list_sinks(self, feed: str) -> SinkList:
        """List a feed's sinks."""
        return SinkList(self._registry.feed(feed).status().sinks)

    @operation("GET", "/feeds/{feed}/waits")
    def list_waits(self, feed: str) -> WaitList:
        """Explain why a feed is slow or stuck."""
        found = self._registry.feed(feed)
        return WaitList(found.explanation(), found.waits())

    @operation("GET", "/feeds/{feed}/history")
    def list_history(self, feed: str, query: HistoryQuery) -> HistoryList:
        """List states, errors and operations of a feed, the newest first."""
        return HistoryList(self._registry.feed(feed).history.last(query.limit))

    def readiness(self) -> Readiness:
        unready = [(feed.name, feed.status()) for feed in self._registry.unready()]
        feeds = [Unready(name, status.state, status.detail) for name, status in unready]
        return Readiness(not feeds, feeds)
