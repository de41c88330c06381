"""The input partition of a task that reads a part of a snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.datasource import InputPartition

from ...events import Table
from ...puller.mysql.tables import SourceTable
from ..offsets.offset import Offset
from ..planner import Planner
from .row_filter import KeyRange, RowFilter


class SnapshotPartition(InputPartition):
    """The rows of a table as of `at` with keys in `keys`, and those that `filters` keep; with its planner."""

    def __init__(
        self,
        number: int,
        source: SourceTable,
        at: Offset,
        keys: KeyRange,
        filters: Sequence[RowFilter],
        *,
        is_exact: bool,
    ) -> None:
        """Unless `is_exact`, the rows are those of the time at which the task reads them."""
        self.number = number
        self.source = source
        self.at = at
        self.keys = keys
        self.filters = tuple(filters)
        self.is_exact = is_exact
        self.planner = Planner()

    @property
    def table(self) -> Table:
        return self.source.table
