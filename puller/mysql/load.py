"""A snapshot as changes: each table's definition, its rows in chunks, then the end of the snapshot."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeAlias

from msgspec.structs import replace

from ... import failpoint
from ...codec.mysql.entry import DDL, RESULT_ROWS, Definitions, GoneTable, NewTable, encode_statement
from ...codec.mysql.layout import Layouts
from ...dialects.mysql.key_range import chunk_query, is_key_of
from ...errors import Retryable
from ...events import (
    CREATED,
    REST,
    WHOLE,
    Changes,
    Chunk,
    KeyRange,
    SnapshotProgress,
    Table,
    TableProgress,
    progress_of,
)
from ...snapshot.mysql.packet_keys import PacketKeys
from ...snapshot.mysql.tables import SourceTable
from ..puller import SnapshotReport
from .load_progress import LoadProgress
from .snapshot import Snapshot
from .transactions import Transactions

Step: TypeAlias = Changes | SnapshotReport | None

_PROGRESS_ROWS: Final = 20_000


class Loader:
    """Makes the transactions that load the tables of a snapshot.

    `loading` is the snapshot progress. It is updated with each step, so that another Loader can continue with
    another snapshot.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        loading: SnapshotProgress,
        transactions: Transactions,
        layouts: Layouts,
        chunk_rows: int,
        progress: LoadProgress,
        only: str = "",
    ) -> None:
        """`progress` is updated, too. With `only`, the snapshot is of the table of that full name, and others
        are loaded elsewhere."""
        self._snapshot = snapshot
        self._definitions: Definitions | None = None if REST in loading else snapshot.definitions
        self._position = str(snapshot.position)
        self._loading = loading
        self._out = transactions
        self._layouts = layouts
        self._chunk_rows = chunk_rows
        self._progress = progress
        self._only = only

    def steps(self) -> Generator[Step, None, None]:
        """Yield the changes. Raises Retryable if a new snapshot is needed, SourceError if a person must
        act."""
        yield from self._drop_gone()
        for source in self._snapshot.tables:
            name = source.table.full_name
            if progress_of(self._loading, name) != WHOLE:
                self._snapshot.hold(source)
                self._count_loaded(source)
                yield self._progress.report(name)
                yield from self._load(source)
                self._snapshot.let_go()
                self._progress.complete(name)
        if self._only:
            return
        self._begin()
        yield self._commit(Chunk(""))
        yield self._progress.report("")

    def _drop_gone(self) -> Generator[Step, None, None]:
        """Drop the copies of tables that were to be loaded again and that the source doesn't have any
        more."""
        present = {source.table.full_name for source in self._snapshot.tables}
        for name, loaded in self._loading.items():
            if loaded.stale and name not in present and self._only in ("", name):
                self._begin()
                self._out.add(DDL, encode_statement(GoneTable(*name.split(".", 1))))
                yield self._commit()

    def _begin(self) -> None:
        """Begin a transaction; the first one contains the server's defaults."""
        self._out.begin()
        if self._definitions is not None:
            self._out.add(DDL, encode_statement(replace(self._definitions, loading=True)))
            self._definitions = None

    def _count_loaded(self, source: SourceTable) -> None:
        """Count the rows of a table that were loaded before."""
        name = source.table.full_name
        loaded = progress_of(self._loading, name)
        rows = self._snapshot.rows_up_to(source, loaded.last) if loaded is not None and loaded.last else 0
        self._progress.set(name, rows)

    def _load(self, source: SourceTable) -> Generator[Step, None, None]:
        table = source.table
        name = table.full_name
        loaded = progress_of(self._loading, name)
        if loaded is None:
            self._begin()
            self._out.add(DDL, encode_statement(NewTable(source.known)))
            yield self._commit()
        limit = self._chunk_rows if source.has_chunks else None
        if limit is not None and loaded is not None and loaded.last and not is_key_of(table, loaded.last):
            loaded = CREATED  # each target that has rows of the former definition will load the table again
        while loaded != WHOLE:
            self._begin()
            try:
                loaded = yield from self._read_chunk(table, loaded, limit)
            except Retryable:
                self._out.abandon(self._position)
                yield self._out.take(self._position)
                raise
            failpoint.reach("snapshot.chunk_read")
            self._loading[name] = loaded
            yield self._commit(Chunk(name, loaded))

    def _read_chunk(
        self, table: Table, loaded: TableProgress | None, limit: int | None
    ) -> Generator[Step, None, TableProgress]:
        """Return the progress after this chunk's rows."""
        layout = self._layouts.add_table(table)
        within = None if limit is None else KeyRange(loaded.last if loaded else None)
        result = self._snapshot.run(table, chunk_query(table, within, limit))
        told = 0
        while not result.done:
            if packets := result.read():
                self._out.add(RESULT_ROWS, packets, layout)
            yield self._out.take(self._position)
            if result.rows - told >= _PROGRESS_ROWS:
                self._progress.add(table.full_name, result.rows - told)
                told = result.rows
                yield self._progress.report(table.full_name)
        self._progress.add(table.full_name, result.rows - told)
        if limit is None or result.rows < limit:
            return WHOLE
        return TableProgress(PacketKeys(table).first(result.last_row))

    def _commit(self, chunk: Chunk | None = None) -> Changes | None:
        self._out.commit(self._position, chunk)
        return self._out.take(self._position)
