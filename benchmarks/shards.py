"""Twelve shards of MariaDB into one table of SQLite, from feeds in this process.

* `twelve`: rows per second of twelve shards, against one table with the same rows and transactions.
* `unresolved`: the same while one shard waits for a schema change, against `twelve`.
* `hold`, `seek`: from the last shard's schema change until everything that waited is applied, in rows per
  second of what waited, against the same rows in `twelve`: with rows held, and with rows read again.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from time import sleep as pause
from typing import Any, Final

from ..engine.feed import Feed
from ..engine.opening import open_sinks
from ..engine.options import feed_options
from ..testing.mariadb import MariaDb
from ..testing.progress import feed_ended

SHARDS: Final = 12
_ROUTE: Final = {"tables": ["shop.item_*"], "target": "whole.item"}
_CHANGE: Final = "ADD COLUMN note INT"
_LOOK_SECONDS: Final = 0.02
_COLUMNS: Final = "id INT PRIMARY KEY, n INT NOT NULL, label VARCHAR(60)"


def run(*, rows: int = 100_000, transaction_rows: int = 20, rounds: int = 3) -> dict[str, Any]:
    """Return one result in the form that all benchmarks share."""
    by_key: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name,
        MariaDb(Path(name, "source")) as source,
    ):
        for number in range(rounds):
            directory = Path(name, str(number))
            directory.mkdir()
            for key, figure in _round(Shop(source, directory, transaction_rows), rows).items():
                by_key.setdefault(key, []).append(figure)
    medians = {key: round(statistics.median(values)) for key, values in by_key.items()}
    twelve = medians["twelve"]
    yardstick = {"twelve": medians.pop("one"), "unresolved": twelve, "hold": twelve, "seek": twelve}
    return {
        "bench": "shards",
        "settings": {"rows": rows, "transaction_rows": transaction_rows, "rounds": rounds},
        "figures": medians,
        "yardstick": yardstick,
        "ratio": {key: round(figure / yardstick[key], 2) for key, figure in medians.items()},
    }


class Shop:
    """Empty shards, their merged table, and a table beside them."""

    def __init__(self, server: MariaDb, directory: Path, transaction_rows: int) -> None:
        self._server = server
        self._directory = directory
        self._transaction_rows = transaction_rows
        self._ids = 0
        self.shards = [f"item_{number}" for number in range(SHARDS)]
        server.execute("CREATE OR REPLACE DATABASE shop")
        self.execute(*(f"CREATE TABLE shop.{table} ({_COLUMNS})" for table in [*self.shards, "one"]))

    def execute(self, *statements: str) -> None:
        self._server.execute(*statements, database="shop")

    def write(self, tables: Sequence[str], rows: int) -> None:
        """Insert rows, in transactions of one table each, one table after the other."""
        statements, size = [], self._transaction_rows
        for number in range(rows // size):
            first, self._ids = self._ids + 1, self._ids + size
            statements.append(
                f"INSERT INTO shop.{tables[number % len(tables)]} (id, n, label) "
                f"SELECT seq, seq % 1000, CONCAT('row ', seq) FROM seq_{first}_to_{self._ids}"
            )
        self.execute(*statements)

    def feed(self, name: str, tables: str, *, until: str = "now", max_held_rows: int = 0) -> Feed:
        document: dict[str, Any] = {
            "name": name,
            "data_dir": str(self._directory / name),
            "source": {"url": self._server.url(), "tables": [f"shop.{tables}"]},
            "sink": [{"url": f"sqlite:///{self._directory}/{name}.db"}],
        }
        if tables == "item_*":
            document |= {"route": [_ROUTE], "sharding": {"max_held_rows": max_held_rows or 1_000_000}}
        if until:
            document["until"] = until
        options = feed_options(document)
        return Feed(options, open_sinks(options))

    def caught_up(self, name: str, tables: str) -> float:
        """Return the seconds that a feed takes to the end of the log."""
        begun = time.perf_counter()
        feed = self.feed(name, tables)
        feed.start()
        feed_ended(feed)
        if feed.error is not None:
            raise feed.error
        return time.perf_counter() - begun

    def count(self, name: str, table: str) -> int:
        """Return the number of rows in the target."""
        with closing(sqlite3.connect(self._directory / f"{name}.db")) as copy:
            return int(copy.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()[0])

    @contextmanager
    def following(self, name: str, max_held_rows: int) -> Iterator[Feed]:
        feed = self.feed(name, "item_*", until="", max_held_rows=max_held_rows)
        feed.start()
        try:
            yield feed
        finally:
            feed.stop()
            feed.wait()
        if feed.error is not None:
            raise feed.error


def _round(shop: Shop, rows: int) -> dict[str, float]:
    one = _rate(shop, "one", "one", ["one"], rows)
    twelve = _rate(shop, "twelve", "item_*", shop.shards, rows)
    assert (shop.count("one", "shop.one"), shop.count("twelve", "whole.item")) == (rows, rows)
    rates_of = {"one": one, "twelve": twelve}
    for name, max_held_rows in (("hold", 10 * rows), ("seek", 100)):
        rates_of[name] = _resolved(shop, name, max_held_rows, rows)
    first, *others = shop.shards
    shop.execute(f"ALTER TABLE shop.{first} {_CHANGE}")
    rates_of["unresolved"] = _rate(shop, "twelve", "item_*", others, rows)
    return rates_of


def _rate(shop: Shop, name: str, tables: str, written: Sequence[str], rows: int) -> float:
    """Return the rows per second of a feed that finds all of them in the log."""
    shop.caught_up(name, tables)
    empty = shop.caught_up(name, tables)
    shop.write(written, rows)
    return rows / (shop.caught_up(name, tables) - empty)


def _resolved(shop: Shop, name: str, max_held_rows: int, rows: int) -> float:
    """Return the rows per second of what waited, from the last schema change on."""
    first, *others = shop.shards
    shop.caught_up(name, "item_*")
    before = shop.count(name, "whole.item")
    with shop.following(name, max_held_rows) as feed:
        shop.execute(f"ALTER TABLE shop.{first} {_CHANGE}")
        shop.write([first], rows)
        _until(feed, lambda: any(lock.seeks or lock.held_rows == rows for lock in feed.status().locks))
        shop.execute(*(f"ALTER TABLE shop.{table} {_CHANGE}" for table in others))
        begun = time.perf_counter()
        _until(feed, lambda: shop.count(name, "whole.item") == before + rows)
        seconds = time.perf_counter() - begun
    shop.execute(*(f"ALTER TABLE shop.{table} DROP COLUMN note" for table in shop.shards))
    return rows / seconds


def _until(feed: Feed, condition: Callable[[], bool]) -> None:
    """Wait for a condition. Raises the feed's error."""
    while not condition():
        if feed.error is not None:
            raise feed.error
        pause(_LOOK_SECONDS)
