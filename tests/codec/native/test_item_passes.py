"""Passes over items: what they find, and the same natively as in Python."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tidemill.chain import Barrier, Lag
from tidemill.codec.item_passes import counted, whole
from tidemill.codec.native import library
from tidemill.errors import SourceError
from tidemill.events import Chunk, Column, Ddl, RowChange, Rows, Run, Table, Transaction

pytestmark = pytest.mark.skipif(library.native is None, reason="there is no native decoder")
TABLES = [Table("d", f"t{number}", (Column("id", "bigint"),), (0,)) for number in range(3)]
CHUNK = Chunk("d.t0")


class Unread(Run):
    """A run that is counted without being decoded, or can't be."""

    size: int

    def __len__(self) -> int:
        if self.size < 0:
            raise SourceError("these rows can't be read")
        return self.size


class OtherTransaction(Transaction):
    """A class of somebody else's."""


def run(ts: int, table: Table, op: Any, size: int) -> Run:
    return Unread(ts, ts, table, op, None, size)


def change(ts: int, table: Table, op: Any) -> RowChange:
    return RowChange(ts, ts, table, op, (1,) if op != "insert" else None, (1,) if op != "delete" else None)


def transaction(ts: int, rows: Any, **fields: Any) -> Transaction:
    return Transaction(ts, ts - 1, "s", rows, str(ts), **fields)


@pytest.fixture(params=["native", "python"], autouse=True)
def _both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "in_use", request.param == "native")


def test_whole_transactions_end_before_anything_else():
    one, two = transaction(5, [change(5, TABLES[0], "insert")] * 3), transaction(7, [])
    assert whole([]) == (0, 0, 0, 0)
    assert whole([], 9) == (0, 0, 0, 9)
    assert whole([one, two]) == (2, 3, 1, 7)
    assert whole(deque([one, two])) == (2, 3, 1, 7)
    assert whole([one, one, two], 5) == (3, 6, 1, 7)
    assert whole([one], 6) == (0, 0, 0, 6)
    assert whole([two, one]) == (1, 0, 1, 7)
    for other in (
        Ddl(8, 8, "s", "d", "t0", "", ()),
        Lag("d.t0", None),
        Barrier(),
        transaction(8, [], last=False),
        transaction(8, [], chunk=CHUNK),
        OtherTransaction(8, 8, "s", []),
        None,
    ):
        assert whole([one, other, two]) == (1, 3, 0, 5)


def test_room_ends_with_a_ts_not_within_it():
    rows = [change(5, TABLES[0], "insert")] * 2
    items = [transaction(5, rows), transaction(5, rows), transaction(5, []), transaction(6, [])]
    assert whole(items, 0, 1) == whole(items, 0, 4) == (3, 4, 1, 5)
    assert whole(items, 0, 5) == (4, 4, 2, 6)
    assert whole(items, 5, 0) == (3, 4, 1, 5)
    assert whole(items, 4, 0) == (0, 0, 0, 4)


def test_rows_are_counted_by_neighbours():
    first, second, _ = TABLES
    twin = Table("d", "t0", (Column("id", "bigint"),), (0,))
    items = [
        transaction(1, [change(1, first, "insert"), change(1, first, "insert"), change(1, first, "delete")]),
        transaction(2, Rows([run(2, first, "delete", 3), run(2, second, "delete", 2)])),
        transaction(3, Rows((run(3, second, "".join(["del", "ete"]), 4),), 4), last=False),
        transaction(4, ()),
        transaction(5, [change(5, twin, "insert")], chunk=CHUNK),
    ]
    assert counted(items) == [
        (first, "insert", 2), (first, "delete", 4), (second, "delete", 6), (twin, "insert", 1)
    ]  # fmt: skip
    assert counted([]) == []


def test_rows_that_cannot_be_counted():
    items = [transaction(1, []), transaction(2, Rows([run(2, TABLES[0], "insert", -1)]))]
    for call in (whole, counted):
        with pytest.raises(SourceError, match="these rows can't be read"):
            call(items)
    with pytest.raises(TypeError, match="a transaction is expected, not None"):
        counted([None])
    with pytest.raises(TypeError, match="not iterable"):
        whole(3)  # type: ignore[arg-type]


def result(call: Callable[..., Any], in_use: bool, *arguments: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "in_use", in_use)
        try:
            return call(*arguments)
        except (SourceError, TypeError) as error:
            return type(error), str(error)


def random_rows(random: Random, ts: int) -> Any:
    parts = [
        (random.choice(TABLES), random.choice(["insert", "update", "delete"]))
        for _ in range(random.choice([0, 1, 1, 3]))
    ]
    if random.random() < 0.5:
        return random.choice([list, tuple])([change(ts, *part) for part in parts])
    least = -1 if random.random() < 0.01 else 0
    runs = [run(ts, *part, random.randint(least, 5)) for part in parts]
    known = -1 if least or random.random() < 0.5 else sum(part.size for part in runs)
    return Rows(random.choice([list, tuple])(runs), known)


def compare(seed: int) -> None:
    """Compare the two for items drawn by a seed."""
    random = Random(seed)
    rare = random.choice([0.0, 0.01, 0.1])
    ts, items = 1 << 60, []
    for _ in range(random.choice([0, 1, 50])):
        ts += random.choice([0, 1, 1_000]) if random.random() >= rare else -1
        fields = {"last": random.random() >= rare, "chunk": None if random.random() >= rare else CHUNK}
        items.append(transaction(ts, random_rows(random, ts), **fields))
        if random.random() < rare:
            items.append(Lag("d.t0", None))
    arguments = items, random.choice([0, (1 << 60) + random.randrange(50)]), random.choice([0, 10, 1 << 40])
    assert result(whole, True, *arguments) == result(whole, False, *arguments)
    assert result(counted, True, items) == result(counted, False, items)


def test_random_items():
    for seed in range(300):
        compare(seed)
