"""Changes in a source, and the items of a local feed for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.options import feed_options
from tidemill.events import Checkpoint, Ddl, Item, Transaction, Ts
from tidemill.sink.python import python_sink
from tidemill.spark.envelope import Decoder
from tidemill.spark.offsets.offset import Offset
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import eventually, feed_ended

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def on_tidb(tidb: Tidb) -> int:
    """Write all kinds of changes to three tables, with a column added in between; return the ts before."""
    for table in ("orders", "pairs", "logs"):
        tidb.execute(
            f"create table shop.{table} (id bigint primary key, note varchar(40), price decimal(10,2))"
        )
    before = tidb.execute("create table shop.last (id bigint primary key)")
    for number in range(12):
        with tidb.transaction() as txn:
            txn.insert("shop.orders", {"id": number, "note": f"order {number}", "price": "9.99"})
            txn.insert("shop.pairs", {"id": number, "note": None, "price": f"-{number}.50"})
        if number == 5:
            tidb.execute("alter table shop.orders add column colour varchar(9) default 'red'")
        if number % 3 == 2:
            with tidb.transaction() as txn:
                txn.update("shop.orders", number - 1, {"note": "changed"})
                txn.delete("shop.pairs", number)
                txn.insert("shop.logs", {"id": number, "note": "ü", "price": "0.01"})
    return before


def tables_on_mariadb(sql: Client) -> None:
    for table in ("orders", "pairs", "logs"):
        sql(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, note VARCHAR(40), price DECIMAL(10,2))")


def on_mariadb(sql: Client) -> None:
    """Write the same in MariaDB, and transactions of some thousand rows."""
    for number in range(12):
        sql("BEGIN", f"INSERT INTO orders (id, note, price) VALUES ({number}, 'order', 9.99)")
        sql(f"INSERT INTO pairs VALUES ({number}, NULL, -{number}.50)", "COMMIT")
        if number == 5:
            sql("ALTER TABLE orders ADD COLUMN colour VARCHAR(9) DEFAULT 'red'")
        if number % 3 == 2:
            sql("BEGIN", f"UPDATE orders SET note = 'changed' WHERE id = {number - 1}")
            sql(f"DELETE FROM pairs WHERE id = {number}", f"INSERT INTO logs VALUES ({number}, 'ü', 0.01)")
            sql("COMMIT")
    sql("INSERT INTO logs SELECT seq, REPEAT('x', 30), 1 FROM seq_100_to_5099", "UPDATE logs SET price = 2")


class _Start:
    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint

    def load(self) -> tuple[Checkpoint, int]:
        return self.checkpoint, 0

    def save(self, checkpoint: Checkpoint, length: int = 0) -> None:
        pass


class Local:
    """A feed of this process that keeps its items; its error is raised where it is waited for."""

    def __init__(
        self, url: str, tables: Sequence[str], start: Offset, directory: Path, until: str = "", **options: Any
    ) -> None:
        self.items: list[Item] = []
        source = {"url": url, "tables": list(tables), "snapshot": False}
        found = {"data_dir": str(directory), "until": until, "source": source, **options}
        sink = python_sink("local", self.items.extend, _Start(start.checkpoint), reads_rows=False)
        self._feed = Feed(feed_options(found), [sink])

    def __enter__(self) -> Self:
        self._feed.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._feed.stop()
        feed_ended(self._feed)

    def until_end(self) -> None:
        feed_ended(self._feed)
        self._check()

    def until_ts(self, ts: Ts) -> None:
        eventually(lambda: self._check() or self._feed.status().sinks[0].ts >= ts)

    def _check(self) -> None:
        if self._feed.error is not None:
            raise self._feed.error


def local(url: str, tables: Sequence[str], start: Offset, end: Offset, directory: Path) -> list[Item]:
    """The items of a feed of this process."""
    with Local(url, tables, start, directory, end.position) as feed:
        feed.until_end()
    return [item for item in feed.items if item.commit_ts <= end.ts]


def lines(items: Iterable[Item]) -> list[Any]:
    """Return rows and schema changes as lines, independent of how transactions were split."""
    found: list[Any] = []
    for item in items:
        if isinstance(item, Ddl):
            found.append((item.commit_ts, item.start_ts, item.full_name, item.query, item.actions))
        elif isinstance(item, Transaction):
            found += item.rows
    return found


def of_frame(frame: DataFrame) -> list[Any]:
    """The same of the raw envelope's rows, put into their order."""
    order = [(name, "ascending") for name in ("commit_ts", "start_ts", "sequence")]
    table = frame.toArrow().sort_by(order)  # not by Spark, which reads the source twice for that
    decoder = Decoder()
    return lines(item for batch in table.to_batches() for item in decoder.decode(batch))
