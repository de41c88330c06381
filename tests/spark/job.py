"""A streaming query whose rows are kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import StreamingQueryException

from tidemill.spark.offsets.offset import Offset
from tidemill.testing.progress import RetryDelay

from . import history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


def finished(query: StreamingQuery) -> None:
    """Wait for the query's end. Raises its error, and Stalled if it processes nothing more."""
    delay = RetryDelay(lambda: (str(query.status), str(query.lastProgress)))
    while not query.awaitTermination(1):
        delay.check()


def completed(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Run a query to its end; Spark's limit of 10 s for the start of a Python process is too short on a busy
    machine: then the query goes on from its checkpoint."""
    while True:
        query = start()
        try:
            finished(query)
            return query
        except StreamingQueryException as error:
            if "Python worker failed to connect back" not in str(error):
                raise


class Job:
    """A query whose batches are kept; it may be stopped and started again from its checkpoint."""

    format = "tidemill"

    def __init__(self, spark: SparkSession, directory: Path, source: str, **options: Any) -> None:
        self.spark = spark
        self.directory = directory
        self.options = {"source": source, **options}
        self.batches: dict[int, list[Any]] = {}

    @property
    def found(self) -> list[Any]:
        return [line for batch in sorted(self.batches) for line in self.batches[batch]]

    def start(self, **trigger: Any) -> StreamingQuery:
        reader = self.spark.readStream.format(self.format)
        for name, value in self.options.items():
            reader = reader.option(name, str(value))
        writer = reader.load().writeStream.foreachBatch(self._keep)
        writer = writer.option("checkpointLocation", str(self.directory / "checkpoint"))
        return (writer.trigger(**trigger) if trigger else writer).start()

    def run(self) -> StreamingQuery:
        """Process all available changes."""
        return completed(lambda: self.start(availableNow=True))

    def ends(self) -> list[Offset]:
        """Return the ends of the batches in Spark's log."""
        return [Offset.read(fields) for fields in self.fields()]

    def fields(self) -> list[dict[str, Any]]:
        """The same with all that they have."""
        logs = (self.directory / "checkpoint" / "offsets").glob("[0-9]*")
        files = sorted(logs, key=lambda path: int(path.name))
        return [json.loads(file.read_text().splitlines()[-1]) for file in files]

    def _keep(self, frame: DataFrame, number: int) -> None:
        self.batches[number] = history.of_frame(frame)
