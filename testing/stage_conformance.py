"""The contract of every stage of a chain: seeded histories with crashes, and batches cut anywhere.

A subclass of StageConformance in a test module, with the fixture `make_stage`, runs it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from random import Random
from typing import ClassVar, Final, TypeAlias, cast

import pytest
from msgspec import Struct
from msgspec.structs import replace

from ..chain import Barrier, Element, Keep, Lag, Stage, StageContext
from ..engine.checkpoint import lowest
from ..errors import Retryable
from ..events import (
    AddColumn,
    Batch,
    Checkpoint,
    Column,
    Ddl,
    Row,
    RowChange,
    Table,
    TablePosition,
    Transaction,
)
from ..sink import Delivery, DeliveryOptions, Sink
from ..sink.errors import ReplayRequired

TABLES: Final = [Table("s", name, (Column("id", "int"),), key=(0,)) for name in "abc"]
MAX_WAITING: Final = 40
_LENGTH: Final = 80

Passed: TypeAlias = Callable[[RowChange], RowChange | None]
"""The change that a stage makes of one; None if it drops it."""


class Log:
    """Transactions at ts 10, 20, …, whose rows have rising ids."""

    def __init__(self, rng: Random) -> None:
        self.items: list[Transaction] = []
        self.changes: list[RowChange] = []
        for number in range(1, _LENGTH):
            changes = [self._insert(rng.choice(TABLES), 10 * number) for _ in range(rng.randrange(4))]
            cut = rng.randrange(len(changes) + 1) if rng.random() < 0.3 else 0
            if cut:
                self._append(number, changes[:cut], last=False)
            self._append(number, changes[cut:], last=True)

    def _insert(self, table: Table, ts: int) -> RowChange:
        self.changes.append(RowChange(ts, ts, table, "insert", None, (len(self.changes) + 1,)))
        return self.changes[-1]

    def _append(self, number: int, rows: list[RowChange], *, last: bool) -> None:
        ts = 10 * number
        self.items.append(Transaction(ts, ts, "src", rows, str(number) if last else "", last))

    def after(self, position: str) -> list[Transaction]:
        return [item for item in self.items if item.commit_ts > 10 * int(position or "0")]


class StageTarget(Sink):
    """Tables of rows in the order in which they came; what isn't flushed is lost with a crash."""

    name = target = "model"

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.rows: dict[str, list[Row | None]] = defaultdict(list)
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
                self.rows[row.table.full_name].append(row.after)
            self.unflushed = []
            self.checkpoint = self._reached
        return self.checkpoint

    def _maybe_fail(self) -> None:
        if self.faults and self._rng.random() < 0.05:
            self.open()
            raise Retryable("not now", 0.0)

    def has_table(self, schema: str, table: str) -> bool:  # noqa: ARG002
        return True

    def close(self) -> None:
        pass


class StageLife:
    """A sink with its chain through crashes, stops and seeks."""

    def __init__(
        self,
        seed: int,
        stages: Sequence[Stage],
        passed: Passed = lambda change: change,
        disturb: Callable[[Random], object] = lambda _: None,
    ) -> None:
        """`passed` returns what the chain makes of a change; `disturb` is called between batches."""
        self._rng = Random(seed)
        self.log = Log(self._rng)
        self.target = StageTarget(self._rng)
        self._stages = stages
        self._passed = passed
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
        wanted = defaultdict(list)
        for change in filter(None, map(self._passed, self.log.changes)):
            wanted[change.table.full_name].append(change.after)
        assert self.target.rows == wanted
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


class StageConformance:
    """Promises of every stage, however its batches are cut. A subclass gives the fixture `make_stage`:

    class TestMine(StageConformance):
        @pytest.fixture
        def make_stage(self):
            return lambda: MyStage(...)

        def passed(self, change):
            return None if change.table.name == "b" else change
    """

    seeds: ClassVar[Sequence[int]] = range(10)
    """Seeds of the histories, which have the tables s.a, s.b and s.c with one column, `id`."""

    @pytest.fixture
    def make_stage(self) -> Callable[[], Stage]:
        raise NotImplementedError("give the fixture `make_stage`: a function that makes a Stage")

    def passed(self, change: RowChange) -> RowChange | None:
        """Return what the stage makes of a change; None if it drops it. Without a method of its own: the
        change as it is."""
        return change

    def test_order_is_kept_and_nothing_lost_through_crashes(self, make_stage: Callable[[], Stage]) -> None:
        for seed in self.seeds:
            StageLife(seed, [make_stage()], self.passed).run()

    def test_batches_cut_elsewhere_give_the_same(self, make_stage: Callable[[], Stage]) -> None:
        for seed in self.seeds:
            rng = Random(seed)
            items = Log(rng).items
            whole = outcome(make_stage(), [items])
            assert outcome(make_stage(), [items]) == whole, "the same batches gave something else"
            assert outcome(make_stage(), [[item] for item in items]) == whole
            assert outcome(make_stage(), _cut(items, rng)) == whole

    def test_opened_again_it_begins_as_new(self, make_stage: Callable[[], Stage]) -> None:
        items = Log(Random(0)).items
        stage = make_stage()
        stage.open(_context())
        stage.apply(items[:30])
        stage.close()
        stage.close()
        assert outcome(stage, [items]) == outcome(make_stage(), [items])

    def test_schema_changes_pass_in_their_place(self, make_stage: Callable[[], Stage]) -> None:
        items = Log(Random(0)).items
        change = next(row for item in items for row in item.rows if self.passed(row) is not None)
        column = Column("added", "int")
        table = change.table
        query = f"ALTER TABLE {table.name} ADD added INT"
        ddl = Ddl(5, 5, "src", table.schema, table.name, query, (AddColumn(column),), "0")
        together: list[Sequence[Element]] = [[ddl, *items]]
        apart: list[Sequence[Element]] = [[ddl], items]
        for batches in together, apart:
            first = outcome(make_stage(), batches)[0]
            assert isinstance(first, Ddl)
            assert (first.commit_ts, first.query, len(first.actions)) == (5, query, 1)

    def test_marks_of_earlier_stages_pass_in_their_place(self, make_stage: Callable[[], Stage]) -> None:
        items = Log(Random(0)).items
        first, rest = items[:40], items[40:]
        alone, before = outcome(make_stage(), [items]), len(outcome(make_stage(), [first]))
        for mark in Barrier(), Lag("s.a", None), Lag("s.z", TablePosition(1, "1")), Keep("other", "state"):
            marked = outcome(make_stage(), [[*first, mark, *rest]])
            assert marked == [*alone[:before], _shown(mark), *alone[before:]]

    def test_an_unknown_mark_passes_or_is_an_error(self, make_stage: Callable[[], Stage]) -> None:
        try:
            passed = outcome(make_stage(), [[cast("Element", Unknown())]])
        except Exception:  # of any kind: it isn't swallowed
            return
        assert passed == [Unknown()]


class Unknown(Struct, frozen=True):
    """A mark of a later version."""


def outcome(stage: Stage, batches: Iterable[Sequence[Element]]) -> list[object]:
    """Return what a stage passes of batches: rows with their tables, schema changes and marks."""
    checkpoint = Checkpoint(0, "0", None, "src")
    stage.open(_context())
    passed: list[Element] = []
    for batch in batches:
        passed += stage.apply(batch)
        ends = [one for one in batch if isinstance(one, Transaction | Ddl) and one.last]
        if ends:
            checkpoint = replace(checkpoint, ts=ends[-1].commit_ts, position=ends[-1].position)
    while released := stage.durable(checkpoint):
        passed += released
    stage.close()
    shown: list[object] = []
    for element in passed:
        if isinstance(element, Transaction):
            shown += [(row.commit_ts, row.op, row.table, row.before, row.after) for row in element.rows]
        else:
            shown.append(_shown(element))
    return shown


def _shown(element: Element) -> object:
    return "barrier" if isinstance(element, Barrier) else element


def _context() -> StageContext:
    return StageContext(
        feed="feed",
        sink="sink",
        checkpoint=Checkpoint(0, "0", None, "src"),
        now=lambda: 0.0,
        seek=lambda _: None,
    )


def _cut(items: Sequence[Transaction], rng: Random) -> list[Sequence[Transaction]]:
    batches: list[Sequence[Transaction]] = []
    while items:
        count = rng.randint(1, 9)
        batches.append(items[:count])
        items = items[count:]
    return batches
