"""The last stage of a sorter: from runs of many tables to whole transactions in commit order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Final, NoReturn

from msgspec import Struct

from ..actors import PooledRef, Target
from ..errors import InvariantViolated
from ..events import KvChange, Sorted, Ts
from .admission import AdmissionControl, SorterActor
from .arrivals import WAKE, Arrivals, Wake
from .cursor import MergeCursor, Slice, join
from .cut import split
from .run import Owners, Run, floor
from .table import Table
from .tier import Tier

READ_BYTES: Final = 1 << 20
"""Bytes that a Read asks for, about: the first runs can leave while the rest is read."""

SORTED_BYTES: Final = 1 << 18
"""Bytes of a Sorted, about; more if its changes vary much in size, or one commit ts is larger.

Rows take ten times as much once they are decoded, and 32 of these may wait for a sink.
"""


class Read(Struct, frozen=True):
    """To a Reader: bring these runs back from disk, and answer with one RunsRead."""

    runs: list[Run]
    reply_to: Target[RunsRead]


class RunsRead(Struct, frozen=True):
    """From a Reader: runs, their changes and owners, in the order of the Read."""

    runs: list[tuple[Run, list[KvChange], Owners]]


class MergeProgress:
    """The Merger's progress, readable from any thread."""

    __slots__ = ("resolved", "resolved_of", "sent")

    def __init__(self) -> None:
        self.resolved: Ts = 0
        """The lowest resolved ts of all tables."""
        self.sent: Ts = 0
        """The resolved ts of the last Sorted: nothing at or below it may follow."""
        self.resolved_of: dict[Table, Ts] = {}

    def slowest(self) -> Table | None:
        """The table with the lowest resolved ts."""
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
        readers: Sequence[PooledRef[Read]],
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
        self._waiting: list[tuple[Ts, KvChange, int, Run]] = []
        """Heap of the runs that aren't open, by their first change; ints compare faster."""
        self._open: list[MergeCursor] = []
        self._opened_bytes = 0
        self._reading: dict[Run, MergeCursor] = {}
        """Open runs that are still read from disk, by their first change."""
        self._wanted: list[Run] = []
        """Open runs not requested from a Reader yet, for instance since they are still being flushed."""
        self._tables: list[tuple[Ts, int, Table]] | None = None
        """Heap of the tables by a resolved ts that may be outdated (`_resolved_of`). None while most tables
        advance together, when a search among all is cheaper."""
        self._resolved_of = progress.resolved_of
        self._torn: Ts | None = None
        """The commit ts that was sent in part; None if there is none."""

    def on_receive_batch(self, messages: Sequence[Wake | RunsRead]) -> None:
        self._gate.moved_at = self.clock.now()
        for message in messages:
            if isinstance(message, RunsRead):
                for run, changes, owners in message.runs:
                    if stretch := self._reading.pop(run, None):
                        stretch.load(changes, owners)
        self._collect()
        more = self._step()
        if not more and not self._reading:
            more = not self._arrivals.rest()
        self._gate.open_if_possible()
        if more:
            self.send(self.actor_ref, WAKE)

    # --- what came -------------------------------------------------------------------------------

    def _collect(self) -> None:
        runs, advanced, removed = self._arrivals.collect()
        for run in runs:
            self._push(run)
        if advanced or removed:
            self._advance(advanced, removed)
        if removed:
            self._forget_removed()

    def _push(self, run: Run) -> None:
        first = run.first
        heappush(self._waiting, (first.commit_ts, first, next(self._numbers), run))

    def _advance(self, advanced: dict[Table, Ts], removed: list[Table]) -> None:
        of = self._resolved_of
        if len(advanced) * MANY > len(of):
            self._tables = None
        elif self._tables is not None:
            for table in advanced.keys() - of.keys():
                heappush(self._tables, (advanced[table], table.uid, table))
        of.update(advanced)
        for table in removed:
            of.pop(table, None)
        if of:
            least = min(of.values()) if len(advanced) * MANY > len(of) else self._least()
            self._progress.resolved = max(self._progress.resolved, least)

    def _least(self) -> Ts:
        """Return the lowest resolved ts, found among the few tables that may have it."""
        of = self._resolved_of
        if self._tables is None:
            self._tables = [(ts, table.uid, table) for table, ts in of.items()]
            heapify(self._tables)
        tables = self._tables
        while True:
            known, uid, table = tables[0]
            resolved = of.get(table)
            if resolved is None:
                heappop(tables)
            elif resolved == known:
                return resolved
            else:
                heapreplace(tables, (resolved, uid, table))

    def _forget_removed(self) -> None:
        """Drop the changes of removed tables, and runs that hold nothing else."""
        self._waiting = [entry for entry in self._waiting if not self._tier.forget_removed(entry[3])]
        heapify(self._waiting)
        self._wanted = [run for run in self._wanted if not self._tier.forget_removed(run)]
        self._reading = {
            run: stretch for run, stretch in self._reading.items() if not all(t.removed for t in run.tables)
        }
        left = []
        for stretch in self._open:
            run = stretch.run
            if stretch.changes is None:
                if run in self._reading:
                    left.append(stretch)
                continue
            if any(table.removed for table in run.tables):
                changes, owners = stretch.changes[stretch.at :], stretch.owners
                stretch.load(changes, None if owners is None else owners[stretch.at :])
                stretch.at = 0
            if stretch.changes:
                left.append(stretch)
        self._open = left
        self._opened_bytes = sum(stretch.run.bytes for stretch in left)

    # --- merging ---------------------------------------------------------------------------------

    def _step(self) -> bool:
        """Open as many runs as there is room for, send what can leave; True if there is more to do."""
        self._open_runs()
        bound = self._bound()
        whole = bound.commit_ts > self._progress.resolved
        if bound.commit_ts != self._torn:
            bound = floor(bound.commit_ts)
        slices = self._take_below(bound)
        if not slices and not whole and not self._reading:
            # One commit ts fills all that may be open: it leaves in several parts.
            bound = self._bound()
            slices = self._take_below(bound)
            if not slices:  # every open run begins with the change that the next one begins with
                self._open_run()
                return True
        if slices or whole:
            self._send(slices, bound)
        if whole:
            self._put_back()
        return bool(slices) and not whole

    def _open_runs(self) -> None:
        waiting, resolved = self._waiting, self._progress.resolved
        while waiting and waiting[0][0] <= resolved and self._opened_bytes < self._open_bytes:
            self._open_run()
        if self._wanted:
            self._request()

    def _open_run(self) -> None:
        run = heappop(self._waiting)[3]
        changes, owners = self._tier.take(run)
        if run.replacements is not None:
            for replacement in self._tier.replacements(run):
                self._push(replacement)
            return
        if run.first.commit_ts <= self._progress.sent:
            self._refuse(run, changes, owners)
        stretch = MergeCursor(run, None, None)
        if changes is None:
            self._reading[run] = stretch
            self._wanted.append(run)
        else:
            stretch.load(changes, owners)
            if not stretch.changes:
                return
        self._open.append(stretch)
        self._opened_bytes += run.bytes

    def _refuse(self, run: Run, changes: list[KvChange] | None, owners: Owners) -> NoReturn:
        """Raise InvariantViolated: a source sent a change at or below its resolved ts."""
        whose = run.whose
        ts = run.first.commit_ts
        if changes is not None and owners is not None:
            ts, owner = min((change.commit_ts, owner) for change, owner in zip(changes, owners, strict=True))
            whose = f"table {run.tables[owner].id}"
        sent = self._progress.sent
        raise InvariantViolated(
            f"{whose}: a change of commit ts {ts} came after everything up to {sent} was sent"
        )

    def _request(self) -> None:
        """Request the wanted runs from the Readers, in Reads of a bounded size."""
        by_store: dict[int, list[Run]] = {}
        wanted, self._wanted = self._wanted, []
        for run in wanted:
            if run.place is None:
                self._wanted.append(run)
            else:
                by_store.setdefault(run.tables[0].store, []).append(run)
        for store, runs in by_store.items():
            for part in split(runs, READ_BYTES):
                self.send(self._readers[store], Read(part, self.actor_ref))

    def _bound(self) -> KvChange:
        """Return a bound below everything that isn't in memory or may not leave yet."""
        bound = floor(self._progress.resolved + 1)
        if self._waiting:
            bound = min(bound, self._waiting[0][1])
        if self._reading:
            bound = min(bound, next(iter(self._reading)).first)
        return bound

    def _take_below(self, bound: KvChange) -> list[Slice]:
        """Take the changes in memory below the bound."""
        slices = []
        done = False
        for stretch in self._open:
            if stretch.changes is None or not stretch.first < bound:
                continue
            end = stretch.find(bound)
            at, changes, owners = stretch.at, stretch.changes, stretch.owners
            if end == len(changes):
                done = True
            if at == end:
                continue
            if end - at < len(changes):
                changes = changes[at:end]
                owners = None if owners is None else owners[at:end]
            slices.append(Slice(stretch.run, changes, owners, stretch.is_sorted))
            stretch.advance(end)
        if done:
            self._close_done()
        return slices

    def _close_done(self) -> None:
        left = []
        for stretch in self._open:
            if stretch.changes is not None and stretch.at == len(stretch.changes):
                self._opened_bytes -= stretch.run.bytes
            else:
                left.append(stretch)
        self._open = left

    def _put_back(self) -> None:
        """Put open runs above the resolved ts back into the tier, where they can be spilled."""
        for stretch in self._open:
            assert stretch.changes is not None
            old, changes, owners = stretch.run, stretch.changes, stretch.owners
            if stretch.at == len(changes):
                continue
            if stretch.at:
                changes = changes[stretch.at :]
                owners = None if owners is None else owners[stretch.at :]
            size = old.bytes * len(changes) // old.count
            first = floor(min([change.commit_ts for change in changes]))
            run = Run(
                old.tables, owners, changes, size, first, old.newest, stretch.is_sorted, stretch.ascends
            )
            self._tier.hold(run)
            self._push(run)
        self._open.clear()
        self._opened_bytes = 0

    # --- output ----------------------------------------------------------------------------------

    def _send(self, slices: list[Slice], bound: KvChange) -> None:
        """Send all changes before the bound."""
        changes = join(slices)
        size = sum(s.run.bytes * len(s.changes) // s.run.count for s in slices)
        count = sum(len(s.changes) for s in slices)  # more than leave, if runs have some in common
        step = max(1, count * SORTED_BYTES // max(size, 1))
        start = 0
        while len(changes) - start > step:
            end = _cut(changes, start, start + step)
            self._send_sorted(changes[start:end], changes[end])
            start = end
        self._send_sorted(changes[start:] if start else changes, bound)

    def _send_sorted(self, changes: list[KvChange], following: KvChange) -> None:
        """Send a Sorted unless it would say nothing; no change before `following` comes later."""
        progress = self._progress
        resolved = min(progress.resolved, following.commit_ts - 1)
        last = changes[-1].commit_ts if changes else self._torn
        continues = last == following.commit_ts
        ends = self._torn is not None and not continues
        self._torn = last if continues else None
        if changes or ends or resolved > progress.sent:
            progress.sent = max(progress.sent, resolved)
            self.send(self._downstream, Sorted(changes, progress.sent, continues))


def _cut(changes: list[KvChange], start: int, end: int) -> int:
    """Return where to cut, at or before `end`: between two commit ts unless one fills all from `start`."""
    first = bisect_left(changes, floor(changes[end].commit_ts), start, end)
    return first if first > start else end
