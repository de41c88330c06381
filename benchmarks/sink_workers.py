"""The MySQL sink with parallel workers, on a MariaDB whose commits are durable, in committed rows per second.

* `workers_small`: inserts of one row per transaction that arrive one by one, with 8 workers, against one.
* `workers_large`: inserts in transactions of 1,000 rows, with 8 workers, against one.
* `updates`: updates that share statements, against a statement for each, by one connection.
* `load`: a snapshot, against multi-row INSERTs of plain PyMySQL by one connection.

`backlog_small` is the figure of `workers_small` with one worker if all transactions wait already: then they
share its SQL transactions too. It shows how much of that ratio is group commit.

The redo log is synchronized at each commit. A figure whose name ends with `_synced` is measured with
`sync_binlog=1`, the others with 0.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Final, TypeAlias
from unittest.mock import patch

from ..engine.checkpoint import CheckpointFile
from ..events import Item, Row, RowChange, Table, Transaction
from ..sink import Delivery, open_sink
from ..testing.mariadb import MariaDb

WORKERS: Final = 8
_LARGE: Final = 1_000
_OPTIONS: Final = ("--innodb-flush-log-at-trx-commit=1",)
_SYNCHRONIZED: Final = {"": 0, "_synced": 1}
"""Values of sync_binlog by the end of a figure's name."""
Loads: TypeAlias = Callable[[Sequence[Row]], list[Item]]


def run(
    table: Table, rows: Sequence[Row], loads: Loads, *, small: int, rounds: int
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the figures and the yardsticks; `loads` returns the snapshot of rows."""
    ours: dict[str, list[float]] = {}
    theirs: dict[str, list[float]] = {}
    inserts = [RowChange(0, 0, table, "insert", None, row) for row in rows]
    newer = [(*row[:-1], "other") for row in rows]
    updates = [RowChange(0, 0, table, "update", *pair) for pair in zip(rows, newer, strict=True)]
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name,
        MariaDb(Path(name), *_OPTIONS) as server,
    ):
        for number, (end, sync) in product(range(rounds), _SYNCHRONIZED.items()):
            _synchronize(server, sync)
            names = (f"{who}_{number}{end}" for who in ("one", "many", "plain"))
            one, many, plain = (_Copy(server, name, loads) for name in names)
            for copy, workers, into in (one, 1, theirs), (many, WORKERS, ours):
                singles = copy.changes(inserts[:small], 1)
                _add(into, f"workers_small{end}", small, copy.deliver(singles, workers, one_by_one=True))
                large = copy.changes(inserts[small:], _LARGE)
                _add(into, f"workers_large{end}", len(rows) - small, copy.deliver(large, workers))
            waits = _Copy(server, f"backlog_{number}{end}", loads)
            seconds = waits.deliver(waits.changes(inserts[:small], 1), 1)
            _add(theirs, f"backlog_small{end}", small, seconds)
            _add(ours, f"updates{end}", len(rows), one.deliver(one.changes(updates, _LARGE), 1))
            with patch("tidemill.dialects.mysql.apply.has_only_key", return_value=False):
                _add(theirs, f"updates{end}", len(rows), many.deliver(many.changes(updates, _LARGE), 1))
            _add(ours, f"load{end}", len(rows), plain.deliver(loads(rows), 1))
            seconds = _insert(server, f"insert_{number}{end}", table, rows, plain.name)
            _add(theirs, f"load{end}", len(rows), seconds)
    return _medians(ours), _medians(theirs)


def _synchronize(server: MariaDb, sync_binlog: int) -> None:
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET GLOBAL sync_binlog={sync_binlog}")
        cursor.execute("SELECT @@log_bin, @@innodb_flush_log_at_trx_commit, @@sync_binlog")
        assert cursor.fetchone() == (1, 1, sync_binlog)


def _add(into: dict[str, list[float]], name: str, rows: int, seconds: float) -> None:
    into.setdefault(name, []).append(rows / seconds)


def _medians(figures: dict[str, list[float]]) -> dict[str, int]:
    return {name: round(statistics.median(values)) for name, values in figures.items()}


class _Copy:
    """A copy of the table in a database of its own, empty at first."""

    def __init__(self, server: MariaDb, name: str, loads: Loads) -> None:
        self.name = name
        self._url = server.url(name)
        self._ts = 1_000_000_000
        self._empty = loads([])

    def changes(self, changes: Sequence[RowChange], size: int) -> list[Item]:
        """Return the changes as transactions of that size, after all earlier ones."""
        items: list[Item] = []
        for first in range(0, len(changes), size):
            self._ts += 1
            part = changes[first : first + size]
            items.append(Transaction(self._ts, 0, "bench", part, f"log:{self._ts}"))
        return items

    def deliver(self, items: list[Item], workers: int, *, one_by_one: bool = False) -> float:
        """Return the seconds until all items are durable."""
        sink = open_sink(
            "bench",
            self._url,
            feed="bench",
            store=CheckpointFile(Path("unused")),
            options={"workers": workers},
        )
        with closing(sink):
            delivery = Delivery(sink, sink.open(), "bench")
            if delivery.statistics().checkpoint is None:
                first = self._empty if isinstance(items[0], Transaction) else items[:1]
                items = items if isinstance(items[0], Transaction) else items[1:]
                delivery.accept(first)
                delivery.run(0)
            begun = time.perf_counter()
            for message in [[item] for item in items] if one_by_one else [items]:
                delivery.accept(message)
                delivery.run(0)
            delivery.flush(0)
            return time.perf_counter() - begun


def _insert(server: MariaDb, database: str, table: Table, rows: Sequence[Row], like: str) -> float:
    with closing(server.connect(autocommit=False)) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database}")
        cursor.execute(f"CREATE TABLE {database}.{table.name} LIKE {like}.{table.name}")
        marks = ",".join(["%s"] * len(table.columns))
        begun = time.perf_counter()
        for first in range(0, len(rows), 10_000):
            cursor.executemany(
                f"INSERT INTO {database}.{table.name} VALUES ({marks})", rows[first : first + 10_000]
            )
            connection.commit()
        return time.perf_counter() - begun


def ratios(figures: dict[str, int], yardstick: dict[str, int]) -> dict[str, float]:
    """Return the figures in units of their yardsticks."""
    return {name: round(figure / yardstick[name], 2) for name, figure in figures.items()}
