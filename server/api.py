"""The operations of the HTTP API: each method is one, called in a thread of its own."""

from __future__ import annotations

import threading
from collections import Counter

from .. import __version__
from ..engine.metrics import metrics_text
from ..engine.sentences import sentence
from ..engine.status import resident_bytes
from .events import MAX_STREAMS
from .listing import listed
from .model.feeds import (
    DeleteQuery,
    Document,
    Empty,
    FeedDetail,
    FeedList,
    FeedSummary,
    Health,
    HistoryList,
    HistoryQuery,
    Quotas,
    Readiness,
    Rescanned,
    Resume,
    ServerStatus,
    SinkList,
    WaitList,
)
from .model.tables import TableList, TablesQuery, TableStatus
from .model.targets import Said
from .operation import operation
from .problem import Problem
from .registry import COMPUTE_THREADS, STARTING_FEEDS, Registry


class Api:
    """Operations on feeds. Raises Problem and TidemillError."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    @operation("GET", "/health", base="", is_open=True)
    def health(self) -> Health:
        """Answer: the process runs."""
        return Health()

    @operation("GET", "/ready", base="")
    def ready(self) -> Readiness:
        """Answer if every feed that should run does; else 503, with their names and states."""
        unready = [(feed.name, feed.status()) for feed in self._registry.unready()]
        if unready:
            said = [f"feed {name} is {one.state}: {one.detail or 'no reason'}" for name, one in unready]
            raise Problem(503, "; ".join(said))
        return Readiness()

    @operation("GET", "/metrics", base="", media="text/plain; version=0.0.4; charset=utf-8")
    def metrics(self) -> str:
        """Return the metrics of all feeds in Prometheus' text format."""
        return metrics_text([feed.status() for feed in self._registry.feeds()])

    @operation("GET", "/server")
    def server(self) -> ServerStatus:
        """Describe this process."""
        states: Counter[str] = Counter(feed.status().state for feed in self._registry.feeds())
        return ServerStatus(
            version=__version__,
            started=self._registry.started,
            memory_bytes=resident_bytes(),
            threads=threading.active_count(),
            quotas=Quotas(
                self._registry.memory.total_bytes,
                self._registry.memory.part_bytes,
                COMPUTE_THREADS,
                STARTING_FEEDS,
                MAX_STREAMS,
            ),
            feeds=dict(states),
        )

    @operation("GET", "/feeds")
    def list_feeds(self) -> FeedList:
        """List all feeds, by name."""
        return FeedList([feed.summary() for feed in self._registry.feeds()])

    @operation("POST", "/feeds", 201)
    def create_feed(self, body: Document, by: str) -> FeedSummary:
        """Create a feed and start it; the body is the document of a feed.toml as JSON."""
        return self._registry.create(body, by).summary()

    @operation("POST", "/rescan")
    def rescan(self, body: Empty, by: str) -> Rescanned:  # noqa: ARG002
        """Start the feeds of files that are new in the server's directory.

        Feeds whose files are gone or changed are named, and go on.
        """
        return self._registry.rescan(by)

    @operation("GET", "/feeds/{feed}")
    def get_feed(self, feed: str) -> FeedDetail:
        """Return a feed's status and options."""
        hosted = self._registry.feed(feed)
        return FeedDetail(hosted.summary(), hosted.status(), dict(hosted.document()))

    @operation("PUT", "/feeds/{feed}")
    def replace_feed(self, feed: str, body: Document, by: str) -> FeedSummary:
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
        managed = self._registry.managed(feed)
        managed.pause(by)
        return managed.summary()

    @operation("POST", "/feeds/{feed}/resume")
    def resume_feed(self, feed: str, body: Resume, by: str) -> FeedSummary:
        """Run a feed again from its checkpoint, also after a failure."""
        managed = self._registry.managed(feed)
        managed.resume(by, body.skip, body.reload)
        return managed.summary()

    @operation("GET", "/feeds/{feed}/tables")
    def list_tables(self, feed: str, query: TablesQuery) -> TableList:
        """List tables of a feed: those that are searched for, sorted, a page of them."""
        return listed(self._registry.feed(feed).tables(), query)

    @operation("POST", "/feeds/{feed}/tables/{table:path}/reload", 202)
    def reload_table(self, feed: str, table: str, body: Empty, by: str) -> Said:  # noqa: ARG002
        """Load a table again in all sinks, or with "*" all tables: now, or when the feed runs next."""
        self._registry.feed(feed).request_tables("reload", [table], by)
        return Said([f"{table} will be loaded again"])

    @operation("POST", "/feeds/{feed}/tables/{table:path}/pause", 202)
    def pause_table(self, feed: str, table: str, body: Empty, by: str) -> Said:  # noqa: ARG002
        """Apply nothing more of a table, while the others go on."""
        self._registry.feed(feed).request_tables("pause", [table], by)
        return Said([f"{table} is paused: its changes are skipped until it is resumed"])

    @operation("POST", "/feeds/{feed}/tables/{table:path}/resume", 202)
    def resume_table(self, feed: str, table: str, body: Empty, by: str) -> Said:  # noqa: ARG002
        """Load a paused or failed table again, and follow it from there."""
        self._registry.feed(feed).request_tables("resume", [table], by)
        return Said([f"{table} is loaded again, and followed from there"])

    @operation("GET", "/feeds/{feed}/tables/{table:path}")
    def get_table(self, feed: str, table: str) -> TableStatus:
        """Return the state of a table, by its full name."""
        status = self._registry.feed(feed).table(table)
        if status is None:
            raise Problem(404, f"feed {feed} doesn't follow a table {table!r}")
        return status

    @operation("GET", "/feeds/{feed}/sinks")
    def list_sinks(self, feed: str) -> SinkList:
        """List a feed's sinks."""
        return SinkList(self._registry.feed(feed).status().sinks)

    @operation("GET", "/feeds/{feed}/waits")
    def list_waits(self, feed: str) -> WaitList:
        """Explain why a feed is slow or stuck."""
        hosted = self._registry.feed(feed)
        waits = hosted.waits()
        return WaitList(hosted.explanation(), waits, [sentence(wait) for wait in waits])

    @operation("GET", "/feeds/{feed}/history")
    def list_history(self, feed: str, query: HistoryQuery) -> HistoryList:
        """List states, errors and operations of a feed, the newest first."""
        return HistoryList(self._registry.feed(feed).history.last(query.limit))
