"""The data source "tidemill" of Spark."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from ..errors import ConfigError
from ..events import Table
from .launch.active import start_in_any_thread
from .offsets.offsets import open_offsets
from .read.options import ReadOptions, of_batch, of_stream, read_options
from .summary import summarised
from .worker import CopiedToWorkers, freeze_at_second_use

if TYPE_CHECKING:
    from .read.output import Output

PUSHDOWN: str = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Let `spark` read and write format("tidemill"), and make it the active session of this thread.

    Queries may be started from any thread of this process.

    A batch may have the option filterPushdown if spark.sql.python.filterPushdown.enabled is already true;
    call it again after changing that setting.
    """
    pushes = str(spark.conf.get(PUSHDOWN, "false")).lower() == "true"
    spark.dataSource.register(PushingSource if pushes else TidemillSource)
    spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)  # type: ignore[union-attr]
    start_in_any_thread()


class TidemillSource(CopiedToWorkers, DataSource):
    """The data source; docs/reference/spark.md describes its options.

    Spark calls each method in another process, most of them new ones: a method imports what it needs.
    """

    _table: Table | None = None

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        freeze_at_second_use(type(self))

    @classmethod
    def name(cls) -> str:
        return "tidemill"

    @summarised
    def schema(self) -> StructType:
        """Return the columns. Raises ConfigError for an option, Retryable and Fatal for the source."""
        from .read.schema import full_type, with_operations

        options = read_options(self.options)
        return with_operations(full_type(self._found_table(options)), options.operations)

    @summarised
    def reader(self, schema: StructType) -> DataSourceReader:
        from .read.batch_reader import BatchReader

        options, output = self._batch(schema)
        if options.filter_pushdown:
            raise ConfigError(
                f"option filterPushdown: Spark pushes no filters in this session: set {PUSHDOWN} to true and "
                "call tidemill.spark.register again"
            )
        return BatchReader(options, output)

    @summarised
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from .read.output import Output
        from .read.schema_changes import EVOLVE
        from .read.stream_reader import StreamReader
        from .read.superset import with_columns_of

        options = of_stream(read_options(self.options))
        table = self._found_table(options)
        if table is not None and options.schema_changes == EVOLVE:
            table = with_columns_of(table, schema)
        return StreamReader(options, Output(options, table, schema), splits_tables=True)

    @summarised
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from .write.writer import batch_writer

        return batch_writer(self.options, schema, overwrite)

    @summarised
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from .write.writer import stream_writer

        return stream_writer(self.options, schema, overwrite)

    def _batch(self, schema: StructType) -> tuple[ReadOptions, Output]:
        """Return the options of a batch, and its columns."""
        from .read.output import Output
        from .read.superset import narrowed

        options = of_batch(read_options(self.options))
        table = self._found_table(options)
        if table is not None:
            table = narrowed(table, schema)
        return options, Output(options, table, schema)

    def _output(self, options: ReadOptions, schema: StructType) -> Output:
        from .read.output import Output

        return Output(options, self._found_table(options), schema)

    def _found_table(self, options: ReadOptions) -> Table | None:
        """Return the table as of the first call: a query keeps its columns."""
        if options.table and self._table is None:
            with closing(open_offsets(options)) as offsets:
                (self._table,) = offsets.tables()
        return self._table


class PushingSource(TidemillSource):
    """The data source with filter pushdown, which Spark allows only if it is enabled."""

    @summarised
    def reader(self, schema: StructType) -> DataSourceReader:
        from .read.batch_reader import BatchReader, PushingReader

        options, output = self._batch(schema)
        return PushingReader(options, output) if options.filter_pushdown else BatchReader(options, output)
