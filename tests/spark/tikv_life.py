"""Seeded events in a TiKV cluster: transactions and schema changes, with faults meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from random import Random
from threading import Event, Thread
from typing import Any, Final, NamedTuple, Self

from tidemill.codec.tidb.key import record_key
from tidemill.emulator.faults.schedule import Schedule
from tidemill.emulator.percolator import Rejected
from tidemill.emulator.sql.sql import Tidb
from tidemill.emulator.sql.transaction import SqlTransaction
from tidemill.events import RowChange, Ts
from tidemill.puller.tikv.feed.options import EventFeedOptions
from tidemill.spark.offsets.offset import Offset, ts_offset

from ..puller.tikv.test_metamorphic import FORCED
from ..puller.tikv.test_metamorphic import WORDS as ALL_WORDS

TABLES: Final = {
    "plain": "id bigint primary key, note varchar(400), price decimal(10,2), at datetime(3)",
    "pair": "id int, side varchar(9) collate utf8mb4_bin, note varchar(400), primary key (id, side)",
    "loose": "id bigint, note varchar(400), ratio float",
    "part": "id int primary key, note varchar(400)) partition by range (id) (partition p0 values less than "
    "(20), partition p1 values less than (40), partition p2 values less than (100000)",
}
"""A key of one column and of two, none, and a table in partitions."""
KEYS: Final = 60
"""Number of keys of each table."""
LEAST_CHANGES: Final = 300
SCHEMA_CHANGES: Final = 3
CUTS: Final = 3
STEP_SECONDS: Final = 0.1
"""Duration of a fault while tasks read, and of the pause after it."""


WORDS = tuple(word for word in ALL_WORDS if word != "async_lock")
"""Faults of a life. The bytes that `async_lock` leaves may be committed, and they are no row of a table."""


class Written(NamedTuple):
    """A row change that was committed."""

    commit_ts: Ts
    start_ts: Ts
    table: str
    op: str
    id: int

    @classmethod
    def of(cls, row: RowChange) -> Self:
        """As a reader saw it."""
        values = row.before if row.after is None else row.after
        assert values is not None
        return cls(row.commit_ts, row.start_ts, row.table.name, row.op, values[0])


class Writer:
    """A transaction's way to the cluster; one that dies leaves its locks."""

    def __init__(self, tidb: Tidb) -> None:
        self._tidb = tidb
        self.tso = tidb.tso
        self.read = tidb.read

    def write(self, mutations: list[tuple[str, bytes, bytes]], *, start_ts: Ts = 0) -> Ts:
        try:
            return self._tidb.write(mutations, start_ts=start_ts)
        except Rejected:  # its locks outlived their time, and others have rolled it back
            self._tidb.rollback(start_ts, [key for _, key, _ in mutations])
            raise


class Dying(Writer):
    """Dies between its two phases."""

    def __init__(self, tidb: Tidb, *, commits: bool) -> None:
        """One that `commits` had its primary committed."""
        super().__init__(tidb)
        self._commits = commits
        self._start_ts = self._commit_ts = 0
        self._keys: list[bytes] = []

    def write(self, mutations: list[tuple[str, bytes, bytes]], *, start_ts: Ts = 0) -> Ts:
        self._start_ts, self._keys = start_ts, sorted(key for _, key, _ in mutations)
        self._tidb.prewrite(start_ts, mutations, primary=self._keys[0], ttl_ms=1)
        if self._commits:
            self._commit_ts = self._tidb.commit(start_ts, self._keys[:1])
        return self._commit_ts

    def finish(self) -> bool:
        """Take the locks away, unless others did; whether it is committed."""
        if self._commit_ts:
            self._tidb.commit(self._start_ts, self._keys, self._commit_ts)
        elif self._keys:
            self._tidb.rollback(self._start_ts, self._keys)
        return bool(self._commit_ts)


class TikvLife:
    """Made, it has empty tables; `live` makes the history."""

    schema = "shop"
    typed_table = "plain"
    place: Callable[[str], str] = str
    """Returns what a position has in a batch of a capture, too."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.random = random = Random(seed)
        self.tidb = Tidb(
            stores=random.choice((1, 2, 3, 4)),
            pd_members=2,
            seed=seed,
            tick_seconds=random.choice((0.01, 0.05)),
            quota_bytes=random.choice((20_000, 1 << 20)),
            congestion_seconds=0.2,
            scan_rows=random.choice((1, 7, 1024)),
            scans=random.choice((1, 2, 6)),
            filter_span=random.random() < 0.5,
            row_format=random.choice((1, 2)),
        )
        self._alters = random.random() < 0.7
        self.url = f"tikv://{self.tidb.pd_address}"
        self.tables = "shop.*"
        self.written: list[Written] = []
        self.commits: list[Ts] = []
        self._rows: dict[str, dict[Any, int]] = {name: {} for name in TABLES}
        """Ids by the key that the table has: of `loose` a hidden one."""
        self._added: list[str] = []
        """Columns of `plain`."""
        self._numbers = count(1000)
        self._left: list[tuple[Dying, list[tuple[str, str, Any, int]]]] = []
        """Writers that died, and what they were about to do."""
        self.tidb.execute("create database shop")
        for name, columns in TABLES.items():
            self.tidb.execute(f"create table shop.{name} ({columns})")
        self._schedule = Faults(self, seed, self._border_keys(), WORDS)
        self._forced: Counter[str] = Counter()
        self.begin()

    def begin(self) -> None:
        """Start the recorded range here."""
        self.start = self.end = self.now()

    def _border_keys(self) -> list[bytes]:
        ids = [self.tidb.schema.table(f"shop.{name}").info.id for name in TABLES]
        return [record_key(id_, handle) for id_ in ids for handle in range(0, KEYS, 5)]

    def now(self) -> Offset:
        return self.offset(self.tidb.tso())

    def offset(self, ts: Ts) -> Offset:
        return ts_offset(ts, f"tikv cluster {self.tidb.options.cluster_id}")

    @property
    def hits(self) -> Counter[str]:
        """How often each fault met something."""
        return self._schedule.hits + self._forced

    @staticmethod
    def key_of(row: RowChange) -> Any:
        """Return the row's key; without one, its id, which is unique."""
        values = row.before if row.after is None else row.after
        assert values is not None
        return tuple([values[place] for place in row.table.key]) or values[0]

    @property
    def bounds(self) -> dict[str, str]:
        return {"fromTs": str(self.start.ts), "toTs": str(self.end.ts)}

    @property
    def beginning(self) -> dict[str, str]:
        return {"startingTs": str(self.start.ts)}

    def borders(self) -> list[Offset]:
        """From start to end; between them at commits, just below them, and anywhere."""
        some = {ts - below for ts in self.commits for below in (0, 1)}
        some |= {self.random.randrange(self.start.ts, self.end.ts) for _ in range(CUTS)}
        cuts = self.random.sample(sorted(ts for ts in some if self.start.ts < ts < self.end.ts), CUTS)
        return [self.start, *map(self.offset, sorted(cuts)), self.end]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.tidb.close()

    # --- its history

    def live(self, catch_up: Callable[[Ts], object]) -> None:
        """`catch_up` lets who follows it come to a ts."""
        random = self.random
        pauses = sorted(random.sample(range(LEAST_CHANGES), SCHEMA_CHANGES))
        middle = pauses[len(pauses) // 2]
        while len(self.written) < LEAST_CHANGES:
            self.write()
            if random.random() < 0.3:
                self._schedule.step()
            if pauses and len(self.written) > pauses[0]:
                self.calm()
                if self._alters:
                    self._alter()
                if pauses.pop(0) == middle:
                    catch_up(self.now().ts)
                    self._force()
        self.calm()
        self.end = self.now()

    def _force(self) -> None:
        """The faults that no history goes without, on a feed that is at work."""
        for word in (*FORCED, WORDS[self._seed % len(WORDS)]):
            only = Faults(self, self.random.randrange(1 << 30), self._border_keys(), [word])
            for _ in range(20):
                only.step()
                self.write()
                if only.hits:
                    break
            self.calm()
            self._forced += only.hits

    def write(self, *, dying: bool = False, commits: bool = True) -> bool:
        """One transaction: rows of one or more tables, in one region or many; whether it was committed.

        One that is `dying` leaves locks on new rows.
        """
        storage = Dying(self.tidb, commits=commits) if dying else Writer(self.tidb)
        txn = SqlTransaction(storage, self.tidb.schema, self.tidb.pumps)
        todo: list[tuple[str, str, Any, int]] = []
        for _ in range(self.random.choice((1, 2, 5, 20))):
            found = self._change(txn, {(table, id_) for _, table, _, id_ in todo}, only_new=dying)
            if found is not None:
                todo.append(found)
        try:
            commit_ts = txn.commit()
        except Rejected:
            return False
        if commit_ts:
            self.commits.append(commit_ts)
            self.written += [Written(commit_ts, txn.start_ts, table, op, id_) for op, table, _, id_ in todo]
        if isinstance(storage, Dying):
            self._left.append((storage, todo))
        else:
            self._apply(todo)
        return bool(commit_ts)

    def _apply(self, done: Sequence[tuple[str, str, Any, int]]) -> None:
        for op, table, key, id_ in done:
            if op == "delete":
                del self._rows[table][key]
            else:
                self._rows[table][key] = id_

    def _change(
        self, txn: SqlTransaction, taken: set[tuple[str, int]], *, only_new: bool
    ) -> tuple[str, str, Any, int] | None:
        """A row change in the transaction: operation, table, key and id; None for a row that has one."""
        random = self.random
        table = random.choice([*self._rows])
        values = {"note": "x" * random.choice((1, 30, 300)) + str(next(self._numbers))}
        if table == "plain":
            more = {name: next(self._numbers) for name in self._added if random.random() < 0.5}
            at = f"2026-01-02 03:04:{random.randrange(60):02}.678"
            values |= {"price": f"{random.randrange(10**6)}.50", "at": at, **more}
        rows = self._rows[table]
        if not only_new and rows and random.random() < 0.6:
            key, id_ = random.choice([*rows.items()])
            if (table, id_) in taken:
                return None
            if random.random() < 0.3:
                txn.delete(f"shop.{table}", key)
                return "delete", table, key, id_
            txn.update(f"shop.{table}", key, values)
            return "update", table, key, id_
        id_ = next(self._numbers) if only_new or table == "loose" else random.randrange(KEYS)
        if id_ in rows.values() or (table, id_) in taken:
            return None
        side = {"side": random.choice("ab")} if table == "pair" else {}
        return "insert", table, txn.insert(f"shop.{table}", {"id": id_, **side, **values}), id_

    def _alter(self) -> None:
        number = next(self._numbers)
        kinds = [
            f"alter table shop.plain add column c{number} bigint default {number}",
            f"create table shop.t{number} (id bigint primary key, note varchar(400))",
            f"create index i{number} on shop.plain (price)",
        ]
        kinds += [f"alter table shop.plain drop column {name}" for name in self._added]
        statement = self.random.choice(kinds)
        self.tidb.execute(statement)
        match statement.split():
            case ["alter", _, _, "add", _, name, *_]:
                self._added.append(name)
            case ["alter", *_, name]:
                self._added.remove(name)
            case ["create", "table", *_]:
                self._rows[f"t{number}"] = {}

    # --- faults

    def leave_locks(self) -> bool:
        before = len(self._left)
        self.write(dying=True, commits=self.random.random() < 0.5)
        return len(self._left) > before

    def calm(self) -> None:
        """Everything is at work again, and who left locks takes them away."""
        self._schedule.calm()
        for writer, todo in self._left:
            if writer.finish():
                self._apply(todo)
        self._left.clear()

    @contextmanager
    def turmoil(self) -> Iterator[None]:
        """Faults and more transactions while somebody reads."""
        over = Event()
        thread = Thread(target=self._go_on, args=(over,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.calm()

    def _go_on(self, over: Event) -> None:
        while not over.wait(STEP_SECONDS):
            self._schedule.step()
            over.wait(STEP_SECONDS)
            self.calm()
            self.write()


class Faults(Schedule):
    """Their locks are of rows of the tables."""

    def __init__(self, life: TikvLife, seed: int, keys: Sequence[bytes], words: Sequence[str]) -> None:
        self._life = life
        super().__init__(life.tidb, seed, keys, words)

    def _lock(self) -> bool:
        return self._life.leave_locks()


def feed_options(random: Random) -> Callable[..., EventFeedOptions]:
    """Draw the options of a puller; abandoned locks are noticed at once."""
    return partial(
        EventFeedOptions,
        mailbox=random.choice((2, 5, 128)),
        shard_workers=random.choice((1, 3, 8)),
        high_water=random.choice((0.0, 0.5, 0.7)),
        low_water=random.choice((0.0, 0.2)),
        least_tick_seconds=random.choice((0.001, 0.02)),
        lock_tick_seconds=0.05,
        stale_seconds=0.05,
        least_stall_count=1,
        locks_age_seconds=0.0,
        locks_pause_seconds=0.05,
    )
