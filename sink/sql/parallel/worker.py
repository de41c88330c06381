"""One connection and its thread."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from ....dialects.applied import Applied
from ....dialects.worker import Start, WorkerDatabase
from ....failpoint import reach
from ..apply import Applier, RowRejected, TransactionPart
from ..letters.writer import LetterWriter
from .unit import Unit

if TYPE_CHECKING:
    from .pool import Pool


class WorkerTask(NamedTuple):
    """Work of one SQL transaction."""

    units: list[Unit]
    start: Start
    forgotten: Sequence[Applied]
    since: float
    """Time when the worker got it."""


class Worker(Thread):
    """Applies tasks of the pool until there are no more, or one fails."""

    def __init__(
        self,
        name: str,
        target: WorkerDatabase,
        pool: Pool,
        applier: Applier,
        letters: LetterWriter | None,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._target = target
        self._letters = letters
        self._applier = applier
        self._pool = pool
        self.task: WorkerTask | None = None
        """Its current work."""
        self.records: list[Applied] = []
        """Its records in the target."""

    def run(self) -> None:
        try:
            self._target.connect_worker()
            while (task := self._pool.next(self)) is not None:
                self._apply(task)
        except Exception as error:
            self._pool.failed(self._applier.failure(error, "writing"))
        finally:
            self._target.close()

    def interrupt(self) -> None:
        self._target.interrupt()

    def _apply(self, task: WorkerTask) -> None:
        target = self._target
        try:
            if not target.begin_work(task.start):
                raise self._pool.moved()
            # The other row may be changed by a unit before it, if their keys were told apart wrongly.
            is_first = self._pool.is_first(task)
            if task.units:
                parts = [TransactionPart(unit.ts, unit.checkpoint.position, unit.runs) for unit in task.units]
                self._applier.apply(parts, keeps=is_first)
            if self._letters is not None and self._letters.keys:
                self._letters.refresh()
            reach("sink.before_commit")
            target.commit()
        except RowRejected as error:
            if is_first:
                raise
            self._roll_back()
            self._pool.rejected(self, task, error)
            return
        except Exception as error:
            if not target.is_contention(error):
                raise
            self._roll_back()
            self._pool.rolled_back(self, task, str(self._applier.explain(error, "writing")))
            return
        reach("sink.committed")
        if self._letters is not None:
            self._letters.committed()
        self._pool.committed(self, task)

    def _roll_back(self) -> None:
        self._target.rollback()
        if self._letters is not None:
            self._letters.rolled_back()
