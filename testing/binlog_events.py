"""Binlog events made by hand, the way the server makes them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

UTF8MB4_BIN = 46
BINARY = 63
INSERT, UPDATE, DELETE = 23, 24, 25


class ColumnSpec(NamedTuple):
    """A column in a Table_map event: the protocol's type number, its metadata and collation."""

    type: int
    metadata: bytes = b""
    nullable: bool = True
    collation: int | None = None


TINY = ColumnSpec(1)
INT = ColumnSpec(3)
BLOB = ColumnSpec(252, b"\2", collation=BINARY)
VARCHAR = ColumnSpec(15, (1200).to_bytes(2, "little"), collation=UTF8MB4_BIN)


def decimal(digits: int, scale: int) -> ColumnSpec:
    return ColumnSpec(246, bytes((digits, scale)))


def table_map(*columns: ColumnSpec, full: bool = True, table: tuple[str, str] = ("shop", "t")) -> bytes:
    """The payload for a table with columns c0, c1 ...; the first is the key."""
    schema, name = (lenenc(len(text)) + text.encode() + b"\0" for text in table)
    names = [f"c{i}".encode() for i in range(len(columns))]
    metadata = b"".join(column.metadata for column in columns)
    payload = schema + name + lenenc(len(columns)) + bytes(column.type for column in columns)
    payload += lenenc(len(metadata)) + metadata
    payload += bitmap([column.nullable for column in columns])
    collations = [column.collation for column in columns if column.collation is not None]
    payload += field(1, bytes((len(columns) + 7) // 8))
    payload += field(3, b"".join(map(lenenc, collations)))
    if full:
        payload += field(4, b"".join(lenenc(len(name)) + name for name in names))
        payload += field(8, b"\0")
    return payload


def rows_event(kind: int, rows: Sequence[Sequence[bytes | None]], *, extra: bytes | None = None) -> bytes:
    """A rows event of encoded values, checksum cut off; `extra` is there from kind 30 on."""
    width = len(rows[0])
    body = b"\x17\0\0\0\0\0\1\0"
    if extra is not None:
        body += (2 + len(extra)).to_bytes(2, "little") + extra
    body += lenenc(width) + bitmap([True] * width) * (2 if kind in (UPDATE, 31) else 1)
    for row in rows:
        nulls = bitmap([value is None for value in row])
        unused = -(1 << width) % (1 << 8 * len(nulls)) if width % 8 else 0
        body += (int.from_bytes(nulls, "little") | unused).to_bytes(len(nulls), "little")
        body += b"".join(value for value in row if value is not None)
    return event(kind, body)


def event(kind: int, body: bytes) -> bytes:
    size = 19 + len(body) + 4
    return bytes(4) + bytes((kind,)) + bytes(4) + size.to_bytes(4, "little") + bytes(6) + body


def field(number: int, value: bytes) -> bytes:
    return bytes((number,)) + lenenc(len(value)) + value


def lenenc(number: int) -> bytes:
    if number < 251:
        return bytes((number,))
    return b"\xfc" + number.to_bytes(2, "little")


def bitmap(bits: Sequence[bool]) -> bytes:
    return sum(bit << i for i, bit in enumerate(bits)).to_bytes((len(bits) + 7) // 8, "little")


def varchar(text: str) -> bytes:
    return len(text.encode()).to_bytes(2, "little") + text.encode()


def decimal_bytes(value: Decimal, digits: int, scale: int) -> bytes:
    """As decimal2bin of the server's strings/decimal.c does."""
    text = f"{value.copy_abs():0{digits + 1}.{scale}f}" if scale else f"{value.copy_abs():0{digits}.0f}"
    whole, _, fraction = text.partition(".")
    whole = whole[len(whole) - (digits - scale) :] if digits > scale else ""
    first = len(whole) % 9
    words = [whole[:first], *(whole[i : i + 9] for i in range(first, len(whole), 9))]
    words += [fraction[i : i + 9] for i in range(0, scale, 9)]
    sizes = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
    packed = b"".join(int(word).to_bytes(sizes[len(word)], "big") for word in words if word)
    if value < 0:
        packed = bytes(byte ^ 0xFF for byte in packed)
    return bytes((packed[0] ^ 0x80,)) + packed[1:]


def time_bytes(value: timedelta, scale: int) -> bytes:
    """As my_time_packed_to_binary of sql-common/my_time.c does: TIME2."""
    seconds, micros = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
    fraction_bytes = (scale + 1) // 2
    clock = seconds // 3600 << 12 | seconds // 60 % 60 << 6 | seconds % 60
    packed = clock << 8 * fraction_bytes | micros // 100 ** (3 - fraction_bytes)
    middle: int = 1 << 8 * fraction_bytes + 23
    signed: int = -packed if value < timedelta() else packed
    return (middle + signed).to_bytes(3 + fraction_bytes, "big")


def datetime_bytes(value: datetime, scale: int) -> bytes:
    """As my_datetime_packed_to_binary does: DATETIME2."""
    days = (value.year * 13 + value.month) << 5 | value.day
    packed = (days << 17 | value.hour << 12 | value.minute << 6 | value.second) + (1 << 39)
    fraction_bytes = (scale + 1) // 2
    fraction: int = value.microsecond // 100 ** (3 - fraction_bytes)
    return packed.to_bytes(5, "big") + fraction.to_bytes(fraction_bytes, "big")
