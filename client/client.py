"""The client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..errors import ConfigError
from ..server.model.comparisons import DiffJob, DiffJobs, DiffRequest, JobStarted
from ..server.model.feeds import (
    Empty,
    FeedDetail,
    FeedEvent,
    FeedList,
    FeedSummary,
    HistoryEntry,
    HistoryList,
    Rescanned,
    Resume,
    ServerStatus,
    SinkList,
    WaitList,
)
from ..server.model.tables import TableList, TablesQuery, TableStatus
from ..server.model.targets import (
    CheckFinding,
    Discarded,
    FindingList,
    LetterChoice,
    LetterList,
    LettersRetried,
    LockList,
    Said,
    Unlock,
)
from .connection import Connection, path_of

SLOW_SECONDS = 120.0
"""Timeout of requests for which the server connects to databases."""


class Client:
    """The API of one server. Any thread; nothing needs to be closed.

    Methods raise Refused with the server's reason, and Retryable if it can't be reached.
    """

    def __init__(
        self, url: str, token: str = "", *, timeout_seconds: float = 60.0, ca_file: str | Path | None = None
    ) -> None:
        """`url` is as "http://127.0.0.1:8300", or that of the mounted application. `ca_file` is a PEM file of
        the CA that signed the server's certificate. Raises ConfigError."""
        ca = Path(ca_file) if ca_file is not None else None
        self._connection = Connection(url, token, timeout_seconds, ca)

    def server(self) -> ServerStatus:
        return self._connection.call(ServerStatus, "GET", path_of("server"))

    # --- feeds

    def feeds(self) -> list[FeedSummary]:
        """Return all feeds, by name."""
        return self._connection.call(FeedList, "GET", path_of("feeds")).feeds

    def feed(self, name: str) -> FeedDetail:
        return self._connection.call(FeedDetail, "GET", path_of("feeds", name))

    def only_feed(self, name: str = "") -> str:
        """Return the name, or that of the server's only feed. Raises ConfigError if there are several."""
        if name:
            return name
        names = [feed.name for feed in self.feeds()]
        if len(names) != 1:
            raise ConfigError(f"--feed: name one of the server's feeds: {', '.join(names) or 'it has none'}")
        return names[0]

    def create(self, document: Mapping[str, Any]) -> FeedSummary:
        """Create a feed; `document` is as a feed.toml, with its name."""
        return self._connection.call(FeedSummary, "POST", path_of("feeds"), body=document)

    def rescan(self) -> Rescanned:
        """Start the feeds of files that are new in the server's directory."""
        return self._connection.call(Rescanned, "POST", path_of("rescan"))

    def replace(self, name: str, document: Mapping[str, Any]) -> FeedSummary:
        """Replace a feed's options; values that are "***" as in `feed` keep the stored secrets."""
        return self._connection.call(FeedSummary, "PUT", path_of("feeds", name), body=document)

    def delete(self, name: str, *, data: bool = False) -> None:
        """Stop a feed and forget it; with `data`, remove its data directory too."""
        self._connection.call(Empty, "DELETE", path_of("feeds", name), {"data": data})

    def pause(self, name: str) -> FeedSummary:
        return self._connection.call(FeedSummary, "POST", path_of("feeds", name, "pause"))

    def resume(self, name: str, skip: Sequence[str] = (), reload: Sequence[str] = ()) -> FeedSummary:
        """Run a feed again; skip schema changes at these positions, and load tables again."""
        body = Resume(tuple(skip), tuple(reload))
        return self._connection.call(FeedSummary, "POST", path_of("feeds", name, "resume"), body=body)

    def sinks(self, name: str) -> SinkList:
        return self._connection.call(SinkList, "GET", path_of("feeds", name, "sinks"))

    def waits(self, name: str) -> WaitList:
        return self._connection.call(WaitList, "GET", path_of("feeds", name, "waits"))

    def history(self, name: str, limit: int = 100) -> list[HistoryEntry]:
        """Return states, errors and operations, the newest first."""
        path = path_of("feeds", name, "history")
        return self._connection.call(HistoryList, "GET", path, {"limit": limit}).history

    # --- tables

    def tables(self, feed: str, query: TablesQuery | None = None) -> TableList:
        shown = msgspec.to_builtins(query or TablesQuery())
        return self._connection.call(TableList, "GET", path_of("feeds", feed, "tables"), shown)

    def table(self, feed: str, name: str) -> TableStatus:
        return self._connection.call(TableStatus, "GET", path_of("feeds", feed, "tables", name))

    def pause_table(self, feed: str, name: str) -> list[str]:
        return self._of_table(feed, name, "pause")

    def resume_table(self, feed: str, name: str) -> list[str]:
        return self._of_table(feed, name, "resume")

    def reload_table(self, feed: str, name: str) -> list[str]:
        """Load a table again, or with "*" all; return sentences that say what happens."""
        return self._of_table(feed, name, "reload")

    def _of_table(self, feed: str, name: str, verb: str) -> list[str]:
        return self._connection.call(Said, "POST", path_of("feeds", feed, "tables", name, verb)).sentences

    # --- locks, dead letters, comparisons

    def check(self, document: Mapping[str, Any]) -> list[CheckFinding]:
        """Check connections, privileges and settings of a feed that needn't exist."""
        path = path_of("check")
        return self._connection.call(FindingList, "POST", path, body=document, timeout=SLOW_SECONDS).findings

    def locks(self, feed: str) -> LockList:
        return self._connection.call(LockList, "GET", path_of("feeds", feed, "locks"))

    def unlock(
        self,
        feed: str,
        lock: str,
        *,
        owner: str = "",
        action: Literal["exec", "skip"] = "exec",
        force_remove: str = "",
        dry_run: bool = False,
    ) -> list[str]:
        """Resolve a schema change that waits for other shards; return sentences that say what happens."""
        body = Unlock(owner, action, force_remove, dry_run)
        return self._connection.call(
            Said, "POST", path_of("feeds", feed, "locks", lock, "unlock"), body=body
        ).sentences

    def dead_letters(self, feed: str, sink: str = "", limit: int = 100) -> LetterList:
        query = {"limit": limit, **({"sink": sink} if sink else {})}
        path = path_of("feeds", feed, "dead-letters")
        return self._connection.call(LetterList, "GET", path, query, timeout=SLOW_SECONDS)

    def discard_dead_letters(self, feed: str, choice: LetterChoice) -> Discarded:
        path = path_of("feeds", feed, "dead-letters", "discard")
        return self._connection.call(Discarded, "POST", path, body=choice, timeout=SLOW_SECONDS)

    def retry_dead_letters(self, feed: str, choice: LetterChoice) -> LettersRetried:
        path = path_of("feeds", feed, "dead-letters", "retry")
        return self._connection.call(LettersRetried, "POST", path, body=choice, timeout=SLOW_SECONDS)

    def start_diff(self, feed: str, request: DiffRequest | None = None) -> str:
        """Start a comparison; return its number."""
        body = request or DiffRequest()
        return self._connection.call(JobStarted, "POST", path_of("feeds", feed, "diff"), body=body).job

    def diffs(self, feed: str) -> list[DiffJob]:
        return self._connection.call(DiffJobs, "GET", path_of("feeds", feed, "diff")).jobs

    def diff(self, feed: str, job: str) -> DiffJob:
        return self._connection.call(DiffJob, "GET", path_of("feeds", feed, "diff", job))

    def stop_diff(self, feed: str, job: str) -> DiffJob:
        return self._connection.call(DiffJob, "DELETE", path_of("feeds", feed, "diff", job))

    # --- events

    def events(self, feed: str = "") -> Iterator[FeedList | FeedEvent]:
        """Yield the list of feeds whenever it has changed, at most about once a second.

        With `feed`, its status is yielded too. Ends if the server does.
        """
        query = {"feed": feed} if feed else {}
        for name, data in self._connection.events(path_of("events"), query):
            match name:
                case "feeds":
                    yield msgspec.json.decode(data, type=FeedList)
                case "feed":
                    yield msgspec.json.decode(data, type=FeedEvent)
