"""Blocks: changes in commit order, packed; by the native module, or by Python where that isn't in use.

docs/concepts/blocks.md describes their form. Blocks of the two kinds don't mix: the kind is chosen when a
process starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from ..events import Block, KvChange
from .native import library
from .plain_blocks import PlainBlock, PlainBuilder

if library.native is not None:
    library.native.use_change(KvChange)

NOTHING: Final[Block] = PlainBlock([], [])
"""No changes."""


class BlockBuilder(Protocol):
    """Makes a block of changes that come in any order. Used by one thread at a time."""

    def add(
        self,
        commit_ts: int,
        start_ts: int,
        op: int,
        key: bytes,
        value: bytes,
        old_value: bytes = b"",
        origin: int = 0,
        /,
    ) -> None:
        """Add a change; its bytes are copied. Raises ValueError for an op that is neither DELETE nor PUT,
        OverflowError for a number of more than 64 bits, TypeError for anything but bytes."""

    def add_rows(self, ts: int, keys: list[bytes], values: list[bytes], /) -> None:
        """Add a PUT at `ts`, which began there too, for each key with its value. Raises as `add` does, and
        ValueError unless there is a value for each key."""

    def extend(self, changes: Iterable[KvChange], /) -> None:
        """Add changes, as `add` does."""

    def take(self) -> Block:
        """Return what was added; the builder is empty then."""

    def __len__(self) -> int: ...

    @property
    def bytes(self) -> int:
        """Bytes that a block of these changes takes."""


def new_builder() -> BlockBuilder:
    return library.native.BlockBuilder() if library.in_use else PlainBuilder()


def block_of(changes: Iterable[KvChange]) -> Block:
    """Return the changes as a block, each once."""
    builder = new_builder()
    builder.extend(changes)
    return builder.take()


def merge(blocks: Sequence[Block], keyspaces: Sequence[int] | None = None) -> Block:
    """Return the changes of all blocks in order, each once: of the same change, that of the first block.

    Changes are the same if commit ts, start ts, op, key and keyspace are. `keyspaces` has one number for each
    block, from 0 to 2^31 - 1, which its changes have from then on. Keys and values are shared with the
    blocks, or copied where sharing would keep twice as much memory. Runs without the interpreter's lock.
    """
    if not library.in_use:
        return PlainBlock.merge(blocks, keyspaces)
    if keyspaces is None:
        return library.native.merge_blocks(blocks)
    return library.native.merge_blocks(blocks, keyspaces)


def cut(block: Block, count: int, max_bytes: int) -> Iterator[Block]:
    """Yield a block in parts of at most `count` changes and about `max_bytes`; they share its memory."""
    size = len(block)
    step = max(1, min(count, max_bytes * size // max(1, block.bytes)))
    for start in range(0, size, step):
        part = block.slice(start, min(size, start + step))
        if part.bytes > 2 * max_bytes and len(part) > 1:  # the sizes vary much
            yield from cut(part, (len(part) + 1) // 2, max_bytes)
        else:
            yield part


def block_from_bytes(data: bytes) -> Block:
    """Return the block that `to_bytes` wrote, which uses `data` in place. Raises ValueError if damaged."""
    return library.native.block_from_bytes(data) if library.in_use else PlainBlock.from_bytes(data)
