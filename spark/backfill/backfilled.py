"""The result of a backfill: rows as of one position, to load into sinks or read as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from ...errors import ConfigError
from ...events import Item, Table
from ...sink import SinkFactory
from ..envelope import EnvelopeEncoder
from ..offsets.offset import Offset
from ..read.commit_time import timed
from ..read.schema import envelope_type
from ..read.scratch import scratch
from .chunk_file import ChunkFiles
from .directory import BackfillDirectory
from .load import PATIENCE_SECONDS, Told, load_sink
from .records import Manifest
from .replay import Replay

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Backfilled:
    """The files of a finished backfill, which stay until `remove`."""

    def __init__(self, directory: BackfillDirectory, manifest: Manifest) -> None:
        self._directory = directory
        self._manifest = manifest
        plan = manifest.plan
        self.offset = Offset(plan.end_ts, manifest.position, plan.source)
        """The position of the rows; the live feed continues after it."""
        self.rows = sum(record.rows for record in manifest.records)
        self.chunks = len(manifest.records)

    @property
    def tables(self) -> list[Table]:
        return [table.table for table in self._manifest.plan.tables]

    def load(
        self,
        sinks: Sequence[SinkFactory],
        told: Told | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """Write all rows and checkpoints into the sinks of these factories: a feed of the same name and sinks
        continues from there, without gap or overlap.

        After a kill, the same call continues after the rows that each sink has. `told` is called with the
        rows written so far; a target that can't be written to is retried for `patience_seconds`.
        Raises CheckpointError for a sink that holds something else, and the sinks' errors.
        """
        directory, manifest = self._directory, self._manifest
        with scratch(directory.scratch) as folder, ChunkFiles(directory, manifest.records, folder) as files:
            for sink in sinks:
                load_sink(Replay(manifest, files), self.offset, sink, told, patience_seconds)

    def frame(self, spark: SparkSession, *, values: str = "json") -> DataFrame:
        """Return all rows in the raw envelope, one partition per chunk, for any writer.

        `values` = "none" leaves `before` and `after` null.
        """
        work = _Frame(self._directory, json=values == "json")
        return spark.range(0, self.chunks, 1, max(1, self.chunks)).mapInArrow(work, envelope_type())

    def remove(self) -> None:
        """Remove the files. Raises ConfigError if another process uses the directory."""
        self._directory.remove()

    def keep(self) -> None:
        """Make the commands that load from the files keep them."""
        self._directory.keep()

    @property
    def is_kept(self) -> bool:
        return self._directory.is_kept


def opened(directory: str | Path) -> Backfilled:
    """Open a finished backfill. Raises ConfigError if the directory holds none."""
    place = BackfillDirectory(Path(directory))
    manifest = place.manifest()
    if manifest is None:
        raise ConfigError(f"directory: there is no finished backfill in {place.path}")
    return Backfilled(place, manifest)


class _Frame:
    """Sent to the executors by value."""

    def __init__(self, directory: BackfillDirectory, *, json: bool) -> None:
        self._directory = directory
        self._json = json

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        manifest = self._directory.manifest()
        assert manifest is not None
        chunks = list(manifest.plan.chunks())
        for batch in batches:
            for at in batch.column(0).to_pylist():
                table, chunk = chunks[at]
                with self._replay(manifest, chunk.number) as replay:
                    encoder = EnvelopeEncoder(json=self._json)
                    items: list[Item] = [replay.creation(table)] if chunk is table.chunks[0] else []
                    yield from (timed(encoder.encode([item])) for item in items)
                    yield from (timed(encoder.encode([item])) for item in replay.chunk(table, chunk))

    @contextmanager
    def _replay(self, manifest: Manifest, number: int) -> Iterator[Replay]:
        records = [record for record in manifest.records if record.number == number]
        with (
            scratch(self._directory.scratch) as folder,
            ChunkFiles(self._directory, records, folder) as files,
        ):
            yield Replay(manifest, files)
