"""What is written in one piece."""

from __future__ import annotations


class Batch:
    """Keys and values that are written together, in the order they were put.

    Kept as plain pairs: RocksDB's own batch is spent by a write that fails, this one can be written
    again. Keep it at about 1 MiB, since the write holds the interpreter's lock.
    """

    __slots__ = ("bytes", "newest", "pairs")

    def __init__(self) -> None:
        self.pairs: list[tuple[bytes, bytes]] = []
        self.bytes = 0
        self.newest = 0
        """The highest ts of what is in it: the window that takes it lives until then."""

    def put(self, key: bytes, value: bytes, newest: int) -> None:
        """Add a pair whose value is needed until everything up to the ts `newest` is acknowledged."""
        self.pairs.append((key, value))
        self.bytes += len(key) + len(value)
        if newest > self.newest:
            self.newest = newest
