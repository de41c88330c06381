"""The data files of one table as they will be after a commit, and which of their rows are gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import unquote
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from ...parquet_format import parquet_writer
from ...store import Store
from .deletion_vectors import read_vector, write_vectors
from .delta_log import Action, Snapshot

_KEPT: Final = ("path", "partitionValues", "size", "deletionVector", "tags")
"""Fields of a file's `add` that its `remove` repeats."""


class CopyFiles:
    """Files by path. New ones are written at once, and readers see them by the commit.

    Every method raises as Store does, and SinkError for a damaged file.
    """

    def __init__(self, store: Store, folder: str, base: Snapshot, made_ms: int) -> None:
        self.base: Final = base.files
        """`add` of the files as of the last commit."""
        self._store: Final = store
        self._folder: Final = folder
        self._made_ms: Final = made_ms
        self._files: dict[str, Action] = dict(base.files)
        self._vectors: dict[str, BitMap64] = {}
        """Rows that are gone, of each file that was looked at."""
        self._changed: set[str] = set()
        """Files whose deletion vector isn't that of their `add`."""
        self._written: list[str] = []

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._files))

    def __len__(self) -> int:
        return len(self._files)

    @contextmanager
    def opened(self, path: str) -> Iterator[pq.ParquetFile]:
        with self._store.open(self._full(path)) as file:
            yield pq.ParquetFile(file)

    def vector(self, path: str) -> BitMap64:
        """Return the numbers of a file's rows that are gone; not to be changed."""
        if path not in self._vectors:
            descriptor = self._files[path].get("deletionVector")
            self._vectors[path] = (
                BitMap64() if descriptor is None else read_vector(self._store, self._folder, descriptor)
            )
        return self._vectors[path]

    def delete(self, path: str, rows: Iterable[int]) -> None:
        """Delete rows by their numbers."""
        self.vector(path).update(rows)
        self._changed.add(path)

    def add(self, parts: Iterable[pa.Table], schema: pa.Schema) -> str:
        """Write a file, and return its path."""
        buffer = pa.BufferOutputStream()
        count = 0
        with parquet_writer(buffer, schema) as writer:
            for part in parts:
                writer.write_table(part)
                count += len(part)
        content = buffer.getvalue()
        path = f"{uuid4()}.parquet"
        self._store.write(self._full(path), content)
        self._written.append(path)
        self._files[path] = {
            "path": path,
            "partitionValues": {},
            "size": content.size,
            "modificationTime": self._made_ms,
            "dataChange": True,
            "stats": msgspec.json.encode({"numRecords": count}).decode(),
        }
        return path

    def replace(self, path: str, parts: Iterable[pa.Table], schema: pa.Schema) -> str:
        """Write a file again with the same rows at the same places, and return its new path."""
        gone = self.vector(path)
        fresh = self.add(parts, schema)
        if gone:
            self._vectors[fresh] = gone
            self._changed.add(fresh)
        self._remove(path)
        return fresh

    def clear(self) -> None:
        self._files = {}
        self._changed.clear()

    def take(self, folder: str, snapshot: Snapshot) -> None:
        """Take the files of a table in another folder."""
        for path, add in snapshot.files.items():
            name = unquote(path)
            self._store.copy(f"{folder}/{name}", f"{self._folder}/{name}")
            self._files[path] = {key: value for key, value in add.items() if key != "deletionVector"}
            if descriptor := add.get("deletionVector"):
                self._vectors[path] = read_vector(self._store, folder, descriptor)
                self._changed.add(path)

    def actions(self) -> list[Action]:
        """Return the actions of the commit, and write its deletion vectors."""
        for path in list(self._changed):
            if len(self._vectors[path]) == self._stats(path)["numRecords"]:
                self._remove(path)
        self._write_vectors(sorted(self._changed))
        removed = [add for path, add in self.base.items() if self._files.get(path) != add]
        added = [add for path, add in self._files.items() if self.base.get(path) != add]
        return [*[{"remove": self._removal(add)} for add in removed], *[{"add": add} for add in added]]

    def discard(self) -> None:
        """Remove the files of a commit that isn't made."""
        for path in self._written:
            self._store.remove(self._full(path))

    def _full(self, path: str) -> str:
        return f"{self._folder}/{unquote(path)}"

    def _remove(self, path: str) -> None:
        del self._files[path]
        self._changed.discard(path)
        if path in self._written:
            self._store.remove(self._full(path))

    def _write_vectors(self, paths: Sequence[str]) -> None:
        vectors = write_vectors(self._store, self._folder, [self._vectors[path] for path in paths])
        for path, vector in zip(paths, vectors, strict=True):
            stats = msgspec.json.encode({**self._stats(path), "tightBounds": False}).decode()
            own = {"deletionVector": vector, "stats": stats, "dataChange": True}
            self._files[path] = {**self._files[path], **own}

    def _stats(self, path: str) -> dict[str, Any]:
        """Return the statistics of a file, with the number of its rows."""
        stats: dict[str, Any] = msgspec.json.decode(self._files[path].get("stats") or "{}")
        if "numRecords" not in stats:
            with self.opened(path) as parquet:
                stats["numRecords"] = parquet.metadata.num_rows
        return stats

    def _removal(self, add: Action) -> Action:
        own = {name: add[name] for name in _KEPT if add.get(name) is not None}
        return {
            **own,
            "deletionTimestamp": self._made_ms,
            "dataChange": True,
            "extendedFileMetadata": True,
        }
