"""Events that MariaDB compressed (log_bin_compress)."""

from __future__ import annotations

from typing import Final
from zlib import decompress

from ...errors import SourceError

ROWS_COMPRESSED: Final = {166: 23, 167: 24, 168: 25}
"""Compressed write, update and delete events, mapped to the types of the uncompressed ones."""
_UPDATE: Final = 167
_COLUMN_COUNT: Final = 19 + 8  # after the header, the table id and the flags


def uncompress(data: bytes) -> bytes:
    """Uncompress data: a byte of algorithm and width, the length in that width (big endian), a zlib
    stream."""
    algorithm = data[0] >> 4 & 7
    if algorithm:
        raise SourceError(f"the binlog is compressed by an unknown algorithm ({algorithm})")
    return decompress(data[1 + (data[0] & 7) :])


def uncompress_rows(event: bytes) -> bytes:
    """Return the uncompressed rows event; everything up to the column bitmaps is stored uncompressed."""
    kind = event[4]
    columns, at = _packed_length(event, _COLUMN_COUNT)
    at += (columns + 7) // 8 * (2 if kind == _UPDATE else 1)
    rows = uncompress(event[at:])
    size = (at + len(rows)).to_bytes(4, "little")
    return event[:4] + bytes([ROWS_COMPRESSED[kind]]) + event[5:9] + size + event[13:at] + rows


def _packed_length(data: bytes, at: int) -> tuple[int, int]:
    """Return a length-encoded integer and its end; at most 4,096, as a table has no more columns."""
    if data[at] < 0xFB:
        return data[at], at + 1
    return int.from_bytes(data[at + 1 : at + 3], "little"), at + 3
