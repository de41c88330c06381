"""A cluster in this process, what a real TiDB wrote to one, and feeds of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from tidemill.codec.tidb import meta
from tidemill.codec.tidb.table_info import DbInfo, encode_db_info
from tidemill.emulator.cluster import Cluster
from tidemill.engine.feed import Feed
from tidemill.engine.opening import checkpoint_file, open_sinks
from tidemill.engine.options import feed_options
from tidemill.events import Ddl, Item, Transaction
from tidemill.sink.python import python_sink
from tidemill.testing.progress import feed_ended

VECTORS = Path(__file__).parents[1] / "vectors"


def vector(name: str) -> list[dict[str, Any]]:
    with gzip.open(VECTORS / f"{name}.jsonl.gz") as lines:
        return [json.loads(line) for line in lines]


class Recorded:
    """Transactions that a real TiDB committed, and their tables."""

    def __init__(self) -> None:
        lines = vector("commits-v8.1.0")
        self.tables = [line for line in lines if line["kind"] == "table"]
        self.commits = [line for line in lines if line["kind"] == "commit"]

    def create_tables(self, cluster: Cluster) -> None:
        """As TiDB leaves their schema, without its jobs."""
        databases = {table["db_id"]: table["db"] for table in self.tables}
        mutations = [
            (
                "put",
                meta.hash_key(meta.DATABASES, meta.database_field(id_)),
                encode_db_info(DbInfo(id=id_, name=name)),
            )
            for id_, name in databases.items()
        ]
        for table in self.tables:
            key = meta.hash_key(meta.database_field(table["db_id"]), meta.table_field(table["table_id"]))
            mutations.append(("put", key, table["table_info_json"].encode()))
        cluster.write(mutations)


def replay(cluster: Cluster, commits: Iterable[dict[str, Any]]) -> None:
    """Commit what was recorded, transaction by transaction."""
    for commit in commits:
        cluster.write(
            [
                (
                    "delete" if entry["op"] in ("Del", "DELETE") else "put",
                    bytes.fromhex(entry["key_hex"]),
                    bytes.fromhex(entry["value_hex"] or ""),
                )
                for entry in commit["entries"]
            ]
        )


def run(
    cluster: Cluster,
    directory: Path,
    receive: Callable[[Sequence[Item]], object] | None = None,
    *,
    until: str = "now",
    tables: Sequence[str] = ("feed.*",),
    sinks: Sequence[dict[str, Any]] = (),
    **source: Any,
) -> Feed:
    """A feed from start to end; its error is in it."""
    options = feed_options(
        {
            "data_dir": str(directory),
            "until": until,
            "source": {"url": f"tikv://{cluster.pd_address}", "tables": list(tables), **source},
            "sink": list(sinks),
        }
    )
    found = open_sinks(options)
    if receive is not None:
        found.append(python_sink("python", receive, checkpoint_file(options, "python")))
    feed = Feed(options, found)
    feed.start()
    feed_ended(feed)
    return feed


class Lines:
    """A feed's items as lines; a timestamp is shown as the number of the commit."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.commits: list[int] = []

    def __call__(self, items: Sequence[Item]) -> None:
        for item in items:
            assert item.commit_ts >= max(self.commits, default=0)
            if isinstance(item, Ddl):
                actions = ", ".join(type(action).__name__ for action in item.actions)
                self._say(item, f"{item.full_name}: {actions} [{item.query}]")
            elif isinstance(item, Transaction):
                for row in item.rows:
                    images = [" ".join(map(str, image)) for image in (row.before, row.after) if image]
                    self._say(item, f"{row.table.full_name} {row.op} {' -> '.join(images)}")

    def _say(self, item: Item, text: str) -> None:
        if not self.commits or self.commits[-1] != item.commit_ts:
            self.commits.append(item.commit_ts)
        self.lines.append(f"{len(self.commits)}: {text}")
