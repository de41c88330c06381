"""A bank and a shop on the embedded TiDB: writers, faults meanwhile, and the expected final rows.

The committed rows are kept as plain Python values, apart from the cluster's own storage, to compare copies
with them. All randomness comes from seeds.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from multiprocessing.connection import Connection
from threading import Event, Lock, Thread
from typing import Any, Final, TypeAlias

from ..codec.tidb.key import record_key
from ..emulator import Rejected
from ..emulator.faults.schedule import Schedule
from ..emulator.sql.sql import Tidb
from ..events import Column, Row, Ts

ACCOUNTS = 1_000
OPENING_BALANCE = 1_000
PAUSE_SECONDS: Final = 0.002
"""Default pause of a writer after a transaction."""

TABLES = {
    "bank.accounts": "id int primary key, balance bigint not null",
    "shop.customers": """id bigint unsigned primary key, name varchar(80) not null, email varchar(120),
        credit decimal(12,2) not null, since datetime not null, note text""",
    "shop.orders": """id bigint primary key, customer bigint not null, total decimal(12,2) not null,
        state enum('open','paid','sent','closed') not null, placed timestamp(3) not null,
        comment varchar(200)""",
    "shop.order_lines": """order_id bigint, line smallint, sku varchar(20) not null, quantity int not null,
        price decimal(10,2) not null, primary key (order_id, line) clustered""",
    "shop.log": "at datetime(6) not null, who varchar(40), what json, amount double, data varbinary(64)",
}
"""Each table's columns. `shop.log` has no key: its rows may repeat."""
LATER = ("shop.returns", "id bigint primary key, reason set('late','broken','wrong') not null, paid year")
"""A table that is created while the writers write."""
FAULTS = ("split", "merge", "transfer_leader", "store_down")

Key: TypeAlias = Any
_CLIENTS: Final = 3


class Truth:
    """The expected rows by table and key: the last commit counts."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._rows: dict[str, dict[Key, tuple[Ts, Row | None]]] = {}
        self.transactions = 0

    def commit(self, ts: Ts, changes: list[tuple[str, Key, Row | None]]) -> None:
        with self._lock:
            self.transactions += 1
            for table, key, row in changes:
                rows = self._rows.setdefault(table, {})
                if key not in rows or rows[key][0] < ts:
                    rows[key] = ts, row

    def rows(self) -> dict[str, list[Row]]:
        with self._lock:
            return {
                table: [row for _, row in rows.values() if row is not None]
                for table, rows in self._rows.items()
            }


class Writer:
    """One client. It changes only its own rows of the shop; all clients share the accounts."""

    def __init__(self, tidb: Tidb, truth: Truth, number: int, seed: int) -> None:
        self._tidb = tidb
        self._truth = truth
        self._random = random.Random(seed)
        self._next = number * 10**9
        self._orders: dict[int, list[Any]] = {}
        self.steps: list[Callable[[], None]] = [
            self._transfer,
            self._transfer,
            self._buy,
            self._change,
            self._remove,
        ]

    def step(self) -> None:
        with suppress(Rejected):  # a conflict with another writer: nothing was written
            self._random.choice(self.steps)()

    def _transfer(self) -> None:
        amount = self._random.randrange(1, 50)
        with self._tidb.transaction() as txn:
            changes: list[tuple[str, Key, Row | None]] = []
            for account, change in zip(
                self._random.sample(range(ACCOUNTS), 2), (amount, -amount), strict=True
            ):
                row = txn.get("bank.accounts", account)
                assert row is not None
                balance = row[1] + change
                txn.update("bank.accounts", account, {"balance": balance})
                changes.append(("bank.accounts", account, (account, balance)))
        self._truth.commit(txn.commit_ts, changes)

    def _buy(self) -> None:
        rng = self._random
        self._next += 1
        order = [
            self._next,
            rng.randint(1, 200),
            Decimal(rng.randrange(10**6)).scaleb(-2),
            "open",
            moment(rng, 3).replace(tzinfo=UTC),
            rng.choice([None, "", "bitte läuten", "玄関に置く"]),
        ]
        names = ("id", "customer", "total", "state", "placed", "comment")
        lines = [
            (
                self._next,
                n,
                f"sku-{rng.randrange(500):05d}",
                rng.randrange(1, 9),
                Decimal(rng.randrange(10**5)).scaleb(-2),
            )
            for n in range(rng.randrange(1, 5))
        ]
        logged = (
            moment(rng, 6),
            rng.choice(["ann", "bob", None]),
            '{"n": [1, 2.5, null]}',
            rng.random(),
            rng.randbytes(8),
        )
        with self._tidb.transaction() as txn:
            txn.insert("shop.orders", dict(zip(names, order, strict=True)))
            for line in lines:
                txn.insert("shop.order_lines", line)
            handle = txn.insert("shop.log", logged)
        self._orders[self._next] = order
        made: list[tuple[str, Key, Row | None]] = [("shop.order_lines", line[:2], line) for line in lines]
        made += [("shop.orders", order[0], tuple(order)), ("shop.log", handle, logged)]
        self._truth.commit(txn.commit_ts, made)

    def _change(self) -> None:
        changes: list[tuple[str, Key, Row | None]] = []
        chosen = self._random.sample(sorted(self._orders), min(5, len(self._orders)))
        with self._tidb.transaction() as txn:
            for key in chosen:
                order = [*self._orders[key]]
                order[3] = self._random.choice(["open", "paid", "sent", "closed"])
                order[2] += 1
                txn.update("shop.orders", key, {"state": order[3], "total": order[2]})
                changes.append(("shop.orders", key, tuple(order)))
        if changes:
            self._truth.commit(txn.commit_ts, changes)
            self._orders |= {key: [*row] for _, key, row in changes if row is not None}

    def _remove(self) -> None:
        if len(self._orders) < 20:
            return
        key = self._random.choice(sorted(self._orders))
        with self._tidb.transaction() as txn:
            txn.delete("shop.orders", key)
        del self._orders[key]
        self._truth.commit(txn.commit_ts, [("shop.orders", key, None)])

    def give_back(self) -> None:
        self._next += 1
        row = (self._next, self._random.choice(["late", "late,broken", "wrong"]), 2026)
        with self._tidb.transaction() as txn:
            txn.insert("shop.returns", row)
        self._truth.commit(txn.commit_ts, [("shop.returns", row[0], row)])


def moment(rng: random.Random, digits: int) -> datetime:
    fraction = rng.randrange(10**digits) * 10 ** (6 - digits)
    return datetime(2026, 1, 1) + timedelta(seconds=rng.randrange(10**7), microseconds=fraction)  # noqa: DTZ001


class World:
    """The cluster, its tables, the writers and the faults."""

    def __init__(self, seed: int, pause_seconds: float) -> None:
        """`pause_seconds` is the pause of a writer after a transaction."""
        self.tidb = Tidb(stores=3, seed=seed)
        self.truth = Truth()
        self._pause_seconds = pause_seconds
        self._stop = Event()
        for schema in ("bank", "shop"):
            self.tidb.execute(f"create database {schema}")
        for name, columns in TABLES.items():
            self.tidb.execute(f"create table {name} ({columns})")
        self._fill(random.Random(seed))
        self._writers = [Writer(self.tidb, self.truth, n + 1, seed * 100 + n) for n in range(_CLIENTS)]
        keys = [
            record_key(self.tidb.schema.table(name).info.id, handle)
            for name, handles in (
                ("bank.accounts", range(100, ACCOUNTS, 100)),
                ("shop.orders", (10**9, 2 * 10**9, 3 * 10**9)),
            )
            for handle in handles
        ]
        self.schedule = Schedule(self.tidb, seed, keys, FAULTS)
        self._threads: list[Thread] = []
        self.faults = True
        """True if regions and stores fail while the writers write."""

    def _fill(self, rng: random.Random) -> None:
        for start in range(0, ACCOUNTS, 500):
            self._insert("bank.accounts", [(i, OPENING_BALANCE) for i in range(start, start + 500)])
        since = moment(rng, 0)
        rows = [
            (2**63 + i, f"customer {i}", None, Decimal(i).scaleb(-2), since, "ü" * (i % 50))
            for i in range(1, 201)
        ]
        self._insert("shop.customers", rows)

    def _insert(self, table: str, rows: list[Row]) -> None:
        with self.tidb.transaction() as txn:
            keys = [txn.insert(table, row) for row in rows]
        self.truth.commit(txn.commit_ts, [(table, key, row) for key, row in zip(keys, rows, strict=True)])

    def start(self) -> None:
        """Start or resume writers and faults."""
        self._stop.clear()
        self._threads = [Thread(target=self._write, args=(writer,)) for writer in self._writers]
        if self.faults:
            self._threads.append(Thread(target=self._disturb))
        for thread in self._threads:
            thread.start()

    def _write(self, writer: Writer) -> None:
        while not self._stop.wait(self._pause_seconds):
            writer.step()

    def _disturb(self) -> None:
        """Cause one fault at a time; a stopped store is started again before the next."""
        while not self._stop.wait(0.5):
            self.schedule.step()
            self._stop.wait(0.5)
            self.schedule.calm()

    def change_schema(self) -> None:
        """Add a column and a table, while the writers write."""
        self.tidb.execute("alter table shop.orders add column gift varchar(40) not null default 'none'")
        self.tidb.execute(f"create table {LATER[0]} ({LATER[1]})")
        for writer in self._writers:
            writer.steps.append(writer.give_back)

    def write_much(self, rows: int) -> None:
        """Run one transaction of `rows` rows."""
        time = moment(random.Random(rows), 6)
        self._insert("shop.log", [(time, "much", None, float(n), None) for n in range(rows)])

    def stop(self) -> Ts:
        """Stop writers and faults; return the ts after which nothing changes."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self.schedule.calm()
        return self.tidb.tso()

    def columns(self) -> dict[str, tuple[Column, ...]]:
        return {name: self.tidb.schema.table(name).decoder.table.columns for name in [*TABLES, LATER[0]]}


def serve(pipe: Connection, seed: int, pause_seconds: float) -> None:
    """Run a World in a process of its own: it receives a method's name and arguments, and sends back the
    result."""
    world = World(seed, pause_seconds)
    with world.tidb:
        pipe.send(world.tidb.pd_address)
        answer(world, pipe)


def answer(world: World, pipe: Connection) -> None:
    """Call the methods that are asked for until None is received."""
    while (asked := pipe.recv()) is not None:
        name, *arguments = asked
        match name:
            case "rows":
                answered: Any = world.truth.rows()
            case "transactions":
                answered = world.truth.transactions
            case "faults":
                answered = dict(world.schedule.hits)
            case _:
                answered = getattr(world, name)(*arguments)
        pipe.send(answered)
