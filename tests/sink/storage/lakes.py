"""Lakes for tests: places whose tables are read as other programs see them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog

from tidemill.sink.files.directory import Directory
from tidemill.sink.files.lakes.delta_table import Delta
from tidemill.sink.files.lakes.iceberg_address import iceberg_of
from tidemill.sink.files.lakes.iceberg_catalog import open_catalog
from tidemill.sink.files.lakes.iceberg_options import IcebergOptions
from tidemill.sink.files.lakes.iceberg_table import Iceberg
from tidemill.sink.files.lakes.layout import LakeTable
from tidemill.sink.files.options import DeltaOptions
from tidemill.sink.files.store import Store
from tidemill.sink.files.target import FilesTarget, files_target

from .places import BucketPlace, DirectoryPlace, Place


class Lake(Place):
    """Reads the files that are in the tables: each has the columns of its time. Tables are named as their
    folders."""

    def names(self, name: str) -> list[str]:
        """Return the names of a table's files in the place; empty if there is no table."""
        raise NotImplementedError

    def arrow(self, name: str, version: int | None = None) -> pa.Table:
        """Return a table's rows, as of a version or now."""
        raise NotImplementedError

    def version(self, name: str) -> int:
        raise NotImplementedError

    def list(self, name: str) -> list[dict[str, Any]]:
        """Return a table's rows in the order of their commits."""
        return sorted(self.arrow(name).to_pylist(), key=lambda row: (row["commit_ts"], row["sequence"]))

    def changes(self, folder: str) -> list[dict[str, Any]]:
        objects = self.objects()
        changes: list[dict[str, Any]] = []
        for name in self.names(folder.removeprefix("table=")):
            changes += pq.read_table(io.BytesIO(objects[name])).to_pylist()
        keys = [(one["source"], one["commit_ts"], one["start_ts"], one["sequence"]) for one in changes]
        assert len(set(keys)) == len(keys)
        return [change for _, change in sorted(zip(keys, changes, strict=True), key=lambda pair: pair[0])]


class _Delta(Lake):
    def opened(self, name: str, version: int | None = None) -> DeltaTable | None:
        raise NotImplementedError

    def names(self, name: str) -> list[str]:
        table = self.opened(name)
        uris = [] if table is None else table.file_uris()
        return [unquote(uri[uri.index(f"/{name}/") + 1 :]) for uri in uris]

    def arrow(self, name: str, version: int | None = None) -> pa.Table:
        table = self.opened(name, version)
        assert table is not None
        return table.to_pyarrow_table()

    def version(self, name: str) -> int:
        table = self.opened(name)
        assert table is not None
        return int(table.version())


class DeltaLake(_Delta, DirectoryPlace):
    kind = "Delta"

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, **{"format": "parquet", **options})

    def url(self) -> str:
        return f"delta://{self.path}"

    def opened(self, name: str, version: int | None = None) -> DeltaTable | None:
        path = self.path / name
        return DeltaTable(path, version=version) if path.exists() else None

    def target(self, store: Store, **options: Any) -> FilesTarget:
        """Return the target of a sink with another store of this place."""
        return files_target(store, DeltaOptions(**options))

    def another(self, name: str) -> LakeTable:
        """Return a table as another copy of the feed has it."""
        return Delta(name, str(self.path / name), {}, is_remote=False)

    def make(self, name: str, rows: pa.Table) -> None:
        """Make a table as another program does."""
        write_deltalake(self.path / name, rows)


class DeltaBucket(_Delta, BucketPlace):
    def url(self) -> str:
        return f"delta+{super().url()}"

    def opened(self, name: str, version: int | None = None) -> DeltaTable | None:
        storage = {
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.server.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }
        url = f"s3://{self.path}/{name}"
        if not DeltaTable.is_deltatable(url, storage):
            return None
        return DeltaTable(url, version=version, storage_options=storage)


class _Iceberg(Lake):
    def catalog(self) -> Catalog:
        """Return a catalog of pyiceberg's own, with its own access to files."""
        raise NotImplementedError

    def identifier(self, name: str) -> tuple[str, str]:
        schema, _, table = name.partition(".")
        return (schema, table) if table else ("tidemill", name)

    def names(self, name: str) -> list[str]:
        with self.catalog() as catalog:
            if not catalog.table_exists(self.identifier(name)):
                return []
            files = catalog.load_table(self.identifier(name)).scan().plan_files()
        return [task.file.file_path[task.file.file_path.index(f"/{name}/") + 1 :] for task in files]

    def arrow(self, name: str, version: int | None = None) -> pa.Table:
        with self.catalog() as catalog:
            return catalog.load_table(self.identifier(name)).scan(snapshot_id=version).to_arrow()

    def version(self, name: str) -> int:
        with self.catalog() as catalog:
            snapshot = catalog.load_table(self.identifier(name)).current_snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id

    def make(self, name: str, rows: pa.Table) -> None:
        """Make a table as another program does."""
        with self.catalog() as catalog:
            catalog.create_namespace_if_not_exists(self.identifier(name)[0])
            catalog.create_table(self.identifier(name), rows.schema, f"file://{self.path}/{name}").append(
                rows
            )


class IcebergLake(_Iceberg, DirectoryPlace):
    kind = "Iceberg"

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, **{"format": "parquet", **options})

    def url(self) -> str:
        return f"iceberg+sql://{self.path}"

    def catalog(self) -> Catalog:
        return SqlCatalog("tidemill", uri=self.options.get("catalog", f"sqlite:///{self.path}/catalog.db"))

    def objects(self) -> dict[str, bytes]:
        return {name: content for name, content in super().objects().items() if name != "catalog.db"}

    def target(self, store: Store, **options: Any) -> FilesTarget:
        address = iceberg_of(self.url(), IcebergOptions(**options))
        return files_target(store, address.options, address.catalog)

    def another(self, name: str) -> LakeTable:
        address = iceberg_of(self.url(), IcebergOptions())
        store = Directory(self.path)
        catalog = open_catalog(address.catalog, store)
        return Iceberg(catalog, self.identifier(name), f"file://{self.path}/{name}", keep_snapshots=100)


class IcebergBucket(_Iceberg, BucketPlace):
    """Its catalog is a file of SQLite in a directory."""

    def __init__(self, server: Any, path: str, catalog: Path, **options: Any) -> None:
        super().__init__(server, path, endpoint=server.endpoint, location=f"s3://{path}", **options)
        self._directory = catalog

    def url(self) -> str:
        return f"iceberg+sql://{self._directory}"

    def catalog(self) -> Catalog:
        access = {
            "s3.endpoint": self.server.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": "tidemill",
            "s3.secret-access-key": "secret",
        }
        return SqlCatalog("tidemill", uri=f"sqlite:///{self._directory}/catalog.db", **access)


class RestLake(_Iceberg, DirectoryPlace):
    """In a catalog at an address of REST, with its files in a directory."""

    def __init__(self, path: Path, port: int, **options: Any) -> None:
        super().__init__(path, **{"format": "parquet", "location": str(path), **options})
        self.port = port

    def url(self) -> str:
        return f"iceberg+rest://127.0.0.1:{self.port}"

    def catalog(self) -> Catalog:
        return RestCatalog("rest", uri=f"http://127.0.0.1:{self.port}")


LAKES = {"delta": DeltaLake, "iceberg": IcebergLake}
