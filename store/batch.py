"""A batch of writes."""

from __future__ import annotations


class PairBatch:
    """Keys and values that are written together, in the order they were put.

    They are plain pairs because a failed write uses up RocksDB's own batch; this one can be written again.
    Keep it at about 1 MiB, since the write holds the interpreter's lock.
    """

    __slots__ = ("bytes", "newest", "pairs")

    def __init__(self) -> None:
        self.pairs: list[tuple[bytes, bytes]] = []
        self.bytes = 0
        self.newest = 0
        """The highest ts in the batch: the generation that takes it lives until that is acknowledged."""

    def put(self, key: bytes, value: bytes, newest: int) -> None:
        """Add a pair whose value is needed until everything up to the ts `newest` is acknowledged."""
        self.pairs.append((key, value))
        self.bytes += len(key) + len(value)
        if newest > self.newest:
            self.newest = newest
