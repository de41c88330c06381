"""The only one who writes to a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ...actors import PooledActor
from ...errors import StoreError
from ...store import Batch, Store
from ..run import Place, Run
from ..tier import Tier
from .layout import Layout

WRITE_BYTES: Final = 1 << 20
"""A Write carries about this much: RocksDB writes a batch with the interpreter's lock held."""


class Write(Struct, frozen=True):
    """To a DbActor: put these runs on disk, unless they are taken before."""

    runs: list[Run]


class DbActor(PooledActor):
    """Writes runs into its store and tells the memory tier where they are.

    Waits for nobody, so whoever waits for it gets on. Raises StoreError.
    """

    def __init__(
        self,
        store: Store,
        layout: Layout,
        tier: Tier,
        disk_bytes: Callable[[], int],
        max_disk_bytes: int | None,
    ) -> None:
        self._store = store
        self._layout = layout
        self._tier = tier
        self._disk_bytes = disk_bytes
        self._max_disk_bytes = max_disk_bytes

    def on_receive(self, message: Write) -> None:
        batch = Batch()
        written = []
        for run in message.runs:
            changes = run.changes  # once: it may be taken at any time, which is no reason to stop
            if changes is not None:
                before = batch.bytes
                lower, upper, keys = self._layout.put(batch, run, changes)
                written.append((run, lower, upper, keys, batch.bytes - before))
        if not written:
            return
        if self._max_disk_bytes is not None and self._disk_bytes() + batch.bytes > self._max_disk_bytes:
            raise StoreError(
                f"the sorter's disk quota is used up: {self._disk_bytes()} of {self._max_disk_bytes} bytes"
                " are not acknowledged yet; raise max_disk_bytes or see what the slowest sink waits for"
            )
        window = self._store.write(batch)
        for run, lower, upper, keys, size in written:
            self._tier.stored(run, Place(window, lower, upper, keys, size))
