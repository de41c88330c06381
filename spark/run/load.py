"""Loading the existing rows into a feed's sinks before their queries start.

A backfill loads them in Spark tasks. The local engine loads them in the driver if the backfill can't, if the
local engine has begun a snapshot, and if the feed has no snapshot and only follows its source.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from ...engine.failures import pause_seconds
from ...engine.feed import Feed
from ...engine.patterns import keep_patterns, reject_changes
from ...engine.progress import Progress
from ...errors import ConfigError, Retryable
from ...events import Checkpoint
from ...sink import SinkFactory
from ..backfill.backfilled import Backfilled, opened
from ..backfill.directory import BackfillDirectory
from ..backfill.errors import NotLoadable
from ..backfill.fill import BackfillStopped, fill
from ..backfill.fill_status import FillStatus
from ..backfill.run import directory_of
from ..sections import SparkFeedOptions
from .start import Start, check_partitions, find_start, is_loaded, reject_parked, take_over

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("tidemill")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Brings all sinks of a feed to the starts of their queries."""

    spark: SparkSession
    options: SparkFeedOptions
    sinks: Mapping[str, SinkFactory]
    """Sinks by name, not open."""
    progress: Progress
    stopping: Event
    rows: dict[str, int] = field(default_factory=dict)
    """Number of rows written before by sink, in this run or an earlier one."""

    def starts(self) -> dict[str, Start]:
        """Load the sinks and return the starts of their queries; none if stopped. Raises as feeds do."""
        known = {name: find_start(sink) for name, sink in self.sinks.items()}
        check_partitions(known, self.options.spark.partitions)
        reject_parked(known)
        if any(map(_position, known.values())):
            reject_changes(self.options, "Spark reads its tables only together")
        keep_patterns(self.options)
        begun = {name: at for name, at in known.items() if isinstance(at, Start)}
        fresh = [name for name in self.sinks if name not in begun]
        self._load({name: known[name] for name in fresh if not is_loaded(known[name])})
        if self.stopping.is_set():
            return {}
        self._forget_files([_position(find_start(self.sinks[name])) for name in fresh])
        return begun | {name: take_over(self.sinks[name], self.options.spark.partitions) for name in fresh}

    def _load(self, lacking: Mapping[str, Start | Checkpoint | None]) -> None:
        by_spark = [name for name, at in lacking.items() if self._is_for_spark(name, at)]
        if by_spark and not self._by_spark(by_spark):
            by_spark = []
        by_local = [name for name in lacking if name not in by_spark]
        if by_local and not self.stopping.is_set():
            self._by_local(by_local)

    # --- by Spark

    @property
    def _directory(self) -> Path:
        return directory_of(self.options)

    def _is_for_spark(self, name: str, at: Start | Checkpoint | None) -> bool:
        if not self.options.source.options.loads:
            return False
        if not _position(at):
            return True  # no snapshot has begun
        done = _finished(self._directory)
        if done is not None and done.offset.position == _position(at):
            return True
        log.warning("sink %s is in the middle of a snapshot of the local engine, which continues it", name)
        return False

    def _by_spark(self, names: Sequence[str]) -> bool:
        """True if Spark loaded the sinks, or if the load was stopped."""
        sinks = [self.sinks[name] for name in names]
        failures = 0
        with FillStatus(self.spark, self.options, sinks, self.progress, self.stopping) as status:
            while not self.stopping.is_set():
                try:
                    self._fill(sinks, status)
                    break
                except BackfillStopped:
                    break
                except NotLoadable as error:
                    log.warning("loaded by the local engine, not by Spark: %s", error)
                    BackfillDirectory(self._directory).remove()
                    return False
                except Retryable as error:
                    failures += 1
                    pause = max(error.wait or 0.0, pause_seconds(failures))
                    status.waits(f"{error}; trying again in {pause:.1f} s")
                    self.stopping.wait(pause)
        return True

    def _fill(self, sinks: Sequence[SinkFactory], status: FillStatus) -> None:
        # No retries inside: the caller waits, and can be stopped.
        settings = self.options.spark.backfill
        done = fill(self.spark, self.options, sinks, self._directory, settings, status, 0.0)
        self.rows.update({sink.name: done.rows for sink in sinks})

    def _forget_files(self, positions: Sequence[str]) -> None:
        """Remove the files of a finished backfill that loaded sinks to one of the positions."""
        done = _finished(self._directory)
        if done is not None and not done.is_kept and done.offset.position in positions:
            done.remove()

    # --- by the local engine

    def _by_local(self, names: Sequence[str]) -> None:
        """Run a local feed up to `until`, or up to the source's present end."""
        options = replace(self.options, until=self.options.until or "now")
        feed = Feed(options, [self.sinks[name] for name in names])
        feed.run(self.stopping, self.progress.show)
        if feed.error is not None:
            raise feed.error
        self.rows.update({sink.name: sink.rows for sink in feed.status().sinks})


def _position(at: Start | Checkpoint | None) -> str:
    match at:
        case Start(offset):
            return offset.position
        case Checkpoint(position=position):
            return position
    return ""


def _finished(directory: Path) -> Backfilled | None:
    with suppress(ConfigError):  # no backfill there
        return opened(directory)
    return None
