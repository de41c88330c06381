"""The demo: a live MariaDB is followed into SQLite and into a second schema, and both copies are compared row
by row.

    python -m tidemill.benchmarks.demo_mysql [--seconds 30] [--large 200000] [--spoil]

All its files are in `.demo` under the working directory and are removed at its end.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import sleep as pause

from ..testing import shop
from ..testing.compare import CopyComparison
from ..testing.following import following
from ..testing.mariadb import MariaDb
from ..testing.shop_copies import COPY, compare_copies, until_caught_up
from . import demo_run

FEED = """\
name = "demo"
data_dir = "{directory}/state"

[source]
url = "{url}"
tables = ["shop.*"]

[sorter]
memory_bytes = "16MiB"

[[sink]]
name = "sqlite"
url = "sqlite:///{directory}/shop.db"

[[sink]]
name = "copy"
url = "{url}"
schema = "{copy}"
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return 0 if both copies are identical to the source."""
    parser = demo_run.parser(str(__doc__), seconds=30.0, large=200_000, pause=0.0)
    parser.add_argument("--rows", type=int, default=20_000, help="orders created before the feed starts")
    options = parser.parse_args(arguments)
    return demo_run.with_mariadb(lambda directory, server: run(directory, server, options))


def run(directory: Path, server: MariaDb, options: argparse.Namespace) -> CopyComparison:
    """Run the demo with a running, empty server."""
    writable = server.connect(autocommit=False)
    print(f"MariaDB on port {server.port}: creating the shop, {options.rows:,} orders")
    shop.create(writable)
    shop.fill(writable, options.rows)
    config = directory / "feed.toml"
    config.write_text(FEED.format(directory=directory, url=server.url(), copy=COPY))
    print(f"writers start; tidemill run feed.toml, {options.seconds:.0f} s")
    writers = shop.Writers(lambda: server.connect(autocommit=False), pause_seconds=options.pause).start()
    try:
        with following(config) as process:
            pause(options.seconds / 3)
            server.execute(
                "ALTER TABLE shop.orders ADD COLUMN gift VARCHAR(40) NOT NULL DEFAULT 'none' AFTER total"
            )
            pause(options.seconds / 3)
            shop.insert_many(writable, options.large)
            pause(options.seconds / 3)
            committed = writers.stop()
            until_caught_up(directory / "state", server, process)
    finally:
        writers.stop()
    writable.close()
    print(f"the writers committed {committed:,} transactions; comparing both copies with the source")
    if options.spoil:
        server.execute(f"UPDATE `{COPY}`.accounts SET balance = balance + 1 WHERE id = 4711")
    return compare_copies(directory / "shop.db", server)


if __name__ == "__main__":
    sys.exit(main())
