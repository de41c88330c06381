"""The feeds of a process, by name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final

from .. import config
from ..actors import Clock, SystemClock, Workers
from ..compare.verification import verified_feed
from ..config.form import NAME
from ..engine.options import FeedOptions, feed_options
from ..engine.shared import Shared
from ..engine.status import RUNNING
from ..errors import ConfigError
from ..sorter.quota import MemoryQuota
from .files import FeedFiles
from .hosted import GivenFeed, HostedFeed
from .jobs import Comparisons
from .managed import ManagedFeed, Resources
from .model.feeds import Rescanned
from .problem import Problem

log = logging.getLogger("tidemill")

COMPUTE_THREADS: Final = 4
"""Threads that sort, merge and decode, for all feeds: one that waits for its disk doesn't stop the others."""
SORTER_BYTES: Final = 256 << 20
"""Default of the memory of all sorters."""
OBSERVE_SECONDS: Final = 0.5
"""Interval at which the states of feeds are looked at, for their histories."""
STARTING_FEEDS: Final = 4
"""Maximum number of feeds that start at the same time, ..."""
STARTING_SECONDS: Final = 2.0
"""... each counted for up to this time: a server that gives no answer doesn't hold up the others."""


class Registry:
    """Feeds that programs run, and those of a directory, which this class starts and stops. Any thread."""

    def __init__(
        self,
        feeds: Iterable[GivenFeed] = (),
        directory: Path | None = None,
        clock: Clock | None = None,
        *,
        sorter_bytes: int = SORTER_BYTES,
    ) -> None:
        """Without a directory, no feed can be created. `sorter_bytes` are for the sorters of all feeds of the
        directory. Raises ConfigError if two feeds have the same name."""
        self.clock: Clock = clock or SystemClock()
        self.started = self.clock.time()
        self._lock = Lock()
        self._feeds: dict[str, HostedFeed] = {}
        for feed in feeds:
            if feed.name in self._feeds:
                raise ConfigError(f"name: two feeds are called {feed.name!r}; each needs a name of its own")
            self._feeds[feed.name] = feed
        self.comparisons = Comparisons(self.clock)
        self._files = FeedFiles(directory) if directory is not None else None
        self._closing = Event()
        self._threads: list[Thread] = []
        self.memory = MemoryQuota(sorter_bytes)
        self._shared: Shared | None = None
        self._pool = ThreadPoolExecutor(STARTING_FEEDS, "tidemill-feeds")

    def start(self) -> None:
        """Start the feeds of the directory, a few at a time, and return at once. Raises ConfigError."""
        self._spawn(self._observe, "tidemill-observe")
        if self._files is None:
            return
        self._files.claim()
        self._shared = Shared(Workers("compute", COMPUTE_THREADS), self.memory)
        for path in self._files.misnamed():
            log.error("%s: a feed file's name is up to 64 letters, digits, - and _, and .toml", path)
        waiting = iter(self._add_new(self._files))
        for number in range(STARTING_FEEDS):
            self._spawn(lambda: self._start_each(waiting), f"tidemill-start-{number}")

    def close(self) -> None:
        """Stop all feeds of the directory, and wait for their ends. Safe to repeat."""
        self._closing.set()
        self.comparisons.close()
        managed = self._managed()
        for feed in managed:
            feed.close()
        for feed in managed:
            feed.wait()
        for thread in self._threads:
            thread.join()
        self._pool.shutdown()
        if self._shared is not None:
            self._shared.compute.close()
        if self._files is not None:
            self._files.release()

    def __enter__(self) -> Registry:
        self.start()
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.close()

    # --- feeds

    def feeds(self) -> list[HostedFeed]:
        """Return all feeds, by name."""
        with self._lock:
            return [feed for _, feed in sorted(self._feeds.items())]

    def feed(self, name: str) -> HostedFeed:
        """Raises Problem if there is none of this name."""
        with self._lock:
            hosted = self._feeds.get(name)
        if hosted is None:
            raise Problem(404, f"there is no feed {name!r}")
        return hosted

    def managed(self, name: str) -> ManagedFeed:
        """Return a feed that can be paused and the like. Raises Problem."""
        feed = self.feed(name)
        if not isinstance(feed, ManagedFeed):
            raise Problem(409, f"feed {name} is run by a program, which starts and stops it")
        return feed

    def create(self, document: Mapping[str, Any], by: str) -> ManagedFeed:
        """Store a new feed's document and start the feed. Raises Problem and TidemillError."""
        files = self._directory()
        name = self._checked(document)
        with self._lock:
            if name in self._feeds:
                raise Problem(409, f"there is a feed {name!r} already: PUT replaces its options", "name")
            feed = ManagedFeed(name, self._resources())
            self._feeds[name] = feed
        try:
            files.write(name, document)
        except BaseException:
            self._forget(name)
            raise
        feed.note("operation", "created", by)
        feed.begin()
        return feed

    def rescan(self, by: str) -> Rescanned:
        """Start the feeds of new files; name the files that are gone or changed. Raises Problem."""
        files = self._directory()
        new = self._add_new(files)
        for feed in new:
            feed.note("operation", "its file was found", by)
        self._pool.submit(self._start_each, iter(new))
        others = [feed for feed in self._managed() if feed not in new]
        return Rescanned(
            started=[feed.name for feed in new],
            changed=[feed.name for feed in others if feed.is_changed],
            gone=[feed.name for feed in others if feed.is_gone],
            misnamed=[path.name for path in files.misnamed()],
        )

    def replace(self, name: str, document: Mapping[str, Any], by: str) -> ManagedFeed:
        """Replace a feed's document. Raises Problem and TidemillError."""
        feed = self.managed(name)
        document = {"name": name, **document}
        if document["name"] != name:
            raise Problem(422, f"name: a feed can't be renamed; it is {name!r}", "name")
        document = feed.with_secrets(document)
        self._checked(document)
        feed.replace(document, by)
        return feed

    def options_of(self, document: Mapping[str, object]) -> FeedOptions:
        """Return the options of a document that needn't be stored. Raises ConfigError."""
        return feed_options(config.expand(document))

    def _checked(self, document: Mapping[str, object]) -> str:
        """Return the name of a feed with a valid document. Raises ConfigError."""
        assert self._files is not None
        name = document.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise ConfigError("name: missing, or not up to 64 letters, digits, - and _")
        options = feed_options(self._files.as_read(name, document))
        verified_feed(options, self.clock)
        return name

    def _directory(self) -> FeedFiles:
        """Return the files of the server's directory. Raises Problem if it has none."""
        if self._files is None:
            raise Problem(409, "this server has no directory of feeds: start one with `tidemill serve DIR`")
        return self._files

    def _add_new(self, files: FeedFiles) -> list[ManagedFeed]:
        """Add the feeds of files that aren't known, and return them; finish interrupted removals."""
        shared = self._resources()
        with self._lock:  # a feed that is being removed is known until its file is gone
            new = [ManagedFeed(name, shared) for name in files.names() if name not in self._feeds]
            staying = [feed for feed in new if not feed.is_leaving]
            self._feeds.update({feed.name: feed for feed in staying})
        for feed in new:
            if feed.is_leaving:
                feed.begin()
        return staying

    def _managed(self) -> list[ManagedFeed]:
        return [feed for feed in self.feeds() if isinstance(feed, ManagedFeed)]

    def _forget(self, name: str) -> None:
        self.comparisons.forget(name)
        with self._lock:
            self._feeds.pop(name, None)

    def _resources(self) -> Resources:
        assert self._files is not None
        assert self._shared is not None
        return Resources(self._files, self.clock, self._shared, self._pool.submit, self._forget)

    # --- threads

    def _spawn(self, run: Callable[[], None], name: str) -> None:
        thread = Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _start_each(self, waiting: Iterable[ManagedFeed]) -> None:
        while not self._closing.is_set():
            with self._lock:
                feed = next(iter(waiting), None)
            if feed is None:
                return
            feed.begin()
            until = self.clock.now() + STARTING_SECONDS
            while feed.status().state == "starting" and self.clock.now() < until:
                if self._closing.wait(0.02):
                    return

    def _observe(self) -> None:
        while not self._closing.wait(OBSERVE_SECONDS):
            for feed in self.feeds():
                feed.observe()

    def unready(self) -> list[HostedFeed]:
        """Return the feeds that should run and don't."""
        return [feed for feed in self.feeds() if feed.should_run and feed.status().state not in RUNNING]
