"""Worker threads and the units they apply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Condition
from typing import Final

from ....codec.checkpoint import encode_checkpoint
from ....dialects.applied import Applied
from ....dialects.worker import Advance, Start, WorkerDatabase
from ....errors import Retryable, SinkError
from ....events import Checkpoint, Wait
from ...safe_mode import SafeMode
from ...sink import WorkersProgress
from ..after_start import AfterStart
from ..apply import Applier, RowRejected
from ..letters.rows import LetterRows
from ..letters.writer import LetterWriter
from .batch_size import BatchSize
from .causality import Causality
from .unit import Unit
from .worker import Worker, WorkerTask

MAX_UNITS: Final = 1_000
"""Maximum number of transactions of the source in one SQL transaction."""
MAX_WAITING_ROWS: Final = 20_000
"""Maximum number of rows that aren't durable; one more transaction is accepted below it."""
MAX_WAITING_UNITS: Final = 10_000
SLOW_SECONDS: Final = 1.0
"""Time after which a transaction that isn't durable is reported as waiting."""
STALL_SECONDS: Final = 30.0
"""Time without a commit of any worker after which the feed is told that the target is stuck."""


class Pool:
    """Applies units by several workers, and advances the checkpoint past those that are complete.

    `add`, `settle`, `saved` and `close` are called by the sink's thread; `waits` and `progress` by any.
    """

    def __init__(
        self,
        name: str,
        target: WorkerDatabase,
        count: int,
        saved: Checkpoint,
        records: list[Applied],
        safe_mode: SafeMode,
        now: Callable[[], float],
        letters: LetterWriter | None = None,
        time: Callable[[], float] = float,
        after_start: AfterStart | None = None,
        *,
        merges: bool = False,
    ) -> None:
        """`saved` is the checkpoint in the target, `records` are there already. `time` is in Unix seconds."""
        self._name = name
        self._identity = target.identity
        self._feed = target.feed
        self._now = now
        self._changed = Condition()
        self._causality = Causality()
        self._saved = saved
        self._last = saved
        self._next_saved = saved  # what the SQL transaction stores that is saving
        self._save_to = saved.ts  # a checkpoint up to here is wanted without further rows
        self._saving = False
        self._closing = False
        self._error: Exception | None = None
        self._after_start = after_start
        self._batch_size = BatchSize()
        self._commits = 0
        self._idle = 0
        self._workers = []
        for number in range(1, count + 1):
            own = target.another()
            writer = letters and letters.another(LetterRows(own.own_tables, own.feed))
            applier = Applier(own, safe_mode, writer, time, after_start, merges=merges)
            self._workers.append(Worker(f"{name} worker {number}", own, self, applier, writer))
        self._workers[0].records = records
        for worker in self._workers:
            worker.start()

    # --- the sink's thread

    @property
    def saved(self) -> Checkpoint:
        """The durable checkpoint. Raises the error of a worker, if one failed."""
        with self._changed:
            self._check()
            return self._saved

    def add(self, units: Iterable[tuple[Unit, bool]]) -> None:
        """Accept units in commit order, each with True if the target has it; wait while there are too many.

        Raises as `settle`.
        """
        with self._changed:
            for unit, is_done in units:
                causality = self._causality
                if causality.rows >= MAX_WAITING_ROWS or len(causality.units) >= MAX_WAITING_UNITS:
                    self._changed.notify_all()
                    self._wait_for(
                        lambda: (
                            self._causality.rows < MAX_WAITING_ROWS
                            and len(self._causality.units) < MAX_WAITING_UNITS
                        )
                    )
                causality.add(unit, done=is_done)
                self._last = unit.checkpoint
            self._check()
            self._changed.notify_all()

    def save(self) -> None:
        """Have the checkpoint stored as soon as it can advance."""
        with self._changed:
            self._check()
            if self._save_to != self._last.ts:
                self._save_to = self._last.ts
                self._changed.notify_all()

    def settle(self) -> Checkpoint:
        """Wait until everything accepted is durable; return its checkpoint.

        Raises Retryable if the target is unavailable or nothing advances, and SinkError if it refuses a
        row.
        """
        with self._changed:
            self._save_to = self._last.ts
            self._changed.notify_all()
            self._wait_for(lambda: self._saved.ts >= self._last.ts and not self._causality.units)
            return self._saved

    def go_on(self, saved: Checkpoint) -> None:
        """Go on after `saved`, which another has stored while everything here was settled."""
        with self._changed:
            self._check()
            self._saved = self._last = saved
            self._save_to = saved.ts
            self._causality.prefix = None

    def close(self) -> None:
        """End all workers; open SQL transactions are rolled back."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.interrupt()
        for worker in self._workers:
            worker.join()

    def _wait_for(self, is_reached: Callable[[], bool]) -> None:
        while not is_reached():
            self._check()
            commits = self._commits
            if not self._changed.wait(STALL_SECONDS) and commits == self._commits:
                waits = [str(wait.reason) for wait in self._waits()]
                raise Retryable(
                    f"{self._identity}: no transaction ended for {STALL_SECONDS:.0f} s: "
                    f"{'; '.join(waits) or 'the workers wait for the server'}"
                )
        self._check()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    # --- any thread

    @property
    def progress(self) -> WorkersProgress:
        with self._changed:
            count = len(self._workers)
            return WorkersProgress(
                len(self._causality.units), self._causality.rows, count, count - self._idle
            )

    def waits(self) -> list[Wait]:
        """Return what the workers wait for, and how many transactions wait for theirs."""
        with self._changed:
            return self._waits()

    def _waits(self) -> list[Wait]:
        behind = sum(1 for unit in self._causality.units if unit.state == "waiting")
        return [
            Wait(
                worker.name, "worker", self._now() - first.since, reason=_described(task.units), count=behind
            )
            for worker in self._workers
            if (task := worker.task) is not None
            and task.units
            and self._now() - (first := task.units[0]).since >= SLOW_SECONDS
        ]

    # --- the workers' threads

    def next(self, worker: Worker) -> WorkerTask | None:
        """Wait for work; return None at the end."""
        with self._changed:
            while not self._closing:
                task = self._task(worker)
                if task is not None:
                    worker.task = task
                    return task
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            return None

    def _task(self, worker: Worker) -> WorkerTask | None:
        causality = self._causality
        share = -(-causality.ready // (self._idle + 1))
        units = causality.take(share, MAX_UNITS, self._batch_size.rows)
        advance = self._advance(units)
        if not units and advance is None:
            return None
        covered = self._saved.ts if advance is None else advance.ts
        above = sorted(unit.ts for unit in units if unit.ts > covered)
        forget = [one for one in worker.records if one.last <= self._saved.ts]
        applied = Applied(tuple(above)) if above else None
        return WorkerTask(units, Start(applied, [one.first for one in forget], advance), forget, self._now())

    def _advance(self, units: Sequence[Unit]) -> Advance | None:
        """Return the checkpoint that a SQL transaction of these units stores; one at a time does."""
        if self._saving:
            return None
        last = self._causality.prefix_with(units)
        if last is None or last.ts <= self._saved.ts or (not units and self._saved.ts >= self._save_to):
            return None
        self._saving = True
        self._next_saved = last.checkpoint
        return Advance(self._saved.ts, last.ts, encode_checkpoint(last.checkpoint))

    def committed(self, worker: Worker, task: WorkerTask) -> None:
        with self._changed:
            worker.task = None
            self._commits += 1
            self._batch_size.note(sum(unit.rows for unit in task.units), self._now() - task.since)
            self._causality.commit(task.units)
            worker.records = [one for one in worker.records if one not in task.forgotten]
            if task.start.applied is not None:
                worker.records.append(task.start.applied)
            if task.start.advance is not None:
                self._saved = self._next_saved
                self._saving = False
                if self._after_start is not None:
                    self._after_start.passed(self._saved.ts)
            self._changed.notify_all()

    def rolled_back(self, worker: Worker, task: WorkerTask, obstacle: str) -> None:
        """Try its units again, each alone."""
        self._may_come_again(task)
        with self._changed:
            for unit in task.units:
                unit.obstacle = obstacle
            self._causality.give_back(task.units)
            self._give_back(worker, task)

    def rejected(self, worker: Worker, task: WorkerTask, error: RowRejected) -> None:
        """Try the unit with a rejected row again after all those before it, and the others at once."""
        self._may_come_again(task)
        with self._changed:
            bad = [unit for unit in task.units if unit.ts == error.ts]
            for unit in bad:
                unit.obstacle = str(error)
            self._causality.put_back([unit for unit in task.units if unit not in bad])
            self._causality.give_back(bad, hold=True)
            self._give_back(worker, task)

    def _give_back(self, worker: Worker, task: WorkerTask) -> None:
        worker.task = None
        self._saving = self._saving and task.start.advance is None
        self._changed.notify_all()

    def _may_come_again(self, task: WorkerTask) -> None:
        if self._after_start is not None and task.units:
            self._after_start.begin(max(unit.ts for unit in task.units))

    def is_first(self, task: WorkerTask) -> bool:
        """Return True if all units before this task's only one are committed."""
        with self._changed:
            units = self._causality.units
            return len(task.units) == 1 and bool(units) and units[0] is task.units[0]

    def failed(self, error: Exception) -> None:
        with self._changed:
            if self._error is None:
                self._error = error
            self._closing = True
            self._changed.notify_all()

    def moved(self) -> SinkError:
        return SinkError(
            f"{self._identity}: the checkpoint of feed {self._feed!r} was moved by somebody else; is the "
            "same feed running twice?"
        )


def _described(units: Sequence[Unit]) -> str:
    """Return the transactions of a task, their tables, and what they met, as a phrase."""
    first = units[0]
    tables = sorted({run.table.full_name for unit in units for run in unit.runs})
    more = f" and {len(units) - 1} more transactions" if len(units) > 1 else ""
    obstacle = f": {first.obstacle}" if first.obstacle else ""
    return f"commit ts {first.ts}{more} ({', '.join(tables[:3])}){obstacle}"
