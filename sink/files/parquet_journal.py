"""Journal of acknowledged rows that aren't in Parquet files yet: Arrow batches of all tables in sequence."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final
from zlib import crc32

import pyarrow as pa

from ...errors import SinkError

_FRAME: Final = Struct("<QIQ")
"""Header of each piece: its bytes, its CRC-32, and its schema's offset in the segment; _SCHEMA for a
schema."""
_SCHEMA: Final = 0xFFFF_FFFF_FFFF_FFFF
_PREFIX: Final = "journal-"


class Segment:
    """A part of the journal from its byte `start`, which is the file's name.

    Opening may only truncate it to the checkpoint's length; appends are durable after `sync`.
    """

    def __init__(self, folder: Path, start: int) -> None:
        self.start = start
        self.path = folder / journal_name(start)
        self._file = self.path.open("ab")
        self.end = start + self._file.tell()
        """The journal's length up to the end of this segment."""
        self._schemas: dict[bytes, int] = {}  # offsets of schemas

    @property
    def is_empty(self) -> bool:
        return self.end == self.start

    def append(self, schema: bytes, batch: pa.RecordBatch) -> None:
        """Append a batch, with its serialized schema. Raises OSError."""
        if schema not in self._schemas:
            self._schemas[schema] = self.end - self.start
            self._piece(schema, _SCHEMA)
        self._piece(batch.serialize(), self._schemas[schema])

    def _piece(self, content: bytes | pa.Buffer, where: int) -> None:
        size = len(content)
        self._file.write(_FRAME.pack(size, crc32(content), where))
        self._file.write(content)
        self.end += _FRAME.size + size

    def sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def cut(self, end: int) -> None:
        """Remove everything after `length`."""
        self._file.truncate(end - self.start)
        self.end = end
        self._schemas.clear()  # some schemas may have been after it

    def close(self) -> None:
        self._file.close()


def journal_name(start: int) -> str:
    return f"{_PREFIX}{start:020}"


def segments(folder: Path) -> list[int]:
    """Return the starts of the segments in a folder, in order."""
    return sorted(int(path.name.removeprefix(_PREFIX)) for path in folder.glob(f"{_PREFIX}*"))


def batches(path: Path) -> Iterator[tuple[bytes, pa.RecordBatch]]:
    """Yield a segment's batches in order, each with its schema's bytes. Raises SinkError and OSError."""
    schemas: dict[int, tuple[bytes, pa.Schema]] = {}
    with path.open("rb") as file:
        while head := file.read(_FRAME.size):
            at = file.tell() - len(head)
            size, checksum, where = _FRAME.unpack(head) if len(head) == _FRAME.size else (0, 1, 0)
            content = file.read(size)
            if crc32(content) != checksum or len(content) < size:
                raise SinkError(f"{path} is damaged at byte {at}: put back a copy of the whole archive")
            if where == _SCHEMA:
                schemas[at] = content, pa.ipc.read_schema(pa.py_buffer(content))
            else:
                name, schema = schemas[where]
                yield name, pa.ipc.read_record_batch(pa.py_buffer(content), schema)
