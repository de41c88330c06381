"""Feeds of a server: one that a program runs, and one that the server starts and stops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from threading import Condition, Lock
from typing import Any, ClassVar

from ..actors import Clock
from ..engine.feed import Feed
from ..engine.options import FeedOptions
from ..engine.progress import explanation
from ..engine.status import RUNNING, FeedStatus
from ..events import Wait
from .history import History
from .model.feeds import EntryKind, FeedSummary, HistoryEntry, SinkSummary
from .model.tables import TableStatus
from .problem import Problem


class HostedFeed(ABC):
    """One feed of a server. Any thread."""

    is_managed: ClassVar[bool]
    """True if the server starts and stops it."""

    def __init__(self, name: str, clock: Clock, history: History) -> None:
        self.name = name
        self.history = history
        self._clock = clock
        self._said: tuple[str, str] | None = None  # last state and detail in the history
        self._since = clock.time()
        self._observing = Lock()
        self.changed = Condition()
        """Notified when the feed has started, ended, or been forgotten."""

    @property
    @abstractmethod
    def feed(self) -> Feed | None:
        """The feed that runs or has run last; None if there is none."""

    @abstractmethod
    def status(self) -> FeedStatus: ...

    @abstractmethod
    def options(self) -> FeedOptions:
        """Raises ConfigError."""

    @abstractmethod
    def document(self) -> Mapping[str, Any]:
        """Return the feed's document, each secret as "***"."""

    @property
    @abstractmethod
    def should_run(self) -> bool:
        """True unless users paused the feed, or it is finished."""

    def running(self) -> Feed:
        """Return the feed while it runs. Raises Problem."""
        feed = self.feed
        state = self.status().state
        if feed is None or state not in RUNNING:
            raise Problem(409, f"feed {self.name} is {state}: resume it first")
        return feed

    def tables(self) -> list[TableStatus]:
        status = self.status()
        loading = status.snapshot
        if loading is None or not loading.table:
            return []
        return [
            TableStatus(
                name=loading.table,
                state="loading",
                since=status.started,
                position=status.position,
                ts=0,
                lag_seconds=None,
                inserts=0,
                updates=0,
                deletes=0,
                error="",
                rows_loaded=loading.rows,
                rows_estimated=loading.rows_estimated,
            )
        ]

    def waits(self) -> list[Wait]:
        feed = self.feed
        return feed.explain() if feed is not None and self.status().state in RUNNING else []

    def explanation(self) -> list[str]:
        return explanation(self.status(), self.waits())

    def summary(self) -> FeedSummary:
        self.observe()
        return summary_of(self.status(), self._since, managed=self.is_managed)

    def observe(self) -> None:
        """Add the state to the history if it has changed; called twice a second, and when it is shown."""
        with self._observing:
            self._observe(self.status())

    def _observe(self, status: FeedStatus) -> None:
        # A warning's detail counts the seconds to the next attempt: only a failure's is part of the change.
        said = (status.state, status.detail if status.state == "failed" else "")
        if said == self._said:
            return
        if self._said is None or status.state != self._said[0]:
            self._since = self._clock.time()
        self._said = said
        kind: EntryKind = "error" if status.state in ("failed", "warning") else "state"
        self.note(kind, f"{status.state}: {status.detail}" if status.detail else status.state)

    def note(self, kind: EntryKind, text: str, by: str = "") -> None:
        self.history.add(HistoryEntry(self._clock.time(), kind, text, by))


class GivenFeed(HostedFeed):
    """A feed whose life is a program's: it can be looked at, and its tables can be asked for things."""

    is_managed = False

    def __init__(self, feed: Feed, document: Mapping[str, Any], clock: Clock) -> None:
        super().__init__(feed.options.name, clock, History())
        self._feed = feed
        self._document = document

    @property
    def feed(self) -> Feed:
        return self._feed

    def status(self) -> FeedStatus:
        return self._feed.status()

    def options(self) -> FeedOptions:
        return self._feed.options

    def document(self) -> Mapping[str, Any]:
        return self._document

    @property
    def should_run(self) -> bool:
        return self.status().state not in ("finished", "stopped")


def summary_of(status: FeedStatus, since: float, *, managed: bool) -> FeedSummary:
    """Return the summary of a feed that is in its state since this time, in Unix seconds."""
    lags = [sink.lag_seconds for sink in status.sinks if sink.lag_seconds is not None]
    return FeedSummary(
        name=status.name,
        state=status.state,
        detail=status.detail,
        source=status.source,
        sinks=[SinkSummary(sink.name, sink.target, sink.lag_seconds) for sink in status.sinks],
        lag=max(lags, default=None),
        rows=status.rows,
        rows_per_second=status.rows_per_second,
        table_states={},
        since=since,
        managed=managed,
    )
