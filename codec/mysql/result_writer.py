"""Rows of a table as a server sends them in the binary protocol."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from struct import Struct
from typing import Any, TypeAlias, assert_never

from ...events import Column, Row, Table
from .result_rows import LONGEST_PAYLOAD, bitmap_bytes, number_format

_Encode: TypeAlias = Callable[[Any], bytes]
_day = Struct("<HBB").pack
_clock = Struct("<BBBI").pack
_time = Struct("<BIBBBI").pack


class ResultWriter:
    """Encodes a table's rows as the packets that the server would send for them."""

    def __init__(self, table: Table) -> None:
        self._encode = [_encoder(column) for column in table.columns]
        self._bitmap_bytes = bitmap_bytes(len(table.columns))

    def packets(self, row: Row) -> bytes:
        """Return one packet, or several for a row of more than 16 MiB."""
        return packets_of(self.payload(row))

    def payload(self, row: Row) -> bytes:
        """Return a row without the headers of packets."""
        nulls = sum([1 << number + 2 for number, value in enumerate(row) if value is None])
        values = [encode(value) for encode, value in zip(self._encode, row, strict=True) if value is not None]
        return b"".join([b"\0", nulls.to_bytes(self._bitmap_bytes, "little"), *values])


def packets_of(payload: bytes, first: int = 0) -> bytes:
    """Return the packets of a payload, the first one with this number."""
    parts = []
    for number, offset in enumerate(range(0, len(payload) + 1, LONGEST_PAYLOAD), first):
        part = payload[offset : offset + LONGEST_PAYLOAD]
        parts.append(len(part).to_bytes(3, "little") + bytes([number & 0xFF]) + part)
    return b"".join(parts)


def _encoder(column: Column) -> _Encode:
    """Return the function of a value, not None, that returns its bytes."""
    if (packing := number_format(column)) is not None:
        return packing.pack
    match column.kind:
        case "binary" | "varbinary" | "blob" | "geometry" | "vector":
            return _measured
        case "decimal":
            return lambda value: _measured(f"{value:f}".encode())
        case "bit":
            size = (column.length + 7) // 8
            return lambda value: _measured(value.to_bytes(size, "big"))
        case "date" | "datetime" | "timestamp":
            return _moment
        case "time":
            return _duration
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "float" | "double" | "char"
            | "varchar" | "text" | "year" | "enum" | "set" | "json" | "uuid" | "inet4" | "inet6"
        ):  # fmt: skip
            return lambda value: _measured(value.encode())
        case _:
            assert_never(column.kind)


def _moment(value: date | str) -> bytes:
    """Encode a date, or date and time; one that no calendar has is a text."""
    if isinstance(value, str):
        day, _, clock = value.partition(" ")
        numbers = [*map(int, day.split("-"))]
        if not clock:
            return _measured(_day(*numbers) if any(numbers) else b"")
        hours, minutes, seconds = clock.split(":")
        second, _, fraction = seconds.partition(".")
        parts = (*numbers, int(hours), int(minutes), int(second), int(fraction.ljust(6, "0")))
    elif isinstance(value, datetime):
        parts = *value.timetuple()[:6], value.microsecond
    else:
        return _measured(_day(value.year, value.month, value.day))
    return _measured(_shortest(_day(*parts[:3]) + _clock(*parts[3:]), (0, 4, 7, 11)))


def _duration(value: timedelta) -> bytes:
    seconds, micros = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
    hours, days = seconds // 3600 % 24, seconds // 86400
    packed = _time(value < timedelta(), days, hours, seconds // 60 % 60, seconds % 60, micros)
    return _measured(_shortest(packed, (0, 8, 12)))


def _shortest(data: bytes, sizes: tuple[int, ...]) -> bytes:
    """Return the shortest form of a time: what is 0 at the end is left out."""
    size = next(size for size in sizes if not any(data[size:]))
    return data[:size]


def _measured(value: bytes) -> bytes:
    size = len(value)
    if size < 0xFB:
        return bytes([size]) + value
    if size < 1 << 16:
        return b"\xfc" + size.to_bytes(2, "little") + value
    if size < 1 << 24:
        return b"\xfd" + size.to_bytes(3, "little") + value
    return b"\xfe" + size.to_bytes(8, "little") + value
