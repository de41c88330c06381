"""The data files of one table as they will be after a commit, and which of their rows are gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from ...parquet_format import parquet_writer
from ...store import Store
from ..parquet import open_parquet, read_parts
from .log import CopyColumns, CopyFile, CopyLog

_GROUP_BYTES: Final = 16 << 20
"""Bytes of rows in memory at which they are written as a row group, before compression."""


class CopyFiles:
    """Files by path. New ones are written at once, and readers see them by the commit.

    Every method raises as Store does, and SinkError for a damaged file.
    """

    def __init__(self, store: Store, folder: str, log: CopyLog, base: Mapping[str, CopyFile]) -> None:
        self.base: Final = base
        """Files as of the last commit."""
        self.changed: dict[str, BitMap64] = {}
        """Deleted rows of each file whose rows the log doesn't know, by path."""
        self._store: Final = store
        self._folder: Final = folder
        self._log: Final = log
        self._files: dict[str, CopyFile] = dict(base)
        self._vectors: dict[str, BitMap64] = {}
        """Deleted rows of each file that was looked at."""
        self._written: list[str] = []
        """Names in the store."""

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._files))

    def __len__(self) -> int:
        return len(self._files)

    @property
    def added(self) -> list[CopyFile]:
        """The files that the log doesn't have."""
        return [file for path, file in self._files.items() if path not in self.base]

    @property
    def removed(self) -> list[CopyFile]:
        """The files that only the log has."""
        return [file for path, file in self.base.items() if path not in self._files]

    def __getitem__(self, path: str) -> CopyFile:
        return self._files[path]

    def read(self, path: str, columns: CopyColumns, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield columns of a file by their names in the table, deleted rows too; nulls for those that the
        file lacks."""
        with self._opened(path) as parquet:
            names = columns.names(parquet.schema_arrow)
            own = [names[field.name] for field in schema if field.name in names]
            for rows in read_parts(parquet, own):
                arrays = [
                    rows.column(names[field.name]).cast(field.type)
                    if field.name in names
                    else pa.nulls(len(rows), field.type)
                    for field in schema
                ]
                yield pa.Table.from_arrays(arrays, schema.names)

    def vector(self, path: str) -> BitMap64:
        """Return the numbers of a file's rows that are gone; not to be changed."""
        if path not in self._vectors:
            self._vectors[path] = self._log.vector(self._files[path])
        return self._vectors[path]

    def delete(self, path: str, rows: Iterable[int]) -> None:
        """Delete rows by their numbers."""
        vector = self.changed[path] = self.vector(path)
        vector.update(rows)

    def new(self) -> str:
        """Return the path of a file for `add`. Its rows may be deleted while it is written."""
        path = f"{uuid4()}.parquet"
        self._vectors[path] = BitMap64()
        return path

    def add(self, path: str, parts: Iterable[pa.Table], columns: CopyColumns, schema: pa.Schema) -> None:
        """Write a file."""
        name = self._name(path)
        self._files[path] = write_file(self._store, name, path, parts, columns.stored(schema))

    def join(self, paths: Iterable[str], file: CopyFile, gone: BitMap64) -> None:
        """Put a written file in the place of others, with the numbers of its rows that are gone."""
        for path in paths:
            self._remove(path)
        self._files[file.path] = file
        self._vectors[file.path] = gone
        if gone:
            self.changed[file.path] = gone

    def replace(self, path: str, parts: Iterable[pa.Table], columns: CopyColumns, schema: pa.Schema) -> str:
        """Write a file again with the same rows at the same places, and return its new path."""
        gone = self.vector(path)
        fresh = self.new()
        self.add(fresh, parts, columns, schema)
        if gone:
            self._vectors[fresh] = self.changed[fresh] = gone
        self._remove(path)
        return fresh

    def clear(self) -> None:
        self._files = {}
        self.changed.clear()

    def take(self, log: CopyLog, files: Mapping[str, CopyFile]) -> None:
        """Take the files of another log, by names of their own: an earlier version of this table may have had
        the others."""
        for file in files.values():
            path = self.new()
            name = self._name(path)
            self._store.copy(file.name, name)
            self._files[path] = file._replace(path=path, name=name)
            self._vectors[path] = log.vector(file)
            if self._vectors[path]:
                self.changed[path] = self._vectors[path]

    def remove_emptied(self) -> None:
        """Remove the files whose rows are all gone."""
        for path, gone in list(self.changed.items()):
            if len(gone) == self._rows(path):
                self._remove(path)

    def discard(self) -> None:
        """Remove the files of a commit that isn't made."""
        for name in self._written:
            self._store.remove(name)

    @contextmanager
    def _opened(self, path: str) -> Iterator[pq.ParquetFile]:
        with self._store.open(self._files[path].name) as file:
            yield open_parquet(file)

    def _name(self, path: str) -> str:
        """Return the name of a new file, which is written next."""
        name = f"{self._folder}/{path}"
        self._written.append(name)
        return name

    def _remove(self, path: str) -> None:
        file = self._files.pop(path)
        self.changed.pop(path, None)
        if file.name in self._written:
            self._store.remove(file.name)

    def _rows(self, path: str) -> int:
        file = self._files[path]
        if file.rows is None:
            with self._opened(path) as parquet:
                file = self._files[path] = file._replace(rows=parquet.metadata.num_rows)
        assert file.rows is not None
        return file.rows


def write_file(store: Store, name: str, path: str, parts: Iterable[pa.Table], schema: pa.Schema) -> CopyFile:
    """Write rows as a file of these columns, which it has in the log by `path`. Raises as Store does."""
    buffer = pa.BufferOutputStream()
    with parquet_writer(buffer, schema) as writer:
        for group in _groups(part.cast(schema) for part in parts):
            writer.write_table(group)
    content = buffer.getvalue()
    metadata = pq.read_metadata(pa.BufferReader(content))
    store.write(name, content)
    return CopyFile(path, name, content.size, metadata.num_rows, metadata)


def _groups(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Join parts to row groups."""
    waiting: list[pa.Table] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += part.nbytes
        if size >= _GROUP_BYTES:
            yield pa.concat_tables(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.concat_tables(waiting)
