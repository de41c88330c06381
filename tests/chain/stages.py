"""Two small stages: one holds a table back, one sets barriers."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tidemill.chain import Barrier, Element, Lag, StageContext
from tidemill.events import Checkpoint, Ddl, TablePosition, Transaction, Wait


class HoldTable:
    """Holds the changes of one table while `holding`, and lets other tables go on.

    Beyond `max_items` it forgets what it holds, and reads it again once it may let it pass.
    """

    name = "hold"

    def __init__(self, table: str, max_items: int) -> None:
        self.holding = False
        self.held: list[Transaction] = []
        self.seeks = 0
        self._table = table
        self._max_items = max_items

    def open(self, context: StageContext) -> None:
        at = context.checkpoint
        self._context = context
        self._passed = TablePosition(at.ts, at.position)
        self._lag = at.tables.get(self._table)
        self._since = context.now()
        self.held = []
        self._forgot = self._sought = self._owns_lag = False
        self._lags_before = self._lag is not None  # a stage before this one has its own reason
        self._is_open = False  # inside a transaction
        self._splits = False  # the one that it is inside of

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        passed: list[Element] = [*self._let_go()]
        for element in batch:
            if isinstance(element, Lag) and element.table == self._table:
                self._lags_before = False
                if self._keeps:
                    self._owns_lag = True
                    continue
                self._lag = None
            if not isinstance(element, Transaction):
                assert not isinstance(element, Ddl)
                passed.append(element)
                continue
            if not self._is_open:
                self._splits = self._keeps
            self._is_open = not element.last
            passed += self._split(element) if self._splits else [element]
            if element.last and element.commit_ts > self._passed.ts:
                self._passed = TablePosition(element.commit_ts, element.position)
            elif element.last and not self._splits:  # late, by a stage before this one
                self._lag = TablePosition(element.commit_ts, element.position)
        return passed

    def _split(self, item: Transaction) -> list[Element]:
        mine = [row for row in item.rows if row.table.full_name == self._table]
        rest = [row for row in item.rows if row.table.full_name != self._table]
        passed: list[Element] = []
        if mine or (self.held and not self.held[-1].last):
            if not self._owns_lag:
                self._lag = self._lag or self._passed
                self._owns_lag = True
                self._since = self._context.now()
                passed.append(Lag(self._table, self._lag))
            self._hold(replace(item, rows=mine))
        if item.commit_ts > self._passed.ts:
            passed.append(replace(item, rows=rest))
        return passed

    @property
    def _keeps(self) -> bool:
        return self.holding or self._owns_lag

    def _hold(self, item: Transaction) -> None:
        self.held.append(item)
        if self._forgot or len(self.held) > self._max_items:
            self.held = []
            self._forgot = True

    def _let_go(self) -> Sequence[Element]:
        if self.holding or self._is_open or not self._keeps:
            return ()
        if self._forgot:
            if not self._sought:
                assert self._lag is not None
                self._sought = True
                self.seeks += 1
                self._context.seek(self._lag)
            return ()
        released, self.held, self._owns_lag = self.held, [], False
        if self._lags_before:
            if released:
                self._lag = TablePosition(released[-1].commit_ts, released[-1].position)
            return released
        self._lag = None
        return [*released, Lag(self._table, None)]

    def durable(self, checkpoint: Checkpoint) -> Sequence[Element]:
        return self._let_go()

    def waits(self) -> Sequence[Wait]:
        if not self.held:
            return ()
        seconds = self._context.now() - self._since
        return [Wait(f"sink {self._context.sink}", "held", seconds, table=self._table, count=len(self.held))]

    def close(self) -> None:
        self.held = []


class BarrierAfter:
    """Sets a barrier after each transaction that changes a table, and counts those that were passed."""

    name = "barriers"

    def __init__(self, table: str) -> None:
        self._table = table
        self.waiting: list[int] = []
        self.passed = 0

    def open(self, context: StageContext) -> None:
        self.waiting = []
        self._touched = False

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        passed: list[Element] = []
        for element in batch:
            passed.append(element)
            if not isinstance(element, Transaction):
                continue
            self._touched |= any(row.table.full_name == self._table for row in element.rows)
            if element.last and self._touched:
                self._touched = False
                self.waiting.append(element.commit_ts)
                passed.append(Barrier())
        return passed

    def durable(self, checkpoint: Checkpoint) -> Sequence[Element]:
        before = len(self.waiting)
        self.waiting = [ts for ts in self.waiting if not checkpoint.covers(self._table, ts)]
        self.passed += before - len(self.waiting)
        return ()

    def waits(self) -> Sequence[Wait]:
        return ()

    def close(self) -> None:
        self.waiting = []
