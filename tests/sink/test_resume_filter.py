from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tidemill.engine.checkpoint import lowest
from tidemill.errors import InvariantViolated
from tidemill.events import (
    PENDING,
    REST,
    STALE,
    WHOLE,
    AddColumn,
    Checkpoint,
    Chunk,
    Column,
    CreateTable,
    Ddl,
    DropColumn,
    Item,
    RowChange,
    Table,
    TablePosition,
    TableProgress,
    Transaction,
    noted_key,
)
from tidemill.sink.reached import Reached
from tidemill.sink.resume_filter import CREATED
from tidemill.testing.changes import (
    LOOSE,
    ORDERS,
    PAIRS,
    at,
    chunk,
    create,
    delete,
    insert,
    transaction,
    update,
)
from tidemill.testing.resumed import Resumed


def test_what_the_checkpoint_has_is_dropped():
    gate = Resumed(at(10))
    assert gate.admit(transaction(10, insert(ORDERS, 1, "a"))) is None
    assert gate.admit(transaction(11, insert(ORDERS, 2, "b"))) is not None
    assert gate.checkpoint == at(11)


def test_an_empty_transaction_moves_the_checkpoint():
    gate = Resumed(at(10))
    assert gate.admit(transaction(12)) == transaction(12)
    assert gate.checkpoint == at(12)


def test_inside_a_transaction_there_is_no_checkpoint():
    gate = Resumed(at(1))
    gate.admit(transaction(2, insert(ORDERS, 1, "a"), last=False))
    assert gate.checkpoint is None
    gate.admit(transaction(2, insert(ORDERS, 2, "a")))
    assert gate.checkpoint == at(2)


def test_two_transactions_may_share_a_commit_ts():
    gate = Resumed(at(1))
    assert gate.admit(replace(transaction(2), start_ts=1)) is not None
    assert gate.admit(replace(transaction(2), start_ts=2)) is not None


def test_items_out_of_order_are_an_error():
    gate = Resumed(at(1))
    gate.admit(transaction(5))
    with pytest.raises(InvariantViolated, match="came after"):
        gate.admit(transaction(4))


def test_another_transaction_inside_an_open_one_is_an_error():
    gate = Resumed(at(1))
    gate.admit(transaction(5, last=False))
    with pytest.raises(InvariantViolated, match="inside the pieces of 5"):
        gate.admit(transaction(6))


def test_pieces_that_load_different_tables_are_an_error():
    gate = Resumed(None)
    gate.admit(transaction(5, insert(LOOSE, 1, "a"), last=False))
    with pytest.raises(InvariantViolated, match="load different tables"):
        gate.admit(chunk(5, LOOSE, None))


def test_without_a_checkpoint_nothing_is_loaded():
    gate = Resumed(None, "src")
    assert gate.admit(transaction(1, insert(ORDERS, 1, "a"))).rows == []
    assert gate.checkpoint == at(1, loading={})


def test_a_table_is_created_once():
    gate = Resumed(None, "src")
    assert gate.admit(create(1, ORDERS)) is not None
    assert gate.checkpoint == at(1, loading={"shop.orders": CREATED})
    assert gate.admit(create(2, ORDERS)) == transaction(2)
    assert gate.admit(chunk(3, ORDERS, (7,), insert(ORDERS, 7, "a"))).rows == [insert(ORDERS, 7, "a")]
    assert gate.checkpoint == at(3, loading={"shop.orders": TableProgress((7,))})


def test_changes_beyond_the_loaded_keys_wait_for_the_snapshot():
    gate = Resumed(at(1, loading={"shop.orders": TableProgress((10,))}))
    rows = [
        insert(ORDERS, 10, "in"),
        insert(ORDERS, 11, "out"),
        update(ORDERS, (5, "a"), (6, "b")),
        update(ORDERS, (5, "a"), (15, "leaves")),
        update(ORDERS, (15, "a"), (5, "enters")),
        update(ORDERS, (15, "a"), (16, "b")),
        delete(ORDERS, 11, "out"),
        insert(PAIRS, 1, "not loaded", 1),
    ]
    assert gate.admit(transaction(2, *rows)).rows == [
        insert(ORDERS, 10, "in"),
        update(ORDERS, (5, "a"), (6, "b")),
        delete(ORDERS, 5, "a"),
        insert(ORDERS, 5, "enters"),
    ]


def test_a_table_without_key_that_was_only_created_has_no_rows_yet():
    gate = Resumed(at(1, loading={"shop.loose": CREATED}))
    assert gate.admit(transaction(2, insert(LOOSE, 1, "a"))).rows == []
    assert len(gate.admit(chunk(3, LOOSE, None, insert(LOOSE, 1, "a"))).rows) == 1


def test_rows_of_a_chunk_that_are_there_are_dropped():
    gate = Resumed(at(1, loading={"shop.orders": TableProgress((10,)), "shop.loose": TableProgress()}))
    trimmed = gate.admit(chunk(2, ORDERS, (12,), *[insert(ORDERS, i, "") for i in (9, 10, 11, 12)]))
    assert [row.after[0] for row in trimmed.rows] == [11, 12]
    assert gate.admit(chunk(3, LOOSE, None, insert(LOOSE, 1, "a"))).rows == []
    gate.admit(chunk(4, ORDERS, (11,)))
    assert gate.checkpoint.loading == {"shop.orders": TableProgress((12,)), "shop.loose": TableProgress()}


def test_a_chunk_without_order_lacks_the_rows_that_are_there():
    gate = Resumed(at(1, loading={"shop.orders": TableProgress((10,))}))
    rows = [insert(ORDERS, i, "") for i in (11, 9, 12, 10)]
    kept = gate.admit(transaction(2, *rows, chunk=Chunk("shop.orders", TableProgress((12,)), (8,))))
    assert [row.after[0] for row in kept.rows] == [11, 12]
    following = transaction(
        3, insert(ORDERS, 13, ""), chunk=Chunk("shop.orders", TableProgress((13,)), (12,))
    )
    assert gate.admit(following) == following


def test_tables_to_be_loaded_get_nothing_before_and_all_others_get_everything():
    gate = Resumed(at(1, loading={}))
    gate.admit(transaction(2, chunk=Chunk("shop.orders", PENDING)))
    assert gate.admit(transaction(3, insert(LOOSE, 1, "a"))).rows == []
    gate.admit(transaction(4, chunk=Chunk(REST)))
    assert gate.checkpoint.loading == {"shop.orders": PENDING, REST: WHOLE}
    assert gate.admit(transaction(5, insert(ORDERS, 1, "a"))).rows == []
    assert len(gate.admit(transaction(6, insert(LOOSE, 1, "a"))).rows) == 1
    gate.admit(transaction(7, chunk=Chunk("shop.orders")))
    gate.admit(transaction(8, chunk=Chunk("")))
    assert gate.checkpoint == at(8)


def test_a_table_to_be_loaded_keeps_the_progress_that_it_has():
    gate = Resumed(at(1, loading={"shop.orders": TableProgress((4,)), "shop.loose": STALE}))
    for ts, name in enumerate(("shop.orders", "shop.loose"), 2):
        gate.admit(transaction(ts, chunk=Chunk(name, PENDING)))
    assert gate.checkpoint.loading == {"shop.orders": TableProgress((4,)), "shop.loose": STALE}


def test_the_last_chunk_ends_the_loading():
    gate = Resumed(at(1, loading={"shop.orders": TableProgress()}))
    gate.admit(transaction(2, chunk=Chunk("")))
    assert gate.checkpoint == at(2)
    assert gate.admit(chunk(3, ORDERS, None, insert(ORDERS, 1, "a"))).rows == []
    assert gate.admit(create(4, ORDERS)) == transaction(4)


def test_the_ddl_of_a_table_that_is_not_there_is_dropped():
    refused = Ddl(5, 0, "src", "shop", "orders", "TRUNCATE orders", (), "log:5", "can't be followed")
    assert Resumed(at(1, loading={})).admit(refused) == transaction(5)
    assert Resumed(at(1, loading={"shop.orders": CREATED})).admit(refused) == refused
    assert Resumed(at(1)).admit(refused) == refused


def test_the_checkpoint_keeps_the_last_change_that_the_source_noted():
    noted = Ddl(5, 0, "src", "shop", "orders", "ALTER", (DropColumn("a"),), "log:5", noted=True)
    gate = Resumed(at(1))
    gate.admit(transaction(4))
    assert gate.checkpoint == at(4)
    assert gate.admit(noted) == replace(noted, noted=False)
    gate.admit(transaction(6))
    assert gate.checkpoint == at(6, stages={noted_key("src"): "5"})
    assert gate.admit(replace(noted, commit_ts=7, actions=(), position="log:7")) == transaction(7)
    assert gate.checkpoint == at(7, stages={noted_key("src"): "7"})
    assert Resumed(at(5)).admit(noted) is None


# --- tables behind and ahead --------------------------------------------------------------------------


def test_a_table_behind_gets_what_it_lacks_and_the_others_do_not():
    gate = Resumed(at(10, tables={"shop.pairs": TablePosition(7, "log:7")}))
    old, late = insert(PAIRS, 1, "old", 1), insert(PAIRS, 2, "late", 1)
    assert gate.admit(transaction(7, old)) is None
    assert gate.admit(transaction(8, insert(ORDERS, 1, "there"))) is None
    assert gate.admit(transaction(9, insert(ORDERS, 2, "there"), late)).rows == [late]
    assert gate.checkpoint == at(10, tables={"shop.pairs": TablePosition(9, "log:9")})
    assert gate.admit(transaction(11, insert(ORDERS, 3, "new"))).rows == [insert(ORDERS, 3, "new")]
    assert gate.checkpoint == at(11)


def test_a_late_transaction_in_pieces_ends():
    gate = Resumed(at(10, tables={"shop.pairs": TablePosition(7, "log:7")}))
    late = insert(PAIRS, 2, "late", 1)
    assert gate.admit(transaction(9, insert(ORDERS, 2, "there"), last=False)) is None
    assert gate.admit(transaction(9, late, last=False)).rows == [late]
    assert gate.checkpoint is None
    assert gate.admit(transaction(9, insert(ORDERS, 3, "there"))) == transaction(9)
    assert gate.checkpoint == at(10, tables={"shop.pairs": TablePosition(9, "log:9")})


def test_a_table_ahead_drops_what_it_has_and_the_others_go_on():
    gate = Resumed(at(10, tables={"shop.pairs": TablePosition(12, "log:12")}))
    there, other = insert(PAIRS, 1, "there", 1), insert(ORDERS, 1, "new")
    assert gate.admit(transaction(11, there, other)).rows == [other]
    assert gate.checkpoint == at(11, tables={"shop.pairs": TablePosition(12, "log:12")})
    assert gate.admit(transaction(12, there)) == transaction(12)
    assert gate.checkpoint == at(12)
    assert gate.admit(transaction(13, there)).rows == [there]


def test_the_ddl_of_a_table_behind_comes_late_and_of_one_ahead_is_dropped():
    gate = Resumed(
        at(10, tables={"shop.pairs": TablePosition(7, "log:7"), "shop.orders": TablePosition(12, "x")})
    )
    late = Ddl(8, 0, "src", "shop", "pairs", "ALTER", (), "log:8")
    assert gate.admit(late) == late
    assert gate.checkpoint.tables["shop.pairs"] == TablePosition(8, "log:8")
    assert gate.admit(Ddl(11, 0, "src", "shop", "orders", "ALTER", (), "log:11")) == transaction(11)


def test_what_comes_late_without_a_table_behind_is_an_error():
    reached = Reached(at(10))
    with pytest.raises(InvariantViolated, match="no table lags behind"):
        reached.add(transaction(9, insert(ORDERS, 1, "a")))


# --- any kill point, any progress: the same rows -----------------------------------------------------

KEYED = Table("s", "keyed", (Column("k", "int"), Column("v", "int")), key=(0,))
DOUBLE = Table("s", "double", (Column("v", "int"), Column("a", "int"), Column("b", "int")), key=(1, 2))
NAMED = Table("s", "named", (Column("k", "varchar"), Column("v", "int")), key=(0,))
TABLES = [KEYED, DOUBLE, NAMED]


def key_of(table: Table, row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(row[i] for i in table.key)


@dataclass
class Target:
    """Tables of dicts; applies items as strictly as a database that must not diverge."""

    tables: dict[str, dict[tuple[Any, ...], tuple[Any, ...]]] = field(default_factory=dict)

    def apply(self, item: Item) -> None:
        if isinstance(item, Ddl):
            self.define(item)
            return
        for change in item.rows:
            rows = self.tables[change.table.full_name]
            if change.before is not None:
                assert rows.pop(key_of(change.table, change.before)) == change.before
            if change.after is not None:
                assert rows.setdefault(key_of(change.table, change.after), change.after) is change.after

    def define(self, ddl: Ddl) -> None:
        for action in ddl.actions:
            if isinstance(action, CreateTable):
                assert ddl.full_name not in self.tables
                self.tables[ddl.full_name] = {}
            elif isinstance(action, AddColumn):
                rows = self.tables[ddl.full_name]
                self.tables[ddl.full_name] = {key: (*row, 0) for key, row in rows.items()}

    def copy(self) -> Target:
        return Target({name: dict(rows) for name, rows in self.tables.items()})


class Source:
    """A log of items at positions 1, 2, …; position p has ts 1000 p."""

    def __init__(self) -> None:
        self.log: list[Item] = []
        self.now = Target({table.full_name: {} for table in TABLES})
        self.states = [self.now.copy()]
        self.schemas = [{table.full_name: table for table in TABLES}]

    def run(self, steps: list[tuple[int, int, int, int]]) -> None:
        """One transaction: what a step does depends on what is there."""
        rows = []
        position = len(self.log) + 1
        tables = dict(self.schemas[-1])
        for which, kind, key, other in steps:
            table = tables[TABLES[which % 3].full_name]
            if kind == 5 and not rows:
                column = Column(f"extra{len(table.columns)}", "int", nullable=False)
                tables[table.full_name] = replace(table, columns=(*table.columns, column))
                self._append(
                    Ddl(position * 1000, 0, "src", "s", table.name, "ALTER", (AddColumn(column),)), tables
                )
                return
            rows.append(self._change(table, kind, key, other))
            self.now.apply(Transaction(0, 0, "src", rows[-1:]))
        self._append(Transaction(position * 1000, 0, "src", rows), tables)

    def _append(self, item: Item, tables: dict[str, Table]) -> None:
        if isinstance(item, Ddl):
            self.now.define(item)
        self.log.append(replace(item, position=str(len(self.log) + 1)))
        self.states.append(self.now.copy())
        self.schemas.append(tables)

    def _change(self, table: Table, kind: int, key: int, other: int) -> RowChange:
        before = self._row(table, key, 0)
        there = self.now.tables[table.full_name].get(key_of(table, before))
        if there is None:
            return insert(table, *self._row(table, key, other))
        if kind == 0:
            return delete(table, *there)
        moved = self._row(table, other if kind == 1 else key, key + other)
        if key_of(table, moved) in self.now.tables[table.full_name]:
            moved = self._row(table, key, key + other)
        return update(table, there, moved)

    def _row(self, table: Table, key: int, value: int) -> tuple[Any, ...]:
        named = {"k": f"k{key}" if table.name == "named" else key, "a": key // 3, "b": key % 3}
        return tuple(named.get(column.name, value) for column in table.columns)

    def items(self, checkpoints: list[Checkpoint | None], snapshot_at: int) -> list[Item]:
        """Return the items of a source that resumes from these checkpoints: see the pullers' contract."""
        start = lowest(checkpoints, order=int)
        loading = start.loading if start is not None else {}
        if loading is None:
            return self.log[int(start.position) :]
        first = int(start.position) if start is not None else snapshot_at
        last = max([snapshot_at, *(int(c.position) for c in checkpoints if c is not None and c.position)])
        ts = max([last * 1000, *(c.ts for c in checkpoints if c is not None)])
        loaded = self._load(loading, last)
        numbered = [replace(item, commit_ts=ts + n, position=str(last)) for n, item in enumerate(loaded, 1)]
        return [*self.log[first:last], *_in_pieces(numbered), *self.log[last:]]

    def _load(self, loading: dict[str, TableProgress], position: int) -> list[Item]:
        items: list[Item] = []
        for name, table in self.schemas[position].items():
            rows = sorted(self.states[position].tables[name].items())
            loaded = loading.get(name)
            if loaded is None:
                items.append(create(0, table))
            elif loaded.last is None:
                continue
            else:
                rows = [(key, row) for key, row in rows if key > loaded.last]
            if table.name != "named":
                while len(rows) > 2:
                    items.append(chunk(0, table, rows[1][0], *[insert(table, *row) for _, row in rows[:2]]))
                    rows = rows[2:]
            items.append(chunk(0, table, None, *[insert(table, *row) for _, row in rows]))
        return [*items, transaction(0, chunk=Chunk(""))]


def _in_pieces(items: list[Item]) -> list[Item]:
    """Chunks of more than two rows come apart, as transactions larger than memory do."""
    pieces: list[Item] = []
    for item in items:
        if isinstance(item, Transaction) and len(item.rows) > 2 and item.chunk is not None:
            part = Chunk(item.chunk.table, TableProgress(()))
            pieces.append(replace(item, rows=item.rows[:1], last=False, position="", chunk=part))
            item = replace(item, rows=item.rows[1:])
        pieces.append(item)
    return pieces


@dataclass
class Sink:
    checkpoint: Checkpoint | None = None
    target: Target = field(default_factory=Target)

    def run(self, items: list[Item], commit_every: int) -> None:
        """Apply items; what came after the last commit is lost."""
        gate, target = Resumed(self.checkpoint, "src"), self.target.copy()
        for number, item in enumerate(items, 1):
            admitted = gate.admit(item)
            if admitted is not None:
                target.apply(admitted)
            if number % commit_every == 0 and gate.checkpoint is not None:
                self.checkpoint, self.target = gate.checkpoint, target.copy()


STEP = st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(0, 8), st.integers(0, 8))
HISTORY = st.lists(st.lists(STEP, min_size=1, max_size=3), max_size=8)
PROGRESS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 4)), min_size=3, max_size=3)
ROUND = st.tuples(HISTORY, PROGRESS)


@settings(max_examples=400, deadline=None)
@given(st.integers(1, 3), HISTORY, st.lists(ROUND, max_size=4))
def test_whenever_sinks_are_killed_they_end_with_the_rows_of_the_source(sinks_count, history, rounds):
    source = Source()
    sinks = [Sink() for _ in range(sinks_count)]
    for steps in history:
        source.run(steps)
    for more, progress in rounds:
        snapshot_at = len(source.log)
        for steps in more:
            source.run(steps)
        items = source.items([sink.checkpoint for sink in sinks], snapshot_at)
        for sink, (count, commit_every) in zip(sinks, progress, strict=False):
            sink.run(items[:count], commit_every)
    items = source.items([sink.checkpoint for sink in sinks], len(source.log))
    for sink in sinks:
        sink.run(items, 1)
        assert sink.target == source.now
