"""Copies in Delta tables, as readers see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tidemill.events import Row, Table
from tidemill.sink import Sink
from tidemill.sink.files.directory import Directory
from tidemill.sink.files.kinds import storage_sink
from tidemill.sink.files.options import DeltaOptions
from tidemill.sink.files.target import files_target
from tidemill.sink.kind import SinkContext
from tidemill.testing.changes import MemoryStore

from .places import DirectoryPlace


def delta_rows(table: DeltaTable) -> list[dict[str, Any]]:
    batches = QueryBuilder().register("t", table).execute("SELECT * FROM t")
    return pa.table(batches).to_pylist()


def definition(table: DeltaTable) -> Table | None:
    """Return the source's definition of a copy; None if it was dropped."""
    text = table.metadata().configuration.get("tidemill.table")
    return None if text is None else msgspec.json.decode(text, type=Table)


class CopyPlace(DirectoryPlace):
    """A directory of copies, and one for the index of its keys."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, **{"format": "parquet", "mode": "copy", **options})
        self.index = path.with_name(f"{path.name}.index")

    def url(self) -> str:
        return f"delta://{self.path}"

    def sink(self, feed: str = "test", store: Directory | None = None, **options: Any) -> Sink:
        chosen = DeltaOptions(**{"parallel": 1, **self.options, **options})
        target = files_target(store or Directory(self.path), chosen, scratch=self.index)
        return storage_sink(target, SinkContext(name="copy", feed=feed, store=MemoryStore()))

    def table(self, name: str) -> DeltaTable:
        return DeltaTable(self.path / name)

    def rows(self, table: Table) -> list[Row]:
        return [
            tuple(row[column.name] for column in table.columns)
            for row in delta_rows(self.table(table.full_name))
        ]
