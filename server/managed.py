"""A feed that the server starts and stops, as its file and its users say."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..actors import Clock
from ..compare.verification import verified_feed
from ..config.secrets import masked, unmasked
from ..engine.feed import Feed
from ..engine.options import FeedOptions, feed_options
from ..engine.requests import RequestFile
from ..engine.shared import Shared
from ..engine.status import RUNNING, FeedStatus, State, StatusFile, first_status
from ..errors import CheckpointError, ConfigError, TidemillError
from ..failpoint import reach
from .files import FeedFiles, FeedIntent
from .history import History
from .hosted import HostedFeed
from .problem import Problem

log = logging.getLogger("tidemill")

SETTLE_SECONDS = 15.0
"""Maximum time for which a request waits until the feed is as it asked for; the rest happens afterwards."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Things that all feeds of a server share."""

    files: FeedFiles
    clock: Clock
    engine: Shared
    submit: Callable[[Callable[[], None]], object]
    """Run a function soon, in one of the server's threads."""
    forget: Callable[[str], None]
    """Take a removed feed from the registry."""


class ManagedFeed(HostedFeed):
    """Wishes of users are stored before anything is done, and are settled step by step: `_settle` does the
    next step, and each step's end calls it again. So an operation is never lost, and the last one wins."""

    is_managed = True

    def __init__(self, name: str, resources: Resources) -> None:
        super().__init__(name, resources.clock, History(resources.files.history_path(name)))
        self._shared = resources
        self._files = resources.files
        self._feed: Feed | None = None
        self._written: Mapping[str, Any] = {}  # the document by which `_feed` runs
        self._ended = True  # True if `_feed` has ended, its threads too
        self._is_outdated = False  # True if `_feed` is to be started again from its file
        self._closing = False  # True if the server ends: then no feed is started
        self._intent = FeedIntent()
        self._is_removed = False
        try:
            self._intent = self._files.intent(name)
            self._status = self._resting("starting" if self._intent.intention == "running" else "stopped")
        except TidemillError as error:
            self._intent = FeedIntent("paused")  # nothing runs of which it isn't known that it should
            self._status = self._resting("failed", str(error))

    # --- its state

    @property
    def feed(self) -> Feed | None:
        return self._feed

    @property
    def should_run(self) -> bool:
        return self._intent.intention == "running" and self.status().state != "finished"

    def status(self) -> FeedStatus:
        feed, resting = self._feed, self._status
        return resting if feed is None else feed.status()

    @property
    def is_gone(self) -> bool:
        """True if its file isn't there any more."""
        return not self._files.path(self.name).exists()

    @property
    def is_changed(self) -> bool:
        """True if it runs by other options than those in its file."""
        if self._ended or self.is_gone:
            return False
        try:
            return self._files.read(self.name, expanded=False) != self._written
        except ConfigError:
            return True

    def document(self) -> Mapping[str, Any]:
        try:
            return masked(FeedOptions, self._files.read(self.name, expanded=False))
        except ConfigError:
            return {}  # its state has the error

    def with_secrets(self, document: Mapping[str, object]) -> dict[str, object]:
        """Return a document whose "***" are the stored secrets. Raises ConfigError."""
        try:
            stored = self._files.read(self.name, expanded=False)
        except ConfigError:
            stored = {}
        return unmasked(FeedOptions, document, stored)

    def _resting(self, state: State, detail: str = "") -> FeedStatus:
        """Return the status of a feed that doesn't run, with its last positions, if any."""
        first = first_status(self.name, "", [], state=state, now=self._clock.time())
        try:
            document = self._files.read(self.name, expanded=False)
            last = StatusFile(Path(document["data_dir"])).load()
        except (CheckpointError, ConfigError, TypeError):
            return replace(first, detail=detail)
        sinks = [replace(sink, state="stopped", detail="") for sink in last.sinks]
        return replace(
            last, name=self.name, state=first.state, detail=detail, sinks=sinks, waits=[], pid=first.pid
        )

    # --- operations: each stores what is wanted, and returns once it is so, or after SETTLE_SECONDS

    @property
    def is_leaving(self) -> bool:
        """True if its removal was interrupted."""
        return self._intent.intention == "removed"

    def begin(self) -> None:
        """Do what is wanted, at the server's start."""
        if self._status.state != "failed":
            self._settle()

    def pause(self, by: str) -> None:
        """Raises TidemillError."""
        with self.changed:
            self._reject_removed()
            self._files.set_intent(self.name, FeedIntent("paused"))
            self._intent = FeedIntent("paused")
            self._is_outdated = self._ended  # a failed feed is stopped, too
            self.note("operation", "paused", by)
        self._settle_within(SETTLE_SECONDS, lambda: self._ended)

    def resume(self, by: str, skip: tuple[str, ...] = (), reload: tuple[str, ...] = ()) -> None:
        """Run the feed again, also after a failure; skip schema changes and load tables again, if any.

        Raises TidemillError and Problem.
        """
        with self.changed:
            self._reject_removed()
            if skip and self.status().state in RUNNING:
                raise Problem(409, f"feed {self.name} runs: pause it, then resume it with `skip`", "skip")
            if reload:
                self.request_tables("reload", reload, by)
            if skip:
                RequestFile(self.options().data_dir).add(skip=skip)
            self._files.set_intent(self.name, FeedIntent())
            self._intent = FeedIntent()
            self._is_outdated = self.status().state not in RUNNING
            self.note("operation", "resumed", by)
        self._settle_within(SETTLE_SECONDS, lambda: not self._is_outdated)

    def replace(self, document: Mapping[str, Any], by: str) -> None:
        """Store another document; a running feed restarts from its checkpoint. Raises TidemillError."""
        with self.changed:
            self._reject_removed()
            self._files.write(self.name, document)
            self._is_outdated = True
            self.note("operation", "options replaced", by)
        paused = self._intent.intention == "paused"
        self._settle_within(SETTLE_SECONDS, lambda: paused or not self._is_outdated)

    def remove(self, by: str, *, removes_data: bool) -> bool:
        """Stop the feed and forget it; return True if that is done. Raises TidemillError and Problem."""
        with self.changed:
            if removes_data:
                self._check_removable()
            intent = FeedIntent("removed", removes_data or self._intent.removes_data)
            self._files.set_intent(self.name, intent)
            self._intent = intent
            self.note("operation", "removed with its data" if removes_data else "removed", by)
        return self._settle_within(SETTLE_SECONDS, lambda: self._is_removed)

    def close(self) -> None:
        """Stop the feed, as the server ends; what users want stays."""
        with self.changed:
            self._closing = True
            if self._feed is not None:
                self._feed.stop()

    def wait(self) -> None:
        """Wait until a stopped feed has ended."""
        feed = self._feed
        if feed is not None:
            feed.wait()

    def _reject_removed(self) -> None:
        if self._intent.intention == "removed":
            raise Problem(404, f"there is no feed {self.name!r}")

    def _check_removable(self) -> None:
        """Raise Problem unless the data directory is the server's own."""
        try:
            written = self._files.read(self.name, expanded=True)["data_dir"]
        except ConfigError:
            return  # the directory of the server, if there is one
        if Path(written).resolve() != self._files.data_dir(self.name).resolve():
            raise Problem(
                409, f"data_dir {written} lies outside of the server's directory: remove it yourself", "data"
            )

    # --- settling

    def _settle_within(self, seconds: float, is_so: Callable[[], bool]) -> bool:
        self._settle()
        with self.changed:
            return self.changed.wait_for(is_so, seconds)

    def _settle(self) -> None:
        """Do the next step towards what is wanted. Any thread."""
        with self.changed:
            if not self._ended:
                if self._intent.intention != "running" or self._is_outdated:
                    assert self._feed is not None
                    self._feed.stop()
                return
            match self._intent.intention:
                case "removed":
                    self._remove()
                case "running" if not self._closing and (self._feed is None or self._is_outdated):
                    self._start()
                case "paused" if self._feed is None or self._is_outdated:
                    self._feed, self._is_outdated = None, False
                    self._status = self._resting("stopped")
            self.changed.notify_all()

    def _remove(self) -> None:
        self.history.end()
        try:
            self._files.remove(self.name, removes_data=self._intent.removes_data)
        except TidemillError as error:
            self._fail(error)
            return
        self._is_removed = True
        self._shared.forget(self.name)

    def options(self) -> FeedOptions:
        """Raises ConfigError."""
        return feed_options(self._files.read(self.name, expanded=True))

    def _start(self) -> None:
        self._is_outdated = False
        try:
            self._written = self._files.read(self.name, expanded=False)
            options = self.options()
            feed = verified_feed(options, self._clock, shared=self._shared.engine)
            feed.start(on_end=lambda: self._shared.submit(self._leave))
        except TidemillError as error:
            self._fail(error)
            return
        except Exception as error:  # of a package that adds a kind: the other feeds run
            log.exception("feed %s", self.name)
            self._fail(TidemillError(f"{type(error).__name__}: {error}"))
            return
        self._feed, self._ended = feed, False
        reach("server.started")

    def _leave(self) -> None:
        """Note the end of the feed."""
        feed = self._feed
        assert feed is not None
        feed.wait()  # its last status is saved, and its directory free
        with self.changed:
            self._ended = True
            self.changed.notify_all()
        self._settle()

    def _fail(self, error: TidemillError) -> None:
        self._feed = None
        self._status = self._resting("failed", str(error))
        log.error("feed %s: %s", self.name, error)
        self.changed.notify_all()
