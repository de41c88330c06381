"""The demo of shards: twelve tables on two MariaDB servers are merged into one on a third.

    python -m tidemill.benchmarks.demo_shards [--seconds 24] [--large 30000] [--spoil]

A writer works on each shard, and all of them make six schema changes one after the other. Meanwhile tidemill
is killed once and a server restarted, while rows wait for a schema change. At the end the merged table is
compared with the union of the shards, row by row and column by column, and the schema changes in its server's
log are counted. All files are in `.demo` under the working directory and are removed at its end.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import sleep as pause

from ..engine.status import FeedStatus, StatusFile
from ..errors import CheckpointError
from ..sharding import LockStatus
from ..testing.child import CLI
from ..testing.compare import CopyComparison, compare, mariadb_rows, source_columns
from ..testing.feeds import Running
from ..testing.mariadb import MariaDb, missing
from ..testing.shard_shop import CHANGES, ShopShard, described, shards_of, union
from . import demo_run

EXTRACTED = ("server", "shop", "part")
STATEMENTS = "statements.log"
"""Log of the server of the merged table."""
FEED = """\
name = "demo"
data_dir = "{directory}/state"

[sharding]
max_held_rows = 20000

[[route]]
tables = ["shop_*.orders_*"]
target = "whole.orders"
extract = [
    {{ column = "server", part = "source" }},
    {{ column = "shop", part = "schema", regex = "shop_(\\\\d+)" }},
    {{ column = "part", part = "table" }},
]

[[source]]
name = "north"
url = "{north}"
tables = ["shop_*.orders_*"]

[[source]]
name = "south"
url = "{south}"
tables = ["shop_*.orders_*"]

[[sink]]
name = "whole"
url = "{whole}"
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return 0 if the merged table is the union of its shards, and every change was executed
    once."""
    parser = demo_run.parser(str(__doc__), seconds=24.0, large=30_000, pause=0.05)
    parser.add_argument("--rows", type=int, default=2_000, help="orders in each shard before the feed starts")
    parser.add_argument("--seed", type=int, default=1, help="seed of all randomness")
    options = parser.parse_args(arguments)
    if reason := missing():
        print(f"the demo needs MariaDB: {reason}", file=sys.stderr)
        return 2
    with demo_run.folder() as directory, ExitStack() as servers:
        template = directory / "template" / "data"
        logging = "--general-log", f"--general-log-file={directory}/{STATEMENTS}"
        started = {
            name: servers.enter_context(MariaDb(directory / name, *flags, template=template))
            for name, flags in (("north", ()), ("south", ()), ("whole", logging))
        }
        return run(directory, started, options)


def run(directory: Path, servers: dict[str, MariaDb], options: argparse.Namespace) -> int:
    """Run the demo with running, empty servers."""
    urls = {name: server.url() for name, server in servers.items()}
    config = directory / "feed.toml"
    config.write_text(FEED.format(directory=directory, **urls))
    sources = {name: servers[name] for name in ("north", "south")}
    shards = shards_of(sources, options.seed, options.pause)
    print(f"{len(shards)} shards on two servers, {options.rows:,} orders each; a writer on each shard starts")
    try:
        for shard in shards:
            shard.create(options.rows)
        for shard in shards:
            shard.start()
        play(Feed(directory, config), shards, servers["south"], options)
    finally:
        for shard in shards:
            shard.stop()
    print(f"the writers committed {sum(shard.transactions for shard in shards):,} transactions")
    if options.spoil:
        servers["whole"].execute("UPDATE whole.orders SET amount = amount + 1 ORDER BY id DESC LIMIT 1")
    result = compared(shards, servers["whole"])
    print(result)
    executed = statements(directory / STATEMENTS)
    print(f"{len(executed)} schema changes were executed in the merged table:", *executed, sep="\n  ")
    return 0 if result.identical and len(executed) == len(set(executed)) == len(CHANGES) else 1


class Feed:
    """`tidemill run` as a process of its own."""

    def __init__(self, directory: Path, config: Path) -> None:
        self.directory = directory
        self._config = config

    def run(self, *flags: str) -> Running:
        print(" ".join(["tidemill run feed.toml", *flags]), flush=True)
        return Running(self, [*CLI, "run", str(self._config), *flags])

    def status(self) -> FeedStatus | None:
        try:
            return StatusFile(self.directory / "state").load()
        except CheckpointError:
            return None


def play(feed: Feed, shards: Sequence[ShopShard], south: MariaDb, options: argparse.Namespace) -> None:
    """Make the schema changes, with the faults between them, and let the feed come to the end."""
    part = options.seconds / 6
    with feed.run() as child:
        child.until(lambda status: all(one.position and not one.loading for one in status.sinks))
        print("all shards are loaded", flush=True)
        pause(part)
        for number, count in enumerate((8, 5, 2), 1):
            change(shards[:count])
            print(f"schema change {number} was made by {count} of {len(shards)} shards", flush=True)
        pause(part)
        lock = held(child)
        child.kill()
        print(f"tidemill was killed while {lock.held_rows:,} rows waited", flush=True)
    with feed.run() as child:
        held(child)
        south.restart()
        print("the server south was restarted; tidemill has held the rows of the waiting shards again")
        shards[0].insert_many(options.large)
        print(f"one transaction of {options.large:,} rows in a shard that waits", flush=True)
        pause(part)
        for rest in (shards[8:], shards[5:], shards[2:]):
            change(rest)
        print("all shards have made the first three schema changes", flush=True)
        pause(part)
        for number in range(4, len(CHANGES) + 1):
            for shard in shards:
                change([shard])
                pause(part / len(shards) / 2)
            print(f"all shards have made schema change {number}", flush=True)
        for shard in shards:
            shard.stop()
        child.process.send_signal(signal.SIGINT)
        ended(child)
    with feed.run("--until", "now") as child:
        ended(child)


def change(shards: Sequence[ShopShard]) -> None:
    for shard in shards:
        shard.change_schema()


def held(child: Running) -> LockStatus:
    """Wait until rows wait for a schema change, and two more of these."""
    last = child.until(lambda status: any(lock.further == 2 and lock.held_rows for lock in status.locks))
    return last.locks[0]


def ended(child: Running) -> None:
    end = child.ended()
    if end.status:
        raise SystemExit(f"tidemill run ended with status {end.status}: {end.err[-2000:]}")


def compared(shards: Sequence[ShopShard], whole: MariaDb) -> CopyComparison:
    """Compare the merged table with the union of the shards, and its columns with theirs."""
    with whole.connect() as connection:
        columns = {one.name: one for one in source_columns(connection, "whole", "orders")}
    own = [name for name in columns if name not in EXTRACTED]
    listed = [columns[name] for name in (*own, *EXTRACTED)]
    merged = mariadb_rows(whole.connect, "whole", "orders", listed)
    result = compare({"whole.orders": (union(shards, own), merged)})
    target = described(whole, "whole", "orders")
    have = {name: target[name] for name in own}
    differences = [
        f"{shard.source}: {shard.schema}.{shard.table} has the columns {wants}, whole.orders {have}"
        for shard in shards
        if (wants := described(shard.server, shard.schema, shard.table)) != have
    ]
    return CopyComparison(result.rows, len(shards), [*result.differences, *differences])


def statements(log: Path) -> list[str]:
    """Return the schema changes of the merged table that its server was asked for.

    A statement's mark, by which a restart knows that it was executed, is left out, and its removal.
    """
    lines = re.findall(r"\tALTER TABLE (`whole`\.`orders` .*)", log.read_text(errors="replace"))
    made = [line.partition("COMMENT=")[0].strip(" ,") for line in lines]
    return [line for line in made if line != "`whole`.`orders`"]


if __name__ == "__main__":
    sys.exit(main())
