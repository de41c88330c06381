"""The only one who writes to a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ...actors import PooledRef
from ...errors import StoreError
from ...store.batch import PairBatch
from ...store.store import Store
from ..admission import AdmissionControl, SorterActor
from ..arrivals import WAKE, Wake
from ..run import BlockLocation, SortRun
from ..tier import Tier

WRITE_BYTES: Final = 1 << 20
"""A Write carries about this much: RocksDB writes a batch with the interpreter's lock held."""


class Written(Struct, frozen=True, gc=False):
    """A run as its Writer put it into a batch."""

    run: SortRun
    lower: bytes
    upper: bytes
    keys: int
    bytes: int


class Write(Struct, frozen=True):
    """To a DbActor: put this batch on disk, which holds these runs."""

    batch: PairBatch
    runs: list[Written]


class DbActor(SorterActor[Write]):
    """Writes batches into its store and tells the memory tier where the runs are.

    Waits for nobody, so whoever waits for it gets on. Raises StoreError.
    """

    def __init__(
        self,
        gate: AdmissionControl,
        store: Store,
        tier: Tier,
        merger: PooledRef[Wake],
        disk_bytes: Callable[[], int],
        max_disk_bytes: int | None,
    ) -> None:
        super().__init__(gate)
        self._merger = merger
        self._store = store
        self._tier = tier
        self._disk_bytes = disk_bytes
        self._max_disk_bytes = max_disk_bytes

    def on_receive(self, message: Write) -> None:
        batch = message.batch
        if self._max_disk_bytes is not None and self._disk_bytes() + batch.bytes > self._max_disk_bytes:
            raise StoreError(
                f"the sorter's disk quota is used up: {self._disk_bytes()} of {self._max_disk_bytes} bytes"
                " are not acknowledged yet; raise max_disk_bytes or see what the slowest sink waits for"
            )
        window = self._store.write(batch)
        for w in message.runs:
            self._tier.stored(w.run, BlockLocation(window, w.lower, w.upper, w.keys, w.bytes))
        self._merger.offer(WAKE)  # it may wait for them; if it is full it looks anyway
        self._gate.open_if_possible()
