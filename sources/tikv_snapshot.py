"""Snapshot of a TiKV cluster's tables at a ts, in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Final

from ..chain.selection.tables import TablePatterns
from ..codec.tidb.run import inserts
from ..codec.tidb.table import to_table
from ..events import (
    REST,
    WHOLE,
    Checkpoint,
    Chunk,
    CreateTable,
    Ddl,
    Item,
    RowChange,
    Rows,
    SnapshotProgress,
    TableProgress,
    Transaction,
    Ts,
)
from ..failpoint import reach
from ..mounter import RowReader, SchemaHistory, TableAt
from ..puller.puller import SnapshotReport
from ..puller.tikv.client import TikvClient
from ..sink import Deliver
from ..snapshot.tikv.ranges import RawRange, has_integer_order, key_in, range_after, row_ranges
from ..snapshot.tikv.reads import Pairs, all_rows

CHUNK_ROWS: Final = 5_000
CHUNK_BYTES: Final = 4 << 20
"""Maximum number of rows of a chunk, and of bytes, about."""

ROOM: Final = 1 << 30
"""Distance of the first chunk's ts below the snapshot's ts: four seconds. Changes after
the snapshot sort after all chunks; earlier ones are in them."""


class TikvSnapshot:
    """Loads all followed rows as of one ts, which the cluster keeps readable meanwhile.

    A restart reads at the same ts again, and continues after the rows that every sink has.
    """

    def __init__(
        self,
        client: TikvClient,
        history: SchemaHistory,
        tables: TablePatterns,
        source: str,
        ts: Ts,
        loaded: Callable[[], None],
        *,
        goes_on: bool = False,
    ) -> None:
        """`loaded` is called at the end. With `goes_on`, single tables of other sinks are loaded after it."""
        self._client = client
        self._history = history
        self._tables = tables
        self._source = source
        self._at = ts
        self._loaded = loaded
        self._goes_on = goes_on
        self._rows = 0

    def steps(
        self, loading: SnapshotProgress, sink_checkpoints: Sequence[Checkpoint]
    ) -> Iterator[Deliver | SnapshotReport]:
        """Yield items and reports in order. `loading` is the progress that every sink has.

        Raises Retryable and Fatal. Waits for the cluster.
        """
        begun = [one.ts for one in sink_checkpoints if one.loading is not None and one.ts < self._at]
        self._numbers = count(max([self._at - ROOM, *begun]) + 1)
        tables = list(self._history.tables(self._at, self._tables.matches))
        for done, table in enumerate(tables):
            yield SnapshotReport(table.name, self._rows, 0, done, len(tables))
            for item in self._table(table, loading.get(table.name)):
                yield Deliver([item])
        yield SnapshotReport("", self._rows, 0, len(tables), len(tables))
        end = Chunk(REST, WHOLE) if self._goes_on else Chunk("")
        yield Deliver([Transaction(self._at, self._at, self._source, [], str(self._at), chunk=end)])
        self._loaded()

    def _table(self, table: TableAt, have: TableProgress | None) -> Iterator[Item]:
        if have is not None and (have.stale or have.pending):
            have = None  # the target has an old copy, which the creation replaces, or none
        if have is not None and have.last is None:
            return
        reader = RowReader(table)
        if have is None:
            yield self._creation(table)
        if has_integer_order(table.info):
            yield from self._chunks(table, reader, have)
        else:
            yield from self._whole(table, reader)

    def _creation(self, table: TableAt) -> Ddl:
        ts = next(self._numbers)
        made = CreateTable(to_table(table.schema, table.info))
        return Ddl(ts, ts, self._source, table.schema, table.info.name, "", (made,), position=str(self._at))

    def _chunks(self, table: TableAt, reader: RowReader, have: TableProgress | None) -> Iterator[Item]:
        """Yield chunks by integer key; each is a transaction, after which a restart continues."""
        rest = range_after(table.info, (have.last or ()) if have is not None else ())
        for pairs in self._pieces([rest]):
            yield self._transaction(table, reader, pairs, TableProgress(key_in(pairs[0][-1])))
        yield self._transaction(table, reader, ([], []), TableProgress())

    def _whole(self, table: TableAt, reader: RowReader) -> Iterator[Item]:
        """Yield the table in one transaction of any size: a restart can't resume inside it."""
        ts = next(self._numbers)
        for pairs in self._pieces(row_ranges(table.info)):
            rows = self._read(reader, pairs, ts)
            chunk = Chunk(table.name, TableProgress(()))
            yield Transaction(ts, ts, self._source, rows, last=False, chunk=chunk)
        yield Transaction(ts, ts, self._source, [], str(self._at), chunk=Chunk(table.name, TableProgress()))

    def _transaction(
        self, table: TableAt, reader: RowReader, pairs: Pairs, loaded: TableProgress
    ) -> Transaction:
        ts = next(self._numbers)
        rows = self._read(reader, pairs, ts)
        return Transaction(ts, ts, self._source, rows, str(self._at), chunk=Chunk(table.name, loaded))

    def _read(self, reader: RowReader, pairs: Pairs, ts: Ts) -> Sequence[RowChange]:
        count = len(pairs[0])
        self._rows += count
        if not count:
            return []
        return Rows([inserts(reader, ts, *pairs)], count)

    def _pieces(self, ranges: Sequence[RawRange]) -> Iterator[Pairs]:
        low, high = self._tables.keys
        clipped = [(max(start, low), min(end, high or end)) for start, end in ranges]
        wanted = [(start, end) for start, end in clipped if start < end]
        for pairs in all_rows(self._client, wanted, self._at, CHUNK_ROWS, CHUNK_BYTES):
            reach("snapshot.chunk_read")
            yield pairs
