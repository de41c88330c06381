"""The demo: one server runs five feeds of two MariaDBs and a TiDB; a table is parked and resumed, a pattern
is added, the server is killed; in the end each copy is compared with its source, row by row.

    python -m tidemill.benchmarks.demo_serve [--seconds 30] [--large 50000] [--spoil]

All its files are in `.demo` under the working directory and are removed at its end, except for the page's
picture, `.demo/serve.png`, which needs Chromium.
"""

from __future__ import annotations

import argparse
import random
import signal
import socket
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from time import monotonic as now
from time import sleep as pause
from typing import Any, Final, TypeAlias

from deltalake import DeltaTable

from ..client import Client
from ..emulator.sql.sql import Tidb
from ..engine.status import RUNNING
from ..errors import TidemillError
from ..server.model.tables import TablesQuery
from ..testing import chromium
from ..testing.child import CLI, Child
from ..testing.mariadb import MariaDb, missing
from ..testing.repeated import repeated
from . import demo_run

Rows: TypeAlias = Counter[tuple[Any, ...]]

PATIENCE_SECONDS: Final = 120.0
"""Time for a step, after which the demo gives up."""
_COLUMNS: Final = "id INT PRIMARY KEY, amount INT NOT NULL, note VARCHAR(40)"


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return 0 if all copies are identical to their sources."""
    options = demo_run.parser(str(__doc__), seconds=30.0, large=50_000, pause=0.005).parse_args(arguments)
    if reason := missing():
        print(f"the demo needs MariaDB: {reason}", file=sys.stderr)
        return 2
    with (
        demo_run.folder() as directory,
        MariaDb(directory / "north") as north,
        MariaDb(directory / "south") as south,
        Tidb(stores=1) as tidb,
    ):
        return Demo(directory, north, south, tidb, options).run()


class Demo:
    """The sources, the server and its clients."""

    def __init__(
        self, directory: Path, north: MariaDb, south: MariaDb, tidb: Tidb, options: argparse.Namespace
    ) -> None:
        self._directory = directory
        self._north = north
        self._south = south
        self._tidb = tidb
        self._options = options
        self._port = _free_port()
        self._client = Client(f"http://127.0.0.1:{self._port}")
        self._items = iter(range(1, 10**9))

    def run(self) -> int:
        seconds: float = self._options.seconds
        self._create()
        with self._server() as server:
            print(f"tidemill serve: {self._client_url}, five feeds")
            for document in self._documents():
                self._client.create(document)
            with self._writers():
                pause(seconds / 3)
                self._park()
                pause(seconds / 3)
                self._add_pattern()
                print("the server is killed")
                server.process.send_signal(signal.SIGKILL)
                server.process.wait()
                self._insert_many(self._options.large)
        with self._server(), self._writers():
            pause(seconds / 3)
            self._resume()
            self._picture()
        with self._server() as server:
            same = self._compared()
            server.process.send_signal(signal.SIGTERM)
            server.process.wait()
        return 0 if same else 1

    # --- sources

    def _create(self) -> None:
        for server, schemas in ((self._north, ("shop", "extra")), (self._south, ("crm",))):
            for schema in schemas:
                server.execute(f"CREATE DATABASE {schema}")
                for table in ("orders", "items"):
                    server.execute(f"CREATE TABLE {schema}.{table} ({_COLUMNS})")
                    server.execute(
                        f"INSERT INTO {schema}.{table} SELECT seq, seq % 100, CONCAT('first ', seq) "
                        f"FROM {schema}.seq_1000000_to_1005000",
                    )
        self._tidb.execute("create database shop")
        self._tidb.execute(f"create table shop.item ({_COLUMNS.lower()})")

    @contextmanager
    def _writers(self) -> Iterator[None]:
        works = [
            lambda: self._write(self._north, ("shop", "extra")),
            lambda: self._write(self._south, ("crm",)),
            self._write_tidb,
        ]
        with ExitStack() as stack:
            for work in works:
                stack.enter_context(repeated(work, self._options.pause))
            yield

    def _write(self, server: MariaDb, schemas: Sequence[str]) -> None:
        with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
            for schema in schemas:
                for table in ("orders", "items"):
                    number = next(self._items)
                    name = f"{schema}.{table}"
                    cursor.execute(f"INSERT INTO {name} VALUES ({number}, {number % 1000}, 'row {number}')")
                    cursor.execute(f"UPDATE {name} SET amount = amount + 1 WHERE id = {number - 10}")
                    cursor.execute(f"DELETE FROM {name} WHERE id = {random.randrange(1, number + 1)}")
            connection.commit()

    def _write_tidb(self) -> None:
        number = next(self._items)
        with self._tidb.transaction() as txn:
            txn.insert("shop.item", (number, number % 1000, f"row {number}"))

    def _insert_many(self, count: int) -> None:
        print(f"one transaction of {count:,} rows, while nothing runs")
        self._north.execute(
            f"INSERT INTO shop.orders SELECT seq, 1, 'many' FROM shop.seq_2000000_to_{2_000_000 + count - 1}",
        )

    # --- the server

    @property
    def _client_url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @contextmanager
    def _server(self) -> Iterator[Child]:
        feeds = self._directory / "feeds"
        feeds.mkdir(exist_ok=True)
        command: list[str | Path] = [*CLI, "serve", feeds, "--http", f"127.0.0.1:{self._port}"]
        with Child(command, self._directory / "server.log") as server:
            self._until(self._answers, "the server doesn't answer")
            yield server

    def _answers(self) -> bool:
        try:
            self._client.feeds()
        except TidemillError:
            return False
        return True

    def _documents(self) -> list[dict[str, Any]]:
        north, south, folder = self._north.url(), self._south.url(), self._directory
        shop = {"url": north, "tables": ["shop.*"]}
        return [
            _document("north-copy", shop, f"sqlite:///{folder}/north.db"),
            _document("north-to-south", shop, south) | {"on_table_error": "park"},
            _document("north-lake", shop, f"delta://{folder}/lake?flush_seconds=1"),
            _document("south-copy", {"url": south, "tables": ["crm.*"]}, f"sqlite:///{folder}/south.db"),
            _document(
                "tidb-copy",
                {"url": f"tikv://{self._tidb.pd_address}", "tables": ["shop.*"]},
                f"sqlite:///{folder}/tidb.db",
            ),
        ]

    def _park(self) -> None:
        self._until(lambda: self._state_of("shop.items") == "following", "shop.items isn't loaded")
        print("in the copy of shop.items on the south, somebody drops a column")
        self._south.execute("ALTER TABLE shop.items DROP COLUMN note")
        self._until(lambda: self._state_of("shop.items") == "failed", "the table isn't parked")
        [failed] = self._client.tables("north-to-south", TablesQuery(state="failed")).tables
        print(f"the table {failed.name} is parked, the others go on: {failed.error}")

    def _resume(self) -> None:
        if self._state_of("shop.items") != "failed":
            raise SystemExit("the table isn't parked any more after the kill")
        print("it is parked after the restart, too; it is resumed, and loaded again")
        self._client.resume_table("north-to-south", "shop.items")
        self._until(lambda: self._state_of("shop.items") == "following", "the table isn't followed again")

    def _state_of(self, table: str) -> str:
        tables = self._client.tables("north-to-south", TablesQuery(search=table)).tables
        return tables[0].state if tables else ""

    def _add_pattern(self) -> None:
        print("the pattern extra.* is added to the feed north-copy")
        [document] = [one for one in self._documents() if one["name"] == "north-copy"]
        document["source"] = {**document["source"], "tables": ["shop.*", "extra.*"]}
        self._client.replace("north-copy", document)

    def _picture(self) -> None:
        if reason := chromium.missing():
            print(f"no picture of the page: {reason}")
            return
        path = Path(".demo/serve.png")
        with chromium.chromium() as browser:
            page = browser.new_page(viewport={"width": 1100, "height": 700})
            page.goto(self._client_url)
            page.get_by_text("north-to-south").first.wait_for()
            page.screenshot(path=path)
        print(f"the page: {path}")

    def _until(self, is_so: Callable[[], bool], what: str) -> None:
        until = now() + PATIENCE_SECONDS
        while not is_so():
            if now() > until:
                log = (self._directory / "server.log").read_text()[-2_000:]
                raise SystemExit(f"{what} after {PATIENCE_SECONDS:.0f} s\n{log}")
            pause(0.1)

    # --- the copies

    def _compared(self) -> bool:
        north = {name: _mariadb(self._north, name) for name in _names("shop", "extra")}
        south = {name: _mariadb(self._south, name) for name in _names("crm")}
        shop = {name: north[name] for name in _names("shop")}
        tidb: dict[str, Rows] = {"shop.item": Counter(self._tidb.rows("shop.item"))}
        folder = self._directory
        copies: dict[str, tuple[dict[str, Rows], Callable[[str], Rows]]] = {
            "north-copy": (north, lambda name: _sqlite(folder / "north.db", name)),
            "north-to-south": (shop, lambda name: _mariadb(self._south, name)),
            "north-lake": (shop, lambda name: _delta(folder / "lake" / name)),
            "south-copy": (south, lambda name: _sqlite(folder / "south.db", name)),
            "tidb-copy": (tidb, lambda name: _sqlite(folder / "tidb.db", name)),
        }
        same = True
        for feed, (tables, read) in copies.items():
            self._until(partial(self._runs, feed), f"feed {feed} doesn't run")
            until = now() + PATIENCE_SECONDS
            wrong = list(tables)
            while wrong and now() < until:
                wrong = [name for name in wrong if read(name) != tables[name]]
                pause(0.2)
            if self._options.spoil and feed == "north-copy":
                _spoil(folder / "north.db")
                wrong = [name for name in tables if read(name) != tables[name]]
            rows = sum(one.total() for one in tables.values())
            print(f"{feed}: " + (f"differs in {', '.join(wrong)}" if wrong else f"identical, {rows:,} rows"))
            same = same and not wrong
        return same

    def _runs(self, feed: str) -> bool:
        return self._client.feed(feed).feed.state in RUNNING


def _document(name: str, source: dict[str, Any], sink: str) -> dict[str, Any]:
    return {"name": name, "source": source, "sink": [{"name": "copy", "url": sink}]}


def _names(*schemas: str) -> list[str]:
    return [f"{schema}.{table}" for schema in schemas for table in ("orders", "items")]


def _mariadb(server: MariaDb, name: str) -> Rows:
    return Counter(server.execute(f"SELECT id, amount, note FROM {name}"))


def _sqlite(path: Path, name: str) -> Rows:
    with closing(sqlite3.connect(path)) as connection:
        try:
            return Counter(connection.execute(f'SELECT id, amount, note FROM "{name}"'))
        except sqlite3.OperationalError:
            return Counter()  # the table comes yet


def _spoil(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute('UPDATE "shop.orders" SET amount = amount + 1 WHERE id = 2000000')
        connection.commit()


def _delta(path: Path) -> Rows:
    """Apply a table's changes in their order."""
    rows: dict[int, tuple[object, ...]] = {}
    changes = DeltaTable(path).to_pyarrow_table().to_pylist()
    for change in sorted(changes, key=lambda one: (one["commit_ts"], one["start_ts"], one["sequence"])):
        if change["before"] is not None:
            del rows[change["before"]["id"]]
        if change["after"] is not None:
            rows[change["after"]["id"]] = tuple(change["after"].values())
    return Counter(rows.values())


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
