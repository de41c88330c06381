"""The memory tier: runs under one quota, and the choice of runs to spill."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from threading import Lock
from typing import Final

from ..codec.blocks import merge
from ..events import Block, Ts
from .index import RunIndex
from .quota import MemoryQuota
from .run import BlockLocation, SortRun, runs_of, tables_of

OVERLAPPING: Final = 8
"""Number of runs of about 1 MiB that may overlap without being merged first."""


class Tier:
    """The memory of all tables of a sorter.

    The Intake adds runs, the Merger takes them, DbActors report which they have stored, in any thread:
    one lock guards the runs and the counts. A run that is taken before it is flushed never touches the
    disk. A run being flushed belongs to its writer, and is read back once it is stored.
    """

    def __init__(
        self,
        quota_bytes: int | None,
        block_changes: int = 1000,
        block_bytes: int = 256 << 10,
        shared: MemoryQuota | None = None,
    ) -> None:
        """Without a quota nothing is spilled. `block_*` bound the runs that are. `shared` is the quota of
        several feeds, which `close` leaves."""
        self.quota_bytes = quota_bytes
        self._shared = shared if quota_bytes is not None else None
        self._block_changes = block_changes
        self._block_bytes = block_bytes
        self._lock = Lock()
        self._index = RunIndex()
        self._held: dict[SortRun, None] = {}
        """Runs in memory that aren't being flushed, in the order they came."""
        self._recent: deque[Ts] = deque(maxlen=OVERLAPPING)
        """The newest ts of the last runs that were flushed unmerged."""
        self.used_bytes = 0
        self.flushing_bytes = 0
        self.spilled_bytes = 0
        if self._shared is not None:
            self._shared.join(self)

    def close(self) -> None:
        """Leave the shared quota. Safe to repeat."""
        if self._shared is not None:
            self._shared.leave(self)

    @property
    def held_bytes(self) -> int:
        """Bytes in memory that aren't on their way to disk."""
        return self.used_bytes - self.flushing_bytes

    @property
    def limit_bytes(self) -> int | None:
        """Bytes above which runs are spilled now; None without a quota."""
        if self.quota_bytes is None or self._shared is None:
            return self.quota_bytes
        return min(self.quota_bytes, self._shared.limit_bytes(self))

    def add(self, runs: Iterable[SortRun]) -> list[SortRun]:
        """Hold runs. Returns the runs that the caller must spill, which may be others."""
        with self._lock:
            for run in runs:
                self._held[run] = None
                self.used_bytes += run.bytes
            limit = self.limit_bytes
            if limit is None or self.held_bytes <= limit:
                return []
            return self._overflow(limit)

    def hold(self, run: SortRun) -> None:
        """Hold a run again that was taken and isn't needed yet."""
        with self._lock:
            self._held[run] = None
            self.used_bytes += run.bytes

    def leave(self, runs: list[SortRun]) -> list[SortRun]:
        """Mark held runs as flushing; return those that were not taken meanwhile."""
        with self._lock:
            left = [run for run in runs if run.block is not None]
            self._leave(left)
            return left

    def _leave(self, runs: list[SortRun]) -> None:
        for run in runs:
            run.flushing = True
            del self._held[run]
            self.flushing_bytes += run.bytes

    def take(self, run: SortRun) -> Block | None:
        """Return the block of a run, now the caller's; None if it has replacements, is on disk, or is being
        flushed."""
        with self._lock:
            block = run.block
            if block is None or run.flushing:
                return None
            self._let_go(run)
            return block

    def read(self, run: SortRun) -> None:
        """Note that the run was read back from disk."""
        with self._lock:
            self._index.remove(run)

    def forget_removed(self, run: SortRun) -> bool:
        """Drop the changes of the run's removed tables; True if nothing is left.

        A run on disk or being flushed stays while other tables have changes in it.
        """
        with self._lock:
            replacements = run.replacements
            if replacements is not None:
                replacements[:] = [
                    replacement for replacement in replacements if not self._forget_removed(replacement)
                ]
            return self._forget_removed(run)

    def _forget_removed(self, run: SortRun) -> bool:
        left = sum(not table.removed for table in run.tables)
        if run.block is not None and not run.flushing and left < len(run.tables):
            block = run.without_removed(run.block)
            self.used_bytes -= run.bytes - block.bytes
            run.block, run.bytes, run.count = block, block.bytes, len(block)
            left = len(block)
        if left:
            return False
        if run.block is not None and not run.flushing:
            self._let_go(run)
        self._index.remove(run)
        return not run.replacements

    def replacements(self, run: SortRun) -> list[SortRun]:
        """Return the runs that this one was merged into, to the first of the merged runs that asks."""
        with self._lock:
            assert run.replacements is not None
            replacements = run.replacements[:]
            run.replacements.clear()
            return replacements

    def stored(self, run: SortRun, place: BlockLocation) -> None:
        """Note that the run is on disk."""
        with self._lock:
            self._let_go(run)
            self.spilled_bytes += run.bytes
            if not all(table.removed for table in run.tables):
                self._index.add(run, place)

    def moved(self, run: SortRun, place: BlockLocation) -> None:
        """Note the run's new place, unless it was read meanwhile."""
        with self._lock:
            if run.place is not None:
                self._index.remove(run)
                self._index.add(run, place)

    def live_bytes(self, window: object) -> int:
        """Return the bytes of a generation that are still to be read."""
        with self._lock:
            return self._index.live_bytes(window)

    def runs_in(self, window: object) -> list[tuple[SortRun, BlockLocation]]:
        """Return the runs of a generation that are still to be read."""
        with self._lock:
            return [(run, run.place) for run in self._index.runs(window) if run.place is not None]

    @property
    def stored_bytes(self) -> int:
        """Bytes that the runs on disk would take in memory."""
        return self._index.memory_bytes

    def _let_go(self, run: SortRun) -> None:
        run.block = None
        self.used_bytes -= run.bytes
        if run.flushing:
            run.flushing = False
            self.flushing_bytes -= run.bytes
        else:
            del self._held[run]

    def _overflow(self, limit: int) -> list[SortRun]:
        """Pick what to spill: the newest, since they are read last, until there is room again."""
        excess = self.held_bytes - limit + min(limit // 4, 16 << 20)
        picked: dict[Hashable, list[SortRun]] = {}
        for run in reversed(self._held):
            picked.setdefault(run.tables[0].group, []).append(run)
            excess -= run.bytes
            if excess <= 0:
                break
        return [block for runs in picked.values() for block in self._blocks(runs[::-1])]

    def _blocks(self, runs: list[SortRun]) -> list[SortRun]:
        """Return the runs of a group as they go to disk, small ones merged."""
        small = self._block_bytes if len(runs) > 1 else 0
        alone: list[SortRun] = []
        others: list[SortRun] = []
        for run in runs:
            is_alone = run.bytes >= small and self._follows(run)
            (alone if is_alone else others).append(run)
        self._leave(alone)
        return alone + self._merge(others) if others else alone

    def _merge(self, runs: list[SortRun]) -> list[SortRun]:
        """Merge the runs of a group into blocks."""
        merged = merge([run.block for run in runs if run.block is not None])
        blocks = runs_of(tables_of(runs), merged, self._block_changes, self._block_bytes)
        replacements = blocks[:]
        for run in runs:
            run.block = None
            run.replacements = replacements
            self.used_bytes -= run.bytes
            del self._held[run]
        for block in blocks:
            block.flushing = True
            self.used_bytes += block.bytes
            self.flushing_bytes += block.bytes
        return blocks

    def _follows(self, run: SortRun) -> bool:
        """True if few earlier runs overlap with this one, as when a source follows the present.

        The Merger then has them in memory together anyway, so the run may be written as it is. Otherwise, as
        in an incremental scan, it is merged with others and cut, so that merging many runs needs only a
        little of each in memory.
        """
        recent = self._recent
        follows = len(recent) < OVERLAPPING or run.first[0] > recent[0]
        recent.append(run.newest)
        return follows and run.first[0] < run.newest
