"""Decoding of the binlogs of pumps into transactions of rows and schema changes."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final

from msgspec.structs import replace

from ...chain.selection.tables import TablePatterns
from ...codec.tidb.job import Job
from ...codec.tidb.job_entry import JOB_KEYS, read_job
from ...codec.tidb.record import read_rows
from ...codec.tidb.table_info import PUBLIC, TableInfo, partition_ids
from ...errors import SourceError
from ...events import Ddl, DropColumn, Item, KvChange, RowChange, Sorted, Ts
from .binlog_rows import BinlogReader
from .ddl import read_ddl
from .history import SchemaHistory
from .items import Items, Parts
from .mounter import READERS


class BinlogMounter:
    """Decodes the binlogs that a feed's sorter releases, in order.

    A change is the prewrite value of one transaction, or a DDL job as in the job queue. The same transaction
    from two pumps is decoded once. Not thread-safe: it keeps the state of the open transaction.
    """

    def __init__(
        self,
        history: SchemaHistory,
        source: str,
        tables: TablePatterns,
        *,
        own_tables: Container[int] = (),
        check_version: Callable[[int, Ts], None] = lambda _version, _ts: None,
        pump_name: Callable[[int], str] = str,
        details: bool = False,
    ) -> None:
        """`source` is the name in every item, `own_tables` contains ids of TiDB's own tables. With `details`,
        changes of indexes and the like are told.

        `check_version` gets each new schema version with its ts; it raises SourceError if an earlier job
        wasn't applied. `pump_name` returns the name for a change's `region_id`.
        """
        self._history: Final = history
        self._source: Final = source
        self._tables: Final = tables
        self._own_tables: Final = own_tables
        self._check_version: Final = check_version
        self._pump_name: Final = pump_name
        self._details: Final = details
        self._items: Final = Items(source)
        self._readers: dict[int, BinlogReader | None] = {}
        """Readers by table id, at the ts of the binlog being decoded; None for a table that isn't
        followed."""
        self._row_versions: dict[int, int] = {}
        """Highest schema version of the rows of each table id."""
        self._version = 0
        self._last = (0, 0)
        self.duplicates = 0
        """Number of binlogs that came from two pumps."""

    def mount(self, released: Sorted) -> list[Item]:
        """Return the items of released binlogs, in commit order.

        Raises SourceError for a row or a job that can't be decoded, for a job that is missing, and for one
        that comes after rows with its columns.
        """
        parts = Parts([], [], [])
        for change in released.changes:
            commit_ts, start_ts = transaction = change.commit_ts, change.start_ts
            if transaction == self._last:
                self.duplicates += 1
                continue
            self._last = transaction
            if change.key.startswith(JOB_KEYS):
                for ddl in self._ddls(change):
                    parts.add(commit_ts, start_ts, ddl)
            elif rows := self._rows(change):
                parts.add(commit_ts, start_ts, rows)
        return self._items.of(parts, released.continues)

    def _ddls(self, change: KvChange) -> list[Ddl]:
        job = read_job(change)
        assert job is not None
        self._reach(job.schema_version - 1, change.commit_ts)
        self._version = max(self._version, job.schema_version)
        public: set[tuple[str, str]] = set()
        for before, after in self._history.changes(job.id, change.commit_ts):
            for table in (before, after):
                if table is not None:
                    for id_ in (table.info.id, *partition_ids(table.info)):
                        self._readers.pop(id_, None)
            if before is not None and after is not None:
                self._check_added(before.info, after.info, job)
            if before is not None:
                public |= {
                    (before.name, column.name) for column in before.info.columns if column.state == PUBLIC
                }
        ddls = read_ddl(
            job, change, self._history, self._tables, self._source, of_pumps=True, details=self._details
        )
        return [_tolerant(ddl, public) for ddl in ddls]

    def _rows(self, change: KvChange) -> list[RowChange]:
        try:
            value = read_rows(change.value)
        except ValueError as error:
            raise self._unreadable(change, error) from error
        self._reach(value.schema_version, change.commit_ts)
        rows: list[RowChange] = []
        for mutation in value.mutations:
            reader = self._reader(mutation.table_id, change)
            if reader is not None:
                try:
                    rows += reader.read(mutation, change.commit_ts, change.start_ts)
                except SourceError as error:
                    raise self._unreadable(change, error) from error
                seen = self._row_versions.get(mutation.table_id, 0)
                self._row_versions[mutation.table_id] = max(seen, value.schema_version)
        return rows

    def _check_added(self, before: TableInfo, after: TableInfo, job: Job) -> None:
        """Check that no row before a job has its columns: their values would be lost."""
        public = {column.id for column in before.columns if column.state == PUBLIC}
        added = [
            column.name for column in after.columns if column.state == PUBLIC and column.id not in public
        ]
        versions = [self._row_versions.get(id_, 0) for id_ in (after.id, *partition_ids(after))]
        if added and max(versions) >= job.schema_version:
            raise SourceError(
                f"rows of {after.name} have values of {', '.join(added)}, and came before the DDL job"
                f" {job.id} that adds them: {job.query}. These values aren't in the targets: begin again with"
                " a new snapshot"
            )

    def _reach(self, version: int, ts: Ts) -> None:
        """Check the jobs up to a schema version that is new."""
        if version > self._version:
            self._check_version(version, ts)
            self._version = version

    def _reader(self, table_id: int, change: KvChange) -> BinlogReader | None:
        readers = self._readers
        if table_id not in readers:
            if len(readers) >= READERS:
                del readers[next(iter(readers))]
            readers[table_id] = self._make_reader(table_id, change)
        return readers[table_id]

    def _make_reader(self, table_id: int, change: KvChange) -> BinlogReader | None:
        history, ts = self._history, change.commit_ts
        table = history.logical_at(table_id, ts) or history.table_at(table_id, ts)
        if table is None:
            if table_id in self._own_tables or history.was_dropped(table_id, ts):
                return None
            raise self._unreadable(
                change,
                f"table id {table_id} isn't in the schema at that ts. Start again from the last checkpoint:"
                " then the schema is read again",
            )
        if not self._tables.matches(table.schema, table.info.name):
            return None
        return BinlogReader(table)

    def _unreadable(self, change: KvChange, why: object) -> SourceError:
        pump = self._pump_name(change.region_id)
        return SourceError(f"{pump}: the binlog of commit ts {change.commit_ts} can't be read: {why}")


def _tolerant(ddl: Ddl, public: Container[tuple[str, str]]) -> Ddl:
    """Return the change with IF EXISTS for dropped columns that weren't public before.

    A feed that began while a column was being dropped may have dropped it in its target already.
    """
    actions = [
        replace(action, if_exists=(ddl.full_name, action.name) not in public)
        if isinstance(action, DropColumn)
        else action
        for action in ddl.actions
    ]
    return replace(ddl, actions=tuple(actions))
