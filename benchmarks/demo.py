"""The demo: an embedded TiDB cluster is followed into SQLite through faults, and the copy is compared row by
row.

    tidemill demo [--seconds 12] [--spoil]
    python -m tidemill.benchmarks.demo [--seconds 20] [--large 20000] [--spoil] [--without-spark]

A second feed, in this process, adds the balances of a bank after every transaction. The second form then
runs the same feed on Spark; its files are in `.demo` under the working directory and are removed at its end,
except for a page that shows the contents of the archive of all changes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from time import sleep as pause
from typing import Any

from ..embedded import open_feed
from ..events import Column, Row, Ts
from ..testing import tikv_shop
from ..testing.compare import CopyComparison, Printed, PrintedColumn, Rows, compare, printed, sqlite_rows
from ..testing.following import following, until_all_at
from . import demo_run

FEED = """\
name = "demo"
data_dir = "{directory}/state"

[source]
url = "tikv://{pd}"
tables = ["bank.*", "shop.*"]

[sorter]
memory_bytes = "16MiB"

[[sink]]
name = "sqlite"
url = "sqlite:///{directory}/copy.db"
"""

ARCHIVE = """
[[sink]]
name = "archive"
url = "parquet://{directory}/archive"
"""

SPARK_FEED = """\
name = "demo-spark"
data_dir = "{directory}/spark-state"

[source]
url = "tikv://{pd}"
tables = ["bank.*", "shop.*"]

[[sink]]
name = "sqlite"
url = "sqlite:///{directory}/spark.db"
"""


@dataclass(frozen=True, kw_only=True)
class Demo:
    """A run of the demo."""

    seconds: float
    """Time for which the writers run."""
    large: int
    """Rows of the one large transaction."""
    pause: float = tikv_shop.PAUSE_SECONDS
    """Seconds between a writer's transactions."""
    seed: int = 1
    """Seed of all randomness."""
    spoil: bool = False
    """Change one copied row, to see it found."""
    with_spark: bool = False
    """Archive all changes, and run the same feed on Spark afterwards."""


def main(arguments: list[str] | None = None) -> int:
    """Run the demo with Spark; return 0 if the copy is identical to the source and every sum was right."""
    parser = demo_run.parser(str(__doc__), seconds=20.0, large=20_000, pause=tikv_shop.PAUSE_SECONDS)
    parser.add_argument("--seed", type=int, default=1, help="seed of all randomness")
    parser.add_argument("--without-spark", action="store_true", help="skip the part that runs on Spark")
    settings = vars(parser.parse_args(arguments))
    demo = Demo(with_spark=not settings.pop("without_spark"), **settings)
    with demo_run.folder() as directory:
        return 0 if run(directory, demo) else 1


def run(directory: Path, demo: Demo) -> bool:
    """Run the demo with its files in a directory; return True if the copies are right."""
    with world(demo.seed, demo.pause) as (pipe, pd):
        is_right = on_sqlite(directory, pipe, pd, demo)
        if is_right and demo.with_spark:
            is_right = on_spark(directory, pipe, pd, demo.seconds / 3)
        return is_right


@contextmanager
def world(seed: int, pause_seconds: float) -> Iterator[tuple[Connection, str]]:
    """Run the cluster with its writers in a process of its own; yield the connection to it, and PD's
    address."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=tikv_shop.serve, args=(theirs, seed, pause_seconds))
    process.start()
    theirs.close()
    try:
        yield ours, ours.recv()
        ours.send(None)
        process.join()
    finally:
        process.kill()
        process.join()


def ask(pipe: Connection, name: str, *arguments: object) -> Any:
    pipe.send((name, *arguments))
    return pipe.recv()


def on_sqlite(directory: Path, pipe: Connection, pd: str, demo: Demo) -> bool:
    """Copy the cluster into SQLite while it is written, and compare the rows."""
    config = directory / "feed.toml"
    config.write_text((FEED + ARCHIVE if demo.with_spark else FEED).format(directory=directory, pd=pd))
    third = demo.seconds / 3
    print(f"an embedded cluster of 3 stores, PD at {pd}: writers and faults start, {demo.seconds:.0f} s")
    print(f"after {third:.3g} s a column and a table are added")
    print(f"after {2 * third:.3g} s one transaction writes {demo.large:,} rows")
    print("tidemill run feed.toml into SQLite; a second feed checks the bank", flush=True)
    ask(pipe, "start")
    bank = Bank(pd, directory)
    with following(config) as process, bank:
        pause(third)
        ask(pipe, "change_schema")
        pause(third)
        ask(pipe, "write_much", demo.large)
        pause(third)
        end = ask(pipe, "stop")
        until_all_at(directory / "state", process, lambda position: int(position or 0) >= end)
        bank.until(end)
    if demo.spoil:
        demo_run.spoil(directory / "copy.db")
    faults = ", ".join(f"{count} {fault}" for fault, count in sorted(ask(pipe, "faults").items()))
    print(f"{ask(pipe, 'transactions'):,} transactions were committed, among faults: {faults}")
    print(
        f"the sum of the balances was {'right' if not bank.wrong else 'WRONG'} at {bank.checked:,} commit ts"
    )
    result = compared(directory / "copy.db", ask(pipe, "rows"), ask(pipe, "columns"))
    print(result, flush=True)
    return bool(result.identical and bank.checked and not bank.wrong)


def on_spark(directory: Path, pipe: Connection, pd: str, seconds: float) -> bool:
    """Run the same feed on Spark: load the present rows, follow the further changes, and analyze the archive
    of the first feed."""
    config = directory / "spark.toml"
    config.write_text(SPARK_FEED.format(directory=directory, pd=pd))
    print("tidemill backfill spark.toml, while the writers go on", flush=True)
    ask(pipe, "start")
    subprocess.run([sys.executable, "-m", "tidemill.cli", "backfill", str(config)], check=True)
    print("tidemill run spark.toml --engine spark", flush=True)
    with following(config, "--engine", "spark") as process:
        until_all_at(directory / "spark-state", process, lambda position: int(position or 0) > 0)
        pause(seconds)
        end = ask(pipe, "stop")
        until_all_at(directory / "spark-state", process, lambda position: int(position or 0) >= end)
    result = compared(directory / "spark.db", ask(pipe, "rows"), ask(pipe, "columns"))
    print(result)
    page = directory.parent / "archive.html"
    command = [sys.executable, "-m", "tidemill.cli", "analyze", "--archive", str(directory / "archive")]
    subprocess.run([*command, "--page", str(page)], check=True)
    return result.identical


class Bank:
    """Follows the accounts in this process, and adds all balances after each transaction."""

    def __init__(self, pd: str, directory: Path) -> None:
        self.checked = 0
        self.wrong: list[Ts] = []
        self._feed = open_feed(f"tikv://{pd}", ["bank.*"], data_dir=directory / "bank", name="bank")
        self._thread = Thread(target=self._follow)
        self._balances: dict[int, int] = {}

    def __enter__(self) -> None:
        self._feed.__enter__()
        self._thread.start()

    def __exit__(self, *exc_info: object) -> None:
        self._feed.__exit__(*exc_info)
        self._thread.join()

    def until(self, end: Ts) -> None:
        while self._thread.is_alive() and int(self._feed.status().sinks[0].position or 0) < end:
            pause(0.1)

    def _follow(self) -> None:
        wanted = tikv_shop.ACCOUNTS * tikv_shop.OPENING_BALANCE
        total = 0
        for txn in self._feed:
            for row in txn.rows:
                if row.after is not None:
                    account, balance = row.after
                    total += balance - self._balances.get(account, 0)
                    self._balances[account] = balance
            if txn.chunk is None and txn.last:
                self.checked += 1
                if total != wanted:
                    self.wrong.append(txn.commit_ts)
            self._feed.ack(txn)


def compared(
    path: Path, truth: dict[str, list[Row]], columns: dict[str, tuple[Column, ...]]
) -> CopyComparison:
    """Compare the copy with the rows that the writers committed."""
    pairs = {}
    for name, listed in columns.items():
        described = [PrintedColumn(column.name, column.kind, column.scale) for column in listed]
        pairs[name] = (as_printed(truth.get(name, []), described), sqlite_rows(path, name, described))
    return compare(pairs)


def as_printed(rows: list[Row], columns: list[PrintedColumn]) -> Rows:
    """Return rows as a source prints them; a row from before a column was added has the column's default."""

    def each() -> Iterator[Printed]:
        for row in rows:
            whole = row + ("none",) * (len(columns) - len(row))
            yield tuple(printed(column, value) for column, value in zip(columns, whole, strict=True))

    return each


if __name__ == "__main__":
    sys.exit(main())
