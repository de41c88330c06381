"""A sink that writes Parquet files by table and date (docs/parquet.md describes a file)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NoReturn

from ...actors import Alarm, Clock, SystemClock
from ...errors import InvariantViolated, SinkError
from ...events import Batch, Checkpoint, Item
from ...failpoint import reach
from ...store.disk import sync
from ..sink import CheckpointStore
from .names import HIDDEN
from .options import ParquetOptions
from .parquet_batches import ChangeBatches
from .parquet_directory import NEW, commit, discard, publish, write_files
from .parquet_journal import Segment, batches, journal_name, segments


class ParquetSink:
    """Appends to a journal, and converts its segments to Parquet files.

    Exactly once: the checkpoint contains the journal's length, to which it is truncated after a crash. A
    segment is converted as a whole: its files replace it by one rename.
    """

    reads_rows = False

    def __init__(
        self,
        name: str,
        directory: Path,
        store: CheckpointStore,
        options: ParquetOptions | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self.target = f"parquet:{directory.absolute().resolve()}"
        self._directory = directory
        self._hidden = directory / HIDDEN
        self._store = store
        self._options = options or ParquetOptions()
        self._clock = clock or SystemClock()
        self._lock = Lock()  # the timer runs in another thread
        self._alarm: Alarm | None = None
        self._due = math.inf
        self._error: SinkError | None = None
        self._segment: Segment | None = None
        self._durable: Checkpoint | None = None
        self._durable_end = 0
        self._reached: Checkpoint | None = None
        self._batches = ChangeBatches()

    # --- the protocol

    def open(self) -> Checkpoint | None:
        stored = self._store.load()
        self._durable, self._durable_end = stored or (None, 0)
        self._reached, self._error = None, None
        self._batches.start()
        try:
            if stored is None:
                self._begin()
            self._recover()
        except OSError as error:
            raise SinkError(f"can't open {self._directory}: {error.strerror}") from error
        return self._durable

    def write(self, batch: Batch) -> None:
        with self._lock:
            segment = self._writable()
            try:
                self._append(segment, batch.items)
            except OSError as error:
                self._fail(error)
            self._reached = batch.checkpoint

    def flush(self) -> Checkpoint | None:
        with self._lock:
            reached = self._reached
            if self._segment is None or reached is None or reached == self._durable:
                return self._durable
            try:
                self._commit(reached)
            except OSError as error:
                self._fail(error)
            return reached

    def _commit(self, reached: Checkpoint) -> None:
        segment = self._opened()
        segment.sync()
        reach("sink.before_commit")
        self._store.save(reached, segment.end)
        self._durable, self._durable_end = reached, segment.end
        reach("sink.committed")
        self._roll_if_due()

    def has_table(self, schema: str, table: str) -> bool:  # noqa: ARG002
        return True  # not known from a stream of changes

    def close(self) -> None:
        """Convert all acknowledged rows to files."""
        with self._lock:
            segment = self._segment
            if segment is None:
                return
            with suppress(OSError, SinkError):  # the rows stay in the journal
                segment.cut(self._durable_end)
                self._roll()
            self._let_go()

    # --- what a crash left

    def _begin(self) -> None:
        """Create the directory, or use an empty one: existing files without a checkpoint aren't ours."""
        self._directory.mkdir(exist_ok=True)
        strangers = [path.name for path in self._directory.iterdir() if path.name != HIDDEN]
        if strangers:
            raise SinkError(
                f"{self._directory} holds {min(strangers)} already: empty it, or name another directory"
            )
        discard(self._hidden)
        self._hidden.mkdir()
        sync(self._directory)

    def _recover(self) -> None:
        if not self._hidden.is_dir():
            self._lost()
        for path in self._hidden.glob(f"[0-9]*{NEW}"):
            discard(path)
        for path in sorted(self._hidden.glob("[0-9]*")):
            self._finish(path)
        starts = [start for start in segments(self._hidden) if start <= self._durable_end]
        start = starts[-1] if starts else self._durable_end
        segment = Segment(self._hidden, start)
        if segment.end < self._durable_end or (self._durable_end and not starts):
            segment.close()
            self._lost()
        segment.cut(self._durable_end)
        self._segment = segment
        sync(self._hidden)  # else a new one might be missing after a power failure
        self._due = self._clock.now() + self._options.flush_seconds
        self._wake_later()

    def _lost(self) -> NoReturn:
        raise SinkError(
            f"{self._directory} has less than its checkpoint says: put back the whole archive, or "
            "remove it and its checkpoint to begin again"
        )

    def _finish(self, made: Path) -> None:
        """Publish the files in `made`, which replace a segment, and remove the segment."""
        old = self._hidden / journal_name(int(made.name))
        if old.exists():  # it ends where the next one begins
            Segment(self._hidden, int(made.name) + old.stat().st_size).close()
            sync(self._hidden)
        publish(made, self._directory)
        old.unlink(missing_ok=True)
        discard(made)
        sync(self._hidden)

    # --- rows

    def _writable(self) -> Segment:
        segment = self._opened()
        if segment.is_empty:
            self._due = self._clock.now() + self._options.flush_seconds
        return segment

    def _append(self, segment: Segment, items: Sequence[Item]) -> None:
        for made in self._batches.of(items):
            segment.append(made.rows, made.schema)

    # --- files

    def _roll_if_due(self) -> None:
        segment = self._opened()
        if segment.end - segment.start >= self._options.file_bytes or self._clock.now() >= self._due:
            self._roll()
        self._wake_later()

    def _roll(self) -> None:
        """Convert the segment, whose rows are all acknowledged, to Parquet files, and begin a new one."""
        segment = self._opened()
        if segment.is_empty:
            return
        making = self._hidden / f"{segment.start:020}{NEW}"
        making.mkdir()
        write_files(making, batches(segment.path), self._options.file_bytes)
        self._finish(commit(making))
        segment.close()
        self._segment = Segment(self._hidden, segment.end)
        self._sleep()

    def _wake_later(self) -> None:
        if self._alarm is None and not self._opened().is_empty:
            self._alarm = self._clock.call_at(self._due, self._wake)

    def _wake(self) -> None:
        """Convert acknowledged rows on a timer, as no new rows may come for a long time."""
        with self._lock:
            segment = self._segment
            self._alarm = None
            if segment is None or self._error is not None or segment.end != self._durable_end:
                return  # the next flush does it if rows are unacknowledged
            try:
                self._roll_if_due()
            except OSError as error:
                self._error = SinkError(f"can't write {self._directory}: {error.strerror}")
            except SinkError as error:
                self._error = error

    def _sleep(self) -> None:
        self._due = math.inf
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    # --- ends

    def _opened(self) -> Segment:
        if self._error is not None:
            raise self._error
        if self._segment is None:
            raise InvariantViolated(f"{self.target} is written while it is closed")
        return self._segment

    def _fail(self, error: OSError) -> NoReturn:
        self._let_go()
        raise SinkError(f"can't write {self._directory}: {error.strerror}") from error

    def _let_go(self) -> None:
        self._sleep()
        segment, self._segment = self._segment, None
        if segment is not None:
            with suppress(OSError):
                segment.close()
