"""A sink that writes lines, exactly once: after a crash the file is truncated to the checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from tidemill.errors import SinkError
from tidemill.events import Batch, Checkpoint, CreateTable, Ddl, Item, Table
from tidemill.sink.sink import CheckpointStore, Sink

from .line import Line, encode, row_line, table_line


class CsvSink(Sink):
    def __init__(self, name: str, path: Path, store: CheckpointStore) -> None:
        self.name = name
        self.target = f"csv:{path.absolute().resolve()}"
        self._path = path
        self._new_path = path.with_name(f"{path.name}.new")
        self._store = store
        self._file: BinaryIO | None = None
        self._durable: Checkpoint | None = None
        self._reached: Checkpoint | None = None
        self._tables: dict[str, Table] = {}
        """Tables as written last."""

    def open(self) -> Checkpoint | None:
        stored = self._store.load()
        self._durable, length = stored or (None, 0)
        self._reached = None
        self._tables.clear()  # each definition is written again with its next row
        try:
            if stored is None:
                self._begin()
            else:
                self._go_on(length)
        except OSError as error:
            raise SinkError(f"can't open {self._path}: {error.strerror}") from error
        return self._durable

    def _begin(self) -> None:
        """Begin in a file of another name: one without a checkpoint that has this name is never ours."""
        if self._path.exists() and self._path.stat().st_size:
            raise SinkError(f"{self._path} holds something already: remove it, or name another file")
        self._file = self._new_path.open("wb")

    def _go_on(self, length: int) -> None:
        if self._new_path.exists():  # a crash came between the first checkpoint and the new name
            self._new_path.replace(self._path)
        self._file = self._path.open("ab")
        if self._file.tell() < length:
            raise SinkError(f"{self._path} is shorter than its checkpoint says: put back the whole file")
        self._file.seek(self._file.truncate(length))

    def write(self, batch: Batch) -> None:
        assert self._file is not None
        try:
            self._file.write(b"".join(encode(line) for item in batch.items for line in self._lines(item)))
        except OSError as error:
            raise SinkError(f"can't write {self._path}: {error.strerror}") from error
        self._reached = batch.checkpoint

    def flush(self) -> Checkpoint | None:
        if self._file is not None and self._reached not in (None, self._durable):
            try:
                self._file.flush()
                os.fsync(self._file.fileno())
                assert self._reached is not None
                self._store.save(self._reached, self._file.tell())
                if self._durable is None:
                    self._new_path.replace(self._path)
            except OSError as error:
                raise SinkError(f"can't write {self._path}: {error.strerror}") from error
            self._durable = self._reached
        return self._durable

    def has_table(self, schema: str, table: str) -> bool:
        return True  # not known from a stream of changes

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _lines(self, item: Item) -> list[Line]:
        lines = []
        if isinstance(item, Ddl):
            for action in item.actions:
                if not isinstance(action, CreateTable):
                    raise SinkError(f"a csv sink can't follow {item.query!r}: begin again in another file")
                lines.append(self._define(item.commit_ts, action.table))
        else:
            for change in item.rows:
                if self._tables.get(change.table.full_name) != change.table:
                    lines.append(self._define(item.commit_ts, change.table))
                lines.append(row_line(change))
        if item.last:
            lines.append(Line(item.commit_ts, "commit"))
        return lines

    def _define(self, ts: int, table: Table) -> Line:
        self._tables[table.full_name] = table
        return table_line(ts, table)
