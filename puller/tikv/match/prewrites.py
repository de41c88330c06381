"""A region's prewrites that wait for their commit: in memory, and beyond the feed's bound on disk."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, TypeAlias

from ....codec.blocks import BlockBuilder
from ....codec.prewrites import Bounds, Prewrite, new_table
from ....codec.proto import cdcpb
from ....codec.proto.change_data import Rows
from ....events import Block
from ..region import RegionState
from .spill import Quota, SpilledBlock, groups_of

_PREWRITE: Final[int] = cdcpb.Event.PREWRITE
_ROW_PUT: Final[int] = cdcpb.Event.Row.PUT

Key: TypeAlias = tuple[int, bytes]
"""start ts and raw key."""


class _Run:
    """The blocks of one spill: disjoint and in order, each with its first and last key."""

    __slots__ = ("firsts", "lasts", "places")

    def __init__(self) -> None:
        self.firsts: list[Key] = []
        self.lasts: list[Key] = []
        self.places: list[SpilledBlock] = []

    def add(self, block: Block, place: SpilledBlock) -> None:
        first, last = block[0], block[len(block) - 1]
        self.firsts.append((first.start_ts, first.key))
        self.lasts.append((last.start_ts, last.key))
        self.places.append(place)

    def take(self, key: Key) -> SpilledBlock | None:
        """Remove and return the block that may contain the key."""
        at = bisect_right(self.firsts, key) - 1
        if at < 0 or key > self.lasts[at]:
            return None
        del self.firsts[at], self.lasts[at]
        return self.places.pop(at)


class Prewrites:
    """Prewrites by start ts and key. Like its quota, used in its region worker's turns only.

    A prewrite is in one place: a block that is needed is read back whole and is in memory again. So commits
    in roughly the order of keys, as TiDB sends them, read each block once, and a transaction of any size
    needs only an index entry per block.
    """

    __slots__ = ("_quota", "_runs", "_table", "bytes")

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._table = new_table()
        self._runs: list[_Run] = []
        self.bytes = 0
        """Bytes accounted for the prewrites in memory."""

    def match(
        self, rows: Rows, first: int, builder: BlockBuilder, region: RegionState, bounds: Bounds
    ) -> int:
        """Process rows from `first` on, as `PrewriteTable.match` does; `recall` must have got them."""
        done = self._table.match(
            rows, first, builder, region.id, region.start_ts, region.resolved_ts, region.initialised, bounds
        )  # fmt: skip
        self._account()
        return done

    def recall(self, rows: Rows) -> None:
        """Read back every prewrite that one of these rows may need."""
        for kind, op, start_ts, _, key, value, *_ in rows if self._runs else ():
            if kind != _PREWRITE or (op == _ROW_PUT and not value):
                self._load((start_ts, key))

    def put(self, key: Key, value: bytes, old_value: bytes, generation: int = 0, fake: bool = False) -> None:
        """Store a prewrite. A fake one, a PUT without a value, never replaces another."""
        if fake:
            self._load(key)
        self._table.put(*key, value, old_value, generation, fake)
        self._account()

    def get(self, key: Key) -> Prewrite | None:
        """Return a prewrite without removing it."""
        self._load(key)
        return self._table.get(*key)

    def take(self, key: Key) -> Prewrite | None:
        """Remove and return a prewrite."""
        self._load(key)
        prewrite = self._table.take(*key)
        self._account()
        return prewrite

    def spill(self, least: int) -> None:
        """Write the oldest transactions, or parts of them, to disk. Raises StoreError; then nothing is
        lost."""
        goal = max(0, self.bytes - least)
        run = _Run()
        self._runs.append(run)
        for blocks in groups_of(self._table.sorted()):
            for block, place in zip(blocks, self._quota.shared.write(blocks), strict=True):
                run.add(block, place)
                self._table.remove(block)
            self._account()
            if self.bytes <= goal:
                break

    def clear(self) -> None:
        """Drop all prewrites, on disk too."""
        runs, self._runs = self._runs, []
        self._table = new_table()
        self._account()
        self._quota.shared.free([place for run in runs for place in run.places])

    def __len__(self) -> int:
        """Number of prewrites in memory."""
        return len(self._table)

    def __bool__(self) -> bool:
        return bool(self._runs or len(self._table))

    def _load(self, key: Key) -> None:
        """Read back every block that may contain the key."""
        if not self._runs:
            return
        places = [place for run in self._runs if (place := run.take(key)) is not None]
        for place in places:
            self._table.load(self._quota.shared.read(place))
        self._account()
        self._quota.shared.free(places)
        self._runs = [run for run in self._runs if run.places]

    def _account(self) -> None:
        self._quota.account(self, self._table.bytes)
