"""Events that MariaDB (log_bin_compress) or MySQL (binlog_transaction_compression) compressed."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from struct import Struct
from typing import IO, Final

from zstandard import ZstdDecompressor, ZstdError

from ...codec.mysql.values import uncompressed
from ...errors import SourceError

ROWS_COMPRESSED: Final = {166: 23, 167: 24, 168: 25}
"""Compressed write, update and delete events, mapped to the types of the uncompressed ones."""
_UPDATE: Final = 167
_COLUMN_COUNT: Final = 19 + 8  # after the header, the table id and the flags

_END, _SIZE, _ALGORITHM, _UNCOMPRESSED_SIZE = range(4)
"""Fields in front of a transaction's events."""
_ZSTD, _NONE = 0, 255
_HEADER: Final = 19
_STEP_BYTES: Final = 1 << 20
_size_of_event = Struct("<9xI").unpack_from


def uncompress(data: bytes) -> bytes:
    """Uncompress a part of an event, which has the form of a compressed value. Raises SourceError."""
    try:
        return uncompressed(data)
    except ValueError as error:
        raise SourceError(f"a compressed event of the binlog can't be read: {error}") from None


def uncompress_rows(event: bytes) -> bytes:
    """Return the uncompressed rows event; everything up to the column bitmaps is stored uncompressed."""
    kind = event[4]
    columns, at = _packed_length(event, _COLUMN_COUNT)
    at += (columns + 7) // 8 * (2 if kind == _UPDATE else 1)
    rows = uncompress(event[at:])
    size = (at + len(rows)).to_bytes(4, "little")
    return event[:4] + bytes([ROWS_COMPRESSED[kind]]) + event[5:9] + size + event[13:at] + rows


def events_of_payload(body: bytes) -> Iterator[bytes]:
    """Yield the events of a TRANSACTION_PAYLOAD, which have no checksums, while they are uncompressed.

    Raises SourceError for a payload that is damaged, longer than it says, or compressed by another algorithm.
    """
    fields = {_ALGORITHM: _NONE}
    at = 0
    try:
        while True:
            kind, at = packed_number(body, at)
            if kind == _END:
                break
            length, at = packed_number(body, at)
            fields[kind] = packed_number(body, at)[0]
            at += length
    except LookupError:
        raise SourceError("a transaction's payload in the binlog can't be read") from None
    data = body[at:]
    if fields[_ALGORITHM] not in (_ZSTD, _NONE):
        raise SourceError(f"the binlog is compressed by an unknown algorithm ({fields[_ALGORITHM]})")
    if len(data) != fields.get(_SIZE, len(data)):
        raise SourceError("a transaction's payload in the binlog is cut off")
    left = fields.get(_UNCOMPRESSED_SIZE, 0)
    if fields[_ALGORITHM] == _NONE:
        stream: IO[bytes] = BytesIO(data)
        left = len(data)
    else:
        stream = ZstdDecompressor().stream_reader(data, read_across_frames=True)
    try:
        while header := _read(stream, _HEADER):
            size = _size_of_event(header)[0] - _HEADER if len(header) == _HEADER else -1
            left -= size + _HEADER
            event = header + (_read(stream, size) if size > 0 and left >= 0 else b"")
            if len(event) != size + _HEADER:
                raise SourceError("a transaction's payload in the binlog is damaged")
            yield event
    except ZstdError as error:
        raise SourceError(f"a transaction's payload in the binlog is damaged: {error}") from None


def _read(stream: IO[bytes], size: int) -> bytes:
    """Read `size` bytes, or all that are left; in steps, as a damaged size may be large."""
    pieces = []
    while size and (piece := stream.read(min(size, _STEP_BYTES))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def packed_number(data: bytes, at: int) -> tuple[int, int]:
    """Return a length-encoded integer and its end."""
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    end = at + 1 + {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1 : end], "little"), end


def _packed_length(data: bytes, at: int) -> tuple[int, int]:
    """Return a length-encoded integer and its end; at most 4,096, as a table has no more columns."""
    if data[at] < 0xFB:
        return data[at], at + 1
    return int.from_bytes(data[at + 1 : at + 3], "little"), at + 3
