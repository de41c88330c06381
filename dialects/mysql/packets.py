"""Cutting MySQL packets from a byte stream that is received in chunks of any size.

A packet is a 3-byte length, a 1-byte sequence number and the payload; a payload of 16 MiB - 1 is continued in
the next packet. Source: the MySQL client/server protocol, "MySQL Packets".
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ...codec.native import library
from ...codec.native.library import native

_header = Struct("<I").unpack_from
_LENGTH: Final = 0xFFFFFF  # length of the header, and of a payload that is continued
_ERROR: Final = 0xFF
_EOF: Final = 0xFE
_EOF_LENGTH: Final = 5


class _Remainder:
    """Bytes left over from earlier chunks.

    Chunks are joined only when they contain the missing bytes, so a large packet isn't copied again for each
    chunk.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._needed = 0

    def join(self, data: bytes) -> bytes:
        """Return the kept bytes and `data` joined; empty while they are too short."""
        if not self._size:
            return data
        self._pieces.append(data)
        self._size += len(data)
        if self._size < self._needed:
            return b""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)

    def keep(self, rest: bytes, needed: int) -> None:
        """Keep `rest` until at least `needed` bytes have been received."""
        self._pieces = [rest]
        self._size = len(rest)
        self._needed = needed


class PacketCutter:
    """Cuts a stream into the payloads of its packets."""

    def __init__(self) -> None:
        self._remainder = _Remainder()
        self._whole_payloads = native.whole_payloads if library.in_use else whole_payloads

    def feed(self, data: bytes) -> list[bytes]:
        """Return the payloads that `data` completes, in order."""
        data = self._remainder.join(data)
        if not data:
            return []
        payloads, first = self._whole_payloads(data)
        self._remainder.keep(data[first:], _end_of_started(data, first) - first)
        return payloads


def whole_payloads(data: bytes) -> tuple[list[bytes], int]:
    """Return the payloads whose packets are all there, and their end."""
    payloads: list[bytes] = []
    parts: list[memoryview] = []
    start = first = 0
    while (stop := _packet_end(data, start)) <= len(data):
        part = memoryview(data)[start + 4 : stop]
        parts.append(part)
        start = stop
        if len(part) != _LENGTH:
            payloads.append(b"".join(parts))
            parts.clear()
            first = start
    return payloads, first


class RowCutter:
    """Cuts one query's result into whole rows, unparsed and with packet headers, many in one chunk.

    The result is column definitions, an EOF packet, rows, an EOF packet.
    """

    def __init__(self) -> None:
        self._remainder = _Remainder()
        self.is_described = False
        """True if the column definitions are complete."""
        self._whole_rows = native.whole_rows if library.in_use else whole_rows
        self.head: list[bytes] = []
        """The payloads of the packets before the rows: the number of columns, then their definitions."""
        self.rows = 0
        """Number of rows cut."""
        self.last_row = b""
        """The last row, with its headers."""
        self.error = b""
        """The payload of the error packet that ended the result."""
        self.done = False
        """True if the result has ended."""

    def feed(self, data: bytes) -> bytes:
        """Return the whole rows that `data` completes."""
        data = self._remainder.join(data)
        if not data:
            return b""
        begin = 0 if self.is_described else self._after_columns(data)
        first = begin
        if self.is_described:
            rows, last, first = self._whole_rows(data, begin)
            if rows:
                self.rows += rows
                self.last_row = data[last:first]
        stop = _packet_end(data, first)
        if stop <= len(data) and _is_end(data, first, stop):
            self.error = data[first + 4 : stop] if data[first + 4] == _ERROR else b""
            self.done = True
        self._remainder.keep(data[first:], _end_of_started(data, first) - first)
        return data[begin:first]

    def _after_columns(self, data: bytes) -> int:
        """Return the end of the column definitions; of an error, or a part of them, the start."""
        start = 0
        while (stop := _packet_end(data, start)) <= len(data):
            if _is_end(data, start, stop):
                if data[start + 4] == _ERROR:
                    break
                self.is_described = True
                return stop
            self.head.append(data[start + 4 : stop])
            start = stop
        return start


def whole_rows(data: bytes, start: int) -> tuple[int, int, int]:
    """Return the number of whole rows from `start` on, the start of the last one, and their end."""
    rows = 0
    last = first = start
    while (stop := _packet_end(data, start)) <= len(data):
        if start == first and _is_end(data, start, stop):
            break
        is_last_packet = stop - start != 4 + _LENGTH
        start = stop
        if is_last_packet:
            rows += 1
            last, first = first, start
    return rows, last, first


def _packet_end(data: bytes, start: int) -> int:
    """Return the end of the packet at `start`, or if its header isn't whole, that of the header."""
    return start + 4 + (_header(data, start)[0] & _LENGTH if start + 4 <= len(data) else 0)


def _end_of_started(data: bytes, start: int) -> int:
    """Return the end of the last packet from `start` on that has begun, or will."""
    stop = _packet_end(data, start)
    while stop <= len(data):
        stop = _packet_end(data, stop)
    return stop


def _is_end(data: bytes, start: int, stop: int) -> bool:
    """True for an error or EOF packet: a row of the binary protocol begins with a 0."""
    if stop == start + 4 or data[start + 4] < _EOF:
        return False
    return data[start + 4] == _ERROR or stop - start == 4 + _EOF_LENGTH
