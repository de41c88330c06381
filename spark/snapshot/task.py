"""A task that reads a part of a snapshot."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from ...codec.mysql.position import Position
from ...codec.mysql.result_rows import ResultRowsDecoder
from ...codec.mysql.run import ResultRun
from ...dialects.mysql.client import Session
from ...dialects.mysql.key_range import conditions, order_by, select, where_clause
from ...dialects.mysql.result import Result
from ...errors import Retryable, SourceError
from ...events import Ddl, OrderedKey, Run, Table, key_table, runs_of
from ...puller.mysql.options import MysqlOptions
from ...snapshot.errors import TableAltered
from ...snapshot.mysql.packet_keys import PacketKeys
from ...snapshot.mysql.view import begin_unlocked, table_view
from ...snapshot.overlay import KeyOf, Overlay, changed_within, ordered_keys
from ..offsets.mysql import MysqlOffsets
from ..offsets.offset import Limit, Offset
from ..read.options import ReadOptions
from ..read.parts import WHOLE
from ..read.pick import Pick
from ..read.typed import TypedEncoder
from .inserts import Inserts
from .partition import MysqlPartition

_BATCH_BYTES: Final = 1 << 20


def rows(options: ReadOptions, part: MysqlPartition, table: Table) -> Generator[pa.RecordBatch]:
    """Yield the rows of the part with the columns of `table`, as inserts in no order.

    Only these columns, and the key's, are read. Closing the iterator closes the connection. Raises
    SourceError if the table was altered, Retryable and Fatal.
    """
    source = options.source_as(MysqlOptions)
    try:
        with table_view(source, part.at.source, part.source, begin_unlocked) as (session, position):
            undone = undo(options, part.table, part.at, position) if part.is_exact else Overlay(ordered_keys)
            yield from _Batches(options, part, table, undone).read(session, source)
    except TableAltered as error:
        raise SourceError(f"{error.name} was altered after load(): load() again") from None


class _Batches:
    """Makes batches of the rows of a SELECT, and of the rows that changed after the part's position."""

    def __init__(
        self, options: ReadOptions, part: MysqlPartition, table: Table, undone: Overlay[OrderedKey]
    ) -> None:
        names = {column.name for column in table.columns}
        key = [part.table.columns[index] for index in part.table.key]
        self._undone = undone
        self._names = [column.name for column in table.columns]
        self._part = part
        columns = [one for one in part.table.columns if one.name in names or one in key]
        self._read = replace(part.table, columns=tuple(columns), key=())
        self._read_keys = (
            PacketKeys(replace(self._read, key=tuple(map(columns.index, key)))) if undone else None
        )
        self._changed = sorted(undone)
        # Without a condition on another column, an index of it can't help.
        self._is_ordered = part.is_exact and {one.column for one in part.filters} <= {one.name for one in key}
        hidden = [column for column in key if column.name not in names]
        self._encoder = TypedEncoder(
            replace(table, columns=(*table.columns, *hidden), key=()),
            Pick(),
            invalid_dates=options.invalid_dates,
        )
        schema = TypedEncoder(table, Pick()).schema
        self._row_type = schema.field("after").type
        self._inserts = Inserts(schema, part.number, part.at.ts)

    def read(self, session: Session, source: MysqlOptions) -> Generator[pa.RecordBatch]:
        if before := changed_within(self._undone, self._part.keys):
            yield self._batch(runs_of(before))
        decoder = ResultRowsDecoder(self._read)
        result = Result(session, source, self._read, self._select(session))
        packets: list[bytes] = []
        while not result.done or packets:
            if not result.done:
                packets.append(result.read())
            if result.done or sum(map(len, packets)) >= _BATCH_BYTES:
                data, packets = self._unchanged(b"".join(packets)), []
                if data:
                    ts = self._part.at.ts
                    run = ResultRun(ts, ts, self._read, "insert", None, decoder, data)
                    yield self._batch([run])

    def _select(self, session: Session) -> str:
        part = self._part
        wanted = [one.sql(session.escape) for one in part.filters]
        if part.is_exact:
            wanted += conditions(part.table, part.keys)
        hint, order = (" FORCE INDEX (PRIMARY)", order_by(part.table)) if self._is_ordered else ("", "")
        return f"{select(self._read)}{hint}{where_clause(wanted)}{order}"

    def _unchanged(self, packets: bytes) -> bytes:
        """Return the rows that weren't changed since the part's position."""
        keys = self._read_keys
        if keys is None or not packets:
            return packets
        if self._is_ordered:
            begin = bisect_left(self._changed, keys.first(packets))
            if begin == bisect_right(self._changed, keys.last(packets)[0]):
                return packets
        rows = keys.rows(packets)
        return b"".join([packets[start:stop] for key, start, stop in rows if key not in self._undone])

    def _batch(self, runs: Sequence[Run]) -> pa.RecordBatch:
        _, images = self._encoder.images(runs)
        columns = [images.field(name) for name in self._names]
        count = len(images)
        fields = list(self._row_type)
        after = (
            pa.StructArray.from_arrays(columns, fields=fields) if fields else pa.nulls(count, self._row_type)
        )
        return self._inserts.batch(after)


MAX_KEYS: Final = 1_000_000
"""Maximum number of keys that may change while a table is read."""


def undo(options: ReadOptions, table: Table, at: Offset, view: Position) -> Overlay[OrderedKey]:
    """Return the rows of changed keys as of `at`, from the changes of `table` between `at` and `view`, a
    position up to which a view may have them.

    Raises SourceError if it was altered, Retryable and Fatal.
    """
    overlay = Overlay(lambda of: _key_of(table, of))
    if view.rank == Position.parse(at.position).rank:
        return overlay
    if view.rank < Position.parse(at.position).rank:
        raise Retryable(f"the view's position {view} is before {at.position}: another server answered")
    from ..read.bounded import change_items  # brings the engine

    with closing(MysqlOffsets(options)) as offsets:
        offsets.check(at)
        end = offsets.following(at, Offset(at.ts, str(view), at.source), Limit())
    with closing(change_items(options, WHOLE, at, end)) as batches:
        for items in batches:
            for item in items:
                if isinstance(item, Ddl):
                    raise SourceError(
                        f"{table.full_name} was altered while it was read: {item.query[:200]}; load() again"
                    )
                overlay.undo(item.rows)
            if len(overlay) > MAX_KEYS:
                raise SourceError(
                    f"more than {MAX_KEYS:,} rows of {table.full_name} changed while it was read: load them "
                    "by a backfill, or read at a quieter time"
                )
    return overlay


def _key_of(planned: Table, table: Table) -> KeyOf[OrderedKey]:
    """Return the function from a row of the log to the planned table's key; the log may lack the key."""
    names = [column.name for column in table.columns]
    places = [names.index(planned.columns[index].name) for index in planned.key]
    order = ordered_keys(key_table(planned))
    return lambda row: order(tuple([row[place] for place in places]))
