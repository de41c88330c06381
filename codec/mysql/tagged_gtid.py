"""MySQL's GTID event with a tag, in the format of libs/mysql/serialization: numbers of variable length."""

from __future__ import annotations

_UUID_BYTES = 16


def read_tagged(body: bytes) -> tuple[bytes, str, int]:
    """Return the UUID, the tag and the number of a GTID event's body. Raises ValueError or IndexError."""
    read = _Fields(body)
    for _ in range(3):  # version, size, the last field that must be known
        read.number()
    read.expect(0)
    read.number()  # flags
    read.expect(1)
    uuid = bytes([read.number() for _ in range(_UUID_BYTES)])
    read.expect(2)
    number = read.number() >> 1  # it has a sign
    read.expect(3)
    return uuid, read.text(), number


class _Fields:
    """Fields one after the other, each after its number."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self) -> int:
        """Read a number: the ones at the low end of its first byte count the bytes that follow."""
        first = self._data[self._at]
        more = (~first & (first + 1)).bit_length() - 1
        size, shift = (9, 8) if more >= 8 else (more + 1, more + 1)
        encoded = self._data[self._at : self._at + size]
        if len(encoded) < size:
            raise ValueError("it ends inside a number")
        self._at += size
        return int.from_bytes(encoded, "little") >> shift

    def text(self) -> str:
        size = self.number()
        encoded = self._data[self._at : self._at + size]
        if len(encoded) < size:
            raise ValueError("it ends inside a text")
        self._at += size
        return encoded.decode("ascii")

    def expect(self, field: int) -> None:
        if (number := self.number()) != field:
            raise ValueError(f"field {number} in place of {field}")
