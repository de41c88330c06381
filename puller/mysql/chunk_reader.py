"""Connections that read chunks of tables, each in a thread and in a short consistent view of its own."""

from __future__ import annotations

from functools import partial
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ...actors import Queue, Runtime
from ...codec.mysql.position import Position
from ...dialects.mysql.client import Session, Unavailable, connect, disconnect, is_mariadb, query, translated
from ...dialects.mysql.key_range import chunk_query, is_key_of
from ...dialects.mysql.result import Result
from ...errors import Retryable
from ...events import KeyRange, OrderedKey, TableProgress
from ...snapshot.mysql.definitions import read_table
from ...snapshot.mysql.packet_keys import PacketKeys
from ...snapshot.mysql.tables import FoundTable, SourceTable
from ...snapshot.mysql.view import BEGIN, begin_view, current_end, hold, prepare
from .log_watch import LogWatch, Mark
from .options import MysqlOptions
from .stop_signal import StopSignal

_WAIT: Final = "SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %s)"
_STOP_SECONDS: Final = 2.0
_VISIBLE_SECONDS: Final = 0.2


class ReadChunk(Struct, frozen=True):
    """Read the rows of a table that follow the key `after`."""

    name: tuple[str, str]
    attempt: int
    """Chunks of the same attempt continue each other."""
    after: OrderedKey
    limit: int
    known: SourceTable | None = None
    """The table's definition as it was last read."""


class ChunkRead(Struct):
    """The answer to a ReadChunk."""

    task: ReadChunk
    mark: Mark
    """A position of the log up to which the rows certainly have all changes."""
    end: Position
    """A position of the log after all changes that the rows have."""
    source: SourceTable | None
    """The table's definition; None if the table doesn't exist."""
    has_key: bool = True
    """False if the table has no key by which chunks can be read: then there are no rows here."""
    packets: list[bytes] = []
    rows: int = 0
    bytes: int = 0
    loaded: TableProgress | None = None
    """The table's progress after the rows; None if the definition changed meanwhile."""


Found: TypeAlias = ChunkRead | BaseException


class ChunkReaders:
    """Threads that carry out tasks. After an error, which `results` has, its thread has ended."""

    def __init__(self, options: MysqlOptions, watch: LogWatch, max_bytes: int, runtime: Runtime) -> None:
        self.results: Queue[Found] = runtime.queue()
        self._tasks: Queue[ReadChunk | None] = runtime.queue()
        self._readers = [_ChunkReader(options, watch, max_bytes) for _ in range(options.snapshot_workers)]
        self._threads = [
            runtime.start(f"tidemill-chunks-{number}", partial(reader.run, self._tasks, self.results))
            for number, reader in enumerate(self._readers)
        ]

    def read(self, task: ReadChunk) -> None:
        self._tasks.put(task)

    def close(self) -> None:
        """Stop all threads, also those that wait for an answer; their connections are closed."""
        for reader in self._readers:
            reader.stop.set()
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join(_STOP_SECONDS)


class _ChunkReader:
    def __init__(self, options: MysqlOptions, watch: LogWatch, max_bytes: int) -> None:
        self.stop: Final = StopSignal()
        self._options = options
        self._watch = watch
        self._max_bytes = max_bytes
        self._session: Session | None = None

    def run(self, tasks: Queue[ReadChunk | None], results: Queue[Found]) -> None:
        try:
            while (task := tasks.get()) is not None and not self.stop.is_set:
                with translated(self._options):
                    results.put(self._chunk(task))
        except BaseException as error:  # any error ends the load
            results.put(error)
        finally:
            self._disconnect()

    def _connected(self) -> Session:
        if self._session is None:
            self._session = session = connect(self._options)
            self.stop.watch(session)
            if self.stop.is_set:
                raise _stopped()
            prepare(session)
        return self._session

    def _disconnect(self) -> None:
        if self._session is not None:
            disconnect(self._session)
            self._session = None

    def _chunk(self, task: ReadChunk) -> ChunkRead:
        session = self._connected()
        mark = self._watch.mark
        source = task.known or self._read_table(session, task)
        if source is None:
            return self._gone(session, task, mark)
        if not source.has_chunks:
            return ChunkRead(task, mark, mark.position, source, has_key=False)
        if task.after and not is_key_of(source.table, task.after):
            # Each target that has rows of the former definition will load the table again.
            task = replace(task, after=())
        chunk = ChunkRead(task, mark, self._begin(session, mark), source)
        try:
            with translated(self._options):
                self._read(session, chunk)
        except Unavailable:
            raise
        except Retryable:  # the table was altered since the view began
            chunk.loaded = None
            self._disconnect()
        return chunk

    def _read_table(self, session: Session, task: ReadChunk) -> SourceTable | None:
        copies_generated = self._options.copies_generated
        return read_table(session, FoundTable(*task.name), copies_generated=copies_generated)

    def _read(self, session: Session, chunk: ChunkRead) -> None:
        """Read the rows, unless the definition is another one by now."""
        assert chunk.source is not None
        if hold(session, chunk.source, copies_generated=self._options.copies_generated):
            self._read_rows(session, chunk)
        if self._session is not None:
            query(session, "ROLLBACK")

    def _gone(self, session: Session, task: ReadChunk, mark: Mark) -> ChunkRead:
        """Return that a table doesn't exist, if it doesn't once everything up to the mark is visible."""
        self._begin(session, mark)
        source = self._read_table(session, task)
        query(session, "ROLLBACK")
        end = current_end(session)
        query(session, "ROLLBACK")
        return ChunkRead(task, mark, end, source)

    def _begin(self, session: Session, mark: Mark) -> Position:
        """Begin a view that has everything up to the mark; return a position that has everything of the
        view."""
        gtid = mark.position.gtid
        if is_mariadb(session):
            while not self.stop.is_set:
                end = begin_view(session)
                if place(end) >= place(mark.position):  # what the log has becomes visible a moment later
                    return end
                query(session, "ROLLBACK")
        elif not gtid:
            return begin_view(session)
        else:
            while not self.stop.is_set:
                if not query(session, _WAIT, gtid, _VISIBLE_SECONDS)[0][0]:
                    query(session, BEGIN)
                    return current_end(session)
        raise _stopped()

    def _read_rows(self, session: Session, chunk: ChunkRead) -> None:
        task, source = chunk.task, chunk.source
        assert source is not None
        table = source.table
        query_text = chunk_query(table, KeyRange(task.after), task.limit)
        result = Result(session, self._options, table, query_text)
        while not result.done and chunk.bytes < self._max_bytes and not self.stop.is_set:
            if packets := result.read():
                chunk.packets.append(packets)
                chunk.bytes += len(packets)
        chunk.rows = result.rows
        if not result.done:
            self._disconnect()  # the rest would have to be received
        if result.done and result.rows < task.limit:
            chunk.loaded = TableProgress()
        elif result.rows:
            chunk.loaded = TableProgress(PacketKeys(table).first(result.last_row))


def _stopped() -> Retryable:
    return Retryable("the load is stopped")


def place(position: Position) -> tuple[int, int]:
    """Return a sort key of the positions of one server."""
    rank = position.rank
    return rank.number, rank.offset
