"""The input partition of a task that reads a part of a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from ...events import KeyRange, Table
from ..offsets.offset import Offset
from ..planner import Planner
from .row_filter import RowFilter

if TYPE_CHECKING:
    from ...codec.tidb.table_info import TableInfo
    from ...snapshot.mysql.tables import SourceTable
    from ...snapshot.tikv.ranges import RawRange


class SnapshotPartition(InputPartition):
    """A part of a table's rows as of `at`; with its planner."""

    def __init__(self, number: int, at: Offset) -> None:
        self.number = number
        self.at = at
        self.planner = Planner()


class MysqlPartition(SnapshotPartition):
    """The rows of a table with keys in `keys`, and those that `filters` keep."""

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
        super().__init__(number, at)
        self.source = source
        self.keys = keys
        self.filters = tuple(filters)
        self.is_exact = is_exact

    @property
    def table(self) -> Table:
        return self.source.table


class TikvPartition(SnapshotPartition):
    """The rows with raw keys in `ranges` of the table `info`, which is of the schema with this name."""

    def __init__(
        self, number: int, schema: str, info: TableInfo, at: Offset, ranges: Sequence[RawRange]
    ) -> None:
        super().__init__(number, at)
        self.schema = schema
        self.info = info
        self.ranges = tuple(ranges)
