"""Rows of a result in the binary protocol: values to packets, and keys out of packets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from struct import Struct
from typing import Any

from ...codec.mysql.result_rows import (
    HEADER_BYTES,
    LONGEST_PAYLOAD,
    bitmap_bytes,
    counted,
    end_of_row,
    number_format,
    unsplit,
)
from ...events import Column, Row, Table
from .keys import Key

_Encode = Callable[[Any], bytes]
_day = Struct("<HBB").pack
_clock = Struct("<BBBI").pack
_time = Struct("<BIBBBI").pack


class RowWriter:
    """Encodes a table's rows as the packets that the server would send for them."""

    def __init__(self, table: Table) -> None:
        self._encode = [_encoder(column) for column in table.columns]
        self._bitmap_bytes = bitmap_bytes(len(table.columns))

    def packets(self, row: Row) -> bytes:
        """Return one packet, or several for a row of more than 16 MiB."""
        nulls = sum([1 << number + 2 for number, value in enumerate(row) if value is None])
        values = [encode(value) for encode, value in zip(self._encode, row, strict=True) if value is not None]
        payload = b"".join([b"\0", nulls.to_bytes(self._bitmap_bytes, "little"), *values])
        parts = []
        for number, at in enumerate(range(0, len(payload) + 1, LONGEST_PAYLOAD)):
            part = payload[at : at + LONGEST_PAYLOAD]
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
        case _:
            return lambda value: _measured(value.encode())


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


class KeyReader:
    """Reads the keys of rows, which are integers, out of packets."""

    def __init__(self, table: Table) -> None:
        self._bitmap_bytes = bitmap_bytes(len(table.columns))
        # Key columns usually come first, so most of a row isn't read.
        self._formats = [number_format(column) for column in table.columns[: max(table.key) + 1]]
        self._order = table.key

    def rows(self, packets: bytes) -> Iterator[tuple[Key, int, int]]:
        """Yield the key of each row, and the row's begin and end."""
        start = 0
        while start < len(packets):
            stop, at = end_of_row(packets, start), start + HEADER_BYTES
            if stop - start > LONGEST_PAYLOAD:
                values = self._values(unsplit(packets[start:stop], HEADER_BYTES)[0], 0)
            else:
                values = self._values(packets, at)
            yield tuple([values[index] for index in self._order]), start, stop
            start = stop

    def _values(self, data: bytes, at: int) -> list[int]:
        """Return the numbers of a row up to the key's last one; 0 for any other value."""
        at += 1
        nulls = int.from_bytes(data[at : at + self._bitmap_bytes], "little") >> 2
        at += self._bitmap_bytes
        values = []
        for number, packing in enumerate(self._formats):
            value = 0
            if not nulls >> number & 1:
                if packing is not None:
                    (value,) = packing.unpack_from(data, at)
                    at += packing.size
                else:
                    size, at = counted(data, at)
                    at += size
            values.append(value)
        return values
