"""The requests of an HTTP/2 connection that are in progress, by the heads of its frames (RFC 9113, 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_HEAD: Final = 9  # length in 3 bytes, type, flags, stream in 4 bytes
_DATA, _HEADERS, _RESET = 0, 1, 3
_END_STREAM: Final = 1
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""First bytes of a connection with HTTP/2 (RFC 9113, 3.4)."""


class Frames:
    """Finds the heads of frames in a stream of bytes."""

    def __init__(self, handle: Callable[[int, int, int, int], None], skip: int = 0) -> None:
        """`handle` gets the type, the flags, the stream and the length of each frame once its head is
        complete; `skip` bytes precede the first one."""
        self._handle = handle
        self._head = b""
        self._skip = skip

    def feed(self, data: bytes) -> None:
        at = self._skip
        end = len(data)
        head = self._head
        if head and not at:
            data, head = head + data, b""
            end = len(data)
        while at + _HEAD <= end:
            length = int.from_bytes(data[at : at + 3], "big")
            stream = int.from_bytes(data[at + 5 : at + 9], "big") & 0x7FFFFFFF
            self._handle(data[at + 3], data[at + 4], stream, length)
            at += _HEAD + length
        self._head = data[at:] if at < end else b""
        self._skip = max(at - end, 0)


class UnansweredRequests:
    """Counts the bytes of the requests of a connection that aren't answered."""

    def __init__(self) -> None:
        self.bytes = 0
        self._streams: dict[int, int] = {}
        self.sent = Frames(self._sent, skip=len(PREFACE)).feed
        """Gets what the client sends."""
        self.answered = Frames(self._answered).feed
        """Gets what the server sends."""

    def _sent(self, kind: int, _flags: int, stream: int, length: int) -> None:
        if kind == _DATA:
            self._streams[stream] = self._streams.get(stream, 0) + length
            self.bytes += length
        elif kind == _RESET:
            self._end(stream)

    def _answered(self, kind: int, flags: int, stream: int, _length: int) -> None:
        if kind == _RESET or (kind in (_DATA, _HEADERS) and flags & _END_STREAM):
            self._end(stream)

    def _end(self, stream: int) -> None:
        self.bytes -= self._streams.pop(stream, 0)
