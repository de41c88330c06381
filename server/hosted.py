"""Feeds of a server: one that a program runs, and one that the server starts and stops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from threading import Condition, Lock
from typing import Any, ClassVar, Final

from ..actors import Clock
from ..engine.condition import condition_of
from ..engine.feed import Feed
from ..engine.opening import open_sinks
from ..engine.options import FeedOptions
from ..engine.progress import explanation
from ..engine.status import RUNNING, FeedStatus
from ..engine.table_verbs import TableVerb, request_tables
from ..engine.tables import TablesFile, TableStatus
from ..errors import CheckpointError
from ..events import REST, Wait
from .history import History
from .model.feeds import EntryKind, FeedSummary, HistoryEntry, SinkSummary
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
        """Return the feed's tables, by name; those of its last run if it doesn't run. Raises ConfigError."""
        feed = self.feed
        if feed is not None:
            return feed.tables()
        try:
            return TablesFile(self.options().data_dir).load()
        except CheckpointError:
            return []

    def table(self, name: str) -> TableStatus | None:
        """Return a table by its full name; None if the feed doesn't know it. Raises ConfigError."""
        feed = self.feed
        if feed is not None:
            return feed.table(name)
        return next((one for one in self.tables() if one.name == name), None)

    def request_tables(self, verb: TableVerb, names: Collection[str], by: str) -> None:
        """Store a request about tables, for now, or for when the feed runs next. Raises ConfigError."""
        options = self.options()
        known = {one.name: one for one in self.tables()}
        request_tables(verb, names, options, open_sinks(options), self._clock, known)
        for name in names:
            self.note("operation", f"{'all tables' if name == REST else name}: {_SAID[verb]}", by)

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


_SAID: Final[Mapping[TableVerb, str]] = {"pause": "paused", "resume": "resumed", "reload": "loaded again"}


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
        condition=condition_of(status),
        detail=status.detail,
        source=status.source,
        sinks=[SinkSummary(sink.name, sink.target, sink.lag_seconds) for sink in status.sinks],
        lag=max(lags, default=None),
        rows=status.rows,
        rows_per_second=status.rows_per_second,
        table_states=status.table_states,
        since=since,
        managed=managed,
    )
