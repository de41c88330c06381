"""Changes of rows after their chunk was read, collected from the binlog by chunk."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ...chain.selection.tables import TablePatterns
from ...codec.mysql.entry import ROLLBACK_MARKER, position_of
from ...codec.mysql.layout import Layouts
from ...codec.mysql.position import Position, Rank
from ...codec.mysql.schema import is_user_schema
from ...codec.row_bytes import RowBytes
from ...errors import Retryable
from ...events import (
    Changes,
    Ddl,
    Item,
    OrderedKey,
    RenameTables,
    Row,
    RowChange,
    Sorted,
    Table,
    TableName,
    Transaction,
)
from ...mounter import Mounter
from ...puller.mysql.binlog import BinlogDecoder
from ...puller.mysql.commit_clock import CommitClock
from ...puller.mysql.options import MysqlOptions
from ...puller.mysql.reader import BinlogReader
from ...puller.mysql.stream import own_server_id
from ...puller.mysql.transactions import Transactions
from ...snapshot.key_bytes import encode_key
from ...snapshot.overlay import ordered_keys
from .directory import BackfillDirectory
from .plan import BackfillPlan, TablePlan
from .records import ChunkRecord, LaterAlteration, LaterChanges
from .retry_deadline import RetryDeadline

SCHEMA: Final = pa.schema(
    [
        pa.field("chunk", pa.int32(), nullable=False),
        pa.field("key", pa.binary(), nullable=False),
        pa.field("number", pa.int64(), nullable=False),
        pa.field("commit_ts", pa.int64(), nullable=False),
        pa.field("change", pa.binary(), nullable=False),
    ]
)
"""`key` sorts as the table's keys do, and is empty if they have no order; `number` counts the changes."""

_GROUP_ROWS: Final = 20_000


def collect(
    options: MysqlOptions,
    directory: BackfillDirectory,
    plan: BackfillPlan,
    records: Mapping[int, ChunkRecord],
    until: str,
    patience: RetryDeadline,
) -> LaterChanges:
    """Read the binlog from before the first chunk up to `until`. Raises Retryable and Fatal."""
    follows = TablePatterns.parse(plan.patterns)
    path = directory.new_changes_file()
    with pq.ParquetWriter(path, SCHEMA) as file:
        route = _Route(plan, records, file)
        log = _Log(options, plan, follows, patience)
        for items, start in log.read(Position.parse(plan.position), Position.parse(until)):
            route.take(items, start)
        route.flush()
    changes = LaterChanges(
        until, path.name, tuple(sorted(route.chunks)), route.rows, tuple(log.voided), tuple(route.altered)
    )
    directory.save_changes(changes)
    return changes


class _Log:
    """The binlog between two positions, as items."""

    def __init__(
        self, options: MysqlOptions, plan: BackfillPlan, wanted: TablePatterns, patience: RetryDeadline
    ) -> None:
        self.voided: list[int] = []
        self._options = replace(options, server_id=options.server_id or own_server_id())
        self._wanted = wanted
        self._layouts = Layouts()
        self._mounter = Mounter(self._layouts, plan.source, wanted)
        self._patience = patience
        self._begun = plan.base

    def read(self, start: Position, until: Position) -> Iterator[tuple[list[Item], Rank]]:
        """Yield items, and the begin of the transaction that the last of them may be part of."""
        # Its ts only shows that the log existed then: a log that was reset since is younger.
        out = Transactions(CommitClock(self._begun), self._options.max_batch_bytes)
        decoder = BinlogDecoder(start, out, self._follows, self._layouts.number_of)
        decoder.stop_at(until)
        while not decoder.reached:
            try:
                for raw in self._dump(decoder):
                    yield self._mount(raw), decoder.position.rank
            except Retryable as error:
                self._patience.wait(error)

    def _dump(self, decoder: BinlogDecoder) -> Iterator[Changes]:
        with closing(BinlogReader(self._options, decoder)) as reader:
            while not decoder.reached:
                reader.read()
                raw = decoder.take()
                if raw is not None:
                    self._patience.renew()
                    yield raw

    def _mount(self, raw: Changes) -> list[Item]:
        changes = raw.changes
        self.voided += [change.commit_ts for change in changes if change.key[-1] == ROLLBACK_MARKER]
        return self._mounter.mount(Sorted(changes, raw.resolved, position_of(changes[-1]) is None))

    def _follows(self, schema: str, table: str) -> bool:
        return is_user_schema(schema) and self._wanted.matches(schema, table)


class _Target:
    """A table, with the encoding of its rows."""

    def __init__(self, plan: BackfillPlan, table: TablePlan, records: Mapping[int, ChunkRecord]) -> None:
        self.key = ordered_keys(table.table) if table.by_key else None
        self.encode = RowBytes(plan.source, table.table).encode
        self._numbers = [chunk.number for chunk in table.chunks]
        self._bounds = [chunk.up_to for chunk in table.chunks if chunk.up_to is not None]
        self._low = {number: Position.parse(records[number].low).rank for number in self._numbers}

    def chunk(self, key: OrderedKey) -> int:
        """Return the number of the chunk with the key, or of a table in one chunk."""
        place = bisect_left(self._bounds, True, key=lambda bound: key[: len(bound)] <= bound)
        return self._numbers[place]

    def lacks(self, number: int, at: _Place) -> bool:
        """True if the chunk was read before the transaction."""
        low = self._low[number]
        return at.end > low if at.end is not None else at.start >= low


class _Place(msgspec.Struct, frozen=True):
    """Begin and end of a transaction; the end is unknown while it comes in parts."""

    start: Rank
    end: Rank | None


class _Route:
    """Writes changes of rows under their chunks."""

    def __init__(
        self, plan: BackfillPlan, records: Mapping[int, ChunkRecord], file: pq.ParquetWriter
    ) -> None:
        self.rows = 0
        self.chunks: set[int] = set()
        self.altered: list[LaterAlteration] = []
        self._plan = plan
        self._file = file
        self._targets = {
            (table.table.schema, table.table.name): _Target(plan, table, records) for table in plan.tables
        }
        self._lines: list[tuple[int, bytes, int, int, bytes]] = []
        self._open: _Place | None = None

    def take(self, items: list[Item], start: Rank) -> None:
        for item in items:
            at = self._open
            if at is None:
                at = _Place(start, Position.parse(item.position).rank if item.last else None)
            self._open = None if item.last else at
            if isinstance(item, Ddl):
                self._alters(item, at)
            else:
                self._rows(item, at)
        if len(self._lines) >= _GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        columns = zip(*self._lines, strict=True) if self._lines else [[]] * len(SCHEMA)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        self._file.write_batch(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
        self._lines = []

    def _alters(self, ddl: Ddl, at: _Place) -> None:
        """Note a statement that ran after the tables were planned."""
        names = _names(ddl)
        tables = [one.since for one in self._plan.tables if _concerns(names, one.table)]
        known = min([Position.parse(since).rank for since in tables or [self._plan.surveyed]])
        if (at.end or at.start) > known:
            self.altered += [
                LaterAlteration(ddl.query, f"{schema}.{table}" if table else "") for schema, table in names
            ]

    def _rows(self, txn: Transaction, at: _Place) -> None:
        for row in txn.rows:
            target = self._targets.get((row.table.schema, row.table.name))
            if target is None:  # it came after the plan was made, which its CREATE TABLE says
                continue
            for chunk, key, before, after in _parts(target, row):
                if target.lacks(chunk, at):
                    self.rows += 1
                    self.chunks.add(chunk)
                    change = target.encode(before, after, None)
                    self._lines.append((chunk, key, self.rows, txn.commit_ts, change))


def _parts(target: _Target, row: RowChange) -> Iterator[tuple[int, bytes, Row | None, Row | None]]:
    """Split a change by the keys that it concerns."""
    before, after = row.before, row.after
    if (key := target.key) is None:
        yield target.chunk(()), b"", before, after
        return
    old = None if before is None else key(before)
    new = None if after is None else key(after)
    if old is not None and old != new:
        yield target.chunk(old), encode_key(old), before, None
    if new is not None:
        yield target.chunk(new), encode_key(new), None, after


def _names(ddl: Ddl) -> list[TableName]:
    """Return the tables that a statement is about; an empty table means the whole schema."""
    renamed = [action.pairs for action in ddl.actions if isinstance(action, RenameTables)]
    return [name for pairs in renamed for pair in pairs for name in pair] or [(ddl.schema, ddl.table)]


def _concerns(names: list[TableName], table: Table) -> bool:
    return (table.schema, table.name) in names or (table.schema, "") in names
