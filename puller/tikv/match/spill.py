"""The memory and the disk that all regions of a feed share for prewrites that wait for their commit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from threading import Lock
from typing import Final, Protocol

from msgspec import Struct

from ....errors import StoreError
from ....store.batch import Batch
from ....store.generation import Generation
from ....store.store import Store

MAX_BYTES: Final = 128 << 20
"""Of prewrites in memory, over all regions of a feed."""

BLOCK_BYTES: Final = 64 << 10
"""Of prewrites written and read back as one value; the index in memory takes about 1 % of that."""

ROW_BYTES: Final = 320
"""Counted for a prewrite besides its key and values: tuples, ints and the slot in a dict."""

LEAST_BYTES: Final = 4 << 10
"""A region that holds less keeps it: writing it away would save nothing."""

_WRITE_BYTES: Final = 1 << 20
"""RocksDB writes a batch with the interpreter's lock held."""


class Place(Struct, frozen=True, gc=False):
    """Where a block was written."""

    window: Generation
    key: bytes


class Holder(Protocol):
    """One region's part of what is held in memory."""

    bytes: int

    def spill(self, least: int) -> None:
        """Write away what is oldest, at least this many bytes if there are that many."""


class Shared:
    """What the region workers of a feed share: the bound on memory, and the store behind it.

    The store must hold nothing else. Any thread may call any method.
    """

    def __init__(self, store: Store, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self._store = store
        self._lock = Lock()  # guards what follows
        self._quotas: list[Quota] = []
        self._alive: dict[Generation, int] = {}
        self._names = count()

    def quota(self) -> Quota:
        """A new worker's part; to be closed when the worker ends."""
        quota = Quota(self)
        with self._lock:
            self._quotas = [*self._quotas, quota]
        return quota

    def leave(self, quota: Quota) -> None:
        with self._lock:
            self._quotas = [other for other in self._quotas if other is not quota]

    def limit(self) -> int:
        """What each worker may hold at any rate."""
        return self.max_bytes // max(1, len(self._quotas))

    @property
    def memory_bytes(self) -> int:
        """Counted, over all workers."""
        return sum(quota.bytes for quota in self._quotas)

    @property
    def spilled_bytes(self) -> int:
        """On disk, what is no longer needed but shares a window with what is included."""
        return self._store.bytes

    @property
    def blocks(self) -> int:
        """On disk and still needed."""
        with self._lock:
            return sum(self._alive.values())

    def write(self, blocks: Sequence[bytes]) -> list[Place]:
        """Put blocks on disk. Raises StoreError: disk full, I/O error."""
        with self._lock:
            batch = Batch()
            keys = [next(self._names).to_bytes(8, "big") for _ in blocks]
            for key, block in zip(keys, blocks, strict=True):
                batch.put(key, block, 0)
            window = self._store.write(batch)
            self._alive[window] = self._alive.get(window, 0) + len(blocks)
        return [Place(window, key) for key in keys]

    def read(self, place: Place) -> bytes:
        """A block. Raises StoreError if it can't be read."""
        block = self._store.get(place.window, place.key)
        if block is None:
            raise StoreError(f"store {self._store.path} has lost block {place.key.hex()}")
        return block

    def free(self, places: Sequence[Place]) -> None:
        """These blocks are no longer needed. A window whose blocks all are gone is dropped from the disk."""
        with self._lock:
            for place in places:
                self._alive[place.window] -= 1
            empty = [window for window, blocks in self._alive.items() if not blocks]
            if empty:
                self._drop(empty)

    def _drop(self, empty: Sequence[Generation]) -> None:
        """Under the lock."""
        ended = self._store.ended()
        if any(window not in ended for window in empty):
            self._store.end_window()
            ended = self._store.ended()
        for window in empty:
            if window in ended:
                del self._alive[window]
                self._store.drop(window)


class Quota:
    """One region worker's part. Belongs to the worker's turns: one thread at a time."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.bytes = 0
        """Counted in memory, over its holders."""
        self._holders: dict[Holder, None] = {}

    def grew(self, holder: Holder, by: int) -> None:
        """A holder has this much more in memory, or less."""
        if not holder.bytes:
            self._holders[holder] = None
        holder.bytes += by
        self.bytes += by
        if not holder.bytes:
            del self._holders[holder]

    def fit(self) -> None:
        """Write away what is over the bound, from those on who hold most. For after adding, and now and then.

        Workers are written away only above an equal part each, so one that is idle may hold more than that
        until its next call: together less than twice the bound. Raises StoreError.
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
        """The worker is over; its holders must have been cleared."""
        self.shared.leave(self)


def _bytes_of(holder: Holder) -> int:
    return holder.bytes
