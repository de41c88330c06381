"""A TiKV cluster as the source of a comparison: rows are read as of the target's checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from ..actors import SystemClock
from ..chain.selection.tables import TablePatterns
from ..codec.tidb.column_type import ColumnFlag
from ..codec.tidb.key import encode_int, record_key, record_prefix, record_span
from ..codec.tidb.table import to_table
from ..codec.tidb.table_info import TableInfo, holds_rows, partition_ids
from ..dialects.read import Key, Summing
from ..events import PUT, Checkpoint, KvChange, Row, Table, Ts, parse_ts
from ..mounter import RowReader, TableAt
from ..puller.tikv.client import TikvClient
from ..puller.tikv.kv.page import Pair, take_page
from ..puller.tikv.options import TikvOptions
from ..puller.tikv.pd.safe_point import SafePoint
from ..puller.tikv.schema import TableNames, read_schema
from ..sources.kind import SourceContext
from .side import Source

_PAGE_ROWS = 5_000
_PAGE_BYTES = 4 << 20


def open_tikv(options: TikvOptions, context: SourceContext) -> Source:
    return TikvSource(options, context.tables, context.feed)


class TikvSource:
    """The cluster keeps the versions at the ts that is read, by a safe point of its own."""

    reads_at_checkpoint = True
    summing: Summing | None = None

    def __init__(self, options: TikvOptions, tables: TablePatterns, feed: str) -> None:
        self._filter = tables
        self._client = TikvClient(options, SystemClock(), Random())
        self._client.start()
        client = self._client
        self._at: Ts = 0
        self._safe_point = SafePoint(
            options, client.pd, client.clock, f"tidemill-diff-{feed}", lambda: self._at
        )
        self.identity = f"tikv cluster {client.pd.cluster_id}"
        self._infos: dict[str, TableAt] = {}
        self._readers: dict[str, tuple[Table, RowReader]] = {}

    def close(self) -> None:
        self._client.stop()

    def of(self, table: Table) -> Source:  # noqa: ARG002
        return self

    def view(self, at: Checkpoint, table: str) -> None:
        own = at.tables.get(table)
        ts = parse_ts(at.position if own is None else own.position)
        if not self._at:
            self._client.run(self._safe_point.start(ts))
            self._client.loop.submit(self._safe_point.run(), "hold the GC safe point")
        self._at = ts

    def tables(self) -> list[Table]:
        names = _Tables(self._filter)
        self._client.run(read_schema(self._client.kv, self._at, names))
        self._infos = {one.name: one for one in sorted(names.found, key=lambda one: one.name)}
        return [to_table(one.schema, one.info) for one in self._infos.values()]

    def estimate(self, table: Table) -> int:  # noqa: ARG002
        return 0

    def end(self) -> str:
        return str(self._at)

    def has_passed(self, at: str, end: str) -> bool:
        return parse_ts(at) >= parse_ts(end)

    # --- rows

    def is_ordered(self, table: Table) -> bool:
        info = self._infos[table.full_name].info
        return info.pk_is_handle and not partition_ids(info) and not _is_unsigned(info)

    def page(self, table: Table, after: Key | None, limit: int) -> list[Row]:
        info = self._infos[table.full_name].info
        start, end = record_span(info.id)
        if after is not None:
            start = record_prefix(info.id) + encode_int(after[0]) + b"\0"
        found = self._client.kv.scan(start, end, self._at)
        return self._read(table, self._client.run(take_page(found, limit, _PAGE_BYTES)))

    def rows_of(self, table: Table, keys: Sequence[Key]) -> list[Row]:
        info = self._infos[table.full_name].info
        if not info.pk_is_handle or partition_ids(info):
            wanted = set(keys)
            rows = (row for page in self.every(table) for row in page)
            return [row for row in rows if tuple([row[i] for i in table.key]) in wanted]
        places = [record_key(info.id, (key[0] + (1 << 63)) % (1 << 64) - (1 << 63)) for key in keys]
        return self._read(table, self._client.run(self._get(places)))

    async def _get(self, keys: Sequence[bytes]) -> list[Pair]:
        values = [(key, await self._client.kv.get(key, self._at)) for key in keys]
        return [(key, value) for key, value in values if value is not None]

    def every(self, table: Table) -> Iterator[list[Row]]:
        info = self._infos[table.full_name].info
        for physical_id in partition_ids(info) or (info.id,):
            found = self._client.kv.scan(*record_span(physical_id), self._at)
            while pairs := self._client.run(take_page(found, _PAGE_ROWS, _PAGE_BYTES)):
                yield self._read(table, pairs)

    def _read(self, table: Table, pairs: list[Pair]) -> list[Row]:
        """Return the table's columns of these rows."""
        if self._readers.get(table.full_name, (None, None))[0] != table:
            self._readers[table.full_name] = table, RowReader(self._infos[table.full_name])
        at, reader = self._at, self._readers[table.full_name][1]
        rows = [row for row in reader.read([KvChange(at, at, PUT, *pair) for pair in pairs]) if row]
        if not rows or rows[0].table.columns == table.columns:
            return [row.after or () for row in rows]
        places = {column.name: i for i, column in enumerate(rows[0].table.columns)}
        index = [places[column.name] for column in table.columns]
        return [tuple([(row.after or ())[i] for i in index]) for row in rows]


def _is_unsigned(info: TableInfo) -> bool:
    wanted = ColumnFlag.PRI_KEY | ColumnFlag.UNSIGNED
    return any(column.flags & wanted == wanted for column in info.columns)


class _Tables(TableNames):
    def __init__(self, wanted: TablePatterns) -> None:
        super().__init__(wanted)
        self.found: list[TableAt] = []

    def follow(self, schema: str, info: TableInfo) -> None:
        if holds_rows(info):
            self.found.append(TableAt(schema, info, 0))
