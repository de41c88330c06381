"""Two feeds that write into one merged table, each through kills, stops and seeks, in any order of steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tidemill.dialects.address import parsed
from tidemill.engine.checkpoint import lowest
from tidemill.errors import Retryable
from tidemill.events import Checkpoint, Ddl, Item, TablePosition
from tidemill.sharding import Routes, ShardStage, SharedLocks, Unlock, plan_unlock
from tidemill.sink import Delivery, DeliveryOptions
from tidemill.sink.errors import ReplayRequired
from tidemill.sink.sql.sql import SqlSink

from .history import ROUTE, SOURCES
from .life import POINTS, KilledError, QuickTarget
from .rules import sharding_options

OWN = tuple(f"shard.{name}" for name in ("joined", "reported", "taken", "passed", "excused", "forced"))
FEED_POINTS = (*POINTS, *OWN)
_MODULES = (
    "sink.sql.sql",
    "dialects.sqlite.apply",
    *(f"sharding.{name}" for name in ("stage", "held_shards", "resolution", "among_feeds")),
)


class DictRevisions:
    """A store in memory."""

    def __init__(self) -> None:
        self.records: dict[str, tuple[bytes, int]] = {}
        self._writes = 0

    def get(self, key: str) -> tuple[bytes, int] | None:
        return self.records.get(key)

    def list(self, prefix: str) -> dict[str, tuple[bytes, int]]:
        return {key: one for key, one in self.records.items() if key.startswith(prefix)}

    def put(self, key: str, value: bytes, revision: int, ttl_seconds: int = 0) -> int | None:
        if self.records.get(key, (b"", 0))[1] != revision:
            return None
        self._writes += 1
        self.records[key] = value, self._writes
        return self._writes

    def delete(self, key: str, revision: int) -> bool:
        return self.records.get(key, (b"", 0))[1] == revision and bool(self.records.pop(key))

    def close(self) -> None:
        pass


class OneFeed:
    """One feed: `step` continues it by a few items; a kill or a seek ends its pipeline."""

    def __init__(self, name: str, path: Path, items: Sequence[Item], feeds: Feeds) -> None:
        self.name = name
        self.seeks = 0
        self.said = ""
        self.is_done = False
        self.has_loaded = False
        self._path = path
        self._items = items
        self._feeds = feeds
        self._run: Iterator[None] | None = None
        self._unlocks: list[Unlock] = []

    @property
    def is_running(self) -> bool:
        return self._run is not None

    def unlock(self) -> None:
        """Resolve a change that waits, by a random feed that has made it."""
        if self._run is None:
            return
        for lock in self._stage.locks():
            owners = [one.feed for one in lock.feeds if one.query]
            request, _ = plan_unlock([lock], lock.id, owner=self._feeds.rng.choice([*owners, ""]))
            self._unlocks.append(request)
        self._stage.unlock(self._unlocks)

    def step(self) -> None:
        if self._run is None:
            self._run = self._pipeline()
        try:
            next(self._run)
        except (StopIteration, Retryable):
            self._run = None
        except KilledError:
            self._run = None

    def _pipeline(self) -> Iterator[None]:
        """Never ends by itself, except by a seek."""
        feeds, rng = self._feeds, self._feeds.rng
        sink = SqlSink("copy", QuickTarget(parsed(f"sqlite:///{self._path}"), self.name))
        locks = SharedLocks(feeds.revisions, self.name, find_running=lambda: feeds.running)
        self._stage = stage = ShardStage(feeds.options, Routes(feeds.rules), SOURCES, shared=locks)
        stage.unlock(self._unlocks)
        sought: list[TablePosition] = []
        try:
            found = sink.open()
            start = lowest([found], order=lambda position: int(position or 0))
            batch = DeliveryOptions(max_rows=rng.randint(1, 12))
            delivery = Delivery(
                sink,
                found,
                "both",
                batch,
                stages=[stage],
                feed=self.name,
                now=lambda: feeds.time,
                seek=sought.append,
            )
            after = start.ts if start is not None else 0
            items = [item for item in self._items if item.commit_ts > after]
            while not sought:
                count = min(rng.randint(1, 4), len(items))
                if not feeds.all_joined:
                    count = min(count, sum(_is_of_snapshot(item) for item in items))
                while 0 < count < len(items) and items[count].commit_ts == items[count - 1].commit_ts:
                    count += 1
                some, items = items[:count], items[count:]
                if some:
                    delivery.accept(some)
                delivery.review()
                with suppress(ReplayRequired):
                    delivery.run(feeds.time)
                checkpoint = delivery.statistics().checkpoint
                self.is_done = not items and checkpoint is not None and not _lags(checkpoint)
                self.has_loaded |= checkpoint is not None and checkpoint.loading is None
                self.said = f"{self.name}: {len(items)} items to come, {stage.locks()}"
                yield
            self.seeks += 1
        finally:
            self.is_done = False
            sink.close()


def _lags(checkpoint: Checkpoint) -> bool:
    return any(own.ts < checkpoint.ts for own in checkpoint.tables.values())


def _is_of_snapshot(item: Item) -> bool:
    return not item.query if isinstance(item, Ddl) else item.chunk is not None


class Feeds:
    def __init__(
        self,
        path: Path,
        items: Sequence[Item],
        monkeypatch: pytest.MonkeyPatch,
        seed: int,
        *,
        max_held_rows: int = 1000,
        unlocks: bool = False,
    ) -> None:
        self._unlocks = unlocks
        self.rng = Random(seed)
        self.time = 0.0
        self.revisions = DictRevisions()
        self.killed: Counter[str] = Counter()
        settings: dict[str, Any] = {"max_held_rows": max_held_rows}
        self.options, self.rules = sharding_options(settings, [ROUTE])
        self.feeds = [
            OneFeed(f"feed_{name}", path, [item for item in items if item.commit_ts % 2 == lane], self)
            for lane, name in enumerate(SOURCES)
        ]
        self._kill_at, self._kill_in = "", 0
        for module in _MODULES:
            monkeypatch.setattr(f"tidemill.{module}.reach", self._reach)

    @property
    def running(self) -> frozenset[str]:
        return frozenset(feed.name for feed in self.feeds if feed.is_running)

    @property
    def all_joined(self) -> bool:
        """True if both have the first of their shards: a change waits for both."""
        return any(value.count(b"feed_") > 1 for value, _ in self.revisions.records.values())

    def _reach(self, point: str) -> None:
        if point == self._kill_at:
            self._kill_in -= 1
            if self._kill_in == 0:
                self.killed[point] += 1
                raise KilledError(point)

    def run(self, kills: int = 0) -> None:
        """Until both have everything."""
        for steps in range(3_000):
            if kills and (steps % 30 == 0 or self._kill_in == 0):
                kills -= 1
                points = self.rng.choice([FEED_POINTS, OWN])
                self._kill_at, self._kill_in = self.rng.choice(points), self.rng.choice([1, 1, 2])
            self.time += 0.5
            self.rng.choice(self.feeds).step()
            if self._unlocks and all(feed.has_loaded for feed in self.feeds) and self.rng.random() < 0.15:
                self.rng.choice(self.feeds).unlock()
            if all(feed.is_done for feed in self.feeds):
                return
        raise AssertionError([feed.said for feed in self.feeds], self.revisions.records)
