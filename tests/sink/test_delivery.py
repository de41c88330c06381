from __future__ import annotations

import pytest
from msgspec.structs import replace

from tidemill.errors import Retryable, SinkError
from tidemill.events import (
    AddColumn,
    Batch,
    ChangeDetails,
    Checkpoint,
    Chunk,
    Column,
    Ddl,
    Details,
    TableProgress,
)
from tidemill.sink.delivery import Delivery, DeliveryOptions
from tidemill.sink.errors import ReplayRequired
from tidemill.sink.python import Acknowledgements, PythonSink
from tidemill.sink.reached import Reached
from tidemill.sink.sink import Sink, SinkTraits
from tidemill.testing.changes import ORDERS, MemoryStore, alter, at, chunk, create, insert, transaction


class Script(Sink):
    """A sink that notes what is called, and raises what it is told to."""

    name = "script"
    target = "memory"

    def __init__(self) -> None:
        self.calls: list[object] = []
        self.errors: list[Exception | None] = []
        self.reached: Checkpoint | None = None
        self.tables: set[str] = set()
        self.asked: list[Exception] = []
        """Errors to raise from `has_table`, one per call."""

    def open(self) -> Checkpoint | None:
        return None

    def write(self, batch: Batch) -> None:
        self._maybe_fail()
        rows = [row.after[0] for item in batch.items if not isinstance(item, Ddl) for row in item.rows]
        self.calls.append(rows)
        self.reached = batch.checkpoint

    def flush(self) -> Checkpoint | None:
        self._maybe_fail()
        self.calls.append("flush")
        return self.reached

    def has_table(self, schema: str, table: str) -> bool:
        if self.asked:
            raise self.asked.pop()
        return f"{schema}.{table}" in self.tables

    def close(self) -> None:
        self.calls.append("close")

    def _maybe_fail(self) -> None:
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise error


def delivery(script, **options):
    told = []
    made = Delivery(script, at(0), "src", DeliveryOptions(**options), acknowledged=told.append)
    made.told = told
    return made


def rows(ts, *ids, last=True):
    return transaction(ts, *[insert(ORDERS, i, "") for i in ids], last=last)


def test_what_waits_is_one_batch():
    script = Script()
    work = delivery(script)
    work.accept([rows(1, 1), rows(2, 2, 3)])
    work.accept([rows(3, 4)])
    assert work.run(0) is None
    assert script.calls == [[1, 2, 3, 4], "flush"]
    assert work.told == [at(3)]


@pytest.mark.parametrize(
    ("own", "items"),
    [
        (SinkTraits(), 0),
        (SinkTraits(copies_definitions=True), 1),
        (SinkTraits(tells_definitions=True), 1),
    ],
)
def test_sinks_of_definitions_get_changes_of_details(own, items):
    written = []

    class Noting(Script):
        traits = own

        def write(self, batch):
            super().write(batch)
            written.extend(item for item in batch.items if isinstance(item, Ddl))

    script = Noting()
    work = delivery(script)
    work.accept([alter(1, ORDERS, "ALTER", ChangeDetails(Details(), Details(comment="more"), ORDERS))])
    work.run(0)
    assert len(written) == items
    assert work.told == [at(1)]


def test_a_batch_ends_at_the_first_transaction_that_fills_it():
    script = Script()
    work = delivery(script, max_rows=3)
    work.accept([rows(1, 1, 2), rows(2, 3, 4), rows(3, 5)])
    work.run(0)
    assert script.calls == [[1, 2, 3, 4], "flush", [5], "flush"]
    assert work.told == [at(2), at(3)]


def test_no_batch_ends_between_transactions_of_the_same_ts():
    script = Script()
    work = delivery(script, max_rows=1)
    work.accept([rows(1, 1), rows(1, 2), rows(2, 3)])
    work.run(0)
    assert script.calls == [[1, 2], "flush", [3], "flush"]


def test_a_large_transaction_is_written_in_pieces_and_flushed_once():
    script = Script()
    work = delivery(script, max_rows=2)
    work.accept([rows(1, 1, 2, last=False), rows(1, 3, 4, last=False)])
    assert work.run(0) is None
    assert script.calls == [[1, 2], [3, 4]]
    work.accept([rows(1, 5), rows(2, 6)])
    work.run(0)
    assert script.calls[2:] == [[5, 6], "flush"]
    assert work.told == [at(2)]


def test_a_ddl_is_alone_and_flushed():
    script = Script()
    work = delivery(script)
    work.accept([rows(1, 1), alter(2, ORDERS, "ALTER", AddColumn(Column("x", "int"))), rows(3, 2)])
    work.run(0)
    assert script.calls == [[1], "flush", [], "flush", [2], "flush"]
    assert work.told == [at(1), at(2), at(3)]


@pytest.mark.parametrize("is_first", [True, False])
def test_no_checkpoint_comes_between_a_ddl_and_rows_of_the_same_ts(is_first):
    """A restart at a checkpoint leaves out everything up to its ts."""
    script = Script()
    work = delivery(script)
    ddl = alter(2, ORDERS, "ALTER", AddColumn(Column("x", "int")))
    work.accept([rows(1, 1), *([ddl, rows(2, 2)] if is_first else [rows(2, 2), ddl]), rows(3, 3)])
    work.run(0)
    if is_first:
        assert script.calls == [[1], "flush", [], [2, 3], "flush"]
        assert work.told == [at(1), at(3)]
    else:
        assert script.calls == [[1, 2], [], "flush", [3], "flush"]
        assert work.told == [at(2), at(3)]


def test_a_refused_ddl_stops_behind_what_came_before_it():
    script = Script()
    work = delivery(script)
    refused = Ddl(2, 0, "src", "shop", "orders", "DROP TABLE orders", (), "log:2", "it can't be followed")
    work.accept([rows(1, 1), refused, rows(3, 2)])
    with pytest.raises(SinkError, match=r"^it can't be followed$"):
        work.run(0)
    assert work.told == [at(1)]


def test_a_drop_of_what_is_not_there_is_passed_over():
    script = Script()
    script.tables = {"shop.orders"}
    work = delivery(script)
    gone = Ddl(2, 0, "src", "shop", "gone", "DROP TABLE", (), "log:2", "it can't be followed", if_exists=True)
    work.accept([rows(1, 1), gone, rows(3, 2)])
    work.run(0)
    assert script.calls == [[1], "flush", [], [2], "flush"]
    assert work.told == [at(1), at(3)]
    work.accept([replace(gone, commit_ts=4, table="orders", position="log:4")])
    with pytest.raises(SinkError, match=r"^it can't be followed$"):
        work.run(0)


def test_a_target_that_can_t_say_what_it_has_is_asked_again():
    script = Script()
    script.asked = [Retryable("not now")]
    work = delivery(script)
    gone = Ddl(2, 0, "src", "shop", "gone", "DROP TABLE", (), "log:2", "it can't be followed", if_exists=True)
    work.accept([gone])
    with pytest.raises(Retryable, match="not now"):
        work.run(0)
    assert work.told == []
    work.run(0)
    assert work.told == [at(2)]


def test_a_checkpoint_that_moves_without_rows_is_flushed_now_and_then():
    script = Script()
    work = delivery(script, rowless_seconds=1.0)
    work.accept([transaction(1)])
    assert work.run(10.0) is None
    work.accept([transaction(2)])
    assert work.run(10.25) == 0.75
    work.accept([transaction(3)])
    assert work.run(10.5) == 0.5
    assert work.told == [at(1)]
    assert work.run(11.0) is None
    assert work.told == [at(1), at(3)]


def test_rows_take_a_resting_checkpoint_along():
    script = Script()
    work = delivery(script)
    work.accept([transaction(1)])
    work.run(0.0)
    work.accept([transaction(2)])
    work.run(0.1)
    work.accept([rows(3, 1)])
    assert work.run(0.2) is None
    assert work.told == [at(1), at(3)]


@pytest.mark.parametrize("failing", range(3))
def test_after_retryable_the_same_batches_come_again(failing):
    script = Script()
    script.errors = [None] * failing + [Retryable("busy")]
    work = delivery(script, max_rows=2)
    work.accept([rows(1, 1, 2, last=False), rows(1, 3), rows(2, 4)])
    with pytest.raises(Retryable, match="busy"):
        work.run(0)
    assert work.statistics().error == "busy"
    work.accept([rows(3, 5)])
    del script.calls[:]
    work.run(0)
    assert script.calls == [[1, 2], [3, 4], "flush", [5], "flush"]
    assert work.told == [at(2), at(3)]
    assert work.statistics().error is None


def test_a_flush_that_fails_is_done_again():
    script = Script()
    work = delivery(script)
    work.accept([transaction(1)])
    work.run(0.0)
    work.accept([transaction(2)])
    work.run(0.1)
    script.errors = [Retryable("busy")]
    with pytest.raises(Retryable):
        work.flush(0.2)
    del script.calls[:]
    work.run(5.0)
    assert script.calls == [[], "flush"]
    assert work.told == [at(1), at(2)]


def test_a_transaction_too_large_to_keep_is_left_to_the_source():
    script = Script()
    work = delivery(script, max_rows=2, max_kept_rows=3)
    work.accept([rows(1, 1, 2, last=False), rows(1, 3, 4, last=False)])
    work.run(0)
    script.errors = [Retryable("gone", 7.0)]
    work.accept([rows(1, 5)])
    with pytest.raises(ReplayRequired, match="gone") as caught:
        work.run(0)
    assert caught.value.wait == 7.0


def test_keeping_begins_anew_with_the_next_transaction():
    script = Script()
    work = delivery(script, max_rows=2, max_kept_rows=3)
    work.accept([rows(1, 1, 2, last=False), rows(1, 3, 4, last=False), rows(1, 5)])
    work.run(0)
    script.errors = [Retryable("gone")]
    work.accept([rows(2, 6)])
    with pytest.raises(Retryable) as caught:
        work.run(0)
    assert not isinstance(caught.value, ReplayRequired)
    work.run(0)
    assert script.calls[-2:] == [[6], "flush"]


def test_statistics_count_what_is_acknowledged():
    work = delivery(Script())
    work.accept([rows(1, 1, 2), rows(2, 3)])
    work.run(0)
    statistics = work.statistics()
    assert (statistics.rows, statistics.batches, statistics.retries) == (3, 1, 0)
    assert statistics.checkpoint == at(2)


def test_rows_of_a_transaction_that_is_too_large_to_be_kept_are_counted():
    work = delivery(Script(), max_rows=2, max_kept_rows=3)
    work.accept([rows(1, 1, 2, last=False), rows(1, 3, 4, last=False), rows(1, 5), rows(2, 6)])
    work.run(0)
    work.flush(0)
    assert work.statistics().rows == 6


def test_rows_behind_a_checkpoint_without_rows_come_again_with_it():
    script = Script()
    work = delivery(script, rowless_seconds=1.0)
    work.accept([transaction(1)])
    work.run(0)
    work.accept([transaction(2)])
    work.run(0.5)  # not flushed yet
    work.accept([rows(3, 7)])
    script.errors = [Retryable("gone")]
    with pytest.raises(Retryable):
        work.run(0.6)
    work.flush(0.7)
    script.calls.clear()
    work.run(0.8)
    assert script.calls == [[], [7], "flush"]
    assert work.told == [at(1), at(3)]


class Pipelined(Script):
    """A sink that makes batches durable when it is told to."""

    traits = SinkTraits(is_pipelined=True)

    def __init__(self) -> None:
        super().__init__()
        self.durable: Checkpoint | None = None

    def progress(self) -> Checkpoint | None:
        self._maybe_fail()
        return self.durable


def test_a_sink_that_does_not_wait_is_looked_at_until_all_is_durable():
    script = Pipelined()
    work = delivery(script)
    work.accept([rows(1, 1)])
    assert work.run(0) == 0.02
    work.accept([rows(2, 2)])
    work.run(0)
    assert (script.calls, work.told) == ([[1], [2]], [])
    script.durable = at(1)
    assert work.run(0) == 0.02
    assert work.statistics().rows == 1
    script.durable = at(2)
    assert work.run(0) is None
    assert work.told == [at(1), at(2)]
    assert work.statistics().rows == 2


def test_after_an_error_only_what_is_not_durable_is_written_again():
    script = Pipelined()
    work = delivery(script)
    for ts in (1, 2, 3):
        work.accept([rows(ts, ts)])
        work.run(0)
    script.durable = at(1)
    work.run(0)
    script.errors = [Retryable("lost")]
    with pytest.raises(Retryable):
        work.run(0)
    work.run(0)
    assert script.calls == [[1], [2], [3], [2], [3]]


def test_what_a_sink_made_durable_by_itself_is_not_written_again():
    script = Pipelined()
    work = delivery(script)
    work.accept([rows(1, 1)])
    work.run(0)
    work.accept([rows(2)])  # without rows: it isn't flushed yet
    work.run(0)
    script.durable = at(2)
    work.run(0.1)
    work.accept([rows(3, 3)])
    script.errors = [Retryable("lost")]
    with pytest.raises(Retryable):
        work.run(0.2)
    work.run(0.3)
    assert script.calls == [[1], [], [3]]


@pytest.mark.parametrize("explicit", [False, True])
def test_what_is_saved_for_each_loaded_table_is_the_same_however_many_they_are(explicit):
    few, many = (saved_for_each_table(count, explicit=explicit) for count in (500, 4_000))
    assert many < 1.2 * few


def saved_for_each_table(count, *, explicit):
    """Return the entries of checkpoints that are saved per loaded table."""
    store = CountingStore()
    work = Delivery(
        PythonSink(
            "copy", lambda items: None, store, acknowledgements=Acknowledgements() if explicit else None
        ),
        None,
        "src",
    )
    work.sink.open()
    for number in range(count):
        table = replace(ORDERS, name=f"t{number}")
        for item in (
            create(2 * number + 1, table),
            chunk(2 * number + 2, table, None, insert(table, 1, "a"), insert(table, 2, "b")),
        ):
            work.accept([item])
            work.run(0)
            work.sink.acknowledgements.add(item)
    work.accept([transaction(2 * count + 1, insert(ORDERS, 1, "a"), chunk=Chunk(""))])
    work.run(0)
    work.flush(0)
    return store.entries / count


class CountingStore(MemoryStore):
    entries = 0

    def save(self, checkpoint, length=0):
        super().save(checkpoint, length)
        self.entries += len(checkpoint.loading or ())


def test_tables_that_were_loaded_are_saved_before_long_and_at_a_stop():
    store = CountingStore()
    work = Delivery(
        PythonSink("copy", lambda items: None, store), None, "src", DeliveryOptions(tables_per_row=0)
    )
    work.sink.open()
    work.accept([create(1, ORDERS)])
    work.run(0)
    work.accept([chunk(2, ORDERS, None, insert(ORDERS, 1, "a"))])
    assert work.run(0.5) == 0.5
    assert store.load()[0].loading == {"shop.orders": TableProgress(())}
    work.run(1.0)
    assert store.load()[0].loading == {"shop.orders": TableProgress()}
    work.accept([chunk(3, ORDERS, None, insert(ORDERS, 2, "a"))])
    work.run(1.5)
    work.flush(1.5)
    assert store.load()[0].ts == 3


def test_checkpoints_keep_the_progress_that_they_had():
    reached = Reached(at(0, loading={}))
    given = []
    for ts, item in enumerate([create(1, ORDERS), chunk(2, ORDERS, (1,)), chunk(3, ORDERS, None)], start=1):
        reached.add(item)
        given.append((ts, reached.checkpoint.loading))
    assert given == [
        (1, {"shop.orders": TableProgress(())}),
        (2, {"shop.orders": TableProgress((1,))}),
        (3, {"shop.orders": TableProgress()}),
    ]
