"""Batches on disk: each segment is one Arrow IPC file, complete before it is read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from ...errors import StoreError


class Segment:
    """A scratch file, written once, readable by batch, and removed when its last batch is released.

    All methods but `read` need the buffer's lock.
    """

    def __init__(self, path: Path, batches: Sequence[pa.RecordBatch]) -> None:
        """Write the batches. Raises StoreError if that fails."""
        self._path = path
        self._left = len(batches)
        try:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batches[0].schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            self.bytes = path.stat().st_size
            self._reader = pa.ipc.open_file(pa.memory_map(str(path)))
        except (OSError, pa.ArrowException) as error:
            with suppress(OSError):
                path.unlink()
            raise StoreError(f"can't write {path}: {error}") from error

    def read(self, number: int) -> pa.RecordBatch:
        """Return a batch, which stays readable after the file is removed. Raises StoreError."""
        try:
            return self._reader.get_batch(number)
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"can't read {self._path}: {error}") from error

    def release(self) -> int:
        """Release one batch; return the number of bytes freed on disk."""
        self._left -= 1
        if self._left:
            return 0
        with suppress(OSError):
            self._path.unlink()
        return self.bytes
