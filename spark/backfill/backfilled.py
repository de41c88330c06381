"""What a backfill leaves: rows as of one moment, and what can be done with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from ...errors import ConfigError
from ...events import Item, Table
from ...sink import Sink
from ..envelope import Encoder
from ..offsets.offset import Offset
from ..read.schema import envelope_type
from ..read.scratch import scratch
from .chunk_file import ChunkFiles
from .directory import Directory
from .load import PATIENCE_SECONDS, Told, load_sink
from .records import Manifest
from .replay import Replay

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Backfilled:
    """Files that stay until they are removed: load them into sinks, or read them as a DataFrame."""

    def __init__(self, directory: Directory, manifest: Manifest) -> None:
        self._directory = directory
        self._manifest = manifest
        plan = manifest.plan
        self.offset = Offset(plan.end_ts, manifest.position, plan.source)
        """What the rows are as of; the live feed goes on behind it."""
        self.rows = sum(record.rows for record in manifest.records)
        self.chunks = len(manifest.records)

    @property
    def tables(self) -> list[Table]:
        return [table.table for table in self._manifest.plan.tables]

    def load(
        self, sinks: Sequence[Sink], told: Told | None = None, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        """Write all rows into sinks that aren't open, and their checkpoints: a feed of the same name and
        sinks goes on from there, without gap or overlap.

        Killed at any time, the same call goes on behind what each sink has. `told` is called with the rows
        written so far; a target that can't be written to is waited for so long. Raises CheckpointError for a
        sink that holds something else, and what sinks raise.
        """
        directory, manifest = self._directory, self._manifest
        with scratch(directory.scratch) as folder, ChunkFiles(directory, manifest.records, folder) as files:
            for sink in sinks:
                load_sink(Replay(manifest, files), self.offset, sink, told, patience_seconds)

    def frame(self, spark: SparkSession, *, values: str = "json") -> DataFrame:
        """The raw envelope of all rows, a partition for each chunk; any writer takes it.

        `values` = "none" leaves `before` and `after` null.
        """
        work = _Frame(self._directory, json=values == "json")
        return spark.range(0, self.chunks, 1, max(1, self.chunks)).mapInArrow(work, envelope_type())

    def remove(self) -> None:
        """Once everything is where it belongs. Raises ConfigError if somebody uses the directory."""
        self._directory.remove()

    def keep(self) -> None:
        """The commands that load from it leave it where it is."""
        self._directory.keep()

    @property
    def is_kept(self) -> bool:
        return self._directory.is_kept


def opened(directory: str | Path) -> Backfilled:
    """A backfill that was finished before. Raises ConfigError if there is none in the directory."""
    place = Directory(Path(directory))
    manifest = place.manifest()
    if manifest is None:
        raise ConfigError(f"directory: there is no finished backfill in {place.path}")
    return Backfilled(place, manifest)


class _Frame:
    """Sent to the executors by value."""

    def __init__(self, directory: Directory, *, json: bool) -> None:
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
                    encoder = Encoder(json=self._json)
                    items: list[Item] = [replay.creation(table)] if chunk is table.chunks[0] else []
                    yield from (encoder.encode([item]) for item in items)
                    yield from (encoder.encode([item]) for item in replay.chunk(table, chunk))

    @contextmanager
    def _replay(self, manifest: Manifest, number: int) -> Iterator[Replay]:
        records = [record for record in manifest.records if record.number == number]
        with (
            scratch(self._directory.scratch) as folder,
            ChunkFiles(self._directory, records, folder) as files,
        ):
            yield Replay(manifest, files)
