"""A sink that writes Parquet files by table and date (docs/parquet.md describes a file)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import NoReturn

import pyarrow as pa

from ...actors import Alarm, Clock, SystemClock
from ...errors import InvariantViolated, SinkError
from ...events import Batch, Checkpoint
from ...failpoint import reach
from ...store.disk import sync
from ..sink import CheckpointStore, Sink, SinkTraits
from .names import HIDDEN, check_unused
from .options import ParquetOptions
from .parquet_directory import NEW, Making, discard, publish
from .parquet_format import ChangeBatches
from .parquet_journal import Segment, batches, journal_name, segments


class ParquetSink(Sink):
    """Makes rows durable as Parquet files, and those that wait for more in a journal.

    Exactly once: the checkpoint contains the journal's length, to which it is truncated after a crash. Files
    replace a segment of the journal. They may contain further rows, which lengthen the journal as if they had
    been in it, and count if the checkpoint contains that length.
    """

    traits = SinkTraits(is_pipelined=True)

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
        self._next_journal = -math.inf
        """Time from which rows that aren't durable go to the journal."""
        self._error: SinkError | None = None
        self._segment: Segment | None = None
        self._rows: list[tuple[bytes, pa.RecordBatch]] = []
        """Batches that are neither durable nor in `_making`, with their schemas."""
        self._bytes = 0
        """Their size."""
        self._making: Making | None = None
        """Files of the segment and of a transaction that has yet to end."""
        self._made_bytes = 0
        """Size of the rows in `_making` that aren't in the segment."""
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
            raise SinkError(f"can't open {self._directory}: {_reason(error)}") from error
        return self._durable

    def write(self, batch: Batch) -> None:
        with self._lock:
            if self._is_empty():
                self._due = self._clock.now() + self._options.flush_seconds
            for made in self._batches.of(batch.items):
                self._rows.append((made.schema, made.rows))
                self._bytes += made.rows.nbytes
            self._reached = batch.checkpoint
            if batch.checkpoint is None and self._is_full():
                with self._failing():
                    self._make()

    def flush(self) -> Checkpoint | None:
        with self._lock:
            return self._flush()

    def progress(self) -> Checkpoint | None:
        """Make rows durable if there are enough for files, or if `journal_seconds` are over."""
        with self._lock:
            is_due = self._is_full() or self._clock.now() >= min(self._due, self._next_journal)
            return self._flush() if is_due else self._durable

    def _flush(self) -> Checkpoint | None:
        reached = self._reached
        if self._segment is None or reached is None or reached == self._durable:
            return self._durable
        with self._failing():
            if self._is_full() or self._clock.now() >= self._due:
                self._roll(reached)
            else:
                self._journal(reached)
            self._wake_later()
        self._next_journal = self._clock.now() + self._options.journal_seconds
        return reached

    def has_table(self, schema: str, table: str) -> bool:  # noqa: ARG002
        return True  # not known from a stream of changes

    def close(self) -> None:
        """Convert all acknowledged rows to files."""
        with self._lock:
            segment = self._segment
            if segment is None:
                return
            if self._making is not None:
                self._making.discard()
            self._drop_rows()
            try:
                segment.cut(self._durable_end)
                self._roll(None)
            except OSError as error:
                raise SinkError(
                    f"can't write {self._directory}: {_reason(error)}; acknowledged rows wait in its "
                    "journal, and the next start writes their files"
                ) from error
            finally:
                self._let_go()

    # --- what a crash left

    def _begin(self) -> None:
        """Create the directory, or use an empty one: existing files without a checkpoint aren't ours."""
        self._directory.mkdir(exist_ok=True)
        check_unused(self._directory, [path.name for path in self._directory.iterdir()])
        discard(self._hidden)
        self._hidden.mkdir()
        sync(self._directory)

    def _recover(self) -> None:
        if not self._hidden.is_dir():
            self._lost()
        for path in self._hidden.glob(f"[0-9]*{NEW}"):
            discard(path)
        for path in sorted(self._hidden.glob("[0-9]*")):
            if int(path.name.partition("-")[2]) <= self._durable_end:
                self._finish(path)
            else:
                discard(path)
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
        """Publish the files in `made`, and replace the segment that they contain by a new one."""
        start, _, end = made.name.partition("-")
        Segment(self._hidden, int(end)).close()
        sync(self._hidden)
        publish(made, self._directory)
        (self._hidden / journal_name(int(start))).unlink(missing_ok=True)
        discard(made)
        sync(self._hidden)

    # --- rows

    def _is_empty(self) -> bool:
        return self._opened().is_empty and not self._rows and self._making is None

    def _is_full(self) -> bool:
        """Return True if the rows are enough for files."""
        segment = self._segment
        if segment is None:
            return False
        return (
            self._making is not None or segment.end - segment.start + self._bytes >= self._options.file_bytes
        )

    def _journal(self, reached: Checkpoint) -> None:
        """Append the rows to the journal."""
        segment = self._opened()
        for schema, rows in self._rows:
            segment.append(schema, rows)
        segment.sync()
        self._commit(reached, segment.end)
        self._drop_rows()

    def _commit(self, reached: Checkpoint, end: int) -> None:
        reach("sink.before_commit")
        self._store.save(reached, end)
        self._durable, self._durable_end = reached, end
        reach("sink.committed")

    def _drop_rows(self) -> None:
        self._rows, self._bytes, self._making, self._made_bytes = [], 0, None, 0

    # --- files

    def _make(self) -> Making:
        """Write the rows to files that don't count yet, after those of the segment."""
        segment, rows = self._opened(), self._rows
        if self._making is None:
            making = Making(self._hidden, f"{segment.start:020}")
            making.write(chain(batches(segment.path), rows), self._options.file_bytes)
        else:
            making = self._making
            making.write(rows, self._options.file_bytes)
        self._made_bytes += self._bytes
        self._rows, self._bytes, self._making = [], 0, making
        return making

    def _roll(self, reached: Checkpoint | None) -> None:
        """Convert the segment and the rows to Parquet files, and begin a new segment.

        Without a checkpoint there are only acknowledged rows.
        """
        segment = self._opened()
        if self._is_empty():
            if reached is not None:
                self._commit(reached, segment.end)
            return
        making = self._make()
        end = segment.end + self._made_bytes
        made = making.commit(f"{segment.start:020}-{end:020}")
        if reached is not None:
            self._commit(reached, end)
        self._finish(made)
        segment.close()
        self._segment = Segment(self._hidden, end)
        self._drop_rows()
        self._sleep()

    def _wake_later(self) -> None:
        if self._alarm is None and not self._opened().is_empty:
            self._alarm = self._clock.call_at(self._due, self._wake)

    def _wake(self) -> None:
        """Convert acknowledged rows on a timer, as no new rows may come for a long time."""
        with self._lock:
            segment = self._segment
            self._alarm = None
            if segment is None or self._error is not None or self._rows or self._making is not None:
                return  # the next flush does it
            try:
                if self._clock.now() >= self._due:
                    self._roll(None)
            except OSError as error:
                self._error = SinkError(f"can't write {self._directory}: {_reason(error)}")
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
            self._let_go()
            raise self._error
        if self._segment is None:
            raise InvariantViolated(f"{self.target} is written while it is closed")
        return self._segment

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Let go of the archive if its disk fails."""
        try:
            yield
        except OSError as error:
            self._let_go()
            raise SinkError(f"can't write {self._directory}: {_reason(error)}") from error

    def _let_go(self) -> None:
        self._sleep()
        segment, self._segment = self._segment, None
        if segment is not None:
            with suppress(OSError):
                segment.close()


def _reason(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename is not None else ""
    return f"{error.strerror}{where}"
