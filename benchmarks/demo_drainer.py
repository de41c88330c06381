"""The demo of pumps: an embedded TiDB writes to three, which are followed into SQLite and MariaDB, while a
fourth one joins and another one leaves; both copies are compared row by row.

    python -m tidemill.benchmarks.demo_drainer [--seconds 24] [--large 5000] [--spoil]

All its files are in `.demo` under the working directory and are removed at its end.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from threading import Thread
from time import sleep as pause
from typing import Any

from ..engine.feed import Feed
from ..engine.opening import open_sinks
from ..engine.options import feed_options
from ..events import Column, Row, Ts
from ..sources.kind import SourceContext
from ..sources.pump import PumpSource
from ..testing.compare import CopyComparison, PrintedColumn, compare, mariadb_rows, sqlite_rows
from ..testing.mariadb import MariaDb
from ..testing.polled_pumps import PolledPumps
from ..testing.pump_shop import PumpShop, pump_shop
from ..testing.tikv_shop import PAUSE_SECONDS
from . import demo_run
from .demo import as_printed

DETECT_SECONDS = 0.2
"""Interval at which the states of the pumps are read."""
LINE_SECONDS = 2.0
"""Interval of the lines about progress."""


class Following:
    """A feed of the shop's pumps into both targets, and the lines about its progress."""

    def __init__(self, shop: PumpShop, directory: Path, server: MariaDb) -> None:
        self._shop = shop
        self._pumps = PolledPumps(lambda: shop.ask("pumps"), DETECT_SECONDS)
        hosts = ",".join(host for host, _ in shop.ask("pumps").values())
        options = feed_options(
            {
                "name": "demo",
                "data_dir": str(directory / "state"),
                "source": {
                    "url": f"pump://{hosts}",
                    "pd": shop.pd.split(","),
                    "tables": ["bank.*", "shop.*"],
                },
                "sink": [
                    {"name": "sqlite", "url": f"sqlite:///{directory}/copy.db"},
                    {"name": "mariadb", "url": server.url()},
                ],
            }
        )
        kind = replace(options.source.kind, open=self._open)
        options = replace(options, source=replace(options.source, kind=kind))
        self._feed = Feed(options, open_sinks(options))
        self._printer = Thread(target=self._print)

    def _open(self, options: Any, context: SourceContext) -> PumpSource:
        tables, clock = context.tables, context.clock
        return PumpSource(options, tables, context.feed, context.directory, clock, self._pumps)

    def __enter__(self) -> Following:
        self._feed.start()
        self._printer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._feed.stop()
        self._feed.wait()
        self._printer.join()

    def notify(self) -> None:
        """Tell the feed that a pump joins; it is known when this returns."""
        self._pumps.notify()

    def reaches(self, ts: Ts) -> None:
        """Wait until both targets have everything up to `ts`. Raises the feed's error."""
        while any(int(sink.position or 0) < ts for sink in self._feed.status().sinks):
            if self._feed.error is not None:
                raise self._feed.error
            pause(0.1)

    def _print(self) -> None:
        while not self._feed.wait(LINE_SECONDS):
            status = self._feed.status()
            lags = [f"{sink.lag_seconds:.1f}" for sink in status.sinks if sink.lag_seconds is not None]
            what = "loading" if any(sink.loading for sink in status.sinks) else "following"
            behind = f", {' and '.join(lags)} s behind" if lags else ""
            print(f"  {what}: {status.rows:,} row changes{behind}; {self._states()}", flush=True)

    def _states(self) -> str:
        return ", ".join(f"{name} {state}" for name, (_, state) in self._shop.ask("pumps").items())


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return 0 if both copies are identical to the source."""
    parser = demo_run.parser(str(__doc__), seconds=24.0, large=5_000, pause=PAUSE_SECONDS)
    parser.add_argument("--seed", type=int, default=1, help="seed of all randomness")
    options = parser.parse_args(arguments)

    def with_pumps(directory: Path, server: MariaDb) -> CopyComparison:
        with pump_shop(options.seed, options.pause) as shop:
            return run(directory, server, shop, options)

    return demo_run.with_mariadb(with_pumps)


def run(directory: Path, server: MariaDb, shop: PumpShop, options: argparse.Namespace) -> CopyComparison:
    """Run the demo with a running, empty server."""
    server.execute(*(f"CREATE DATABASE {schema}" for schema in ("bank", "shop")))
    part = options.seconds / 4
    print(f"an embedded cluster with three pumps, PD at {shop.pd}: writers start, {options.seconds:.0f} s")
    shop.ask("start")
    with Following(shop, directory, server) as feed:
        pause(part)
        joining = shop.ask("add_pump")
        feed.notify()
        shop.ask("serve_pump", joining)
        print(f"{joining} has joined: it was notified before its first binlog", flush=True)
        pause(part)
        shop.ask("change_schema")
        print("a column and a table were added", flush=True)
        feed.reaches(shop.ask("set_pump", "pump-1", "closing"))
        shop.ask("set_pump", "pump-1", "offline")
        print("pump-1 has left: all that it had was delivered before", flush=True)
        pause(part)
        shop.ask("write_much", options.large)
        pause(part)
        feed.reaches(shop.ask("stop"))
    if options.spoil:
        demo_run.spoil(directory / "copy.db")
    sent = ", ".join(f"{count:,} by {name}" for name, count in shop.ask("binlogs").items())
    print(f"{shop.ask('transactions'):,} transactions were committed; binlogs sent: {sent}")
    return compared(directory / "copy.db", server, shop.ask("rows"), shop.ask("columns"))


def compared(
    path: Path, server: MariaDb, truth: dict[str, list[Row]], columns: dict[str, tuple[Column, ...]]
) -> CopyComparison:
    """Compare both copies with the rows that the writers committed."""
    pairs = {}
    for name, listed in columns.items():
        schema, _, table = name.partition(".")
        described = [PrintedColumn(column.name, column.kind, column.scale) for column in listed]
        wanted = as_printed(truth.get(name, []), described)
        pairs[f"{name} in SQLite"] = wanted, sqlite_rows(path, name, described)
        pairs[f"{name} in MariaDB"] = wanted, mariadb_rows(server.connect, schema, table, described)
    return compare(pairs)


if __name__ == "__main__":
    sys.exit(main())
