"""A queue that merges the entries of several sources by time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from heapq import heapify, heappop, heapreplace

from .entry import Entry


class _Lane:
    """The entries of one source."""

    __slots__ = ("entries", "heard", "watermark")

    def __init__(self, heard: float) -> None:
        self.entries: deque[Entry] = deque()
        self.heard = heard
        """Time of the last entry or watermark."""
        self.watermark = -1


class MergeQueue:
    """Gives entries in the order in which a barrier lets them pass; used by one thread at a time.

    The entry with the lowest ts comes next once each other source has an entry, or a watermark at or above
    that ts, or is idle: without either for `idle_seconds`. With `transactions`, the later parts of a
    transaction come before anything else.
    """

    def __init__(
        self,
        sources: Collection[str],
        *,
        transactions: bool = True,
        now: Callable[[], float],
        idle_seconds: float | None = None,
    ) -> None:
        """`idle_seconds` None: every source is waited for."""
        self._names = list(sources)
        self._lanes = {name: _Lane(now()) for name in sources}
        self._transactions = transactions
        self._now = now
        self._idle_seconds = idle_seconds
        self._owner = ""
        """Source of the transaction whose parts come next; empty if none is open."""
        self._last = -1
        self.regressions = 0
        """Entries that came after one with a higher ts."""

    def put(self, source: str, entries: Iterable[Entry]) -> None:
        lane = self._lanes[source]
        lane.heard = self._now()
        lane.entries.extend(entries)

    def advance(self, source: str, ts: int) -> None:
        """Note that entries of a source with a lower ts have all been put."""
        lane = self._lanes[source]
        lane.heard = self._now()
        lane.watermark = max(lane.watermark, ts)

    def forget(self, source: str) -> None:
        """Drop the entries of a source, and the rest of its transaction: they are put again."""
        self._lanes[source].entries.clear()
        self._lanes[source].watermark = -1
        if self._owner == source:
            self._owner = ""

    def waiting(self, source: str) -> int:
        """Return the number of entries of a source."""
        return len(self._lanes[source].entries)

    def take(self) -> list[tuple[str, Entry]]:
        """Return all entries that may pass, each with its source."""
        taken: list[tuple[str, Entry]] = []
        if not self._rest(taken):
            return taken
        names, lanes = self._names, [self._lanes[name] for name in self._names]
        idle = self._idle()
        # One element a source: its first entry, or its watermark, which comes after an entry of that ts.
        heads = [
            (lane.entries[0].ts, 0, index) if lane.entries else (lane.watermark, 1, index)
            for index, lane in enumerate(lanes)
            if lane.entries or names[index] not in idle
        ]
        heapify(heads)
        while heads and not heads[0][1]:
            index = heads[0][2]
            lane, name = lanes[index], names[index]
            entries = lane.entries
            entry = entries.popleft()
            taken.append((name, entry))
            if entry.ts < self._last:
                self.regressions += 1
            else:
                self._last = entry.ts
            if self._transactions and entry.part == "begin":
                self._owner = name
                if not self._rest(taken):
                    break
            if entries:
                heapreplace(heads, (entries[0].ts, 0, index))
            elif name in idle:
                heappop(heads)
            else:
                heapreplace(heads, (lane.watermark, 1, index))
        return taken

    def silent(self) -> dict[str, float]:
        """Return the sources that entries wait for, with the seconds since each was heard of."""
        lanes = list(self._lanes.items())
        heads = [lane.entries[0].ts for _, lane in lanes if lane.entries]
        if not heads:
            return {}
        now, idle, lowest = self._now(), self._idle(), min(heads)
        return {
            name: now - lane.heard
            for name, lane in lanes
            if not lane.entries
            and (name == self._owner or (not self._owner and name not in idle and lane.watermark < lowest))
        }

    def _rest(self, taken: list[tuple[str, Entry]]) -> bool:
        """Take the later parts of the open transaction; return False if some are missing."""
        if self._owner:
            entries = self._lanes[self._owner].entries
            while entries:
                entry = entries.popleft()
                taken.append((self._owner, entry))
                if entry.ends:
                    self._owner = ""
                    return True
        return not self._owner

    def _idle(self) -> set[str]:
        if self._idle_seconds is None:
            return set()
        since = self._now() - self._idle_seconds
        return {name for name, lane in self._lanes.items() if not lane.entries and lane.heard <= since}
