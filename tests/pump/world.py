"""A TiDB with pumps in this process, random histories, and feeds of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.opening import checkpoint_file
from tidemill.engine.options import feed_options
from tidemill.events import Ddl, Item, Transaction
from tidemill.sink.python import python_sink
from tidemill.sources.kind import SourceContext
from tidemill.sources.pump import PumpSource
from tidemill.testing.polled_pumps import PolledPumps
from tidemill.testing.progress import eventually, feed_ended


class PumpFeed:
    """A feed of a TiDB's pumps, as they are registered; it collects what it delivers."""

    def __init__(
        self, tidb: Tidb, directory: Path, start_ts: int = 0, detect_seconds: float = 0.05, **source: Any
    ) -> None:
        self._tidb = tidb
        self._directory = directory
        self._detect_seconds = detect_seconds
        self._source = {"retry_seconds": 0.02, "job_seconds": 0.02, **source}
        self._source |= {"start_ts": start_ts} if start_ts else {}
        self.found = Net()

    def start(self) -> None:
        section = {
            "url": f"pump://{self._tidb.pumps.address}",
            "pd": self._tidb.pd_address.split(","),
            "tables": ["shop.*"],
            **self._source,
        }
        options = feed_options({"data_dir": str(self._directory), "source": section})
        kind = replace(options.source.kind, open=self._open)
        options = replace(options, source=replace(options.source, kind=kind))
        sink = python_sink("python", self.found, checkpoint_file(options, "python"))
        self.pumps = PolledPumps(self._tidb.pumps.states, self._detect_seconds)
        self.feed = Feed(options, [sink])
        self.feed.start()

    def _open(self, options: Any, context: SourceContext) -> PumpSource:
        self.source = PumpSource(
            options, context.tables, context.feed, context.directory, context.clock, self.pumps
        )
        return self.source

    def notify(self) -> None:
        """Tell the feed that a pump joins, and wait until it knows of it."""
        self.pumps.notify()

    def reaches(self, ts: int) -> None:
        """Wait until everything up to `ts` is acknowledged. Raises Stalled, and the feed's error."""

        def reached() -> bool:
            if self.feed.error is not None:
                raise self.feed.error
            return int(self.feed.status().sinks[0].position or 0) >= ts

        eventually(reached)

    def fails(self) -> str:
        """Wait for its end; return the error."""
        feed_ended(self.feed)
        return str(self.feed.error)

    def stop(self) -> None:
        self.feed.stop()
        feed_ended(self.feed)
        if self.feed.error is not None:
            raise self.feed.error

    def progress(self, node_id: str) -> Any:
        return next(pump for pump in self.source._merge.pumps if pump.node_id == node_id)


class Net:
    """Collects the rows that each transaction removes and adds in all, and the schema changes.

    TiKV tells the change of a transaction as a whole, a binlog that of each statement.
    """

    def __init__(self) -> None:
        self.rows: dict[int, Counter[Any]] = {}
        self.ddls: list[str] = []
        self.last = 0
        self._open: dict[int, Counter[Any]] = {}

    def __call__(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Ddl):
                self._ddl(item)
            elif isinstance(item, Transaction):
                self._transaction(item)

    def _ddl(self, ddl: Ddl) -> None:
        actions = ", ".join(type(action).__name__ for action in ddl.actions)
        # Pumps tell the step from which rows no longer have a dropped column, TiKV the last one.
        ts = "" if actions == "DropColumn" else ddl.commit_ts
        self.ddls.append(f"{ts} {ddl.full_name}: {actions} [{ddl.query}]{ddl.refusal}")

    def _transaction(self, transaction: Transaction) -> None:
        ts = transaction.commit_ts
        assert ts >= self.last or ts in self.rows, "a transaction below an earlier one"
        self.last = max(self.last, ts)
        net = self._open.setdefault(ts, Counter())
        for row in transaction.rows:
            columns = tuple(column.name for column in row.table.columns)
            if row.before is not None:
                net[row.table.full_name, columns, row.before] -= 1
            if row.after is not None:
                net[row.table.full_name, columns, row.after] += 1
        if transaction.last:
            net = Counter({row: count for row, count in self._open.pop(ts).items() if count})
            if net:
                assert self.rows.get(ts, net) == net, f"commit ts {ts} came again with other rows"
                self.rows[ts] = net


TABLES = {
    "plain": "id int primary key, n varchar(20), price decimal(10,2)",
    "big": "id bigint unsigned primary key, at timestamp(3), d datetime(6), f double, r float",
    "clustered": "a varchar(20), b int, c date, t time(2), primary key (a, b) clustered",
    "dated": "d datetime(3), x decimal(8,3), j json, primary key (d, x) clustered",
    "nonclustered": "id int primary key nonclustered, e enum('x','y'), s set('p','q'), y year",
    "keyless": "n int, t varchar(10), b varbinary(8), bits bit(9)",
    "parted": "id int primary key, n int not null default 5",
}
REDEFINED: dict[str, list[tuple[str, list[str]]]] = {
    "plain": [("price", ["decimal(12,2) after id", "decimal(12,2)"]), ("n", ["varchar(30) first"])],
    "big": [("f", ["double not null", "double after id"]), ("d", ["datetime(6) default '2026-01-01' first"])],
    "clustered": [("c", ["date first", "date after b"]), ("t", ["time(2) after a"])],
    "dated": [("j", ["json first", "json after x"])],
    "nonclustered": [("e", ["enum('x','y','z')"]), ("y", ["year first"])],
    "keyless": [("bits", ["bit(12)", "bit(12) first"]), ("t", ["varchar(12) first"])],
    "parted": [("n", ["bigint not null default 4 first", "bigint not null default 5 after id"])],
}
"""Columns, and definitions that keep all values; TiDB rewrites the rows for those of decimal and bit."""
PARTITION = (
    " partition by range (id) (partition p0 values less than (50), partition p1 values less than maxvalue)"
)


class History:
    """Random transactions and schema changes, drawn from a seed."""

    def __init__(self, tidb: Tidb, seed: int) -> None:
        self._tidb = tidb
        self._random = Random(seed)
        self._keys: dict[str, list[Any]] = {}
        self._next = 0
        self._extra: dict[str, list[str]] = {}
        tidb.execute("create database shop")
        tidb.execute("create database depot")
        for name in TABLES:
            self._create(name)

    def _create(self, name: str) -> None:
        text = TABLES[_base(name)]
        partition = PARTITION if name.startswith("parted") else ""
        self._tidb.execute(f"create table shop.{name} ({text}){partition}")
        self._keys[name] = []
        self._extra[name] = []

    def run(self, transactions: int) -> None:
        for _ in range(transactions):
            if self._random.random() < 0.08:
                self.change_schema()
            self._transaction()

    def change_schema(self) -> None:
        random = self._random
        name = random.choice(list(self._keys))
        self._next += 1
        match random.randrange(13):
            case 0 | 1:
                column = f"c{self._next}"
                definition = random.choice(("int not null default 7", "varchar(9)", "bigint default 3"))
                self._tidb.execute(f"alter table shop.{name} add column {column} {definition}")
                self._extra[name].append(column)
            case 2 if self._extra[name]:
                self._tidb.execute(f"alter table shop.{name} drop column {self._extra[name].pop()}")
            case 3 if len(self._keys) > 3:
                self._forget(name)
                self._tidb.execute(f"drop table shop.{name}", self._transaction)
            case 4:
                self._keys[name].clear()
                self._tidb.execute(f"truncate table shop.{name}")
            case 5:
                new = f"{_base(name)}{self._next}"
                self._rename((name, new))
                self._tidb.execute(f"rename table shop.{name} to shop.{new}", self._transaction)
            case 6:
                other = random.choice([one for one in self._keys if _base(one) == _base(name)])
                statement = f"rename table shop.{name} to shop.swapped"
                if other != name:
                    statement += f", shop.{other} to shop.{name}"
                    self._rename((name, other), (other, name))
                self._tidb.execute(f"{statement}, shop.swapped to shop.{other}", self._transaction)
            case 8 if self._extra[name]:
                old, new = self._extra[name][-1], f"c{self._next}"
                self._extra[name][-1] = new
                self._tidb.execute(f"alter table shop.{name} rename column {old} to {new}")
            case 9 | 10:
                column, definitions = random.choice(REDEFINED[_base(name)])
                clause = f"modify column {column} {random.choice(definitions)}"
                self._tidb.execute(f"alter table shop.{name} {clause}", self._transaction)
            case 11 if _base(name) == "parted":
                self._tidb.execute(f"alter table shop.{name} alter column n set default {self._next}")
            case 7 if len(self._keys) > 3:
                self._forget(name)
                self._tidb.execute(
                    f"alter table shop.{name} rename to depot.t{self._next}", self._transaction
                )
            case _:
                self._create(f"{random.choice(list(TABLES))}{self._next}")

    def _forget(self, name: str) -> None:
        del self._keys[name], self._extra[name]

    def _rename(self, *pairs: tuple[str, str]) -> None:
        """Rename tables, all at once."""
        for known in (self._keys, self._extra):
            moved = [(new, known.pop(old)) for old, new in pairs]
            known.update(moved)

    def _transaction(self) -> None:
        random = self._random
        with self._tidb.transaction() as txn:
            for _ in range(random.randint(1, 6)):
                name = random.choice(list(self._keys))
                keys = self._keys[name]
                match random.randrange(4) if keys else 0:
                    case 0 | 1:
                        self._next += 1
                        keys.append(txn.insert(f"shop.{name}", self._row(name)))
                    case 2:
                        txn.update(f"shop.{name}", random.choice(keys), self._changes(name))
                    case 3:
                        txn.delete(f"shop.{name}", keys.pop(random.randrange(len(keys))))

    def _row(self, name: str) -> dict[str, Any]:
        random, n = self._random, self._next
        some = {
            "plain": {"id": n, "n": random.choice([None, "", "ü" * 9]), "price": "12.34"},
            "big": {
                "id": 2**63 + n,
                "at": "2026-01-02 03:04:05.678",
                "d": None,
                "f": random.random(),
                "r": 0.5,
            },
            "clustered": {
                "a": random.choice(["", "a", "zz" * 9]),
                "b": n,
                "c": "2024-02-29",
                "t": "-01:02:03.5",
            },
            "dated": {"d": "2026-01-01 00:00:00.5", "x": f"{n}.125", "j": '{"a": [1, null]}'},
            "nonclustered": {"id": n, "e": random.choice(["x", "y", None]), "s": "p,q", "y": 2026},
            "keyless": {"n": random.choice([1, 2, None]), "t": "t", "b": random.randbytes(4), "bits": 257},
            "parted": {"id": random.choice([n % 100, n + 100]) + 1000 * n},
        }
        return some[_base(name)]

    def _changes(self, name: str) -> dict[str, Any]:
        n = self._random.randrange(1000)
        if self._extra[name] and self._random.random() < 0.5:
            return {self._extra[name][-1]: str(n)}
        some: dict[str, dict[str, Any]] = {
            "plain": {"n": str(n)},
            "big": {"d": "2026-05-06 07:08:09.000001", "f": -n},
            "clustered": {"c": None},
            "dated": {"j": str(n)},
            "nonclustered": {"e": "x"},
            "keyless": {"n": n},
            "parted": {"n": n},
        }
        return some[_base(name)]


def _base(name: str) -> str:
    return name.rstrip("0123456789")
