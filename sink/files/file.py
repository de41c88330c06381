"""A sink that appends lines to one file."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ...errors import InvariantViolated, SinkError
from ...events import Batch, Checkpoint
from ...failpoint import reach
from ...store.disk import sync
from ..sink import CheckpointStore, Sink, SinkTraits
from .lines import Lines
from .ndjson import NdjsonLines


class FileSink(Sink):
    """Appends to one file, exactly once: the checkpoint contains the file's length, to which it is truncated
    after a crash."""

    def __init__(self, name: str, path: Path, store: CheckpointStore, lines: Lines | None = None) -> None:
        self.name = name
        self.target = f"file:{path.absolute().resolve()}"
        self._path = path
        self._new_path = path.with_name(path.name + ".new")
        self._store = store
        self._file: BinaryIO | None = None
        self._durable: Checkpoint | None = None
        self._reached: Checkpoint | None = None
        self._lines = lines or NdjsonLines()

    @property
    def traits(self) -> SinkTraits:
        return SinkTraits(needs_key=False, tells_definitions=self._lines.has_definitions)

    def open(self) -> Checkpoint | None:
        stored = self._store.load()
        self._durable, length = stored or (None, 0)
        self._reached = None
        self._lines.start()
        try:
            if stored is None:
                self._begin()
            else:
                self._go_on(length)
        except OSError as error:
            raise SinkError(f"can't open {self._path}: {error.strerror}") from error
        return self._durable

    def _begin(self) -> None:
        """Start in a file of another name: then an existing file without a checkpoint is never ours."""
        if self._path.exists() and self._path.stat().st_size:
            raise SinkError(f"{self._path} holds something already: remove it, or name another file")
        self._file = self._new_path.open("wb")

    def _go_on(self, length: int) -> None:
        if self._new_path.exists():  # a crash came between the first checkpoint and the rename
            self._new_path.replace(self._path)
        size = self._path.stat().st_size if self._path.exists() else 0
        if size < length:
            raise SinkError(
                f"{self._path} has {size} bytes, its checkpoint says {length}: put back the whole file, "
                "or remove it and its checkpoint to begin again"
            )
        self._file = self._path.open("ab")
        self._file.seek(self._file.truncate(length))  # a checkpoint without rows needs the length

    def write(self, batch: Batch) -> None:
        if self._file is None:
            raise InvariantViolated(f"{self.target} is written while it is closed")
        try:
            for item in batch.items:
                self._file.write(self._lines.of(item))
                reach("sink.mid_batch")
        except OSError as error:
            self._fail(error)
        self._reached = batch.checkpoint

    def flush(self) -> Checkpoint | None:
        file, reached = self._file, self._reached
        if file is None or reached is None or reached == self._durable:
            return self._durable
        try:
            file.write(self._lines.watermark(reached.ts))
            file.flush()
            os.fsync(file.fileno())
            if self._durable is None:
                sync(self._path.parent)  # else the file might be missing after a power failure
            reach("sink.before_commit")
            self._store.save(reached, file.tell())
            if self._durable is None:
                self._new_path.replace(self._path)
        except OSError as error:
            self._fail(error)
        self._durable = reached
        reach("sink.committed")
        return reached

    def has_table(self, schema: str, table: str) -> bool:  # noqa: ARG002
        return True  # not known from a stream of changes

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # unflushed lines aren't in the checkpoint either
                file.close()

    def _fail(self, error: OSError) -> None:
        self.close()
        raise SinkError(f"can't write {self._path}: {error.strerror}") from error
