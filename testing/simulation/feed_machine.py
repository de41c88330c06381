"""A simulated machine that runs a feed from the emulated source into the simulated target."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from ...engine.feed import Feed
from ...engine.options import FeedOptions
from ...errors import TidemillError
from ...sink import SinkFactory
from .disk import Disk, lose
from .machine import Machine
from .plan import PAUSE, RELOAD, RESUME
from .scheduler import Scheduler
from .target import TargetServer
from .upstream import Upstream

UNSYNCED: Final = ("status.json", "status.tmp", "tables.json", "tables.tmp")
"""Files of a data directory that are written without a sync."""
LOCKS: Final = ("feed.lock", "tidemill.lock")


def _release_locks(directory: Path) -> None:
    """Close the lock files below a directory."""
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            path = descriptor.readlink()
            if path.name in LOCKS and path.is_relative_to(directory):
                os.close(int(descriptor.name))


class FeedMachine(Machine):
    """A machine with a feed, from its start to its end or a kill."""

    def __init__(
        self,
        number: int,
        options: FeedOptions,
        scheduler: Scheduler,
        target: TargetServer,
        forgives: Callable[[TidemillError], bool],
        upstream: Upstream,
        disk: Disk,
    ) -> None:
        """`forgives` is called with the feed's error if it ends with one; True: the machine is started
        again."""
        super().__init__(f"machine {number}", scheduler)
        self._options = options
        self._target = target
        self._forgives = forgives
        self._open_source = partial(upstream.open_on, self)
        self._disk = disk
        self.feed: Feed | None = None
        self.has_ended = False

    @property
    def data_dir(self) -> Path:
        return self._options.data_dir

    @property
    def definitions(self) -> list[Path]:
        """The files with definitions of a binlog's tables."""
        return sorted(self.data_dir.glob("*.catalog"))

    def remove_named_in(self, error: TidemillError) -> None:
        """Do as an error says about a damaged file: remove it."""
        for path in self.definitions:
            if str(path) in str(error):
                path.unlink()

    @property
    def left(self) -> Path:
        """The data directory after a kill."""
        return self.data_dir.with_suffix(".left")

    def run(self) -> None:
        """Start the feed; in a fiber of the machine."""
        self.feed = Feed(
            self._options,
            [SinkFactory(partial(self._target.new_sink, self, self._options.name))],
            runtime=self,
            open_source=self._open_source,
        )
        self.feed.start(self._ended)

    def _ended(self) -> None:
        """The feed has ended, in an orderly way or by an error."""
        if not self.is_dead:
            error = self.feed.error if self.feed is not None else None
            self.has_ended = error is None or not self._forgives(error)

    def request(self, word: str, random: Random, note: Callable[[str, str], None]) -> None:
        """Request something about one of the feed's tables."""
        feed = self.feed
        names = [] if feed is None else [table.name for table in feed.tables()]
        if feed is not None and names:
            requests = {RELOAD: feed.reload_table, PAUSE: feed.pause_table, RESUME: feed.resume_table}
            try:
                requests[word](random.choice(names))
            except TidemillError as error:  # it is being loaded, or was dropped
                note("fault", f"no {word}: {error}")

    def resume_all(self) -> None:
        """Resume the tables that are paused."""
        if (feed := self.feed) is not None:
            for table in feed.tables():
                if table.state == "paused":
                    with suppress(TidemillError):  # it was resumed, or dropped
                        feed.resume_table(table.name)

    def killed(self) -> None:
        """Keep the disk as it is: what isn't synced may be lost, or torn."""
        if self.data_dir.exists():
            shutil.copytree(self.data_dir, self.left, ignore=shutil.ignore_patterns("scratch*"))
            for name in UNSYNCED:
                lose(self.left / name, self.scheduler.random)
            self._disk.crash(self.data_dir, self.left, self.scheduler.random)

    def buried(self) -> None:
        """Release what the system releases when a process ends."""
        super().buried()
        _release_locks(self.data_dir)
