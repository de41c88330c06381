"""Chunks of a MariaDB server's tables: planned by key, read from the socket into files without decoding."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, pairwise

from msgspec.structs import replace

from ...chain.selection.tables import TablePatterns
from ...codec.mysql.known_table import KnownTable
from ...codec.mysql.position import Position
from ...codec.mysql.schema import is_user_schema
from ...dialects.mysql.client import Session, connect, disconnect, query, translated
from ...dialects.mysql.key_range import chunk_query
from ...dialects.mysql.result import Result
from ...errors import ConfigError
from ...events import KeyRange, OrderedKey, compose_ts
from ...failpoint import reach
from ...puller.mysql.options import MysqlOptions
from ...puller.mysql.probe import probe
from ...puller.mysql.requirements import survey
from ...snapshot.mysql.bounds import bounds
from ...snapshot.mysql.tables import SourceTable
from ...snapshot.mysql.view import begin, begin_unlocked, listed_end, table_view
from ...sources.source import no_table_matches
from .chunk_file import ChunkWriter
from .directory import READ, BackfillDirectory
from .errors import NotLoadable
from .options import BackfillOptions
from .plan import BackfillPlan, ChunkPlan, TablePlan, new_uid


def plan_mysql(options: MysqlOptions, wanted: TablePatterns, settings: BackfillOptions) -> BackfillPlan:
    """Plan the chunks. Raises ConfigError for patterns, Retryable and SourceError."""
    probed = probe(options)
    names = [(table.schema, table.name) for table in probed.tables]
    if unmatched := wanted.unmatched(names):
        raise ConfigError(no_table_matches(unmatched, names))
    empty = BackfillPlan(
        "mariadb",
        new_uid(),
        probed.source,
        wanted.patterns,
        str(probed.end.without_gtids),
        "",
        compose_ts(int(probed.server.epoch_seconds * 1000)),
        (),
        0,
    )
    return with_tables(empty, options, wanted, settings)


def with_tables(
    plan: BackfillPlan, options: MysqlOptions, wanted: TablePatterns, settings: BackfillOptions
) -> BackfillPlan:
    """Return the plan with the tables that it lacks, as they are now."""
    have = {table.table.full_name for table in plan.tables}

    def lacks(schema: str, name: str) -> bool:
        return is_user_schema(schema) and wanted.matches(schema, name) and f"{schema}.{name}" not in have

    since = _settled(options)
    surveyed = survey(
        options,
        lambda schema, name: is_user_schema(schema) and wanted.matches(schema, name),
        has_catalog=False,
    )
    surveyed.raise_errors()
    numbers = count(plan.next_number)
    session = connect(options)
    try:
        with translated(options):
            exact = _says_positions(session, settings)
            tables = [
                _plan_table(session, options, table, settings, exact, since, numbers.__next__)
                for table in surveyed.tables
                if lacks(table.table.schema, table.table.name)
            ]
    finally:
        disconnect(session)
    return replace(plan, surveyed=since, tables=(*plan.tables, *tables), next_number=next(numbers))


def _settled(options: MysqlOptions) -> str:
    """Return the end of the binlog, where every view that begins later has all changes before it."""
    session = connect(options)
    try:
        with translated(options):
            end = begin(session)
    finally:
        disconnect(session)
    return str(end.without_gtids)


def _says_positions(session: Session, settings: BackfillOptions) -> bool:
    """True if the server gives the binlog position of a snapshot."""
    if settings.positions == "auto":
        return bool(query(session, "SHOW STATUS LIKE 'binlog_snapshot_file'"))
    return settings.positions == "snapshot"


def _plan_table(
    session: Session,
    options: MysqlOptions,
    source: SourceTable,
    settings: BackfillOptions,
    exact: bool,
    since: str,
    number: Callable[[], int],
) -> TablePlan:
    table = source.table
    exact = exact and source.is_transactional
    if not exact and not table.key:
        raise NotLoadable(
            f"{table.full_name} has no primary key, and its rows can't be read as of one position: give it a "
            "key, or leave it out of tables"
        )
    own = number()
    by_key, keys = source.has_chunks, list[OrderedKey]()
    if by_key:
        keys = bounds(session, options, table, _chunk_rows(session, source, settings), KeyRange())
    chunks = tuple([ChunkPlan(number(), *edge) for edge in pairwise([None, *keys, None])])
    return TablePlan(own, table, chunks, by_key, exact, since, source.rows_estimated, source.digest)


def _chunk_rows(session: Session, source: SourceTable, settings: BackfillOptions) -> int:
    names = source.table.schema, source.table.name
    sql = "SELECT AVG_ROW_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    ((length,),) = query(session, sql, *names)
    return max(1, min(settings.chunk_rows, settings.chunk_bytes // max(1, int(length or 0))))


def read_mysql(options: MysqlOptions, directory: BackfillDirectory, plan: BackfillPlan, number: int) -> None:
    """Read one chunk under a metadata lock of its table, and no other lock.

    Raises TableAltered, Retryable and SourceError.
    """
    planned, chunk = plan.find(number)
    table = planned.table
    source = SourceTable(KnownTable(table), "", planned.rows_estimated, planned.digest)
    how = begin if planned.exact else begin_unlocked
    with table_view(options, plan.source, source, how) as (session, position):
        writer = ChunkWriter(directory, READ, plan, planned, number)
        try:
            within = KeyRange(chunk.after, chunk.up_to) if planned.by_key else None
            _copy(Result(session, options, table, chunk_query(table, within)), writer)
            low = high = position
            if not planned.exact:
                low = Position.parse(planned.since)
                with translated(options):
                    high = listed_end(session).without_gtids
            reach("snapshot.chunk_read")
            writer.finish(str(low), str(high))
        except BaseException:
            writer.discard()
            raise


def _copy(result: Result, writer: ChunkWriter) -> None:
    before = 0
    while not result.done:
        if packets := result.read():
            writer.add_packets(packets, result.rows - before)
            before = result.rows
