"""The demo: a live MariaDB is followed into Kafka, whose broker is killed meanwhile; a consumer that sees
committed transactions only rebuilds the tables, which are compared with the source row by row.

    python -m tidemill.benchmarks.demo_kafka [--seconds 30] [--large 200000] [--spoil]

All its files are in `.demo` under the working directory and are removed at its end.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import sleep as pause

from ..testing import kafka, shop
from ..testing.compare import CopyComparison
from ..testing.following import following
from ..testing.kafka import Kafka
from ..testing.kafka_copy import compare_topics
from ..testing.mariadb import MariaDb
from ..testing.shop_copies import until_caught_up
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
name = "kafka"
url = "{kafka}"
partition = "key"
partitions = 3
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return 0 if the rebuilt tables are identical to the source."""
    parser = demo_run.parser(str(__doc__), seconds=30.0, large=200_000, pause=0.0)
    parser.add_argument("--rows", type=int, default=20_000, help="orders created before the feed starts")
    options = parser.parse_args(arguments)
    if reason := kafka.missing():
        print(f"the demo needs Kafka: {reason}", file=sys.stderr)
        return 2
    return demo_run.with_mariadb(lambda directory, server: run(directory, server, options))


def run(directory: Path, server: MariaDb, options: argparse.Namespace) -> CopyComparison:
    """Run the demo with a running, empty server."""
    writable = server.connect(autocommit=False)
    print(f"MariaDB on port {server.port}: creating the shop, {options.rows:,} orders")
    shop.create(writable)
    shop.fill(writable, options.rows)
    with Kafka(directory / "kafka") as broker:
        print(f"Kafka on port {broker.port}: a topic for each table, 3 partitions by key")
        config = directory / "feed.toml"
        url = broker.url("{schema}_{table}")
        config.write_text(FEED.format(directory=directory, url=server.url(), kafka=url))
        print(f"writers start; tidemill run feed.toml, {options.seconds:.0f} s")
        writers = shop.Writers(lambda: server.connect(autocommit=False), pause_seconds=options.pause).start()
        try:
            with following(config) as process:
                pause(options.seconds / 3)
                print("the broker is killed, and started again")
                broker.kill()
                broker.start()
                pause(options.seconds / 3)
                shop.insert_many(writable, options.large)
                pause(options.seconds / 3)
                committed = writers.stop()
                until_caught_up(directory / "state", server, process)
        finally:
            writers.stop()
        writable.close()
        print(f"the writers committed {committed:,} transactions; the topics are read and compared")
        if options.spoil:
            server.execute("UPDATE shop.accounts SET balance = balance + 1 WHERE id = 4711")
        return compare_topics(broker.brokers, server)


if __name__ == "__main__":
    sys.exit(main())
