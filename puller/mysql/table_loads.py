"""Tables loaded beside the log: their rows are read in chunks and delivered between its transactions."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from queue import Empty
from typing import Final

from ... import failpoint
from ...actors import Runtime
from ...codec.mysql.entry import DDL, RESULT_ROWS, ChunkRows, GoneTable, NewTable, encode_statement
from ...codec.mysql.layout import Layouts
from ...codec.mysql.position import Position
from ...events import Chunk, OrderedKey, SnapshotProgress, progress_of
from ...snapshot.mysql.tables import SourceTable
from ..puller import SnapshotReport
from .binlog import BinlogDecoder
from .chunk_reader import ChunkRead, ChunkReaders, ReadChunk, place
from .load_progress import LoadProgress
from .log_watch import LogWatch
from .options import MysqlOptions
from .transactions import Transactions
from .unneeded import Unneeded

MAX_CHUNK_BYTES: Final = 8 << 20
"""A chunk ends once it has this size."""
MAX_WATCHED_BYTES: Final = 32 << 20
"""Maximum size of logged changes that are kept while chunks are read."""
PAUSE_BYTES: Final = 4 << 20
"""Size of these changes at which the log waits for the chunks, if it has passed their ends."""
MAX_FAILURES: Final = 5
"""Number of chunks in a row that couldn't be used, after which a table is loaded while the log waits."""
_MAX_READ: Final = 2  # chunks of a table that wait to be delivered, while a further one is read


class _Load:
    """One table's state."""

    def __init__(self, name: tuple[str, str], after: OrderedKey) -> None:
        self.name = name
        self.full_name = ".".join(name)
        self.after = after
        """The key up to which chunks were read."""
        self.attempt = 0
        self.failures = 0
        self.known: SourceTable | None = None
        self.is_reading = False
        self.is_read = False
        """True if the last chunk was read."""
        self.is_given_up = False
        self.begun = 0
        """Number of the changes that the log had when the current chunk was asked for."""
        self.row_bytes = 0
        """Average size of the rows of the last chunk."""
        self.read: deque[ChunkRead] = deque()
        """Chunks to be delivered."""


class TableLoads:
    """Loads tables while the log is followed. Used by the log reader's thread.

    A chunk is read in a view of its own, while the log goes on. It is delivered at a later position, together
    with the table's changes that were logged since before the view began: the mounter lets their row images
    replace the chunk's. So its rows are exact as of the position where it is delivered.
    """

    def __init__(
        self,
        options: MysqlOptions,
        names: Sequence[tuple[str, str]],
        loading: SnapshotProgress,
        transactions: Transactions,
        layouts: Layouts,
        decoder: BinlogDecoder,
        end: Position,
        progress: LoadProgress,
        watch: LogWatch,
        planned: Mapping[tuple[str, str], SourceTable],
        runtime: Runtime,
        unneeded: Unneeded,
    ) -> None:
        """`loading` and `progress` are updated. Chunks are read, and the load ends, once the log reader is at
        `end`. `watch` is that of `transactions`. `planned` has definitions that tables had before. `runtime`
        has the readers' threads. `unneeded` learns which loads begin."""
        self.undivided: list[tuple[str, str]] = []
        """Tables that must be loaded while the log waits."""
        self._loading = loading
        self._out = transactions
        self._layouts = layouts
        self._decoder = decoder
        self._chunk_rows = options.chunk_rows
        self._most_active = options.snapshot_workers
        self._end = place(end)
        self._waiting = deque(names)
        self._active: dict[tuple[str, str], _Load] = {}
        self._progress = progress
        self._planned = planned
        self._watch = watch
        self._unneeded = unneeded
        watch.clear()
        watch.move(decoder.position)
        self._readers = ChunkReaders(options, watch, MAX_CHUNK_BYTES, runtime)

    def close(self) -> None:
        self._readers.close()
        self._watch.clear()

    @property
    def is_done(self) -> bool:
        is_read = not (self._waiting or self._active) and self._decoder.is_between
        return is_read and place(self._decoder.position) >= self._end

    @property
    def is_full(self) -> bool:
        """True if the log should wait for the chunks that are read."""
        if self._watch.bytes < PAUSE_BYTES or not self._decoder.is_between:
            return False
        here = place(self._decoder.position)
        return any(load.is_reading or load.read for load in self._active.values()) and all(
            place(chunk.end) <= here for load in self._active.values() for chunk in load.read
        )

    def step(self, wait_seconds: float = 0.0) -> None:
        """Take the chunks that were read, deliver those whose position is reached, and have further ones
        read. Raises the readers' errors."""
        self._take(wait_seconds)
        if self._decoder.is_between:
            self._watch.move(self._decoder.position)
            self._deliver()
            self._read_on()
            self._forget()

    def between(self) -> None:
        """Deliver the chunks whose position is reached; called after each logged transaction."""
        if any(load.read for load in self._active.values()) and self._decoder.is_between:
            self._deliver()

    def _take(self, wait_seconds: float) -> None:
        try:
            while True:
                result = self._readers.results.get(wait_seconds > 0, wait_seconds or None)
                wait_seconds = 0.0
                if isinstance(result, BaseException):
                    raise result
                self._note(result)
        except Empty:
            return

    def _note(self, chunk: ChunkRead) -> None:
        load = self._active[chunk.task.name]
        load.is_reading = False
        if load.is_given_up:
            self._end_load(load)
            return
        if chunk.task.attempt != load.attempt:
            return
        if chunk.source is not None and not chunk.has_key:
            self._leave_undivided(load)
        elif chunk.source is not None and chunk.loaded is None:
            self._again(load)
        else:
            failpoint.reach("snapshot.chunk_read")
            load.read.append(chunk)
            load.known = chunk.source
            load.row_bytes = chunk.bytes // max(1, chunk.rows)
            load.is_read = chunk.loaded is None or chunk.loaded.last is None
            if chunk.loaded is not None and chunk.loaded.last is not None:
                load.after = chunk.loaded.last

    def _again(self, load: _Load) -> None:
        """Read a table again after its last delivered chunk."""
        load.attempt += 1
        load.failures += 1
        load.read.clear()
        load.known = None
        load.is_read = False
        load.after = self._delivered(load)
        if load.failures >= MAX_FAILURES:
            self._leave_undivided(load)

    def _leave_undivided(self, load: _Load) -> None:
        self.undivided.append(load.name)
        load.is_given_up = True
        load.read.clear()
        if not load.is_reading:
            self._end_load(load)

    def _end_load(self, load: _Load) -> None:
        del self._active[load.name]
        self._watch.remove(load.name)

    def _delivered(self, load: _Load) -> OrderedKey:
        have = progress_of(self._loading, load.full_name)
        return () if have is None else have.last or ()

    # --- reading

    def _read_on(self) -> None:
        if place(self._decoder.position) < self._end:
            return
        while self._waiting and len(self._active) < self._most_active:
            name = self._waiting.popleft()
            load = self._active[name] = _Load(name, ())
            load.after = self._delivered(load)
            load.known = self._planned.get(name)
            self._watch.add(name)
            self._unneeded.load_begins(name)
        for load in self._active.values():
            if not (load.is_reading or load.is_read or load.is_given_up) and len(load.read) < _MAX_READ:
                load.is_reading = True
                load.begun = self._watch.mark.kept
                rows = min(self._chunk_rows, MAX_CHUNK_BYTES // max(1, load.row_bytes))
                self._readers.read(ReadChunk(load.name, load.attempt, load.after, max(1, rows), load.known))

    def _forget(self) -> None:
        """Drop the logged changes that no chunk needs."""
        marks = [load.begun for load in self._active.values() if load.is_reading]
        marks += [chunk.mark.kept for load in self._active.values() for chunk in load.read]
        self._watch.forget(min(marks, default=self._watch.mark.kept))

    # --- delivering

    def _deliver(self) -> None:
        """Deliver the chunks whose end the log has reached."""
        here = place(self._decoder.position)
        for load in list(self._active.values()):
            while load.read and place(load.read[0].end) <= here:
                if not self._is_delivered(load, load.read.popleft()):
                    self._again(load)
            if load.is_read and not load.read:
                self._progress.complete(load.full_name)
                self._end_load(load)

    def _is_delivered(self, load: _Load, chunk: ChunkRead) -> bool:
        """Deliver a chunk; return False if it must be read again."""
        entries = self._watch.since(chunk.mark.kept, load.name)
        if entries is None:
            return False
        with self._watch.paused():
            if chunk.source is None:
                self._begin_and_add(encode_statement(GoneTable(*load.name)))
                self._commit()
            else:
                assert chunk.loaded is not None
                if progress_of(self._loading, load.full_name) is None:
                    self._begin_and_add(encode_statement(NewTable(chunk.source.known)))
                    self._commit()
                    self._progress.set(load.full_name, 0)
                self._begin_and_add(encode_statement(ChunkRows(*load.name, chunk.task.after)))
                for entry in entries:
                    self._out.add(entry.kind, entry.value, entry.layout)
                layout = self._layouts.add_table(chunk.source.table)
                for packets in chunk.packets:
                    self._out.add(RESULT_ROWS, packets, layout)
                self._commit(Chunk(load.full_name, chunk.loaded, chunk.task.after))
                self._loading[load.full_name] = chunk.loaded
        self._progress.add(load.full_name, chunk.rows)
        load.failures = 0
        return True

    def _begin_and_add(self, statement: bytes) -> None:
        self._out.begin()
        self._out.add(DDL, statement)

    def _commit(self, chunk: Chunk | None = None) -> None:
        self._out.commit(str(self._decoder.position), chunk)

    def report(self) -> SnapshotReport | None:
        """Return the progress if it has changed since the last call."""
        table = next((load.full_name for load in self._active.values()), "")
        return self._progress.report_change(table) if table else None
