"""The agreement of several feeds, each with its own shards of the same merged tables."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ..chain import Element
from ..errors import ConfigError, Retryable
from ..events import Checkpoint, Table, TableName
from ..failpoint import reach
from . import shared_lock
from .agreement import Creation, Passage
from .known_locks import LOOK_SECONDS, KnownLocks
from .merged_table import MergedState, MergedTable
from .merged_tables import MergedTables, keep, state_in
from .shared_lock import BeingExecuted, LockChange, ShardReport, SharedLock, place_of
from .shared_locks import SharedLocks
from .status import FEED, FeedWait
from .unlock import Unlock, still_runs

log = logging.getLogger("tidemill.sharding")


class AmongFeeds:
    """Reports each change once the checkpoint has all rows before it, and passes it once it is executed.

    A barrier after them tells when that is. A feed that has to continue without having made a change starts
    again from its checkpoint, so that nothing by the old definition is on its way, and waits there until it
    is executed.
    """

    is_shared = True

    def __init__(
        self,
        locks: SharedLocks,
        merged: MergedTables,
        now: Callable[[], float],
        definition_after: Callable[[MergedTable], Table],
        tell_wait: Callable[[], object],
    ) -> None:
        """`definition_after` returns a merged table's definition after its active change. `tell_wait` is
        called when a change begins to wait for other feeds."""
        self._locks = locks
        self._feed = locks.feed
        self._merged = merged
        self._definition_after = definition_after
        self._tell_wait = tell_wait
        self._known = KnownLocks(locks, now)
        self._decided: dict[TableName, Passage] = {}
        self._waiting: dict[TableName, int] = {}
        """Numbers of the changes that were found to wait for other feeds."""
        self._requests: dict[tuple[TableName, int], Unlock] = {}
        self._answered: set[Unlock] = set()
        self._trouble = ""

    # --- feeds come and go

    def open(self) -> list[Element]:
        marks: list[Element] = []
        for merged in self._merged:
            if merged.shards:
                self._rejoin(merged, merged.number, merged.table)
                marks += self._adopted(merged)
        return marks

    def _rejoin(self, merged: MergedTable, number: int, table: Table) -> None:
        feed = self._feed
        self._known.join(
            merged.target,
            lambda lock: shared_lock.passed(
                shared_lock.rejoin(lock, feed, number, table), feed, number, table
            ),
        )

    def _adopted(self, merged: MergedTable) -> list[Element]:
        """Adopt changes that are resolved without this feed; return the marks for its checkpoint."""
        marks: list[Element] = []
        while True:
            number = merged.number + 1
            change = self._known[merged.target].change(number)
            if change is None or not self._is_excused(change):
                return marks
            change = self._excused(merged, number)
            if change is None or change.step != "executed" or change.table is None:
                raise Retryable(
                    f"{merged.full_name}: change {number} was unlocked, and its owner hasn't executed it yet",
                    LOOK_SECONDS,
                )
            log.warning("%s: change %d was resolved without this feed", merged.id, number)
            merged.excuse(change.form, change.table)
            marks.append(keep(merged))

    def _excused(self, merged: MergedTable, number: int) -> LockChange | None:
        lock = self._known.change(merged, lambda lock: shared_lock.excuse(lock, self._feed, number))
        reach("shard.excused")
        return lock.change(number)

    def _is_excused(self, change: LockChange) -> bool:
        return self._feed not in change.reports and bool(change.forced or change.step == "executed")

    def create(self, target: TableName, table: Table) -> Creation:
        try:
            lock = self._known.join(target, lambda lock: shared_lock.join(lock, self._feed, table))
        except BeingExecuted as error:
            raise Retryable(f"{'.'.join(target)}: {error}; a shard joins afterwards") from error
        reach("shard.joined")
        return Creation(lock.table, lock.number, is_older=lock.is_older)

    # --- a change

    def is_ready(self, merged: MergedTable) -> bool:
        if merged.lock.is_synced:
            return True
        if not merged.sequence:
            return False
        change = self._known.next_change(merged)
        is_forced = change is not None and bool(change.forced) and self._feed in change.reports
        return is_forced or (change is None and (merged.target, merged.number + 1) in self._requests)

    def passage(self, merged: MergedTable) -> Passage | None:
        return self._decided.pop(merged.target, None)

    def is_undecided(self, merged: MergedTable) -> bool:
        return self.is_ready(merged) and self._waiting.get(merged.target) != merged.number + 1

    def look(self, checkpoint: Checkpoint) -> bool:
        try:
            self._known.read()
            starts_again = [self._look(merged, checkpoint) for merged in self._merged]
        except Retryable as error:
            if str(error) != self._trouble:
                log.warning("the other feeds aren't known: %s", error)
                self._trouble = str(error)
            return False
        self._trouble = ""
        return any(starts_again)

    def _look(self, merged: MergedTable, checkpoint: Checkpoint) -> bool:
        """Look at one table; return True if the feed must start again."""
        state = state_in(checkpoint, merged)
        if state is None or self._known.get(merged.target) is None:
            return False
        self._tell_news(merged, state)
        self._answer(merged)
        if state.shards and self._feed not in self._known[merged.target].feeds:
            return True  # it was removed, and may come back
        change = self._known.next_change(merged)
        if change is None or merged.target in self._decided:
            return False
        if self._is_excused(change):
            return change.step == "executed" or not merged.lock.is_synced
        if self._feed in change.reports and self.is_ready(merged):
            self._take(merged, change)
            self._decide(merged)
        return False

    def _tell_news(self, merged: MergedTable, state: MergedState) -> None:
        """Put into the lock what the checkpoint has of this feed."""
        lock, feed, number = self._known[merged.target], self._feed, state.number
        if number > lock.feeds.get(feed, number):
            self._known.change(merged, lambda lock: shared_lock.passed(lock, feed, number, state.table))
            reach("shard.passed")
        elif not state.shards and feed in lock.feeds:
            self._known.change(merged, lambda lock: shared_lock.remove(lock, feed))
        elif self._may_report(merged):
            self._report(merged)
            reach("shard.reported")

    def _may_report(self, merged: MergedTable) -> bool:
        """Return True if the active change is durably ready, and isn't reported."""
        if merged.ready <= merged.number or not self.is_ready(merged):
            return False
        change = self._known.next_change(merged)
        return change is None or (self._feed not in change.reports and change.step != "executed")

    def _report(self, merged: MergedTable) -> None:
        owner, is_synced, number = merged.sequence.owner, merged.lock.is_synced, merged.number + 1
        assert owner is not None
        said = ShardReport(str(owner.shard), owner.ddl.query, self._locks.time(), is_partial=not is_synced)

        def reported(lock: SharedLock) -> SharedLock:
            if not is_synced and lock.change(number) is not None:
                return lock  # another feed owns it: shards that haven't made it wait until it is executed
            return shared_lock.report(lock, self._feed, number, owner.form, said)

        self._known.change(merged, reported)

    def _take(self, merged: MergedTable, change: LockChange) -> None:
        if change.owner != self._feed or change.step != "waiting":
            return
        number = change.number
        if change.forced and self._known[merged.target].unsynced(change):
            # A feed that starts after this look finds the change forced.
            running = self._locks.find_running()
            self._known.change(merged, lambda lock: shared_lock.excuse_stopped(lock, number, running))
        if shared_lock.can_take(self._known[merged.target], self._feed, number):
            table = self._definition_after(merged)
            self._known.change(merged, lambda lock: shared_lock.take(lock, self._feed, number, table))
            reach("shard.taken")

    def _decide(self, merged: MergedTable) -> None:
        change = self._known.next_change(merged)
        assert change is not None
        is_own = change.step == "executing" and change.owner == self._feed
        if is_own or change.step == "executed":
            self._decided[merged.target] = Passage(is_own, change.table, change.number)
            self._merged.unsettled.add(merged.target)
        elif self.is_undecided(merged):
            self._waiting[merged.target] = change.number
            self._tell_wait()

    # --- requests and status

    def force(self, merged: MergedTable, request: Unlock) -> bool:
        owner, change, number = merged.sequence.owner, self._known.next_change(merged), merged.number + 1
        places = [owner.place] if owner is not None else []
        places += [place_of(number)] if change is not None else []
        if request.statement in places and request not in self._answered:
            self._requests[merged.target, number] = request
            self._merged.unsettled.add(merged.target)
        return True

    def _answer(self, merged: MergedTable) -> None:
        """Do once what was requested for the active change."""
        number = merged.number + 1
        request = self._requests.get((merged.target, number))
        if request is None or request in self._answered or self._known.next_change(merged) is None:
            return
        try:
            self._known.change(merged, lambda lock: self._forced(lock, number, request))
        except ConfigError as error:  # it was possible when it was requested
            log.warning("%s: this unlock has no effect: %s", merged.id, error)
        self._answered.add(request)
        reach("shard.forced")

    def _forced(self, lock: SharedLock, number: int, request: Unlock) -> SharedLock:
        if not request.remove:
            return shared_lock.force(lock, number, request.action, request.owner.removeprefix(FEED))
        if request.remove in self._locks.find_running():
            raise ConfigError(still_runs(request.remove))
        return shared_lock.remove(lock, request.remove)

    def waits(self, merged: MergedTable) -> Sequence[FeedWait]:
        change, lock = self._known.next_change(merged), self._known.get(merged.target)
        if lock is None or change is None:
            return ()
        running, now = self._locks.running(), self._locks.time()
        return [
            FeedWait(
                feed,
                said.query if (said := change.reports.get(feed)) is not None else "",
                now - said.time if said is not None else None,
                is_running=feed in running,
                is_owner=feed == change.owner,
                step=change.step,
            )
            for feed in sorted({*lock.feeds, *change.reports})
        ]
