"""The demo: a live MariaDB followed into SQLite and into a second schema, then compared row for row.

    python -m tidemill.benchmarks.demo_mysql [--seconds 30] [--large 200000] [--spoil]

Everything it makes is in `.demo` under the working directory and goes when it ends.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from time import sleep as pause

from ..testing import shop
from ..testing.compare import Comparison
from ..testing.following import following
from ..testing.mariadb import MariaDb, missing
from ..testing.shop_copies import COPY, compare_copies, until_caught_up

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
    """Run the demo; 0 when both copies are identical to the source."""
    parser = argparse.ArgumentParser(prog="tidemill-demo", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the writers write")
    parser.add_argument("--rows", type=int, default=20_000, help="orders that are there before")
    parser.add_argument("--large", type=int, default=200_000, help="rows of the one large transaction")
    parser.add_argument("--spoil", action="store_true", help="change one copied row by hand, to see it found")
    options = parser.parse_args(arguments)
    if reason := missing():
        print(f"the demo needs MariaDB: {reason}", file=sys.stderr)
        return 2
    Path(".demo").mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=".demo", prefix="run-") as folder,
        MariaDb(Path(folder).absolute() / "mariadb") as server,
    ):
        result = run(Path(folder).absolute(), server, options)
    print(result)
    return 0 if result.identical else 1


def run(directory: Path, server: MariaDb, options: argparse.Namespace) -> Comparison:
    """The whole of it against a running, empty server."""
    writable = server.connect(autocommit=False)
    print(f"MariaDB on port {server.port}: creating the shop, {options.rows:,} orders")
    shop.create(writable)
    shop.fill(writable, options.rows)
    config = directory / "feed.toml"
    config.write_text(FEED.format(directory=directory, url=server.url(), copy=COPY))
    print(f"writers start; tidemill run feed.toml, {options.seconds:.0f} s")
    writers = shop.Writers(lambda: server.connect(autocommit=False)).start()
    try:
        with following(config) as process:
            pause(options.seconds / 3)
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute(
                    "ALTER TABLE shop.orders ADD COLUMN gift VARCHAR(40) NOT NULL DEFAULT 'none' AFTER total"
                )
            pause(options.seconds / 3)
            shop.insert_many(writable, options.large)
            pause(options.seconds / 3)
            committed = writers.stop()
            until_caught_up(directory / "state", server, process.pid)
    finally:
        writers.stop()
    writable.close()
    print(f"the writers committed {committed:,} transactions; comparing both copies with the source")
    if options.spoil:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"UPDATE `{COPY}`.accounts SET balance = balance + 1 WHERE id = 4711")
    return compare_copies(directory / "shop.db", server)


if __name__ == "__main__":
    sys.exit(main())
