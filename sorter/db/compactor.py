"""What gives a store's space back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ... import failpoint
from ...actors import Timer
from ...events import Ts
from ...store import Batch, Store, Window
from ..gate import Gate, Part
from ..run import Place
from ..tier import Tier

LIVE_SHARE: Final = 4
"""A window is compacted once less than one part in this many is still to be read."""

WINDOW_SECONDS: Final = 1.0
"""The time of a window while there are acknowledgements: making and dropping one takes RocksDB 5 ms."""


class Acknowledged(Struct, frozen=True):
    """To a Compactor: nothing at or below `ts` will be needed again."""

    ts: Ts


class EndWindow(Struct, frozen=True):
    """To itself: what is written from now on goes to another window."""


class Compactor(Part):
    """Drops the windows of one store: those acknowledged as a whole, and those nearly all read, whose
    rest it moves on. Raises StoreError."""

    def __init__(self, gate: Gate, store: Store, tier: Tier) -> None:
        super().__init__(gate)
        self._store = store
        self._tier = tier
        self._acknowledged: Ts = 0
        self._timer: Timer | None = None

    def on_receive_batch(self, messages: Sequence[Acknowledged | EndWindow]) -> None:
        for message in messages:
            match message:
                case Acknowledged(ts):
                    self._acknowledged = max(self._acknowledged, ts)
                    if self._timer is None and self._store.bytes:
                        self._timer = self.after(WINDOW_SECONDS, EndWindow())
                case EndWindow():
                    self._timer = None
                    self._store.end_window()
        for window in self._store.ended():
            if window.newest <= self._acknowledged or self._compact(window):
                failpoint.reach("store.compacting")
                self._store.drop(window)

    def _compact(self, window: Window) -> bool:
        """Move what is still to be read if it is little; True if the window isn't needed any more."""
        if self._tier.live_bytes(window) * LIVE_SHARE > window.bytes:
            return False
        for run, place in self._tier.runs_in(window):
            batch = Batch()
            for key, value in self._store.iterate(window, place.lower, place.upper + b"\0"):
                batch.put(key, value, run.newest)
            target = self._store.write(batch)
            self._tier.moved(run, Place(target, place.lower, place.upper, place.keys, place.bytes))
        return True
