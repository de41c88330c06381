"""Chunks of MariaDB tables: ranges of the first integer column of the primary key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count, pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...codec.mysql.schema import is_user_schema
from ...errors import ConfigError
from ...events import Table, compose_ts
from ...puller.mysql.connection import Session, connect, disconnect, query, translated
from ...puller.mysql.options import MysqlOptions
from ...puller.mysql.probe import probe
from ...puller.mysql.requirements import survey
from ...puller.mysql.snapshot import has_integer_key
from ...puller.mysql.tables import SourceTable, quoted
from ...routing import TableFilter
from ...sources.source import no_table_matches
from .errors import NotLoadable
from .options import BackfillOptions
from .plan import ChunkPlan, Plan, TablePlan, new_uid

_PROBE_ROWS: Final = 1000
"""Number of keys stepped over to measure their density."""
_TRANSACTIONAL: Final = frozenset({"InnoDB", "ROCKSDB"})


def plan_mysql(options: MysqlOptions, wanted: TableFilter, settings: BackfillOptions) -> Plan:
    """Plan the chunks. Raises ConfigError for patterns, Retryable and SourceError."""
    found = probe(options)
    if unmatched := wanted.unmatched([(table.schema, table.name) for table in found.tables]):
        raise ConfigError(no_table_matches(unmatched))
    empty = Plan(
        "mariadb",
        new_uid(),
        found.source,
        wanted.patterns,
        str(found.end),
        "",
        compose_ts(int(found.server.epoch_seconds * 1000)),
        (),
        0,
    )
    return with_tables(empty, options, wanted, settings)


def with_tables(plan: Plan, options: MysqlOptions, wanted: TableFilter, settings: BackfillOptions) -> Plan:
    """Return the plan with the tables that it lacks, as they are now."""
    have = {table.table.full_name for table in plan.tables}

    def lacks(schema: str, name: str) -> bool:
        return is_user_schema(schema) and wanted.matches(schema, name) and f"{schema}.{name}" not in have

    since = str(probe(options).end)
    found = survey(
        options,
        lambda schema, name: is_user_schema(schema) and wanted.matches(schema, name),
        has_catalog=False,
    )
    found.raise_errors()
    numbers = count(plan.next_number)
    session = connect(options)
    try:
        with translated(options):
            exact = _says_positions(session, settings)
            tables = [
                _plan_table(session, table, settings, exact, since, numbers.__next__)
                for table in found.tables
                if lacks(table.table.schema, table.table.name)
            ]
    finally:
        disconnect(session)
    return replace(plan, surveyed=since, tables=(*plan.tables, *tables), next_number=next(numbers))


def _says_positions(session: Session, settings: BackfillOptions) -> bool:
    """True if the server gives the binlog position of a snapshot."""
    if settings.positions == "auto":
        return bool(query(session, "SHOW STATUS LIKE 'binlog_snapshot_file'"))
    return settings.positions == "snapshot"


def _plan_table(
    session: Session,
    source: SourceTable,
    settings: BackfillOptions,
    exact: bool,
    since: str,
    number: Callable[[], int],
) -> TablePlan:
    table = source.table
    exact = exact and source.engine in _TRANSACTIONAL
    if not exact and not table.key:
        raise NotLoadable(
            f"{table.full_name} has no primary key, and its rows can't be read as of one position: give it a "
            "key, or leave it out of tables"
        )
    own = number()
    by_key = source.has_primary and has_integer_key(table)
    cuts = _cuts(session, table, _chunk_rows(session, source, settings)) if by_key else []
    bounds: list[int | None] = [None, *cuts, None]
    chunks = tuple(ChunkPlan(number(), after, up_to) for after, up_to in pairwise(bounds))
    return TablePlan(own, table, chunks, by_key, exact, since, source.rows_estimated)


def _chunk_rows(session: Session, source: SourceTable, settings: BackfillOptions) -> int:
    names = source.table.schema, source.table.name
    sql = "SELECT AVG_ROW_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    ((length,),) = query(session, sql, *names)
    return max(1, min(settings.chunk_rows, settings.chunk_bytes // max(1, int(length or 0))))


class _Stretch(Struct, frozen=True):
    """Keys above `after` and up to `up_to`, with an estimate of their rows."""

    after: int
    up_to: int
    rows: int


def _cuts(session: Session, table: Table, chunk_rows: int) -> list[int]:
    """Return the bounds between chunks: values of the first key column."""
    keys = _Keys(session, table)
    low, high = keys.ends()
    if low is None or high is None:
        return []
    cuts: list[int] = []
    rows = 0
    for stretch in _stretches(keys, low - 1, high, chunk_rows):
        if rows and rows + stretch.rows > chunk_rows:
            cuts.append(stretch.after)
            rows = 0
        rows += stretch.rows
    return cuts


def _stretches(keys: _Keys, after: int, up_to: int, chunk_rows: int) -> Iterator[_Stretch]:
    """Halve the range until each part is small enough: keys may be unevenly dense."""
    rows = keys.rows(after, up_to)
    if rows <= chunk_rows or up_to - after <= 1:
        yield _Stretch(after, up_to, rows)
        return
    middle = (after + up_to) // 2
    yield from _stretches(keys, after, middle, chunk_rows)
    yield from _stretches(keys, middle, up_to, chunk_rows)


class _Keys:
    """Queries about the first column of a table's key."""

    def __init__(self, session: Session, table: Table) -> None:
        self._session = session
        self._column = quoted(table.columns[table.key[0]].name)
        self._from = f"FROM {quoted(table.schema, table.name)} FORCE INDEX (PRIMARY)"
        self._is_unique = len(table.key) == 1

    def ends(self) -> Sequence[int | None]:
        (found,) = query(self._session, f"SELECT MIN({self._column}), MAX({self._column}) {self._from}")
        return found

    def rows(self, after: int, up_to: int) -> int:
        """Estimate the rows by an index dive, and by the keys' density at the range's start: the server's
        statistics lag behind recent writes."""
        where = f"WHERE {self._column} > {after} AND {self._column} <= {up_to}"
        plan = query(self._session, f"EXPLAIN SELECT 1 {self._from} {where}")
        estimated = int(plan[0][8] or 0)
        step = f"SELECT {self._column} {self._from} {where} ORDER BY {self._column} LIMIT 1 OFFSET "
        first = query(self._session, f"{step}0")
        if not first:
            return 0
        other = query(self._session, f"{step}{_PROBE_ROWS}")
        if not other:
            return min(_PROBE_ROWS, max(1, estimated))
        width = max(1, int(other[0][0] - first[0][0]))
        dense = _PROBE_ROWS * (up_to - int(first[0][0])) // width
        rows = max(estimated, dense)
        return min(rows, up_to - after) if self._is_unique else rows
