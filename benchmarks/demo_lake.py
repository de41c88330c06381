"""The demo: a live MariaDB is followed into a lake, as the history of each table and as its present rows.

    python -m tidemill.benchmarks.demo_lake [--seconds 45] [--large 50000] [--spoil]

Meanwhile columns change, the feed is killed, two lakes are compacted beside it, one of them by Spark, and the
history is merged into a fifth one. In the end DuckDB reads them, and they are compared with the source, row
by row. With --spoil a row is changed by hand before, and nothing is compacted.

The history is in Delta tables in a directory and in Iceberg tables on a private S3; the present rows are in
tables of both on that S3. All files are in `.demo` under the working directory and are removed at the end,
except for the page about the history in Delta, `.demo/lake.html`.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import sleep as pause
from typing import Any, Final

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.catalog.sql import SqlCatalog

from ..testing.child import CLI, Child
from ..testing.compare import CopyComparison, Printed, compare
from ..testing.following import following
from ..testing.mariadb import MariaDb
from ..testing.repeated import RepeatedInSession
from ..testing.s3 import LOGIN, S3Process
from ..testing.shop_copies import until_caught_up
from . import demo_run

TABLES: Final = ("orders", "items")
PAGE: Final = Path(".demo/lake.html")
FEED: Final = """\
name = "demo"
data_dir = "{directory}/state"

[source]
url = "{source}"
tables = ["shop.*"]

[[sink]]
name = "history"
url = "delta://{directory}/lake"
flush_seconds = 1

[[sink]]
name = "copy"
url = "delta+s3://lake/copy"
mode = "copy"
endpoint = "{store}"
flush_seconds = 1

[[sink]]
name = "iceberg_copy"
url = "iceberg+sql://{directory}/copies"
location = "s3://lake/iceberg_copy"
mode = "copy"
endpoint = "{store}"
flush_seconds = 1

[[sink]]
name = "iceberg"
url = "iceberg+sql://{directory}/catalog"
location = "s3://lake/iceberg"
endpoint = "{store}"
flush_seconds = 1
"""
_PRESENT: Final = """
    WITH images AS (
        SELECT before.id AS id, before.amount AS amount, false AS present, 0 AS part,
            commit_ts, start_ts, sequence
        FROM history WHERE op <> 'insert'
        UNION ALL
        SELECT after.id, after.amount, true, 1, commit_ts, start_ts, sequence
        FROM history WHERE op <> 'delete'
    ),
    numbered AS (
        SELECT *, row_number() OVER (
            PARTITION BY id ORDER BY commit_ts DESC, start_ts DESC, sequence DESC, part DESC
        ) AS number
        FROM images WHERE commit_ts > (
            SELECT coalesce(max(commit_ts), 0) FROM ddl WHERE "table" = $name AND op = 'truncate'
        )
    )
    SELECT id, amount FROM numbered WHERE number = 1 AND present
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return 0 if the lake is identical to the source."""
    options = demo_run.parser(str(__doc__), seconds=45.0, large=50_000, pause=0.002).parse_args(arguments)
    os.environ.update(LOGIN)
    with S3Process() as store:
        store.bucket("lake")
        return demo_run.with_mariadb(lambda directory, server: Demo(directory, server, store, options).run())


class Demo:
    """A source, a feed into four places of a lake, and their readers."""

    def __init__(
        self, directory: Path, server: MariaDb, store: S3Process, options: argparse.Namespace
    ) -> None:
        self._directory = directory
        self._server = server
        self._store = store
        self._options = options
        self._numbers = itertools.count(1)

    def run(self) -> CopyComparison:
        third: float = self._options.seconds / 3
        self._create()
        config = self._directory / "feed.toml"
        config.write_text(
            FEED.format(directory=self._directory, source=self._server.url(), store=self._store.endpoint)
        )
        print(f"writers start; tidemill run feed.toml, {self._options.seconds:.0f} s")
        with self._writers():
            with Child([*CLI, "run", config]) as killed:
                pause(third)
                print("a column with a default, a renamed column")
                self._server.execute("ALTER TABLE shop.orders ADD COLUMN state INT NOT NULL DEFAULT 7")
                self._server.execute("ALTER TABLE shop.orders RENAME COLUMN note TO comment")
                pause(1)
                print("the feed is killed")
                killed.process.send_signal(signal.SIGKILL)
                killed.process.wait()
            print(f"one transaction of {self._options.large:,} rows, then TRUNCATE of a table")
            self._insert_many(self._options.large)
            self._server.execute("TRUNCATE TABLE shop.items")
            with following(config) as process:
                pause(third)
                until_caught_up(self._directory / "state", self._server, process)  # every lake has its tables
                if not self._options.spoil:
                    self._compact()
                self._merge()
                pause(third)
                self._writer.stop()
                until_caught_up(self._directory / "state", self._server, process)
        if self._options.spoil:
            self._server.execute("UPDATE shop.orders SET amount = amount + 1 WHERE id = 2000000")
        self._merge()
        print("DuckDB reads the lakes; comparing them with the source")
        return self._compared()

    # --- the source

    def _create(self) -> None:
        self._server.execute("CREATE DATABASE shop")
        for table in TABLES:
            self._server.execute(
                f"CREATE TABLE shop.{table} (id INT PRIMARY KEY, amount INT NOT NULL, note VARCHAR(40))"
            )
            self._server.execute(
                f"INSERT INTO shop.{table} SELECT seq, seq % 100, CONCAT('first ', seq) "
                "FROM shop.seq_1000000_to_1005000"
            )

    @contextmanager
    def _writers(self) -> Iterator[None]:
        self._writer = RepeatedInSession(
            partial(self._server.connect, autocommit=False), self._write, pause_seconds=self._options.pause
        )
        self._writer.start()
        try:
            yield
        finally:
            self._writer.stop()

    def _write(self, session: Any) -> None:
        number = next(self._numbers)
        with session.cursor() as cursor:
            for table in TABLES:
                name = f"shop.{table}"
                cursor.execute(f"INSERT INTO {name} (id, amount) VALUES ({number}, {number % 1000})")
                cursor.execute(f"UPDATE {name} SET amount = amount + 1 WHERE id = {number - 10}")
                cursor.execute(f"DELETE FROM {name} WHERE id = {random.randrange(1, number + 1)}")
                old = random.randrange(1_000_000, 1_005_000)
                cursor.execute(f"UPDATE {name} SET amount = amount + 1 WHERE id = {old}")
        session.commit()

    def _insert_many(self, count: int) -> None:
        self._server.execute(
            f"INSERT INTO shop.orders (id, amount) SELECT seq, 1 FROM shop.seq_2000000_to_{1_999_999 + count}"
        )

    # --- the lake

    def _compact(self) -> None:
        config, plan = self._directory / "feed.toml", self._directory / "plan.json"
        print("two lakes are analyzed and compacted while the feed goes on, the history by Spark")
        for sink, master in (("iceberg_copy", []), ("history", ["--master", "local[2]"])):
            lake: list[str | Path] = [config, "--sink", sink, "--plan", plan]
            self._command("analyze", *lake, "--page", PAGE)
            self._command("compact", *lake, *master)
        print(f"the page about the last one: {PAGE}")

    def _merge(self) -> None:
        """Bring the present rows in `merged` up to what the history has."""
        lake, index = f"delta://{self._directory}/lake", self._directory / "index"
        self._command("compact", lake, "--copy", f"delta://{self._directory}/merged", "--index", index)

    def _command(self, *arguments: str | Path) -> None:
        log = self._directory / "command.log"
        log.unlink(missing_ok=True)
        with Child([*CLI, *arguments], log) as child:
            if child.exit_status():
                raise SystemExit(child.output()[-2000:])
            print(child.output().strip())

    def _compared(self) -> CopyComparison:
        return compare(
            {
                f"{table} {where}": (
                    partial(self._source, f"shop.{table}", columns),
                    partial(read, table),
                )
                for table in TABLES
                for where, columns, read in (
                    ("in the history in Delta", "id, amount", self._delta_history),
                    ("in the history in Iceberg", "id, amount", self._iceberg_history),
                    ("in the copy in Delta", "*", self._delta_copy),
                    ("in the copy in Iceberg", "*", self._iceberg_copy),
                    ("in the merged history", "*", self._merged),
                )
            }
        )

    def _source(self, name: str, columns: str) -> Iterator[Printed]:
        with self._server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT {columns} FROM {name}")
            yield from _printed(cursor.fetchall())

    def _delta_history(self, table: str) -> Iterator[Printed]:
        folder = self._directory / "lake"
        return _present(table, lambda name: DeltaTable(folder / name).to_pyarrow_table())

    def _iceberg(self, folder: str) -> SqlCatalog:
        return SqlCatalog(
            "tidemill",
            uri=f"sqlite:///{self._directory}/{folder}/catalog.db",
            **{
                "s3.endpoint": self._store.endpoint,
                "s3.region": "us-east-1",
                "s3.access-key-id": LOGIN["AWS_ACCESS_KEY_ID"],
                "s3.secret-access-key": LOGIN["AWS_SECRET_ACCESS_KEY"],
            },
        )

    def _iceberg_history(self, table: str) -> Iterator[Printed]:
        catalog = self._iceberg("catalog")

        def read(name: str) -> pa.Table:
            identifier = name if "." in name else f"tidemill.{name}"
            return catalog.load_table(identifier).scan().to_arrow()

        return _present(table, read)

    def _iceberg_copy(self, table: str) -> Iterator[Printed]:
        copy = self._iceberg("copies").load_table(f"shop.{table}").scan().to_arrow()
        return _printed(duckdb.from_arrow(copy).fetchall())

    def _delta_copy(self, table: str) -> Iterator[Printed]:
        storage = {
            "AWS_ENDPOINT_URL": self._store.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }
        return _delta_rows(DeltaTable(f"s3://lake/copy/shop.{table}", storage_options=storage))

    def _merged(self, table: str) -> Iterator[Printed]:
        return _delta_rows(DeltaTable(self._directory / f"merged/shop.{table}"))


def _delta_rows(opened: DeltaTable) -> Iterator[Printed]:
    batches = QueryBuilder().register("present", opened).execute("SELECT * FROM present")
    copy = pa.table(pa.Table.from_batches([pa.record_batch(batch) for batch in batches]))
    return _printed(duckdb.from_arrow(copy).fetchall())


def _present(table: str, read: Callable[[str], pa.Table]) -> Iterator[Printed]:
    """Return the present rows of a table by its history."""
    with duckdb.connect() as connection:
        connection.register("history", read(f"shop.{table}"))
        connection.register("ddl", read("ddl"))
        return _printed(connection.execute(_PRESENT, {"name": table}).fetchall())


def _printed(rows: Iterable[tuple[Any, ...]]) -> Iterator[Printed]:
    for row in rows:
        yield tuple(None if value is None else str(value) for value in row)


if __name__ == "__main__":
    sys.exit(main())
