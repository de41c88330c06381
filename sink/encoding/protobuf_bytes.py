"""Protobuf's wire format: bytes of fields whose numbers are known."""

from __future__ import annotations

from typing import Final

from ...codec.tidb.number import encode_uvarint

_LENGTHS: Final = 256
"""Maximum number of bytes of a value whose head is kept."""


def varint(number: int) -> bytes:
    """Return an integer; a negative one as its 64 bits."""
    return encode_uvarint(number & 0xFFFF_FFFF_FFFF_FFFF)


def delimited(field: int, content: bytes) -> bytes:
    """Return a field that holds text, bytes or a message."""
    return varint(field << 3 | 2) + varint(len(content)) + content


class Heads(dict[int, bytes]):
    """The bytes before a value inside of a message, by the length of the value.

    The message is field `outer`; it consists of `before`, the value as field `inner`, and `size` bytes after
    it. An empty value isn't on the wire.
    """

    def __init__(self, outer: int, before: bytes, inner: int, size: int) -> None:
        super().__init__()
        self._outer: Final = varint(outer << 3 | 2)
        self._before: Final = before
        self._inner: Final = varint(inner << 3 | 2)
        self._size: Final = size

    def __missing__(self, length: int) -> bytes:
        value = self._inner + varint(length) if length else b""
        size = len(self._before) + len(value) + length + self._size
        head = self._outer + varint(size) + self._before + value
        if length <= _LENGTHS:
            self[length] = head
        return head
