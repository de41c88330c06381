"""The last stage of a sorter: from runs of many tables to whole transactions in commit order."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Final, NoReturn, assert_never

from msgspec import Struct

from ..actors import PooledRef, Target
from ..codec.blocks import NOTHING, merge
from ..errors import InvariantViolated
from ..events import Block, Sorted, Ts, WatermarkLog
from .admission import AdmissionControl, SorterActor
from .arrivals import WAKE, Arrivals, New, Uid, Wake
from .run import Bound, SortRun, first_of, floor, in_parts
from .tier import Tier

READ_BYTES: Final = 1 << 20
"""Bytes that a Read asks for, about: the first runs can leave while the rest is read."""

SORTED_BYTES: Final = 1 << 18
"""Bytes of a Sorted, about; more if its changes vary much in size, or one commit ts is larger.

Rows take ten times as much once they are decoded, and 32 of these may wait for a sink.
"""


class ReadRuns(Struct, frozen=True):
    """To a Reader: bring these runs back from disk, and answer with one RunsRead."""

    runs: list[SortRun]
    reply_to: Target[RunsRead]


class RunsRead(Struct, frozen=True):
    """From a Reader: runs and their blocks, in the order of the Read."""

    runs: list[tuple[SortRun, Block]]


class MergeCursor:
    """A run that is being merged: its changes from `at` on. Its block is None while it is read from disk."""

    __slots__ = ("at", "block", "run")

    def __init__(self, run: SortRun) -> None:
        self.run = run
        self.block: Block | None = None
        self.at = 0

    def load(self, block: Block) -> None:
        self.block = self.run.without_removed(block)
        self.at = 0


class MergeProgress:
    """The Merger's progress, readable from any thread."""

    __slots__ = ("resolved", "resolved_log", "resolved_of", "sent", "since_of")

    def __init__(self) -> None:
        self.resolved: Ts = 0
        """The lowest resolved ts of all tables."""
        self.resolved_log = WatermarkLog()
        self.sent: Ts = 0
        """The resolved ts of the last Sorted: nothing at or below it may follow."""
        self.resolved_of: dict[Uid, Ts] = {}
        self.since_of: dict[Uid, float] = {}
        """The clock's `now()` when the resolved ts of each table last moved."""

    def slowest(self) -> Uid | None:
        """Return the uid of the table with the lowest resolved ts."""
        resolved_of = self.resolved_of.copy()
        return min(resolved_of, key=resolved_of.__getitem__, default=None)


MANY: Final = 16
"""If more than 1/16 of the tables advanced, the lowest resolved ts is searched among all of them."""


class Merger(SorterActor[Wake | RunsRead]):
    """Sends whole transactions of all tables downstream, as far as every table is resolved.

    Runs are opened in the order of their first changes, up to `open_bytes`. Changes before the first run
    that isn't open, or isn't read yet, can leave. One pass over the runs so merges any number of tables and
    transactions of any size, and tables without changes cost nothing.
    """

    def __init__(
        self,
        gate: AdmissionControl,
        arrivals: Arrivals,
        tier: Tier,
        progress: MergeProgress,
        downstream: Target[Sorted],
        readers: Sequence[PooledRef[ReadRuns]],
        open_bytes: int,
    ) -> None:
        super().__init__(gate)
        self._arrivals = arrivals
        self._tier = tier
        self._downstream = downstream
        self._readers = readers
        self._progress = progress
        self._open_bytes = open_bytes
        self._numbers = count()
        self._waiting: list[tuple[Bound, int, SortRun]] = []
        """Heap of the runs that aren't open, by their first change."""
        self._open: list[MergeCursor] = []
        self._opened_bytes = 0
        self._reading: dict[SortRun, MergeCursor] = {}
        """Open runs that are still read from disk, by their first change."""
        self._wanted: list[SortRun] = []
        """Open runs not requested from a Reader yet, for instance since they are still being flushed."""
        self._tables: list[tuple[Ts, Uid]] | None = None
        """Heap of the tables by a resolved ts that may be outdated (`_resolved_of`). None while most tables
        advance together, when a search among all is cheaper."""
        self._resolved_of = progress.resolved_of
        self._torn: Ts | None = None
        """The commit ts that was sent in part; None if there is none."""

    def on_receive_batch(self, messages: Sequence[Wake | RunsRead]) -> None:
        self._gate.moved_at = self.clock.now()
        for message in messages:
            match message:
                case RunsRead(runs):
                    for run, block in runs:
                        if cursor := self._reading.pop(run, None):
                            cursor.load(block)
                case Wake():
                    pass
                case _:
                    assert_never(message)
        self._collect()
        more = self._step()
        if not more and not self._reading:
            more = not self._arrivals.rest()
        self._gate.open_if_possible()
        if more:
            self.send(self.actor_ref, WAKE)

    # --- what came -------------------------------------------------------------------------------

    def _collect(self) -> None:
        new = self._arrivals.collect()
        for run in new.runs:
            self._push(run)
        if new.added or new.advanced or new.removed:
            self._advance(new)
        if new.removed:
            self._forget_removed()

    def _push(self, run: SortRun) -> None:
        heappush(self._waiting, (run.first, next(self._numbers), run))

    def _advance(self, new: New) -> None:
        of = self._resolved_of
        now, since_of = self.clock.now(), self._progress.since_of
        of.update(new.added)
        since_of.update(dict.fromkeys(new.added, now))
        advanced = {uid: ts for uid, ts in new.advanced.items() if of.get(uid, ts) < ts}
        of.update(advanced)
        since_of.update(dict.fromkeys(advanced, now))
        for uid in new.removed:
            of.pop(uid, None)
            since_of.pop(uid, None)
        are_many = (len(advanced) + len(new.added)) * MANY > len(of)
        if are_many:
            self._tables = None
        elif self._tables is not None:
            for uid, ts in new.added.items():
                heappush(self._tables, (ts, uid))
        if of:
            least = min(of.values()) if are_many else self._least()
            self._progress.resolved = max(self._progress.resolved, least)
            self._progress.resolved_log.note(self._progress.resolved, now)

    def _least(self) -> Ts:
        """Return the lowest resolved ts, found among the few tables that may have it."""
        of = self._resolved_of
        if self._tables is None:
            self._tables = [(ts, uid) for uid, ts in of.items()]
            heapify(self._tables)
        tables = self._tables
        while True:
            known, uid = tables[0]
            resolved = of.get(uid)
            if resolved is None:
                heappop(tables)
            elif resolved == known:
                return resolved
            else:
                heapreplace(tables, (resolved, uid))

    def _forget_removed(self) -> None:
        """Drop the changes of removed tables, and runs that hold nothing else."""
        self._waiting = [entry for entry in self._waiting if not self._tier.forget_removed(entry[2])]
        heapify(self._waiting)
        self._wanted = [run for run in self._wanted if not self._tier.forget_removed(run)]
        self._reading = {
            run: cursor for run, cursor in self._reading.items() if not all(t.removed for t in run.tables)
        }
        left = []
        for cursor in self._open:
            if cursor.block is None:
                if cursor.run in self._reading:
                    left.append(cursor)
                continue
            cursor.load(cursor.block.slice(cursor.at, len(cursor.block)))
            if cursor.block:
                left.append(cursor)
        self._open = left
        self._opened_bytes = sum(cursor.run.bytes for cursor in left)

    # --- merging ---------------------------------------------------------------------------------

    def _step(self) -> bool:
        """Open as many runs as there is room for, send what can leave; True if there is more to do."""
        self._open_runs()
        bound = self._bound()
        whole = bound[0] > self._progress.resolved
        if bound[0] != self._torn:
            bound = floor(bound[0])
        parts = self._take_below(bound)
        if not parts and not whole and not self._reading:
            # One commit ts fills all that may be open: it leaves in several parts.
            bound = self._bound()
            parts = self._take_below(bound)
            if not parts:  # every open run begins with the change that the next one begins with
                self._open_run()
                return True
        if parts or whole:
            self._send(parts, bound)
        if whole:
            self._put_back()
        return bool(parts) and not whole

    def _open_runs(self) -> None:
        waiting, resolved = self._waiting, self._progress.resolved
        while waiting and waiting[0][0][0] <= resolved and self._opened_bytes < self._open_bytes:
            self._open_run()
        if self._wanted:
            self._request()

    def _open_run(self) -> None:
        run = heappop(self._waiting)[2]
        block = self._tier.take(run)
        if run.replacements is not None:
            for replacement in self._tier.replacements(run):
                self._push(replacement)
            return
        if run.first[0] <= self._progress.sent:
            self._refuse(run, block)
        cursor = MergeCursor(run)
        if block is None:
            self._reading[run] = cursor
            self._wanted.append(run)
        else:
            cursor.load(block)
            if not cursor.block:
                return
        self._open.append(cursor)
        self._opened_bytes += cursor.run.bytes

    def _refuse(self, run: SortRun, block: Block | None) -> NoReturn:
        """Raise InvariantViolated: a source sent a change at or below its resolved ts."""
        whose = run.whose
        if block is not None:
            uids = block.slice(0, 1).keyspaces()
            whose = next(f"table {table.id}" for table in run.tables if table.uid in uids)
        raise InvariantViolated(
            f"{whose}: a change of commit ts {run.first[0]} came after everything up to"
            f" {self._progress.sent} was sent"
        )

    def _request(self) -> None:
        """Request the wanted runs from the Readers, in Reads of a bounded size."""
        by_store: dict[int, list[SortRun]] = {}
        wanted, self._wanted = self._wanted, []
        for run in wanted:
            if run.place is None:
                self._wanted.append(run)
            else:
                by_store.setdefault(run.tables[0].store, []).append(run)
        for store, runs in by_store.items():
            for part in in_parts(runs, READ_BYTES):
                self.send(self._readers[store], ReadRuns(part, self.actor_ref))

    def _bound(self) -> Bound:
        """Return a bound below everything that isn't in memory or may not leave yet."""
        bound = floor(self._progress.resolved + 1)
        if self._waiting:
            bound = min(bound, self._waiting[0][0])
        if self._reading:
            bound = min(bound, next(iter(self._reading)).first)
        return bound

    def _take_below(self, bound: Bound) -> list[Block]:
        """Take the changes in memory below the bound."""
        parts = []
        left = []
        for cursor in self._open:
            block, start = cursor.block, cursor.at
            if block is None:
                left.append(cursor)
                continue
            end = block.find(*bound)
            if end > start:
                parts.append(block.slice(start, end))
                cursor.at = end
            if end < len(block):
                left.append(cursor)
            else:
                self._opened_bytes -= cursor.run.bytes
        self._open = left
        return parts

    def _put_back(self) -> None:
        """Put open runs above the resolved ts back into the tier, where they can be spilled."""
        for cursor in self._open:
            assert cursor.block is not None
            rest = cursor.block.slice(cursor.at, len(cursor.block)).compact()
            run = SortRun(cursor.run.tables, rest)
            self._tier.hold(run)
            self._push(run)
        self._open.clear()
        self._opened_bytes = 0

    # --- output ----------------------------------------------------------------------------------

    def _send(self, parts: list[Block], bound: Bound) -> None:
        """Send all changes before the bound."""
        changes = merge(parts) if parts else NOTHING
        count = len(changes)
        step = max(1, count * SORTED_BYTES // max(changes.bytes, 1))
        start = 0
        while count - start > step:
            end = _cut(changes, start, start + step)
            self._send_sorted(changes.slice(start, end), first_of(changes.slice(end, end + 1)))
            start = end
        self._send_sorted(changes.slice(start, count), bound)

    def _send_sorted(self, changes: Block, following: Bound) -> None:
        """Send a Sorted unless it would say nothing; no change before `following` comes later."""
        progress = self._progress
        resolved = min(progress.resolved, following[0] - 1)
        last = changes.last_ts if changes else self._torn
        continues = last == following[0]
        ends = self._torn is not None and not continues
        self._torn = last if continues else None
        if changes or ends or resolved > progress.sent:
            progress.sent = max(progress.sent, resolved)
            self.send(self._downstream, Sorted(changes, progress.sent, continues))


def _cut(changes: Block, start: int, end: int) -> int:
    """Return where to cut, at or before `end`: between two commit ts unless one fills all from `start`."""
    first = changes.find(changes.slice(end, end + 1).first_ts)
    return first if first > start else end
