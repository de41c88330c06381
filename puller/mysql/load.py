"""A snapshot as changes: each table's definition and its rows in chunks, then the end of it all."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeAlias

from ... import failpoint
from ...codec.mysql.entry import (
    COMMIT,
    DDL,
    TEXT_ROWS,
    VOID,
    Commit,
    NewTable,
    encode_commit,
    encode_statement,
    entry_key,
)  # fmt: skip
from ...codec.mysql.layout import Layouts
from ...errors import Retryable
from ...events import PUT, Changes, Chunk, KvChange, Loaded, Loading, Table
from ..puller import SnapshotProgress
from .options import MysqlOptions
from .packets import text_values
from .position import CommitClock
from .snapshot import Snapshot, has_integer_key

Steps: TypeAlias = Generator[Changes | SnapshotProgress | None, None, None]

WHOLE: Final = Loaded()
_PROGRESS_ROWS: Final = 20_000


class Loader:
    """Makes the transactions that load the tables of a snapshot.

    `loading` says what is loaded already and is kept up to date with what was made, so that another
    Loader can go on with another snapshot. When the connection is lost within a transaction of which
    a part was handed out, a VOID takes it back.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        loading: Loading,
        clock: CommitClock,
        layouts: Layouts,
        options: MysqlOptions,
    ) -> None:
        self._snapshot = snapshot
        self._loading = loading
        self._clock = clock
        self._layouts = layouts
        self._options = options
        self._rows = 0
        self._tables_done = 0
        # The open transaction:
        self._number = 0  # of its last change
        self._handed = 0  # of its last change that was handed out
        self._changes: list[KvChange] = []
        self._bytes = 0

    def steps(self) -> Steps:
        """Raises Retryable where a new snapshot is needed, SourceError where a person is."""
        for source in self._snapshot.tables:
            table = source.table
            if self._loading.get(table.full_name) == WHOLE:
                self._rows += source.rows_estimated
            else:
                yield self._progress(table.full_name)
                self._snapshot.hold(source)
                try:
                    yield from self._load(table)
                except Retryable:
                    if self._handed:
                        yield self._take_back()
                    raise
                self._snapshot.let_go()
            self._tables_done += 1
        yield self._commit(Chunk(""))
        yield self._progress("")

    def _load(self, table: Table) -> Steps:
        name = table.full_name
        loaded = self._loading.get(name)
        if loaded is None:
            self._add(DDL, encode_statement(NewTable(table)))
            yield self._commit()
        limit = self._options.chunk_rows if has_integer_key(table) else None
        while loaded != WHOLE:
            loaded = yield from self._read_chunk(table, loaded, limit)
            failpoint.reach("snapshot.chunk_read")
            self._loading[name] = loaded
            yield self._commit(Chunk(name, loaded))

    def _read_chunk(
        self, table: Table, loaded: Loaded | None, limit: int | None
    ) -> Generator[Changes | SnapshotProgress | None, None, Loaded]:
        """What is loaded with this chunk's rows."""
        layout = self._layouts.add_table(table)
        result = self._snapshot.select(table, loaded.last if loaded else None, limit)
        told = 0
        while not result.done:
            if packets := result.read():
                self._add(TEXT_ROWS, packets, layout)
            yield self._take_part()
            if result.rows - told >= _PROGRESS_ROWS:
                self._rows += result.rows - told
                told = result.rows
                yield self._progress(table.full_name)
        self._rows += result.rows - told
        if limit is None or result.rows < limit:
            return WHOLE
        values = text_values(result.last_row)
        return Loaded(tuple(int(values[i] or 0) for i in table.key))

    # --- the open transaction --------------------------------------------------------------------

    def _add(self, kind: int, value: bytes, layout: int = 0) -> None:
        self._number += 1
        self._append(self._number, kind, value, layout)

    def _append(self, number: int, kind: int, value: bytes, layout: int = 0) -> None:
        ts = self._clock.next(0)
        self._changes.append(KvChange(ts, ts, PUT, entry_key(number, kind), value, b"", layout))
        self._bytes += len(value)

    def _take_part(self) -> Changes | None:
        """What was added, once that is much."""
        if self._bytes <= self._options.max_batch_bytes:
            return None
        self._handed = self._number
        return self._hand_out()

    def _commit(self, chunk: Chunk | None = None) -> Changes:
        self._add(COMMIT, encode_commit(Commit(str(self._snapshot.position), chunk)))
        self._clock.last = self._clock.next(0)
        self._number = self._handed = 0
        return self._hand_out()

    def _take_back(self) -> Changes:
        self._changes.clear()
        self._append(0, VOID, b"")
        self._number = self._handed
        return self._commit()

    def _hand_out(self) -> Changes:
        changes, self._changes = self._changes, []
        self._bytes = 0
        return Changes(changes, self._clock.last)

    def _progress(self, table: str) -> SnapshotProgress:
        tables = self._snapshot.tables
        return SnapshotProgress(
            table=table,
            rows=self._rows,
            rows_estimated=max(self._rows, sum(source.rows_estimated for source in tables)),
            tables_done=self._tables_done,
            tables=len(tables),
        )
