"""A task that reads a part of a snapshot."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Final, cast

import pyarrow as pa
import pymysql
from msgspec.structs import replace

from ...codec.mysql.result_rows import SESSION, ResultRowsDecoder, select_expression
from ...codec.mysql.run import ResultRun
from ...codec.mysql.tokens import qualified as quoted
from ...dialects.mysql.client import Session, connect, disconnect, query, source_of, translated
from ...dialects.mysql.result import Result
from ...errors import SourceError
from ...events import RowChange, Run, Table
from ...puller.mysql.options import MysqlOptions
from ...puller.mysql.position import Position
from ...puller.mysql.snapshot import BEGIN, begin_unlocked
from ...puller.mysql.tables import FoundTable, SourceTable, digest_of, read_table
from ..read.options import ReadOptions
from ..read.pick import Pick
from ..read.typed import TypedEncoder
from .inserts import Inserts
from .partition import MysqlPartition
from .undo import Undo, undo

_BATCH_BYTES: Final = 1 << 20


def rows(options: ReadOptions, part: MysqlPartition, table: Table) -> Generator[pa.RecordBatch]:
    """Yield the rows of the part with the columns of `table`, as inserts in no order.

    Only these columns, and the key's, are read. Closing the iterator closes the connection. Raises
    SourceError if the table was altered, Retryable and Fatal.
    """
    source = cast("MysqlOptions", options.source_options)
    session = connect(source)
    try:
        with translated(source):
            view = _open_view(session, source, part)
        undone = undo(options, part.table, part.at, view) if view else Undo(part.table)
        yield from _Batches(options, part, table, undone).read(session, source)
    finally:
        disconnect(session)


def _open_view(session: Session, source: MysqlOptions, part: MysqlPartition) -> Position | None:
    """Open a consistent view, under a metadata lock of the table; for an exact part, return a position of the
    log that isn't before it."""
    if (found := source_of(session)) != part.at.source:
        raise SourceError(f"{source.address} is {found}, and the read was planned on {part.at.source}")
    view = None
    if part.is_exact:
        view = begin_unlocked(session)
    else:
        query(session, SESSION)
        query(session, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        query(session, BEGIN)
    table = part.table
    with suppress(pymysql.err.Error):  # the table was dropped meanwhile, or the next statement fails, too
        query(session, f"SELECT 1 FROM {quoted(table.schema, table.name)} LIMIT 0")
    if not _is_unchanged(session, part.source):
        raise SourceError(f"{table.full_name} was altered after load(): load() again")
    return view


def _is_unchanged(session: Session, planned: SourceTable) -> bool:
    found = FoundTable(planned.table.schema, planned.table.name)
    with suppress(pymysql.err.Error):
        if digest_of(session, found) == planned.digest:  # one statement in place of six
            return True
    present = read_table(session, found, has_catalog=False)
    return present is not None and present.table == planned.table


class _Batches:
    """Makes batches of the rows of a SELECT, and of the rows that changed after the part's position."""

    def __init__(self, options: ReadOptions, part: MysqlPartition, table: Table, undone: Undo) -> None:
        names = {column.name for column in table.columns}
        key = [part.table.columns[index] for index in part.table.key]
        self._undone = undone
        self._key = [column.name for column in key]
        self._names = [column.name for column in table.columns]
        self._part = part
        self._read = _with_columns(part.table, names | set(self._key))
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
        if before := self._earlier():
            yield self._batch(before)
        decoder = ResultRowsDecoder(self._read)
        result = Result(session, source, self._read, _select(self._part, self._read, session))
        packets: list[bytes] = []
        while not result.done or packets:
            if not result.done:
                packets.append(result.read())
            if result.done or sum(map(len, packets)) >= _BATCH_BYTES:
                data, packets = b"".join(packets), []
                if data:
                    ts = self._part.at.ts
                    run = ResultRun(ts, ts, self._read, "insert", None, decoder, data)
                    yield self._batch([run], checks_keys=bool(self._undone.rows))

    def _earlier(self) -> list[Run]:
        """Return the rows of the part that were changed, as they were."""
        ts, keys = self._part.at.ts, self._part.keys
        runs: list[Run] = []
        for key, was in self._undone.rows.items():
            if was is not None and keys.has(key[0]):
                table, row = was
                change = RowChange(ts, ts, table, "insert", None, row)
                runs.append(Run(ts, ts, table, "insert", [change]))
        return runs

    def _batch(self, runs: Sequence[Run], *, checks_keys: bool = False) -> pa.RecordBatch:
        _, images = self._encoder.images(runs)
        if checks_keys:
            keys = zip(*[images.field(name).to_pylist() for name in self._key], strict=True)
            images = images.filter(pa.array([key not in self._undone.rows for key in keys], pa.bool_()))
        columns = [images.field(name) for name in self._names]
        count = len(images)
        fields = list(self._row_type)
        after = (
            pa.StructArray.from_arrays(columns, fields=fields) if fields else pa.nulls(count, self._row_type)
        )
        return self._inserts.batch(after)


def _with_columns(table: Table, names: set[str]) -> Table:
    return replace(table, columns=tuple([one for one in table.columns if one.name in names]), key=())


def _select(part: MysqlPartition, table: Table, session: Session) -> str:
    columns = ", ".join(select_expression(column) for column in table.columns)
    conditions = [one.sql(session.escape) for one in part.filters]
    hint = ""
    if part.is_exact:
        key = quoted(part.table.columns[part.table.key[0]].name)
        if part.keys.after is not None:
            conditions.append(f"{key} > {part.keys.after}")
        if part.keys.up_to is not None:
            conditions.append(f"{key} <= {part.keys.up_to}")
        # Without a condition on another column, an index of it can't help.
        own = {part.table.columns[index].name for index in part.table.key}
        hint = " FORCE INDEX (PRIMARY)" if {one.column for one in part.filters} <= own else ""
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {columns} FROM {quoted(table.schema, table.name)}{hint}{where}"
