"""What each column adds to the checksum of its row. Source: TiDB's rowcodec package."""

from __future__ import annotations

import struct
from datetime import timedelta
from typing import Any

from .decimal import decode_decimal
from .field import Field
from .time import printed_date, printed_datetime, printed_duration


def digests(field: Field, bare: Any) -> tuple[bytes, ...]:
    """The bytes that may have gone into the checksum, those of an INSERT first.

    There is more than one for a zero date with fractions: TiDB prints what a statement brings without
    fraction, and what it read back from a row with it. And for a 0 that may have been -0: no row holds that.
    """
    match field.kind:
        case "float" | "double":
            return tuple(struct.pack("<d", number) for number in ((bare, -bare) if bare == 0 else (bare,)))
        case "decimal":
            return (_counted(f"{decode_decimal(bare):f}".encode()),)
        case "date":
            return (_counted(printed_date(bare).encode()),)
        case "datetime" | "timestamp":
            scales = (field.scale,) if bare or not field.scale else (0, field.scale)
            return tuple(_counted(printed_datetime(bare, scale).encode()) for scale in scales)
        case "time":
            return (_counted(printed_duration(timedelta(0, 0, bare // 1000), field.scale).encode()),)
        case "json":
            return (_counted(field.read(bare).encode()),)
        case "char" | "varchar" | "text" | "binary" | "varbinary" | "blob":
            return (_counted(bare),)
    return (struct.pack("<Q", bare & (1 << 64) - 1),)


def _counted(text: bytes) -> bytes:
    return struct.pack("<I", len(text)) + text
