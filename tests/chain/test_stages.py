"""Every stage keeps the order, loses nothing, and holds little; whatever is killed, stopped or sought."""

from __future__ import annotations

import pytest

from tidemill.chain import Barrier
from tidemill.chain.selection.rule import only
from tidemill.chain.selection.stage import SelectionStage
from tidemill.chain.selection.tables import TablePatterns
from tidemill.errors import InvariantViolated, Retryable, SinkError
from tidemill.events import TablePosition
from tidemill.sink import Delivery
from tidemill.sink.errors import ReplayRequired
from tidemill.testing.changes import ORDERS, PAIRS, at, insert, transaction
from tidemill.testing.stage_conformance import StageLife

from ..sink.test_delivery import Script
from .stages import BarrierAfter, HoldTable

SEEDS = range(60)
MAX_HELD = 5


@pytest.mark.parametrize("seed", SEEDS)
def test_the_resume_filter_alone(seed):
    StageLife(seed, []).run()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_choice_of_tables(seed):
    StageLife(
        seed,
        [SelectionStage([only(TablePatterns.parse(["s.*", "!s.b"]))])],
        passed=lambda change: None if change.table.name == "b" else change,
    ).run()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stage_that_holds_a_table_back_and_seeks_when_it_had_to_forget(seed):
    hold = HoldTable("s.a", MAX_HELD)

    def disturb(rng):
        assert len(hold.held) <= MAX_HELD
        hold.holding = rng.random() < 0.8 if rng.random() < 0.3 else hold.holding

    StageLife(seed, [hold], disturb=disturb).run(settle=lambda: setattr(hold, "holding", False))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stage_that_sets_barriers(seed):
    barriers = BarrierAfter("s.b")
    life = StageLife(seed, [barriers])
    write = life.target.write

    def watched(batch):
        held = [row.table.full_name for row in life.target.unflushed]
        assert "s.b" not in held or batch.items[0].commit_ts == life.target.unflushed[-1].commit_ts
        write(batch)

    life.target.write = watched
    life.run()
    assert barriers.passed


@pytest.mark.parametrize("seed", SEEDS)
def test_all_of_them_together(seed):
    hold = HoldTable("s.a", MAX_HELD)
    stages = [SelectionStage([only(TablePatterns.parse(["s.*", "!s.c"]))]), hold, BarrierAfter("s.b")]
    life = StageLife(
        seed,
        stages,
        passed=lambda change: None if change.table.name == "c" else change,
        disturb=lambda rng: setattr(hold, "holding", rng.random() < 0.7),
    )
    life.run(settle=lambda: setattr(hold, "holding", False))


def test_the_held_stage_sought_in_some_of_these_histories():
    hold = HoldTable("s.a", 1)
    for seed in range(10):
        life = StageLife(seed, [hold], disturb=lambda rng: setattr(hold, "holding", rng.random() < 0.8))
        life.run(settle=lambda: setattr(hold, "holding", False))
    assert hold.seeks


# --- one by one ---------------------------------------------------------------------------------------


def delivery(script, *stages):
    told = []
    made = Delivery(script, at(0), "src", stages=stages, acknowledged=told.append)
    made.told = told
    return made


def test_a_held_table_is_behind_in_the_checkpoint_until_it_is_let_go():
    hold, script = HoldTable("shop.pairs", 9), Script()
    hold.holding = True
    work = delivery(script, hold)
    mixed = transaction(2, insert(ORDERS, 2, ""), insert(PAIRS, 20, "", 1))
    work.accept([transaction(1, insert(ORDERS, 1, "")), mixed, transaction(3, insert(ORDERS, 3, ""))])
    work.run(0)
    assert script.calls == [[1, 2, 3], "flush"]
    assert work.told == [at(3, tables={"shop.pairs": TablePosition(1, "log:1")})]
    (wait,) = work.waits()
    assert (wait.stage, wait.kind, wait.table, wait.count) == ("sink script", "held", "shop.pairs", 1)
    hold.holding = False
    work.accept([transaction(4, insert(ORDERS, 4, ""))])
    work.run(0)
    assert script.calls[2:] == [[20], "flush", [4], "flush"]  # not as if nothing lagged
    assert work.told[-1] == at(4)
    assert work.waits() == []


def test_what_is_before_a_barrier_is_durable_before_what_follows_is_written():
    script = Script()
    barriers = BarrierAfter("shop.orders")
    work = delivery(script, barriers)
    work.accept([transaction(ts, insert(ORDERS, ts, "")) for ts in (1, 2)])
    work.run(0)
    assert script.calls == [[1], "flush", [2], "flush"]
    assert barriers.passed == 2


def test_a_barrier_tells_when_everything_before_it_is_durable():
    script = Script()
    told: list[list[object]] = []

    class Telling(BarrierAfter):
        def apply(self, batch):
            return [*batch, Barrier(lambda: told.append([*script.calls]))]

    work = delivery(script, Telling("shop.orders"))
    work.accept([transaction(ts, insert(ORDERS, ts, "")) for ts in (1, 2)])
    work.run(0)
    assert told == [[[1, 2], "flush"]]


def test_items_that_a_stage_can_t_take_now_are_read_again():
    class Away(BarrierAfter):
        def apply(self, batch):
            raise Retryable("a store doesn't answer", 3.0)

    work = delivery(Script(), Away("shop.orders"))
    with pytest.raises(ReplayRequired, match="a store doesn't answer") as caught:
        work.accept([transaction(1, insert(ORDERS, 1, ""))])
    assert caught.value.wait == 3.0


def test_a_barrier_waits_for_a_target_that_is_durable_later():
    script = Script()
    later = script.reached = at(0)
    script.flush = lambda: later
    work = delivery(script, BarrierAfter("shop.orders"))
    work.accept([transaction(ts, insert(ORDERS, ts, "")) for ts in (1, 2)])
    assert work.run(0) == 1.0
    assert script.calls == [[1]]
    assert [wait.kind for wait in work.waits()] == ["barrier"]
    later = at(1)
    work.run(1.0)
    assert script.calls == [[1], [2]]


def test_a_barrier_inside_a_transaction_is_an_error():
    class Everywhere(BarrierAfter):
        def apply(self, batch):
            return [*batch, Barrier()]

    work = delivery(Script(), Everywhere("shop.orders"))
    work.accept([transaction(1, insert(ORDERS, 1, ""), last=False)])
    with pytest.raises(InvariantViolated, match="inside a transaction"):
        work.run(0)


def test_where_nothing_can_go_back_a_seek_is_an_error():
    hold = HoldTable("shop.orders", 0)
    hold.holding = True
    work = delivery(Script(), hold)
    work.accept([transaction(1, insert(ORDERS, 1, ""))])
    hold.holding = False
    with pytest.raises(SinkError, match="sink script: nothing here can go back to log:0"):
        work.accept([transaction(2, insert(ORDERS, 2, ""))])
