"""Cuts MySQL packets from a byte stream that arrives in pieces of any size.

A packet is a 3-byte length, a 1-byte number and that many bytes of payload; one of 16 MiB - 1 is
continued in the next. Source: the MySQL client/server protocol, "MySQL Packets".
"""

from __future__ import annotations

from struct import Struct
from typing import Final

_header = Struct("<I").unpack_from
_LENGTH: Final = 0xFFFFFF  # of the header, and of a packet that is continued
_ERROR: Final = 0xFF
_EOF: Final = 0xFE
_EOF_LENGTH: Final = 5


class _Held:
    """What is left over from earlier pieces.

    Pieces are joined only once they hold what is missing, so a large packet is not copied again with
    every piece of it.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._needed = 0

    def join(self, data: bytes) -> bytes:
        """Everything held and `data`; empty while that is still too short to go on with."""
        if not self._size:
            return data
        self._pieces.append(data)
        self._size += len(data)
        return b"".join(self._pieces) if self._size >= self._needed else b""

    def keep(self, rest: bytes, needed: int) -> None:
        """Hold `rest` until at least `needed` bytes are there."""
        self._pieces = [rest]
        self._size = len(rest)
        self._needed = needed


class PacketCutter:
    """Payloads, one by one."""

    def __init__(self) -> None:
        self._held = _Held()

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that `data` completes, in order."""
        data = self._held.join(data)
        if not data:
            return []
        payloads = []
        parts: list[bytes] = []
        start = first = 0  # first: where the payload that is being cut begins
        end = len(data)
        needed = 4
        while start + 4 <= end:
            length = _header(data, start)[0] & _LENGTH
            stop = start + 4 + length
            if stop > end:
                needed = stop - first
                break
            payload = data[start + 4 : stop]
            start = stop
            if length == _LENGTH:
                parts.append(payload)
                continue
            if parts:
                payload = b"".join([*parts, payload])
                parts.clear()
            payloads.append(payload)
            first = start
        else:
            needed = start + 4 - first
        self._held.keep(data[first:], needed)
        return payloads


class RowCutter:
    """The rows of one query's result as they came, packet headers included, many in one piece.

    The result is the text protocol's: column definitions, an EOF packet, rows, an EOF packet.
    """

    def __init__(self) -> None:
        self._held = _Held()
        self._described = False
        self.rows = 0
        """How many were cut."""
        self.last_row = b""
        """The last of them, with its headers."""
        self.error = b""
        """The payload of the error packet that ended the result."""
        self.done = False
        """Nothing more will come."""

    def feed(self, data: bytes) -> bytes:
        """The whole rows that `data` completes."""
        data = self._held.join(data)
        if not data:
            return b""
        start = first = 0
        begin = 0  # of the rows
        last = -1
        rows = 0
        end = len(data)
        needed = 4
        while start + 4 <= end:
            length = _header(data, start)[0] & _LENGTH
            stop = start + 4 + length
            if stop > end:
                needed = stop - first
                break
            if start == first and length and data[start + 4] >= _EOF:
                # The first byte of a row is the length of its first value: 0xFF is none, and 0xFE
                # announces eight bytes of length.
                if data[start + 4] == _ERROR:
                    self.error = data[start + 4 : stop]
                    self.done = True
                    break
                if length == _EOF_LENGTH:
                    if self._described:
                        self.done = True
                        break
                    self._described = True
                    start = first = begin = stop
                    continue
            start = stop
            if length == _LENGTH:
                continue
            if self._described:
                rows += 1
                last = first
            else:
                begin = start
            first = start
        else:
            needed = start + 4 - first
        if rows:
            self.rows += rows
            self.last_row = data[last:first]
        self._held.keep(data[first:], needed)
        return data[begin:first]


def payload_of(row: bytes) -> bytes:
    """Of one row as cut by RowCutter."""
    parts = []
    start = 0
    while start < len(row):
        length = _header(row, start)[0] & _LENGTH
        parts.append(row[start + 4 : start + 4 + length])
        start += 4 + length
    return b"".join(parts)


def text_values(payload: bytes, at: int, most: int) -> list[bytes | None]:
    """The first `most` values of the row that begins at `at`, as the text the server prints."""
    values: list[bytes | None] = []
    while len(values) < most:
        length = payload[at]
        at += 1
        if length == 0xFB:
            values.append(None)
            continue
        if length > 0xFB:
            width = {0xFC: 2, 0xFD: 3, 0xFE: 8}[length]
            length = int.from_bytes(payload[at : at + width], "little")
            at += width
        values.append(payload[at : at + length])
        at += length
    return values
