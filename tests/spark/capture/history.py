"""Transactions of a made-up binlog, and what bounded reads of it give."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from tidemill.actors import Clock, SystemClock
from tidemill.codec.mysql.position import Position
from tidemill.events import AddColumn, Checkpoint, Column, Ddl, Item, RowChange, Transaction, compose_ts
from tidemill.sink import Delivery
from tidemill.sink.delivery import DeliveryOptions
from tidemill.spark.capture.buffer import ChangeBuffer
from tidemill.spark.capture.sink import CaptureSink
from tidemill.spark.envelope import ENVELOPE, EnvelopeEncoder
from tidemill.spark.offsets.offset import Offset
from tidemill.spark.option_values import OPERATIONS
from tidemill.spark.read.parts import WHOLE, Part
from tidemill.spark.read.pick import Pick
from tidemill.testing.changes import LOOSE, ORDERS, PAIRS, MemoryStore

SOURCE = "server 1"
BASE = compose_ts(1_700_000_000_000)


def position(number: int) -> str:
    """Return the offset after transaction `number`, counted from 1; 0 is before the first."""
    return f"log.000001:{1000 + 10 * number}"


def rank_of(text: str) -> Any:
    return Position.parse(text).rank


def offset(number: int) -> Offset:
    return Offset(BASE + number, position(number), SOURCE)


def heartbeat(number: int) -> Transaction:
    return Transaction(BASE + number, BASE + number, SOURCE, [], position(number))


def row(random: Random, ts: int) -> RowChange:
    table = random.choice([ORDERS, PAIRS, LOOSE])
    values = tuple(
        random.randrange(100) if column.kind in ("int", "bigint") else "x" * random.randrange(30)
        for column in table.columns
    )
    op = random.choice(["insert", "update", "delete"])
    return RowChange(
        ts, ts, table, op, values if op != "insert" else None, values if op != "delete" else None
    )


def ddl(number: int) -> Ddl:
    ts = BASE + number
    action = AddColumn(Column(f"c{number}", "int"))
    query = f"ALTER TABLE orders ADD c{number} INT"
    return Ddl(ts, ts, SOURCE, "shop", "orders", query, (action,), position(number))


def history(seed: int, transactions: int = 40, most_rows: int = 12) -> list[Item]:
    """Return transactions, of which some are split, some are empty, and some are DDL."""
    random = Random(seed)
    items: list[Item] = [heartbeat(0)]
    for number in range(1, transactions + 1):
        if random.random() < 0.08:
            items.append(ddl(number))
            continue
        ts = BASE + number
        rows = [row(random, ts) for _ in range(random.choice([0, 1, 2, 3, most_rows]))]
        cuts = sorted(random.sample(range(len(rows) + 1), random.choice([0, 0, min(2, len(rows))])))
        for first, last in zip([0, *cuts], [*cuts, None], strict=True):
            part = rows[first:last]
            ends = last is None
            items.append(Transaction(ts, ts, SOURCE, part, position(number) if ends else "", ends))
    return items


def expected(
    items: Sequence[Item],
    after: int,
    upto: int,
    part: Part = WHOLE,
    operations: Collection[str] = OPERATIONS,
) -> list[dict[str, Any]]:
    wanted = [item for item in items if BASE + after < item.commit_ts <= BASE + upto]
    return EnvelopeEncoder(Pick(part, operations), json=False).encode(wanted).to_pylist()


def rows_of(batches: Any) -> list[dict[str, Any]]:
    return pa.Table.from_batches(list(batches), ENVELOPE).to_pylist()


class Keeping:
    """A capture's sink and its buffer, fed by the test."""

    def __init__(
        self,
        directory: Path,
        *,
        memory: int = 1 << 20,
        disk: int = 1 << 30,
        max_rows: int = 10_000,
        store: MemoryStore | None = None,
        clock: Clock | None = None,
    ) -> None:
        numbers = count()
        self.directory = directory
        self.held = ChangeBuffer(
            memory, disk, lambda: directory / f"{next(numbers)}.arrow", clock or SystemClock()
        )
        self.sink = CaptureSink("flight://test", store or MemoryStore(), self.held, rank_of)
        at = self.sink.open() or Checkpoint(0, "", None, SOURCE)
        self.delivery = Delivery(self.sink, at, SOURCE, DeliveryOptions(max_rows=max_rows))

    def take(self, items: Sequence[Item]) -> None:
        self.delivery.accept(items)
        self.delivery.run(0.0)

    def read(self, after: int, upto: int) -> list[dict[str, Any]]:
        ends = rank_of(position(after)), rank_of(position(upto))
        self.held.wait(*ends, 0.0, lambda: True)
        return rows_of(self.held.read(*ends))

    @property
    def files(self) -> list[Path]:
        return sorted(self.directory.iterdir())
