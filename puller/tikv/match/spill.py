"""Memory and disk that all regions of a feed share for prewrites waiting for their commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from threading import Lock
from typing import Final, Protocol

from msgspec import Struct

from ....codec.blocks import block_from_bytes, cut
from ....errors import StoreError
from ....events import Block
from ....store.batch import PairBatch
from ....store.generation import Generation
from ....store.store import Store

MAX_BYTES: Final = 128 << 20
"""Limit for prewrites in memory, over all regions of a feed."""

BLOCK_BYTES: Final = 64 << 10
"""Size of the blocks in which prewrites are written and read; the index in memory takes about 1 % of that."""

LEAST_BYTES: Final = 4 << 10
"""Minimum size of a region's part to be written to disk: less would save nothing."""

_WRITTEN_BLOCKS: Final = 16
"""Number of blocks written at once: RocksDB holds the interpreter's lock meanwhile."""


class SpilledBlock(Struct, frozen=True, gc=False):
    """The place of a block on disk."""

    generation: Generation
    key: bytes


class SpillHolder(Protocol):
    """One region's part of the memory."""

    bytes: int

    def spill(self, least: int) -> None:
        """Write the oldest entries to disk: at least `least` bytes if there are as many."""


class PrewriteMemory:
    """The state that the region workers of a feed share: the memory limit, and the store for the rest.

    The store must hold nothing else. Thread-safe.
    """

    def __init__(self, store: Store, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self._store = store
        self._lock = Lock()  # guards the attributes below
        self._quotas: list[Quota] = []
        self._alive: dict[Generation, int] = {}
        self._names = count()

    def quota(self) -> Quota:
        """Return a new worker's quota; to be closed when the worker ends."""
        quota = Quota(self)
        with self._lock:
            self._quotas = [*self._quotas, quota]
        return quota

    def leave(self, quota: Quota) -> None:
        with self._lock:
            self._quotas = [other for other in self._quotas if other is not quota]

    def limit(self) -> int:
        """Bytes that each worker may always hold."""
        return self.max_bytes // max(1, len(self._quotas))

    @property
    def memory_bytes(self) -> int:
        """Bytes in memory, over all workers."""
        return sum(quota.bytes for quota in self._quotas)

    @property
    def spilled_bytes(self) -> int:
        """Bytes on disk, including blocks no longer needed that share a generation with needed ones."""
        return self._store.bytes

    @property
    def blocks(self) -> int:
        """Number of blocks on disk that are still needed."""
        with self._lock:
            return sum(self._alive.values())

    def write(self, blocks: Sequence[Block]) -> list[SpilledBlock]:
        """Write blocks to disk. Raises StoreError: disk full, I/O error."""
        with self._lock:
            batch = PairBatch()
            keys = [next(self._names).to_bytes(8, "big") for _ in blocks]
            for key, block in zip(keys, blocks, strict=True):
                batch.put(key, block.to_bytes(), 0)
            generation = self._store.write(batch)
            self._alive[generation] = self._alive.get(generation, 0) + len(blocks)
        return [SpilledBlock(generation, key) for key in keys]

    def read(self, place: SpilledBlock) -> Block:
        """Read a block. Raises StoreError if it can't be read."""
        block = self._store.get(place.generation, place.key)
        if block is None:
            raise StoreError(f"store {self._store.path} has lost block {place.key.hex()}")
        try:
            return block_from_bytes(block)
        except ValueError as error:
            raise StoreError(f"store {self._store.path}, block {place.key.hex()}: {error}") from None

    def free(self, places: Sequence[SpilledBlock]) -> None:
        """Free blocks. A generation whose blocks are all free is dropped from the disk."""
        with self._lock:
            for place in places:
                self._alive[place.generation] -= 1
            empty = [generation for generation, blocks in self._alive.items() if not blocks]
            if empty:
                self._drop(empty)

    def _drop(self, empty: Sequence[Generation]) -> None:
        """Drop generations; called with the lock held."""
        ended = self._store.ended()
        if any(generation not in ended for generation in empty):
            self._store.end_window()
            ended = self._store.ended()
        for generation in empty:
            if generation in ended:
                del self._alive[generation]
                self._store.drop(generation)


class Quota:
    """One region worker's part of the memory limit. Used in the worker's turns only: one thread at a time."""

    def __init__(self, shared: PrewriteMemory) -> None:
        self.shared = shared
        self.bytes = 0
        """Bytes in memory, over its holders."""
        self._holders: dict[SpillHolder, None] = {}

    def account(self, holder: SpillHolder, held: int) -> None:
        """Set the bytes that a holder has in memory."""
        if held == holder.bytes:
            return
        self.bytes += held - holder.bytes
        holder.bytes = held
        if held:
            self._holders[holder] = None
        else:
            del self._holders[holder]

    def fit(self) -> None:
        """Write to disk what exceeds the limit, from the largest holders. Call after adding, and
        periodically.

        A worker is only reduced to an equal share of the limit, so an idle one may exceed its share until its
        next call: together less than twice the limit. Raises StoreError.
        """
        shared = self.shared
        if self.bytes <= shared.limit() or shared.memory_bytes <= shared.max_bytes:
            return
        goal = shared.limit() // 2
        for holder in sorted(self._holders, key=_bytes_of, reverse=True):
            if self.bytes <= goal or holder.bytes < LEAST_BYTES:
                break
            holder.spill(self.bytes - goal)

    def close(self) -> None:
        """Close the quota of a worker that ended; its holders must have been cleared."""
        self.shared.leave(self)


def groups_of(block: Block) -> Iterator[list[Block]]:
    """Yield a block in blocks of about BLOCK_BYTES: as many at once as are to be written at once."""
    parts = [*cut(block, len(block), BLOCK_BYTES)]
    for at in range(0, len(parts), _WRITTEN_BLOCKS):
        yield parts[at : at + _WRITTEN_BLOCKS]


def _bytes_of(holder: SpillHolder) -> int:
    return holder.bytes
