"""The promises of every stage under any interruption: a seeded history against a model of plain dicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

from tidemill.chain import Stage
from tidemill.engine.checkpoint import lowest
from tidemill.errors import Retryable
from tidemill.events import Batch, Checkpoint, Column, RowChange, Table, TablePosition, Transaction
from tidemill.sink import Delivery, DeliveryOptions, Sink
from tidemill.sink.delivery import ReplayRequired

TABLES = [Table("s", name, (Column("id", "int"),), key=(0,)) for name in "abc"]
_LENGTH = 80
MAX_WAITING = 40


class Log:
    """Transactions at ts 10, 20, …, whose rows have rising ids."""

    def __init__(self, rng: Random) -> None:
        self.items: list[Transaction] = []
        self.rows: dict[str, list[int]] = {table.full_name: [] for table in TABLES}
        for number in range(1, _LENGTH):
            changes = [self._insert(rng.choice(TABLES), 10 * number) for _ in range(rng.randrange(4))]
            cut = rng.randrange(len(changes) + 1) if rng.random() < 0.3 else 0
            if cut:
                self._append(number, changes[:cut], last=False)
            self._append(number, changes[cut:], last=True)

    def _insert(self, table: Table, ts: int) -> RowChange:
        id_ = sum(map(len, self.rows.values())) + 1
        self.rows[table.full_name].append(id_)
        return RowChange(ts, ts, table, "insert", None, (id_,))

    def _append(self, number: int, rows: list[RowChange], *, last: bool) -> None:
        ts = 10 * number
        self.items.append(Transaction(ts, ts, "src", rows, str(number) if last else "", last))

    def after(self, position: str) -> list[Transaction]:
        return [item for item in self.items if item.commit_ts > 10 * int(position or "0")]


class Target(Sink):
    """Tables of rows in the order in which they came; what isn't flushed is lost with a crash."""

    name = target = "model"

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.rows: dict[str, list[int]] = {table.full_name: [] for table in TABLES}
        self.checkpoint: Checkpoint | None = Checkpoint(0, "0", None, "src")
        self.unflushed: list[RowChange] = []
        self._reached: Checkpoint | None = None
        self.faults = True

    def open(self) -> Checkpoint | None:
        self.unflushed, self._reached = [], None
        return self.checkpoint

    def write(self, batch: Batch) -> None:
        self._maybe_fail()
        self.unflushed += [row for item in batch.items if isinstance(item, Transaction) for row in item.rows]
        self._reached = batch.checkpoint

    def flush(self) -> Checkpoint | None:
        self._maybe_fail()
        if self._reached is not None:
            for row in self.unflushed:
                self.rows[row.table.full_name].append(row.after[0])
            self.unflushed = []
            self.checkpoint = self._reached
        return self.checkpoint

    def _maybe_fail(self) -> None:
        if self.faults and self._rng.random() < 0.05:
            self.open()
            raise Retryable("not now", 0.0)

    def has_table(self, schema: str, table: str) -> bool:
        return True

    def close(self) -> None:
        pass


class Life:
    """A sink with its chain through crashes, stops and seeks."""

    def __init__(
        self,
        seed: int,
        stages: Sequence[Stage],
        wanted: Callable[[str], bool] = lambda _: True,
        disturb: Callable[[Random], object] = lambda _: None,
    ) -> None:
        """`wanted` says which tables the chain lets through; `disturb` is called between batches."""
        self._rng = Random(seed)
        self.log = Log(self._rng)
        self.target = Target(self._rng)
        self._stages = stages
        self._wanted = wanted
        self._disturb = disturb
        self._sought = False
        self._time = 0.0

    def run(self, settle: Callable[[], object] = lambda: None) -> None:
        """Disturbed for a while, and then, once `settle` was called, to the end."""
        for _ in range(4):
            self._pipeline(disturbed=True)
        settle()
        self.target.faults = False
        for _ in range(3):
            self._pipeline(disturbed=False)
        for name, rows in self.log.rows.items():
            assert self.target.rows[name] == (rows if self._wanted(name) else [])
        assert self.target.checkpoint is not None
        assert self.target.checkpoint.resume == TablePosition(10 * (_LENGTH - 1), str(_LENGTH - 1))

    def _pipeline(self, *, disturbed: bool) -> None:
        start = lowest([self.target.open()], order=int)
        assert start is not None
        self.delivery = Delivery(
            self.target,
            self.target.checkpoint,
            "src",
            DeliveryOptions(max_rows=self._rng.randint(1, 8), max_waiting_items=MAX_WAITING),
            stages=self._stages,
            now=lambda: self._time,
            seek=self._seek,
        )
        self._sought = False
        items = self.log.after(start.position)
        try:
            while items and not self._sought:
                if disturbed:
                    self._disturb(self._rng)
                    if self._rng.random() < 0.02:
                        return  # a crash: nothing is flushed, nothing closed
                count = self._rng.randint(1, 9)
                some, items = items[:count], items[count:]
                self.delivery.accept(some)
                self._deliver()
            self._deliver()
        except ReplayRequired:
            return
        with suppress(Retryable):
            self.delivery.flush(self._time)
        self.delivery.close()

    def _deliver(self) -> None:
        while True:
            self._time += 0.3
            try:
                self.delivery.run(self._time)
                break
            except ReplayRequired:
                raise
            except Retryable:
                continue
        assert self.delivery.statistics().waiting_items <= MAX_WAITING

    def _seek(self, at: TablePosition) -> None:
        start = lowest([self.target.checkpoint], order=int)
        assert start is not None
        assert int(start.position) <= int(at.position)
        self._sought = True
