"""The contract of every sink: a suite that each of them passes, and the history that it writes.

A subclass of SinkConformance in a test module, with the fixture `place`, runs it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final, Protocol, TypeVar

import pytest
from msgspec.structs import replace

from ..errors import SinkError
from ..events import (
    AddColumn,
    Batch,
    Checkpoint,
    Chunk,
    Column,
    DropColumn,
    Item,
    Row,
    Table,
    TableProgress,
    Transaction,
)
from ..sink import Delivery, DeliveryOptions, Sink
from .changes import (
    LOOSE,
    ORDERS,
    PAIRS,
    alter,
    at,
    batch,
    chunk,
    create,
    delete,
    insert,
    transaction,
    update,
)
from .progress import Stalled, eventually

_ENDS_SECONDS: Final = 10.0
"""Time in which what a sink has closed must have ended."""

ORDERS_2 = replace(ORDERS, columns=(*ORDERS.columns, Column("paid", "int", nullable=False, default="7")))
ORDERS_3 = replace(ORDERS_2, columns=(ORDERS_2.columns[0], ORDERS_2.columns[2]))
STATES = [ORDERS_3, PAIRS, LOOSE]
"""The tables as they are in the end."""

HISTORY: list[Item] = [
    create(1, ORDERS),
    chunk(2, ORDERS, (2,), insert(ORDERS, 1, "one"), insert(ORDERS, 2, "two")),
    chunk(3, ORDERS, None, insert(ORDERS, 3, None)),
    create(4, PAIRS),
    transaction(5, insert(PAIRS, 1, "a", 1), last=False, chunk=Chunk("shop.pairs", TableProgress(()))),
    chunk(5, PAIRS, None, insert(PAIRS, 1, "A", 2**62)),
    create(6, LOOSE),
    chunk(7, LOOSE, None, *[insert(LOOSE, 1, "same")] * 3, insert(LOOSE, None, None)),
    transaction(8, chunk=Chunk("")),
    # two tables in turns; a key that comes and goes
    transaction(
        9,
        insert(ORDERS, 4, "four"),
        insert(PAIRS, 2, "b", 2),
        delete(ORDERS, 4, "four"),
        insert(ORDERS, 4, "again"),
        update(PAIRS, (2, "b", 2), (2, "b", 3)),
        update(PAIRS, (2, "b", 3), (2, "b", 4)),
    ),
    # keys that change places
    transaction(
        10,
        update(ORDERS, (1, "one"), (99, "one")),
        update(ORDERS, (2, "two"), (1, "two")),
        update(ORDERS, (99, "one"), (2, "one")),
    ),
    transaction(11),
    # rows without a key: one of many that are the same, and those that differ by case or blanks only
    transaction(
        12,
        delete(LOOSE, 1, "same"),
        update(LOOSE, (1, "same"), (1, "SAME")),
        insert(LOOSE, 1, "same "),
        update(LOOSE, (None, None), (None, "")),
    ),
    transaction(13, delete(LOOSE, 1, "same"), update(LOOSE, (1, "SAME"), (1, "sàme"))),
    # a transaction in pieces
    transaction(14, *[insert(ORDERS, i, "piece") for i in range(10, 15)], last=False),
    transaction(14, *[update(ORDERS, (i, "piece"), (i, "2")) for i in range(10, 15)], last=False),
    transaction(14, delete(ORDERS, 11, "2"), delete(ORDERS, 12, "2")),
    alter(
        15, ORDERS, "ALTER TABLE orders ADD paid INT NOT NULL DEFAULT 7", AddColumn(ORDERS_2.columns[2], None)
    ),
    transaction(16, insert(ORDERS_2, 20, "new", 1), update(ORDERS_2, (1, "two", 7), (1, "two", 8))),
    alter(17, ORDERS, "ALTER TABLE orders DROP note", DropColumn("note")),
    transaction(18, insert(ORDERS_3, 21, 2), delete(ORDERS_3, 3, 7)),
]


WITHOUT_ALTERATIONS: Final = HISTORY[:17]
"""For a sink that can't change the columns of a table."""
STATES_WITHOUT_ALTERATIONS: Final = [ORDERS, PAIRS, LOOSE]


def keyed(item: Item) -> Item:
    """Return an item of HISTORY without the table that has no key."""
    if isinstance(item, Transaction):
        rows = [row for row in item.rows if row.table is not LOOSE]
        is_its = item.chunk is not None and item.chunk.table == LOOSE.full_name
        return replace(item, rows=rows, chunk=None if is_its else item.chunk)
    return transaction(item.commit_ts) if item.table == LOOSE.name else item


T = TypeVar("T")


class SinkPlace(Protocol):
    """A target that outlives its sinks."""

    at_least_once: bool
    """True if a transaction may be applied in part before its end, and come again: its place drops what it
    has already."""

    def sink(self) -> Sink:
        """Return a new sink, as after a restart."""

    def rows(self, table: Table) -> Sequence[Row]:
        """Return the rows in the target as Python values, in any order."""


class Killed(Exception):
    pass


class Mortal(Sink):
    """A sink that dies just before or just after one of its calls."""

    def __init__(self, sink: Sink, calls: int, when: str) -> None:
        self._sink = sink
        self.left = calls
        self._when = when
        self.flushed = 0
        self.name = sink.name
        self.target = sink.target

    def _live(self, call: Callable[[], T]) -> T:
        self.left -= 1
        if self.left == 0 and self._when == "before":
            raise Killed
        result = call()
        if self.left == 0:
            raise Killed
        return result

    def open(self) -> Checkpoint | None:
        return self._sink.open()

    def write(self, batch: Batch) -> None:
        self._live(lambda: self._sink.write(batch))

    def flush(self) -> Checkpoint | None:
        flush = self._sink.flush
        return self._live(lambda: self._counted(flush()))

    def _counted(self, checkpoint: Checkpoint | None) -> Checkpoint | None:
        self.flushed += 1
        return checkpoint

    def has_table(self, schema: str, table: str) -> bool:
        return self._sink.has_table(schema, table)

    def close(self) -> None:
        self._sink.close()


def feed(sink: Sink, items: Sequence[Item], max_rows: int = 3) -> Delivery:
    """Deliver what `sink` lacks of `items`, then close it."""
    try:
        work = Delivery(sink, sink.open(), "src", DeliveryOptions(max_rows=max_rows, rowless_seconds=0))
        for item in items:
            work.accept([item])
            work.run(0)
        if sink.traits.is_pipelined:
            work.flush(0)
        return work
    finally:
        sink.close()


def apply(items: Sequence[Item], tables: dict[str, Counter[Row]]) -> None:
    """Apply items of HISTORY to tables, which count each row."""
    for item in items:
        if isinstance(item, Transaction):
            for change in item.rows:
                rows = tables[change.table.full_name]
                if change.before is not None:
                    assert rows[change.before] > 0
                    rows[change.before] -= 1
                if change.after is not None:
                    rows[change.after] += 1
            continue
        rows = tables.setdefault(item.full_name, Counter())
        for action in item.actions:
            if isinstance(action, AddColumn):
                tables[item.full_name] = Counter({(*row, 7): count for row, count in (+rows).items()})
            elif isinstance(action, DropColumn):
                tables[item.full_name] = sum(
                    (Counter({(row[0], row[2]): count}) for row, count in (+rows).items()), Counter()
                )


def expected(items: Sequence[Item]) -> dict[str, Counter[Row]]:
    """The rows that the tables have in the end."""
    tables: dict[str, Counter[Row]] = {}
    apply(items, tables)
    return {name: +rows for name, rows in tables.items()}


def found(place: SinkPlace, states: Sequence[Table] = STATES) -> dict[str, Counter[Row]]:
    return {table.full_name: Counter(place.rows(table)) for table in states}


class SinkConformance:
    """Promises of every sink, whatever happens between its calls. A subclass gives the fixture `place`:

    class TestMine(SinkConformance):
        @pytest.fixture
        def place(self, tmp_path):
            return MyPlace(tmp_path)
    """

    history: ClassVar[Sequence[Item]] = HISTORY
    """The items that the sink gets; the first nine are the load of three tables."""
    states: ClassVar[Sequence[Table]] = STATES
    """The tables as they are in the end."""
    unfit: ClassVar[Sequence[Item]] = ()
    """Items after `history` that the target can't hold, if there are such items."""

    @pytest.fixture
    def place(self) -> SinkPlace:
        raise NotImplementedError("give the fixture `place`, which returns a SinkPlace")

    # --- order, and whole transactions -----------------------------------------------------------

    def test_the_target_ends_with_the_rows_of_the_source(self, place: SinkPlace) -> None:
        feed(place.sink(), self.history)
        self._assert_whole(place)

    @pytest.mark.parametrize("max_rows", [1, 2, 1000])
    def test_the_size_of_batches_does_not_matter(self, place: SinkPlace, max_rows: int) -> None:
        feed(place.sink(), self.history, max_rows)
        self._assert_whole(place)

    def test_inside_a_transaction_nothing_is_done_yet(self, place: SinkPlace) -> None:
        feed(place.sink(), self.history[:9])
        sink = place.sink()
        before = sink.open()
        sink.write(batch(transaction(19)))
        sink.write(batch(transaction(20, insert(ORDERS, 50, "x"), last=False)))
        assert sink.flush() in (before, at(19))
        sink.write(batch(transaction(20, insert(ORDERS, 51, "x"), last=False)))
        assert sink.flush() in (before, at(19))
        sink.close()
        again = place.sink()
        assert again.open() in (before, at(19))
        again.close()
        if not place.at_least_once:
            assert Counter(place.rows(ORDERS)) == expected(self.history[:9])["shop.orders"]

    # --- exactly once ----------------------------------------------------------------------------

    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("every", [1, 3, 7])
    def test_dying_over_and_over_changes_nothing(self, place: SinkPlace, every: int, when: str) -> None:
        """Each life has a given number of calls, or one more than the last one without progress."""
        calls = every
        for _ in range(200):
            mortal = Mortal(place.sink(), calls, when)
            try:
                feed(mortal, self.history)
                break
            except Killed:
                calls = every if mortal.flushed else calls + 1
        else:
            pytest.fail("it never got to the end")
        self._assert_whole(place)

    def test_what_is_delivered_again_changes_nothing(self, place: SinkPlace) -> None:
        feed(place.sink(), self.history)
        feed(place.sink(), self.history)
        self._assert_whole(place)

    # --- checkpoints -----------------------------------------------------------------------------

    def test_a_new_target_has_no_checkpoint(self, place: SinkPlace) -> None:
        sink = place.sink()
        assert sink.open() is None
        assert sink.flush() is None
        sink.close()

    def test_what_was_flushed_is_where_the_next_one_begins(self, place: SinkPlace) -> None:
        work = feed(place.sink(), self.history)
        reached = work.statistics().checkpoint
        assert reached == at(self.history[-1].commit_ts)
        sink = place.sink()
        assert sink.open() == reached
        assert sink.flush() == reached
        sink.close()

    def test_while_loading_the_checkpoint_says_how_far(self, place: SinkPlace) -> None:
        feed(place.sink(), self.history[:3])
        sink = place.sink()
        assert sink.open() == at(3, loading={"shop.orders": TableProgress()})
        sink.close()

    def test_an_empty_transaction_moves_the_checkpoint(self, place: SinkPlace) -> None:
        feed(place.sink(), self.history[:9])
        feed(place.sink(), [*self.history[:9], transaction(11)])
        sink = place.sink()
        assert sink.open() == at(11)
        sink.close()

    # --- refusals --------------------------------------------------------------------------------

    def test_what_the_target_can_not_hold_is_refused_before_anything_is_applied(
        self, place: SinkPlace
    ) -> None:
        feed(place.sink(), self.history)
        for item in self.unfit:
            with pytest.raises(SinkError):
                feed(place.sink(), [*self.history, item])
            sink = place.sink()
            assert sink.open() == at(self.history[-1].commit_ts)
            sink.close()
            self._assert_whole(place)

    # --- life ------------------------------------------------------------------------------------

    def test_closing_twice_or_unopened_is_no_error(self, place: SinkPlace) -> None:
        sink = place.sink()
        sink.close()
        sink.open()
        sink.close()
        sink.close()

    def test_closing_leaves_no_thread_and_no_file_open(self, place: SinkPlace) -> None:
        feed(place.sink(), self.history[:3])  # what a driver starts once stays
        before = _held()
        feed(place.sink(), self.history)
        with suppress(Stalled):  # a server in this process may still be ending its part of a connection
            eventually(lambda: _held() <= before, _ENDS_SECONDS)
        assert _held() <= before

    def test_two_sinks_of_one_target_say_so(self, place: SinkPlace) -> None:
        assert place.sink().target == place.sink().target

    def _assert_whole(self, place: SinkPlace) -> None:
        assert found(place, self.states) == expected(self.history)


def _held() -> Counter[str]:
    """Return the threads of this process, and where the system tells them its open files."""
    files = []
    if (descriptors := Path("/proc/self/fd")).exists():
        for one in descriptors.iterdir():
            with suppress(OSError):  # that of the listing itself
                files.append(str(one.readlink()))
    threads = [thread.name for thread in threading.enumerate()]
    return Counter(threads) + Counter(file for file in files if file.startswith("/"))
