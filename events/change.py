"""Raw changes: a source's bytes, until they are in commit order."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Set
from typing import Final, Protocol

from msgspec import Struct

from .ts import Ts

DELETE: Final = 0
PUT: Final = 1


class KvChange(Struct, frozen=True, gc=False, order=True, array_like=True):
    """One raw change. The fields are in sort order: comparing two changes is the commit order."""

    commit_ts: Ts
    start_ts: Ts
    op: int
    """DELETE or PUT; a DELETE sorts before a PUT of the same transaction."""
    key: bytes
    value: bytes
    old_value: bytes = b""
    region_id: int = 0
    """TiKV: the region it came from. Binlog: the table layout its rows are written in."""


class Block(Protocol):
    """Changes in commit order, each once, packed: immutable, and shared by whoever has it. Any thread.

    Each change has a keyspace besides, a number that the sorter gives: it comes last in the order. Made by a
    builder, a merge or from bytes (`codec.blocks`).
    """

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> KvChange: ...

    def __iter__(self) -> Iterator[KvChange]: ...

    @property
    def bytes(self) -> int:
        """Bytes of memory that its changes take: 48 each, and their keys and values."""

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that stay as long as the block does, shared with others or not."""

    @property
    def first_ts(self) -> Ts:
        """The lowest commit ts; 0 without changes."""

    @property
    def last_ts(self) -> Ts:
        """The highest commit ts; 0 without changes."""

    def find(self, commit_ts: Ts, start_ts: Ts = 0, op: int = 0, key: builtins.bytes = b"", /) -> int:
        """Return the index of the first change at or above a place in the order."""

    def slice(self, start: int, stop: int, /) -> Block:
        """Return the changes from `start` to before `stop`; nothing is copied. Raises IndexError."""

    def compact(self) -> Block:
        """Return the same changes, copied if more than twice their bytes are held for them."""

    def keyspaces(self) -> set[int]:
        """Return the keyspaces that have changes."""

    def without(self, keyspaces: Set[int], /) -> Block:
        """Return the changes of other keyspaces."""

    def by_prefix(self, size: int, /) -> Mapping[builtins.bytes, Block]:
        """Return the changes by the first `size` bytes of their keys, of a shorter key by all of it, in that
        order. Raises ValueError for a negative size."""

    def to_bytes(self) -> builtins.bytes:
        """Return it as it is kept on disk, with a CRC. Raises ValueError beyond 4 GiB."""


class Changes(Struct, frozen=True, gc=False):
    """From a puller to a table's Writer: changes in any order, and a resolved ts.

    All changes at or below `resolved` have been sent, including these; 0 leaves the resolved ts as it is.
    """

    changes: Block
    resolved: Ts = 0
    moves_only: bool = False
    """True if its changes only move the source's position: no row or statement is among them."""


class Sorted(Struct, frozen=True, gc=False):
    """From the sorter onward: changes in commit order; nothing at or below `resolved` will follow.

    A transaction is all changes of one commit ts and start ts. Changes of the same commit ts come together,
    unless they are larger than memory.
    """

    changes: Block
    resolved: Ts
    continues: bool = False
    """True if more changes of the last commit ts may follow, of the same transaction or others. The next
    Sorted begins with them if there are any."""
