"""A snapshot of a TiKV table, read as Spark reads it, and by a feed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as t
from pyspark.sql.datasource import Filter

from tidemill.spark.data_source import PushingSource
from tidemill.spark.read.batch_reader import PushingReader
from tidemill.spark.read.bounded import snapshot_items
from tidemill.spark.read.parts import WHOLE
from tidemill.spark.read.pick import Pick
from tidemill.spark.snapshot.partition import TikvPartition

Row = tuple[Any, ...]


class Snapshot:
    """A planned read of a table."""

    def __init__(
        self,
        url: str,
        table: str,
        *,
        filters: Sequence[Filter] = (),
        columns: Sequence[str] = (),
        **options: Any,
    ) -> None:
        """`columns` are those of the schema; none: all."""
        given = {"source": url, "table": table, "source.scan_page": "7", "filterPushdown": "true", **options}
        source = PushingSource({name: str(value) for name, value in given.items()})
        schema = source.schema()
        if columns:
            row = schema["after"].dataType
            assert isinstance(row, t.StructType)
            only = t.StructType([field for field in row if field.name in columns])
            schema = t.StructType([t.StructField("after", only)])
        reader = source.reader(schema)
        assert isinstance(reader, PushingReader)
        assert list(reader.pushFilters([*filters])) == [*filters]
        self.reader = reader
        self.parts: list[TikvPartition] = []
        for part in reader.partitions():
            assert isinstance(part, TikvPartition)
            self.parts.append(part)

    def lines(self) -> list[dict[str, Any]]:
        """Return the rows with all columns of the schema."""
        return [row for part in self.parts for batch in self.reader.read(part) for row in batch.to_pylist()]

    def rows(self) -> list[Row]:
        """Return the images in order."""
        return ordered([tuple(line["after"].values()) for line in self.lines()])

    def by_feed(self) -> list[Row]:
        """Return the same as a feed's snapshot reads them at the same ts."""
        found = snapshot_items(self.reader.options, WHOLE, self.parts[0].at)
        batches = self.reader.output.batches(Pick(), found)
        return ordered([tuple(row["after"].values()) for batch in batches for row in batch.to_pylist()])


def ordered(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=repr)
