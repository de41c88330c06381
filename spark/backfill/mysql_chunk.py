"""Reading one chunk of a MariaDB table, from the socket into a file without decoding."""

from __future__ import annotations

from contextlib import suppress

from ...codec.mysql.result_rows import SESSION, select_expression
from ...codec.mysql.tokens import qualified as quoted
from ...dialects.mysql.client import Session, connect, disconnect, query, source_of, translated
from ...dialects.mysql.result import Result
from ...errors import SourceError
from ...failpoint import reach
from ...puller.mysql.options import MysqlOptions
from ...puller.mysql.position import Position
from ...puller.mysql.snapshot import BEGIN, begin, listed_end
from ...puller.mysql.tables import FoundTable, read_table
from .chunk_file import ChunkWriter
from .directory import READ, Directory
from .errors import SchemaChanged
from .plan import ChunkPlan, Plan, TablePlan


def read_mysql(options: MysqlOptions, directory: Directory, plan: Plan, number: int) -> None:
    """Read one chunk under a metadata lock of its table, and no other lock.

    Raises SchemaChanged, Retryable and SourceError.
    """
    table, chunk = plan.find(number)
    session = connect(options)
    try:
        with translated(options):
            _check_server(session, options, plan)
            _check_table(session, table)
            low = _open_view(session, table)
            query(session, f"SELECT 1 FROM {quoted(table.table.schema, table.table.name)} LIMIT 0")
            _check_table(session, table)
        writer = ChunkWriter(directory, READ, plan, table, number)
        try:
            _copy(Result(session, options, table.table, _select(table, chunk)), writer)
            with translated(options):
                high = low if table.exact else listed_end(session).without_gtids
            reach("snapshot.chunk_read")
            writer.finish(str(low), str(high))
        except BaseException:
            writer.discard()
            raise
    finally:
        disconnect(session)


def _check_server(session: Session, options: MysqlOptions, plan: Plan) -> None:
    source = source_of(session)
    if source != plan.source:
        raise SourceError(f"{options.address} is {source}, and the backfill is of {plan.source}")


def _check_table(session: Session, planned: TablePlan) -> None:
    table = planned.table
    present = read_table(session, FoundTable(table.schema, table.name), has_catalog=False)
    if present is None or present.table != table:
        raise SchemaChanged(table.full_name)


def _open_view(session: Session, table: TablePlan) -> Position:
    """Open a consistent view; return a position whose changes are all visible in it."""
    if table.exact:
        return begin(session)
    query(session, SESSION)
    with suppress(Exception):  # without this right an ALTER waits until the chunk is read
        query(session, "SET sql_log_bin = 0")
    query(session, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    query(session, BEGIN)
    return Position.parse(table.since)


def _select(planned: TablePlan, chunk: ChunkPlan) -> str:
    table = planned.table
    columns = ", ".join(select_expression(column) for column in table.columns)
    sql = f"SELECT {columns} FROM {quoted(table.schema, table.name)}"
    if not planned.by_key:
        return sql
    key = [quoted(table.columns[index].name) for index in table.key]
    bounds = []
    if chunk.after is not None:
        bounds.append(f"{key[0]} > {chunk.after}")
    if chunk.up_to is not None:
        bounds.append(f"{key[0]} <= {chunk.up_to}")
    where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
    return f"{sql} FORCE INDEX (PRIMARY){where} ORDER BY {', '.join(key)}"


def _copy(result: Result, writer: ChunkWriter) -> None:
    before = 0
    while not result.done:
        if packets := result.read():
            writer.add_packets(packets, result.rows - before)
            before = result.rows
