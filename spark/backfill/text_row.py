"""Rows of the text protocol: values to packets, and keys out of packets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from struct import Struct
from typing import Any, Final

from ...events import Column, Row, Table
from ...puller.mysql.packets import payload_of, text_values
from ...sink.text import datetime_text, time_text
from .keys import Key

_HEADER: Final = 4
_LONGEST: Final = 0xFFFFFF
_NULL: Final = b"\xfb"
_header = Struct("<I").unpack_from


class RowWriter:
    """Encodes a table's rows as the packets that the server would send for them."""

    def __init__(self, table: Table) -> None:
        self._texts = [_text_of(column) for column in table.columns]

    def packets(self, row: Row) -> bytes:
        """Return one packet, or several for a row of more than 16 MiB."""
        texts = zip(self._texts, row, strict=True)
        payload = b"".join([_NULL if value is None else _measured(text(value)) for text, value in texts])
        parts = []
        for number, at in enumerate(range(0, len(payload) + 1, _LONGEST)):
            part = payload[at : at + _LONGEST]
            parts.append(len(part).to_bytes(3, "little") + bytes([number & 0xFF]) + part)
        return b"".join(parts)


def _text_of(column: Column) -> Callable[[Any], bytes]:
    scale = column.scale
    match column.kind:
        case "char" | "varchar" | "text" | "enum" | "set" | "json" | "uuid" | "inet4" | "inet6":
            return str.encode
        case "binary" | "varbinary" | "blob" | "geometry" | "vector":
            return bytes
        case "float" | "double":
            return lambda value: repr(value).encode()
        case "decimal":
            return lambda value: f"{value:f}".encode()
        case "date":
            return lambda value: (value.isoformat() if isinstance(value, date) else value).encode()
        case "datetime" | "timestamp":
            return lambda value: datetime_text(value, scale).encode()
        case "time":
            return lambda value: time_text(value, scale).encode()
        case _:
            return lambda value: b"%d" % value


def _measured(text: bytes) -> bytes:
    size = len(text)
    if size < 0xFB:
        return bytes([size]) + text
    if size < 1 << 16:
        return b"\xfc" + size.to_bytes(2, "little") + text
    if size < 1 << 24:
        return b"\xfd" + size.to_bytes(3, "little") + text
    return b"\xfe" + size.to_bytes(8, "little") + text


def keyed_rows(packets: bytes, key: Sequence[int]) -> Iterator[tuple[Key, int, int]]:
    """Yield the integer key of each row, and the row's begin and end."""
    most = max(key) + 1  # key columns usually come first, so most of a row isn't read
    start, end = 0, len(packets)
    while start < end:
        size = _header(packets, start)[0] & _LONGEST
        stop = start + _HEADER + size
        if size == _LONGEST:
            stop = _end_of_long(packets, stop)
            values = text_values(payload_of(packets[start:stop]), 0, most)
        else:
            values = text_values(packets, start + _HEADER, most)
        yield tuple([int(values[index] or 0) for index in key]), start, stop
        start = stop


def _end_of_long(packets: bytes, at: int) -> int:
    while True:
        size = _header(packets, at)[0] & _LONGEST
        at += _HEADER + size
        if size < _LONGEST:
            return at
