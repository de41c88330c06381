"""A TiKV cluster as the source of a comparison: rows are read as of the target's checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from ..actors import SystemClock
from ..chain.selection.tables import TablePatterns
from ..codec.tidb.key import record_key
from ..codec.tidb.table import to_table
from ..codec.tidb.table_info import partition_ids
from ..dialects.read import Key, Summing
from ..events import Checkpoint, Row, Table, Ts, parse_ts
from ..mounter import RowReader, TableAt
from ..puller.tikv.client import TikvClient
from ..puller.tikv.options import TikvOptions
from ..puller.tikv.pd.safe_point import SafePoint
from ..puller.tikv.schema import TableNames, read_schema
from ..snapshot.tikv.ranges import has_integer_order, range_after, row_ranges
from ..snapshot.tikv.reads import Pairs, all_rows, first_rows
from ..sources.kind import SourceContext
from .side import Source, SourceRows

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

    def of(self, table: Table) -> SourceRows:  # noqa: ARG002
        return self

    def view(self, checkpoint: Checkpoint, table: str) -> None:
        own = checkpoint.tables.get(table)
        ts = parse_ts(checkpoint.position if own is None else own.position)
        if not self._at:
            self._client.run(self._safe_point.start(ts))
            self._client.loop.submit(self._safe_point.run(), "hold the GC safe point")
        self._at = ts

    def tables(self, checkpoint: Checkpoint) -> list[Table]:
        self.view(checkpoint, "")
        names = TableNames(self._filter)
        self._client.run(read_schema(self._client.kv, self._at, names))
        listed = [TableAt(schema, info, 0) for schema, info in names.with_rows]
        self._infos = {one.name: one for one in sorted(listed, key=lambda one: one.name)}
        return [to_table(one.schema, one.info) for one in self._infos.values()]

    def estimate(self, table: Table) -> int:  # noqa: ARG002
        return 0

    def end(self) -> str:
        return str(self._at)

    def has_passed(self, position: str, end: str) -> bool:
        return parse_ts(position) >= parse_ts(end)

    # --- rows

    def is_ordered(self, table: Table) -> bool:
        return has_integer_order(self._infos[table.full_name].info)

    def page(self, table: Table, after: Key | None, limit: int) -> list[Row]:
        rest = range_after(self._infos[table.full_name].info, after or ())
        return self._read(table, first_rows(self._client, [rest], self._at, limit))

    def rows_of(self, table: Table, keys: Sequence[Key]) -> list[Row]:
        info = self._infos[table.full_name].info
        if not info.pk_is_handle or partition_ids(info):
            wanted = set(keys)
            rows = (row for page in self.every(table) for row in page)
            return [row for row in rows if tuple([row[i] for i in table.key]) in wanted]
        places = [record_key(info.id, (key[0] + (1 << 63)) % (1 << 64) - (1 << 63)) for key in keys]
        return self._read(table, self._client.run(self._get(places)))

    async def _get(self, keys: Sequence[bytes]) -> Pairs:
        values = [(key, await self._client.kv.get(key, self._at)) for key in keys]
        pairs = [(key, value) for key, value in values if value is not None]
        return [key for key, _ in pairs], [value for _, value in pairs]

    def every(self, table: Table) -> Iterator[list[Row]]:
        ranges = row_ranges(self._infos[table.full_name].info)
        for pairs in all_rows(self._client, ranges, self._at, _PAGE_ROWS, _PAGE_BYTES):
            yield self._read(table, pairs)

    def _read(self, table: Table, pairs: Pairs) -> list[Row]:
        """Return the table's columns of these rows."""
        if self._readers.get(table.full_name, (None, None))[0] != table:
            self._readers[table.full_name] = table, RowReader(self._infos[table.full_name])
        decoder = self._readers[table.full_name][1].rows
        rows = decoder.decode(list(zip(*pairs, strict=True)))
        if decoder.table.columns == table.columns:
            return rows
        places = {column.name: i for i, column in enumerate(decoder.table.columns)}
        index = [places[column.name] for column in table.columns]
        return [tuple([row[i] for i in index]) for row in rows]
