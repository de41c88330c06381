"""A sink with a ShardStage through kills, stops and seeks, until its target has everything."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tidemill.dialects.address import Address, parsed
from tidemill.dialects.options import SqliteOptions
from tidemill.dialects.sqlite.sqlite import SqliteDatabase
from tidemill.engine.checkpoint import lowest
from tidemill.errors import Retryable
from tidemill.events import Ddl, Item, TablePosition
from tidemill.sharding import Routes, ShardStage, Unlock, plan_unlock
from tidemill.sink import Delivery, DeliveryOptions
from tidemill.sink.errors import ReplayRequired
from tidemill.sink.sql.sql import SqlSink

from .history import ROUTE, SOURCES
from .protocol import STATES, state_of
from .rules import sharding_options

POINTS = (
    "shard.held",
    "shard.forgotten",
    "shard.synced",
    "shard.released",
    "shard.sought",
    "sink.altered",
    "sink.mid_batch",
    "sink.before_commit",
    "sink.committed",
)


class QuickTarget(SqliteDatabase):
    """Not durable if the machine fails, which no test does."""

    is_altered = False
    """True while the open transaction contains a schema change."""

    def __init__(self, url: Address, feed: str) -> None:
        super().__init__(url, SqliteOptions(), feed)
        alter = self.tables.alter

        def altered(ddl: Ddl) -> None:
            alter(ddl)
            self.is_altered = True

        self.tables.alter = altered  # type: ignore[method-assign]

    def begin(self) -> None:
        super().begin()
        self.is_altered = False

    def connect(self) -> None:
        super().connect()
        self._session.execute("PRAGMA synchronous=OFF")


class KilledError(BaseException):
    """In the place of kill -9."""


class Life:
    def __init__(
        self,
        path: Path,
        items: Sequence[Item],
        monkeypatch: pytest.MonkeyPatch,
        seed: int = 0,
        *,
        max_held_rows: int = 1000,
        unlocks: bool = False,
        routes: Sequence[dict[str, Any]] = (ROUTE,),
        **options: Any,
    ) -> None:
        self.path = path
        self.items = items
        self.killed: Counter[str] = Counter()
        """Number of kills by the state in which they came."""
        self.seeks = 0
        self.unlocked: list[Unlock] = []
        self._unlocks = unlocks
        self._rng = Random(seed)
        self._options, self._rules = sharding_options(
            {"max_held_rows": max_held_rows, **options}, list(routes)
        )
        self._kill_at, self._kill_in = "", 0
        self._time = 0.0
        own = ("stage", "held_shards", "resolution")
        for module in ("sink.sql.sql", "dialects.sqlite.apply", *(f"sharding.{name}" for name in own)):
            monkeypatch.setattr(f"tidemill.{module}.reach", self._reach)

    def _reach(self, point: str) -> None:
        if not self._kill_at:
            return
        state = state_of(point, waiting=len(self.stage.waiting), is_altered=self._target.is_altered)
        if self._kill_at in (point, state):
            self._kill_in -= 1
            if self._kill_in == 0:
                self.killed[state] += 1
                raise KilledError(point)

    def run(self, kills: int = 0, states: Sequence[str] = ()) -> None:
        """Run to the end of the log, killed once in each of `states`, then up to `kills` times at random."""
        aims = [(self._rng.choice([*POINTS, *STATES]), self._rng.randint(1, 3)) for _ in range(kills)]
        for self._kill_at, self._kill_in in [*((state, 1) for state in states), *aims]:
            with suppress(KilledError):
                self._pipeline()
        self._kill_at = ""
        while not self._pipeline():
            pass

    def _pipeline(self) -> bool:
        """Return True at the end of the log; False after a seek."""
        self._target = QuickTarget(parsed(f"sqlite:///{self.path}"), "feed")
        sink = SqlSink("copy", self._target)
        self.stage = ShardStage(self._options, Routes(self._rules), SOURCES)
        self.stage.unlock(self.unlocked)
        self._sought: TablePosition | None = None
        try:
            found = sink.open()
            start = lowest([found], order=lambda position: int(position or 0))
            self.delivery = delivery = Delivery(
                sink,
                found,
                "both",
                DeliveryOptions(max_rows=self._rng.randint(1, 12)),
                stages=[self.stage],
                feed="feed",
                now=lambda: self._time,
                seek=self._seek,
            )
            after = start.ts if start is not None else 0
            items = [item for item in self.items if item.commit_ts > after]
            while items and not self._sought:
                count = self._rng.randint(1, 9)
                while count < len(items) and items[count].commit_ts == items[count - 1].commit_ts:
                    count += 1
                some, items = items[:count], items[count:]
                delivery.accept(some)
                if self._unlocks and self._rng.random() < 0.1:
                    self._unlock(delivery)
                self._deliver(delivery)
            while not self._sought and (delivery.run(self._time) is not None):
                self._time += 2.0
            if not self._sought:
                delivery.flush(self._time)
            return self._sought is None
        finally:
            sink.close()

    def _deliver(self, delivery: Delivery) -> None:
        self._time += 0.5
        with suppress(ReplayRequired):
            while True:
                try:
                    delivery.run(self._time)
                    return
                except Retryable:
                    continue

    def _unlock(self, delivery: Delivery) -> None:
        for lock in self.stage.locks():
            request, _ = plan_unlock([lock], lock.id, owner=self._rng.choice([*lock.synced, ""]))
            self.unlocked.append(request)
        self.stage.unlock(self.unlocked)
        delivery.review()

    def _seek(self, at: TablePosition) -> None:
        self.seeks += 1
        self._sought = at

    # --- the target

    def rows(self, table: str = "all.item") -> set[tuple[Any, ...]]:
        return rows_of(self.path, table)


def rows_of(path: Path, table: str) -> set[tuple[Any, ...]]:
    """Return a table's rows with their columns in the order of the names."""
    with closing(sqlite3.connect(path)) as connection:
        names = sorted(row[1] for row in connection.execute(f'PRAGMA table_info("{table}")'))
        rows = connection.execute(f'SELECT {", ".join(names)} FROM "{table}"').fetchall()
    assert len(rows) == len(set(rows))
    return set(rows)
