"""Binlog events made by hand, the way the server makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..emulator.mysql.bits import bitmap, lenenc, string

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
    schema, name = (string(text.encode()) + b"\0" for text in table)
    names = [f"c{i}".encode() for i in range(len(columns))]
    metadata = b"".join(column.metadata for column in columns)
    payload = schema + name + lenenc(len(columns)) + bytes(column.type for column in columns)
    payload += string(metadata)
    payload += bitmap([column.nullable for column in columns])
    collations = [column.collation for column in columns if column.collation is not None]
    payload += field(1, bytes((len(columns) + 7) // 8))
    payload += field(3, b"".join(map(lenenc, collations)))
    if full:
        payload += field(4, b"".join(map(string, names)))
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
    return bytes((number,)) + string(value)


def varchar(text: str) -> bytes:
    return len(text.encode()).to_bytes(2, "little") + text.encode()
