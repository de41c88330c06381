"""A typed stream of Spark from a MariaDB into the `noop` sink; rows a second of CPU time.

The CPU time is that of the whole query: Spark's JVM, the tasks' Python and the driver, on one core, after a
first query. `stream` reads the binlog, and `captured` a capture, which is a process of its own and isn't
counted: several queries share it. `small_stream` and `small_captured` are the same with transactions of one
row instead of a thousand. The yardstick is the same with the decoder in Python.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..codec.native import library
from ..engine.options import feed_options
from ..spark.capture import client
from ..spark.capture.capture import opened
from ..spark.capture.options import CaptureOptions
from ..testing.mariadb import MariaDb
from .mysql import _create, _end, _write
from .turns import serve_until_ended, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLE: Final = "bench.followed"
_TICK: Final = os.sysconf("SC_CLK_TCK")


def run(*, rows: int = 400_000, small_rows: int = 20_000, rounds: int = 3) -> dict[str, Any]:
    """Return one result in the form that all benchmarks share."""
    if library.native is None:
        raise RuntimeError(f"there is nothing to measure: {library.description()}")
    figures, yardstick = (_measured(use, rows, small_rows, rounds) for use in ("1", "0"))
    return {
        "bench": "spark-typed",
        "settings": {"rows": rows, "small_rows": small_rows, "rounds": rounds},
        "figures": figures,
        "yardstick": yardstick,
        "ratio": {name: round(figures[name] / yardstick[name], 2) for name in figures},
    }


def _measured(use: str, rows: int, small_rows: int, rounds: int) -> dict[str, float]:
    """Measure in a process of its own, from which Spark's tasks inherit the decoder."""
    command = [sys.executable, "-m", "tidemill.benchmarks.spark_typed", "measure"]
    command += [str(rows), str(small_rows), str(rounds)]
    environment = {**os.environ, library.SWITCH: use}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _measure(rows: int, small_rows: int, rounds: int) -> dict[str, float]:
    from ..spark import session

    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name, MariaDb(Path(name, "db")) as server:
        _create(server)
        others = set(_children(os.getpid()))
        spark = session("bench", "local[1]", {"spark.local.dir": name, "spark.driver.memory": "2g"})
        spark.sparkContext.setLogLevel("ERROR")
        try:
            query = _Query(spark, server, Path(name), set(_children(os.getpid())) - others)
            rates = query.rates("small_", small_rows, 1, rounds)
            return query.rates("", rows, 1_000, rounds) | rates  # a query reads to the log's end
        finally:
            spark.stop()


class _Query:
    def __init__(self, spark: SparkSession, server: MariaDb, folder: Path, processes: set[int]) -> None:
        """`processes` are the children of this process that are Spark's."""
        self._spark = spark
        self._server = server
        self._folder = folder
        self._processes = processes
        self._count = 0

    def rates(self, prefix: str, rows: int, size: int, rounds: int) -> dict[str, float]:
        """Return the median rows per second of CPU time, of transactions of `size` rows."""
        before = self._other_row(size)
        start, _ = _write(self._server, rows, size)
        found: dict[str, list[float]] = {"stream": [], "captured": []}
        for number in range(rounds + 1):
            for name, rates in found.items():
                self._count += 1
                if name == "stream":
                    seconds = self._cpu_seconds(start, rows)
                else:
                    seconds = self._captured(before, start, rows)
                if number:  # the first round is a warm-up
                    rates.append(rows / seconds)
        return {prefix + name: round(statistics.median(rates)) for name, rates in found.items()}

    def _other_row(self, key: int) -> str:
        """Write a row after which a capture's range begins; return the position before it."""
        with self._server.connect() as connection, connection.cursor() as cursor:
            position = _end(cursor)
            cursor.execute(f"INSERT INTO bench.idle (id) VALUES ({key})")
            return position

    def _captured(self, before: str, start: str, rows: int) -> float:
        """Read from a capture of its own, as each query frees what it has read."""
        folder, url = str(self._folder / f"capture-{self._count}"), self._server.url()
        with serving(_serve, folder, url, before) as capture:
            address = str(capture["address"])
            seconds = self._cpu_seconds(start, rows, capture=address)
            if not client.status(address).answered:
                raise RuntimeError("the capture wasn't asked")
            return seconds

    def _cpu_seconds(self, start: str, rows: int, **more: str) -> float:
        options = {"source": self._server.url(), "table": _TABLE, "startingPosition": start, **more}
        begun = self._seconds()
        frame = self._spark.readStream.format("tidemill").options(**options).load()
        writer = frame.writeStream.format("noop")
        writer = writer.option("checkpointLocation", str(self._folder / f"query-{self._count}"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        taken = self._seconds() - begun
        if (found := sum(progress.numInputRows for progress in query.recentProgress)) != rows:
            raise RuntimeError(f"{found} rows came of {rows}")
        return taken

    def _seconds(self) -> float:
        return time.process_time() + sum(map(_tree_seconds, self._processes))


def _serve(pipe: Any, folder: str, url: str, position: str) -> None:
    source = {"url": url, "tables": ["bench.*"], "snapshot": False, "position": position}
    options = feed_options({"data_dir": folder, "source": source})
    kept = CaptureOptions(listen="127.0.0.1:0", memory_bytes=2 << 30)
    with opened(options, kept) as capture:
        serve_until_ended(pipe, {"address": f"127.0.0.1:{capture.port}"})


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def _tree_seconds(pid: int) -> float:
    """Return the CPU time of a process with its descendants, also of those that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = _children(pid)
    except (FileNotFoundError, ProcessLookupError):  # it has ended: its parent has its time
        return 0.0
    own = sum(map(int, fields[11:15])) / _TICK  # utime, stime, and both of ended children
    return own + sum(map(_tree_seconds, children))


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(_measure(*map(int, sys.argv[2:]))))
    else:
        given = {name: int(value) for name, _, value in (a.partition("=") for a in sys.argv[1:])}
        print(json.dumps(run(**given)))
