"""Copies in lakes, as readers see them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as IcebergTable

from tidemill.events import Row, Table
from tidemill.sink import Sink
from tidemill.sink.files.directory import Directory
from tidemill.sink.files.kinds import storage_sink
from tidemill.sink.files.lakes.iceberg_address import iceberg_of
from tidemill.sink.files.lakes.iceberg_options import IcebergOptions
from tidemill.sink.files.options import DeltaOptions
from tidemill.sink.files.target import FilesTarget, files_target
from tidemill.sink.kind import SinkContext
from tidemill.testing.changes import MemoryStore

from .places import DirectoryPlace


def delta_rows(table: DeltaTable) -> list[dict[str, Any]]:
    batches = QueryBuilder().register("t", table).execute("SELECT * FROM t")
    return pa.table(batches).to_pylist()


class CopyPlace(DirectoryPlace):
    """A directory of copies, and one for the index of its keys. Tables are named as their folders."""

    types: ClassVar[dict[str, str]]
    """Names of the lake's types by the source's."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, **{"format": "parquet", "mode": "copy", **options})
        self.index = path.with_name(f"{path.name}.index")

    def sink(self, feed: str = "test", store: Directory | None = None, **options: Any) -> Sink:
        chosen = {"parallel": 1, **self.options, **options}
        target = self.target(store or Directory(self.path), **chosen)
        return storage_sink(target, SinkContext(name="copy", feed=feed, store=MemoryStore()))

    def target(self, store: Directory, **options: Any) -> FilesTarget:
        raise NotImplementedError

    def exists(self, name: str) -> bool:
        raise NotImplementedError

    def list(self, name: str) -> list[dict[str, Any]]:
        """Return a table's rows, as another program reads them."""
        raise NotImplementedError

    def properties(self, name: str) -> dict[str, str]:
        raise NotImplementedError

    def columns(self, name: str) -> list[tuple[str, str, bool]]:
        """Return the name and the type of each column, and True if it may be NULL."""
        raise NotImplementedError

    def files(self, name: str) -> list[str]:
        raise NotImplementedError

    def version(self, name: str) -> int:
        raise NotImplementedError

    def compact(self, name: str) -> None:
        """Join a table's files, as another program does."""
        raise NotImplementedError

    def remove(self, name: str, condition: str) -> None:
        """Remove rows, as another program does."""
        raise NotImplementedError

    def make(self, name: str) -> None:
        """Make a table, as another program does."""
        raise NotImplementedError

    def definition(self, name: str) -> Table | None:
        """Return the source's definition of a copy; None if it was dropped."""
        text = self.properties(name).get("tidemill.table")
        return None if text is None else msgspec.json.decode(text, type=Table)

    def rows(self, table: Table) -> list[Row]:
        return rows_of(table, self.list(table.full_name))


def rows_of(table: Table, rows: Iterable[dict[str, Any]]) -> list[Row]:
    return [tuple(row[column.name] for column in table.columns) for row in rows]


class DeltaCopies(CopyPlace):
    types: ClassVar = {"int": "integer", "bigint": "long", "varchar": "string"}

    def url(self) -> str:
        return f"delta://{self.path}"

    def target(self, store: Directory, **options: Any) -> FilesTarget:
        return files_target(store, DeltaOptions(**options), scratch=self.index)

    def table(self, name: str) -> DeltaTable:
        return DeltaTable(self.path / name)

    def exists(self, name: str) -> bool:
        return (self.path / name).exists()

    def list(self, name: str) -> list[dict[str, Any]]:
        return delta_rows(self.table(name))

    def properties(self, name: str) -> dict[str, str]:
        return dict(self.table(name).metadata().configuration)

    def columns(self, name: str) -> list[tuple[str, str, bool]]:
        return [(one.name, one.type.type, one.nullable) for one in self.table(name).schema().fields]

    def files(self, name: str) -> list[str]:
        return self.table(name).file_uris()

    def version(self, name: str) -> int:
        return int(self.table(name).version())

    def compact(self, name: str) -> None:
        self.table(name).optimize.compact()

    def remove(self, name: str, condition: str) -> None:
        self.table(name).delete(condition)

    def make(self, name: str) -> None:
        write_deltalake(self.path / name, pa.table({"n": [1]}))


class IcebergCopies(CopyPlace):
    types: ClassVar = {"int": "int", "bigint": "long", "varchar": "string"}

    def url(self) -> str:
        return f"iceberg+sql://{self.path}"

    def target(self, store: Directory, **options: Any) -> FilesTarget:
        address = iceberg_of(self.url(), IcebergOptions(**options))
        return files_target(store, address.options, address.catalog, self.index)

    def catalog(self) -> SqlCatalog:
        """Return a catalog of pyiceberg's own, with its own access to files."""
        return SqlCatalog("tidemill", uri=f"sqlite:///{self.path}/catalog.db")

    def table(self, name: str) -> IcebergTable:
        with self.catalog() as catalog:
            return catalog.load_table(name)

    def exists(self, name: str) -> bool:
        with self.catalog() as catalog:
            return catalog.table_exists(name)

    def list(self, name: str) -> list[dict[str, Any]]:
        return self.table(name).scan().to_arrow().to_pylist()

    def properties(self, name: str) -> dict[str, str]:
        return self.table(name).properties

    def columns(self, name: str) -> list[tuple[str, str, bool]]:
        return [(one.name, str(one.field_type), not one.required) for one in self.table(name).schema().fields]

    def files(self, name: str) -> list[str]:
        return sorted(task.file.file_path for task in self.table(name).scan().plan_files())

    def version(self, name: str) -> int:
        snapshot = self.table(name).current_snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id

    def compact(self, name: str) -> None:
        table = self.table(name)
        if rows := table.scan().to_arrow():
            table.overwrite(rows)

    def remove(self, name: str, condition: str) -> None:
        self.table(name).delete(condition)

    def make(self, name: str) -> None:
        with self.catalog() as catalog:
            catalog.create_namespace_if_not_exists(name.partition(".")[0])
            rows = pa.table({"n": [1]})
            catalog.create_table(name, rows.schema, f"file://{self.path}/{name}").append(rows)


PLACES = {"delta": DeltaCopies, "iceberg": IcebergCopies}
