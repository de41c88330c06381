"""A cluster in a process of its own, with many tables and large transactions.

As a program it takes a command a line, [name, argument, …] as JSON, and answers each with a line of JSON.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tidemill.codec.tidb import meta
from tidemill.codec.tidb.key import record_key, table_prefix
from tidemill.codec.tidb.row_encoder import RowEncoder
from tidemill.codec.tidb.table_info import DbInfo, TableInfo, encode_db_info, encode_table_info
from tidemill.emulator.cluster import Cluster
from tidemill.testing.item_table import item_table

DATABASE = DbInfo(id=2, name="many")
FIRST_TABLE = 101
WRITTEN_AT_ONCE = 10_000
LOCKED_MS = 3_600_000
"""A large transaction takes longer than locks live by themselves."""

Mutation = tuple[str, bytes, bytes]


def table_info(number: int) -> TableInfo:
    """`many.t<number>`: an integer key and a text."""
    return item_table(FIRST_TABLE + number, f"t{number}")


class Made:
    """The commands for a served cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._encoders: dict[int, RowEncoder] = {}

    def start(self) -> list[Any]:
        return [self.cluster.pd_address, self.cluster.tso()]

    def tso(self) -> int:
        return self.cluster.tso()

    def tables(self, count: int, regions: int) -> int:
        """Create tables t0, t1, … without rows, split into `regions` regions in all; return their number."""
        cuts = []
        for number in range(count):
            table_id = FIRST_TABLE + number
            parts = regions * (number + 1) // count - regions * number // count
            cuts += [table_prefix(table_id), *(record_key(table_id, 1000 * part) for part in range(1, parts))]
        self.cluster.pave(cuts)
        name = meta.database_field(DATABASE.id)
        self.cluster.write([("put", meta.hash_key(meta.DATABASES, name), encode_db_info(DATABASE))])
        for first in range(0, count, WRITTEN_AT_ONCE):
            infos = map(table_info, range(first, min(first + WRITTEN_AT_ONCE, count)))
            self.cluster.write(
                [("put", meta.hash_key(name, meta.table_field(i.id)), encode_table_info(i)) for i in infos]
            )
        gc.collect()
        gc.freeze()
        return len(self.cluster.keyspace.by_id)

    def put(self, rows: list[tuple[int, int, str]]) -> int:
        """A transaction of rows, each a table's number, a key and a text; its commit ts."""
        return self.cluster.write([self._mutation(*row) for row in rows])

    def change(self, puts: list[tuple[int, int, str]], gone: list[tuple[int, int]]) -> int:
        """A transaction that also deletes rows; its commit ts."""
        mutations = [self._mutation(*row) for row in puts]
        mutations += [("delete", record_key(FIRST_TABLE + number, key), b"") for number, key in gone]
        return self.cluster.write(mutations)

    def fill(self, number: int, rows: int, text_bytes: int) -> int:
        """One transaction, however large: all prewrites, then all commits; its commit ts."""
        start_ts = self.cluster.tso()
        parts = [range(at, min(at + WRITTEN_AT_ONCE, rows)) for at in range(0, rows, WRITTEN_AT_ONCE)]
        for part in parts:
            mutations = [self._mutation(number, key, text_of(key, text_bytes)) for key in part]
            primary = record_key(FIRST_TABLE + number, 0)
            self.cluster.prewrite(start_ts, mutations, primary=primary, ttl_ms=LOCKED_MS)
        commit_ts = 0
        for part in parts:
            keys = [record_key(FIRST_TABLE + number, key) for key in part]
            commit_ts = self.cluster.commit(start_ts, keys, commit_ts)
        return commit_ts

    def play(self, line: str) -> str:
        return self.cluster.play(line)

    def _mutation(self, number: int, key: int, text: str) -> Mutation:
        encoder = self._encoders.get(number)
        if encoder is None:
            encoder = self._encoders[number] = RowEncoder(DATABASE.name, table_info(number))
        return ("put", *encoder.encode((key, text)))


def text_of(key: int, size: int) -> str:
    """A text that belongs to the key."""
    return f"{key:x}-".ljust(size, "x")


# --- the other side ----------------------------------------------------------------------------------------


class Served:
    """A cluster in another process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pd_address, self.start_ts = self("start")

    def __call__(self, *command: Any) -> Any:
        """Do what a method of Made is called, and hand over what it returns."""
        self.begin(*command)
        return self.end()

    def begin(self, *command: Any) -> None:
        """Let it be done, without waiting."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def end(self) -> Any:
        """The answer to what was begun."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


@contextmanager
def served(**options: Any) -> Iterator[Served]:
    """`options` are Cluster's."""
    with subprocess.Popen(
        [sys.executable, __file__, json.dumps(options)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Served(process)
        assert process.stdin is not None
        process.stdin.close()


def main() -> None:
    with Cluster(**json.loads(sys.argv[1])) as cluster:
        made = Made(cluster)
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            answer = getattr(made, name)(*arguments)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
