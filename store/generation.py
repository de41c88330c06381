"""A part of a store that is dropped whole."""

from __future__ import annotations

from rocksdict import ColumnFamily, Rdict


class Generation:
    """One column family: what was written within one stretch of time.

    It goes when everything in it is acknowledged: its files vanish, without tombstones or rewriting.
    Whoever still reads it keeps its files until done.
    """

    __slots__ = ("bytes", "family", "handle", "name", "newest")

    def __init__(self, name: str, family: Rdict, handle: ColumnFamily) -> None:
        self.name = name
        self.family = family
        self.handle = handle
        self.bytes = 0
        """Keys and values written to it."""
        self.newest = 0
        """The highest ts of what it holds."""
