"""Number of rows and tables that a load has, and will have in the end."""

from __future__ import annotations

from collections.abc import Mapping

from ...dialects.mysql.client import connect, disconnect, translated
from ...events import REST, WHOLE, SnapshotProgress, progress_of
from ...snapshot.mysql.definitions import read_table
from ...snapshot.mysql.estimate import rows_up_to
from ...snapshot.mysql.tables import Follows, FoundTable, estimated_rows
from ..puller import SnapshotReport
from .options import MysqlOptions


class LoadProgress:
    """The progress of all tables of a load. A complete table has the rows that it has, not those that the
    statistics say."""

    def __init__(
        self, estimates: Mapping[str, int], loading: SnapshotProgress, loaded: Mapping[str, int]
    ) -> None:
        """`estimates` are the numbers of rows of all tables by full name, and `loaded` those of incomplete
        ones that were loaded before."""
        complete = {name: rows for name, rows in estimates.items() if progress_of(loading, name) == WHOLE}
        self._estimates = dict(estimates)
        self._loaded = {**dict.fromkeys(estimates, 0), **loaded, **complete}
        self._rows = sum(self._loaded.values())
        self._total = sum(max(count, self._loaded[name]) for name, count in estimates.items())
        self._tables_done = len(complete)
        self._reported: SnapshotReport | None = None

    def add(self, table: str, rows: int) -> None:
        """Add rows that were loaded."""
        self.set(table, self._loaded[table] + rows)

    def set(self, table: str, rows: int) -> None:
        """Set the number of rows loaded of a table."""
        before, estimate = self._loaded[table], self._estimates[table]
        self._loaded[table] = rows
        self._rows += rows - before
        self._total += max(rows, estimate) - max(before, estimate)

    def complete(self, table: str) -> None:
        """Note that a table has all its rows."""
        rows = self._loaded[table]
        self._total += rows - max(rows, self._estimates[table])
        self._estimates[table] = rows
        self._tables_done += 1

    def report(self, table: str) -> SnapshotReport:
        """Return the progress; `table` is the table that is read, or empty after the last one."""
        tables = len(self._estimates)
        self._reported = SnapshotReport(
            table, self._rows, self._total, self._tables_done, tables, self._estimates
        )
        return self._reported

    def report_change(self, table: str) -> SnapshotReport | None:
        """Return the progress if it isn't that of the last report."""
        before = self._reported
        return None if self.report(table) == before else self._reported


def open_progress(
    options: MysqlOptions, follows: Follows, loading: SnapshotProgress, estimates: Mapping[str, int]
) -> LoadProgress:
    """Return the progress of a load that begins or is resumed; rows loaded before are estimated.

    `estimates` are numbers of rows by the full names of tables, as far as they are known. Raises Retryable
    or SourceError.
    """
    names = {}
    for name in loading.keys() - {REST}:
        schema, table = name.split(".", 1)
        if follows(schema, table):
            names[name] = FoundTable(schema, table)
    partial = {name: have.last for name in names if (have := progress_of(loading, name)) and have.last}
    loaded: dict[str, int] = {}
    if partial or not estimates:
        session = connect(options)
        try:
            with translated(options):
                estimates = estimates or estimated_rows(session, {listed.schema for listed in names.values()})
                for name, last in partial.items():
                    if (
                        source := read_table(session, names[name], copies_generated=options.copies_generated)
                    ) is not None:
                        loaded[name] = rows_up_to(session, source, last)
        finally:
            disconnect(session)
    return LoadProgress({name: estimates.get(name, 0) for name in names}, loading, loaded)
