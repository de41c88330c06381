"""The last stage of a sorter: from runs of many tables to whole transactions in commit order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Any, Final

from msgspec import Struct

from ..actors import PooledRef, Target
from ..errors import InvariantViolated
from ..events import KvChange, Sorted, Ts
from .arrivals import WAKE, Arrivals
from .gate import Gate, Part
from .run import Run, Table, once, sort, split
from .tier import Tier

READ_BYTES: Final = 1 << 20
"""A Read asks for about this much: what comes first can leave while the rest is read."""

SORTED_BYTES: Final = 1 << 20
"""A Sorted carries about this much, more if its changes vary much in size, or
what has one commit ts is opened as a whole and larger."""


class Read(Struct, frozen=True):
    """To a Reader: bring these runs back from disk, and answer with one Loaded."""

    runs: list[Run]
    reply_to: Target


class Loaded(Struct, frozen=True):
    """From a Reader: runs and their changes, in the order of the Read."""

    runs: list[tuple[Run, list[KvChange]]]


class Progress:
    """How far the Merger is, for others to look at."""

    __slots__ = ("resolved", "sent", "slowest")

    def __init__(self) -> None:
        self.resolved: Ts = 0
        """The least over the tables."""
        self.sent: Ts = 0
        """Sent with the last Sorted: nothing at or below may follow."""
        self.slowest: Table | None = None
        """The table with the least resolved ts."""


class Stretch:
    """A run that is being merged: its changes from `at` on; None while they are being read."""

    __slots__ = ("at", "changes", "run")

    def __init__(self, run: Run, changes: list[KvChange] | None) -> None:
        self.run = run
        self.changes = changes
        self.at = 0


class Merger(Part):
    """Sends whole transactions of all tables downstream, as far as every table is resolved.

    Runs are opened in the order of their first changes, up to `open_bytes`. What lies before the
    first run that isn't open, or isn't read yet, can leave. So one pass over the runs merges any
    number of tables and transactions of any size, and tables without changes cost nothing.
    """

    def __init__(
        self,
        gate: Gate,
        arrivals: Arrivals,
        tier: Tier,
        progress: Progress,
        downstream: Target,
        readers: Sequence[PooledRef[Any]],
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
        self._waiting: list[tuple[KvChange, int, Run]] = []
        """Heap of the runs that aren't open, by their first change."""
        self._open: list[Stretch] = []
        self._opened_bytes = 0
        self._reading: dict[Run, Stretch] = {}
        """Those open that aren't back from disk, by their first change."""
        self._wanted: list[Run] = []
        """Those of them that no Reader was asked for yet."""
        self._tables: list[tuple[Ts, int, Table]] = []
        """Heap of the tables by resolved ts, which may have moved since: see `_resolved_of`."""
        self._resolved_of: dict[Table, Ts] = {}
        self._torn: Ts | None = None
        """The commit ts that was sent in part."""

    def on_receive_batch(self, messages: Sequence[Any]) -> None:
        for message in messages:
            if isinstance(message, Loaded):
                for run, changes in message.runs:
                    if stretch := self._reading.pop(run, None):
                        stretch.changes = changes
        self._collect()
        more = self._step()
        if not more and not self._reading:
            more = not self._arrivals.rest()
        self._gate.open_if_possible()
        if more:
            self.send(self.actor_ref, WAKE)

    # --- what came -------------------------------------------------------------------------------

    def _collect(self) -> None:
        runs, advanced = self._arrivals.collect()
        for run in runs:
            self._push(run)
        for table, resolved in advanced.items():
            if table.removed:
                self._resolved_of.pop(table, None)
                continue
            if table not in self._resolved_of:
                heappush(self._tables, (resolved, table.uid, table))
            self._resolved_of[table] = resolved
        if any(table.removed for table in advanced):
            self._forget_removed()
        progress = self._progress
        progress.slowest = self._slowest()
        if progress.slowest is not None:
            progress.resolved = max(progress.resolved, self._resolved_of[progress.slowest])

    def _push(self, run: Run) -> None:
        heappush(self._waiting, (run.first, next(self._numbers), run))

    def _slowest(self) -> Table | None:
        """The table with the least resolved ts."""
        tables = self._tables
        while tables:
            known, uid, table = tables[0]
            resolved = self._resolved_of.get(table)
            if resolved is None:
                heappop(tables)
            elif resolved == known:
                return table
            else:
                heapreplace(tables, (resolved, uid, table))
        return None

    def _forget_removed(self) -> None:
        for _, _, run in self._waiting:
            if run.table.removed:
                self._tier.forget(run)
        self._waiting = [entry for entry in self._waiting if not entry[2].table.removed]
        heapify(self._waiting)
        self._reading = {run: s for run, s in self._reading.items() if not run.table.removed}
        self._open = [s for s in self._open if not s.run.table.removed]
        self._opened_bytes = sum(s.run.bytes for s in self._open)

    # --- merging ---------------------------------------------------------------------------------

    def _step(self) -> bool:
        """Open what there is room for and send what can leave; True if there is more to do at once."""
        self._open_runs()
        bound = self._bound()
        whole = bound.commit_ts > self._progress.resolved
        if bound.commit_ts != self._torn:
            bound = KvChange(bound.commit_ts, 0, 0, b"", b"")
        parts = self._take_below(bound)
        if not parts and not whole and not self._reading:
            # One commit ts fills all that may be open: it leaves in stretches.
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
        while waiting and waiting[0][0].commit_ts <= resolved and self._opened_bytes < self._open_bytes:
            self._open_run()
        if self._wanted:
            self._request()

    def _open_run(self) -> None:
        run = heappop(self._waiting)[2]
        if run.table.removed:
            self._tier.forget(run)
            return
        changes = self._tier.take(run)
        if run.heirs is not None:
            for heir in self._tier.heirs(run):
                self._push(heir)
            return
        if run.first.commit_ts <= self._progress.sent:
            raise InvariantViolated(
                f"table {run.table.id}: a change of commit ts {run.first.commit_ts} came after everything"
                f" up to {self._progress.sent} was sent"
            )
        stretch = Stretch(run, changes)
        if changes is None:
            self._reading[run] = stretch
            self._wanted.append(run)
        self._open.append(stretch)
        self._opened_bytes += run.bytes

    def _request(self) -> None:
        """Ask the Readers for what is wanted, in Reads of a bounded size."""
        by_store: dict[int, list[Run]] = {}
        for run in self._wanted:
            by_store.setdefault(run.table.store, []).append(run)
        for store, runs in by_store.items():
            for part in split(runs, READ_BYTES):
                self.send(self._readers[store], Read(part, self.actor_ref))
        self._wanted.clear()

    def _bound(self) -> KvChange:
        """Less than everything that isn't loaded or may not leave yet."""
        bound = KvChange(self._progress.resolved + 1, 0, 0, b"", b"")
        if self._waiting:
            bound = min(bound, self._waiting[0][0])
        if self._reading:
            bound = min(bound, next(iter(self._reading)).first)
        return bound

    def _take_below(self, bound: KvChange) -> list[tuple[Run, list[KvChange]]]:
        """Loaded changes before the bound, in order for each run."""
        parts = []
        done = False
        for stretch in self._open:
            changes, at = stretch.changes, stretch.at
            if changes is None or not changes[at] < bound:
                continue
            if changes[-1] < bound:
                end = len(changes)
                done = True
            else:
                end = bisect_left(changes, bound, at)
            parts.append((stretch.run, changes[at:end] if end - at < len(changes) else changes))
            stretch.at = end
        if done:
            self._close_done()
        return parts

    def _close_done(self) -> None:
        left = []
        for stretch in self._open:
            if stretch.changes is not None and stretch.at == len(stretch.changes):
                self._opened_bytes -= stretch.run.bytes
            else:
                left.append(stretch)
        self._open = left

    def _put_back(self) -> None:
        """What is open and above the resolved ts waits with the rest, where it can go to disk."""
        for stretch in self._open:
            assert stretch.changes is not None
            changes = stretch.changes[stretch.at :]
            old = stretch.run
            run = Run(old.table, changes, old.bytes * len(changes) // old.count, old.single)
            self._tier.hold(run)
            self._push(run)
        self._open.clear()
        self._opened_bytes = 0

    # --- output ----------------------------------------------------------------------------------

    def _send(self, parts: list[tuple[Run, list[KvChange]]], bound: KvChange) -> None:
        """Send parts that lie before the bound: all that do."""
        changes = _join(parts)
        size = sum(run.bytes * len(part) // run.count for run, part in parts)
        step = max(1, len(changes) * SORTED_BYTES // max(size, SORTED_BYTES))
        start = 0
        while len(changes) - start > step:
            end = _cut(changes, start, start + step)
            self._send_sorted(changes[start:end], changes[end])
            start = end
        self._send_sorted(changes[start:] if start else changes, bound)

    def _send_sorted(self, changes: list[KvChange], following: KvChange) -> None:
        """Send changes, if there is anything to say; none before `following` will come after them."""
        progress = self._progress
        resolved = min(progress.resolved, following.commit_ts - 1)
        last = changes[-1].commit_ts if changes else self._torn
        goes_on = last == following.commit_ts
        ends = self._torn is not None and not goes_on
        self._torn = last if goes_on else None
        if changes or ends or resolved > progress.sent:
            progress.sent = max(progress.sent, resolved)
            self.send(self._downstream, Sorted(changes, progress.sent, goes_on))


def _join(parts: list[tuple[Run, list[KvChange]]]) -> list[KvChange]:
    """Parts of runs in commit order, without what came twice."""
    if len(parts) == 1 and parts[0][0].single:
        return parts[0][1]
    by_table: dict[Table, list[tuple[Run, list[KvChange]]]] = {}
    for part in parts:
        by_table.setdefault(part[0].table, []).append(part)
    joined: list[KvChange] = []
    single = False
    for its_parts in by_table.values():
        run, changes = its_parts[0]
        single = run.single
        if len(its_parts) > 1:
            changes = [change for _, part in its_parts for change in part]
            single = sort(changes)
        joined += changes if single else once(changes)
    if len(by_table) > 1:
        sort(joined)
    return joined


def _cut(changes: list[KvChange], start: int, end: int) -> int:
    """Where to cut at `end` or before: between two commit ts, unless one fills all from `start`."""
    first = bisect_left(changes, KvChange(changes[end].commit_ts, 0, 0, b"", b""), start, end)
    return first if first > start else end
