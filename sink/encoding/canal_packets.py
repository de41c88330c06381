"""Canal's packets: the messages into which entries are put."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from ...codec.proto import canal
from ...events import Table
from .encoder import Message
from .options import CanalProtobufOptions
from .oversize import RECORD_BYTES, check_size
from .protobuf_bytes import delimited

MakeEntry: TypeAlias = Callable[[list[bytes]], bytes]
"""Returns an entry with these rows, each a whole field."""

_NAME: Final = "canal-protobuf"
_HEAD: Final[bytes] = canal.Packet(type=canal.PacketType.MESSAGES).SerializeToString()
_BODY: Final = 5
_MESSAGE: Final = 2
_ROOM: Final = 32
"""Largest number of bytes by which the lengths of a packet and an entry grow with their rows."""


class Packets:
    """Fills packets with entries, up to the options' rows and bytes."""

    def __init__(self, options: CanalProtobufOptions) -> None:
        self._most: Final = options.max_batch_size
        self._limit: Final = options.max_message_bytes
        self._options: Final = options
        self._done: Final[list[Message]] = []
        self._entries: list[bytes] = []
        self._rows = 0
        self._size = 0

    def mark(self, entry: bytes) -> None:
        """Add an entry without rows."""
        self._add(entry, 0)

    def add(self, table: Table, make: MakeEntry, rows: list[bytes]) -> None:
        """Add rows of one table."""
        start = 0
        while start < len(rows):
            if self._rows == self._most:
                self._close()
            end = min(start + self._most - self._rows, len(rows))
            if self._limit:
                end = self._fitting(table, make, rows, start, end)
                if end == start:
                    self._close()
                    continue
            self._add(make(rows[start:end]), end - start)
            start = end

    def messages(self) -> list[Message]:
        """Return the packets; the object isn't used after that."""
        self._close()
        return self._done

    def _fitting(self, table: Table, make: MakeEntry, rows: list[bytes], start: int, end: int) -> int:
        """Return the end of the rows that fit; `start` if the packet has to be closed first."""
        size = self._size + len(make([])) + RECORD_BYTES + _ROOM
        for place in range(start, end):
            size += len(rows[place])
            if size > self._limit:
                if place == start and not self._entries:
                    check_size(_NAME, table, size, self._options)
                return place
        return end

    def _add(self, entry: bytes, rows: int) -> None:
        part = delimited(_MESSAGE, entry)
        if self._limit and self._entries and self._size + len(part) + RECORD_BYTES + _ROOM > self._limit:
            self._close()
        self._entries.append(part)
        self._rows += rows
        self._size += len(part)

    def _close(self) -> None:
        if self._entries:
            self._done.append(Message(None, _HEAD + delimited(_BODY, b"".join(self._entries)), self._rows))
        self._entries, self._rows, self._size = [], 0, 0
