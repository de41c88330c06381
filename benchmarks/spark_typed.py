"""A typed stream of Spark from a MariaDB into the `noop` sink; rows a second of CPU time.

`stream` reads the binlog, and `captured` a capture. `file` is the yardstick: a data source that yields the
same Arrow batches from a file, which is what Spark itself takes. Each figure is that of all processes of the
query. `_tasks` is of the Python of its tasks alone, `_jvm` of the JVM, `_planning` of the driver and of the
Python that finds the batches' ends. A capture isn't counted in `captured`, as several queries may share one:
`captured_with_serving` counts its answer. `capture_intake` is of pulling and keeping the rows, once for all
queries.

What a query costs whatever it reads is left out: a figure is the difference between two queries of one
session, of all rows and of a fifth. `small_` is with transactions of one row instead of a thousand. In the
first query of each way, the rows are compared with the table, column by column.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..codec.native import library
from ..engine.options import feed_options
from ..spark.capture import client
from ..spark.capture.capture import opened
from ..spark.capture.options import CaptureOptions
from ..testing.mariadb import MariaDb
from .mysql import COLUMNS, log_end
from .process_times import SparkTimes, children, spark_times, tree_seconds
from .turns import serve_until_ended, serving

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_PART: Final = 5
"""The smaller query reads one part of so many."""
_WAIT_SECONDS: Final = 120.0
_VALUES: Final = (
    "k, 9223372036854775808 + k, k MOD 10000 + 0.25, k / 7e0, CONCAT('name of ', k),"
    " CONCAT('2026-03-0', k MOD 9 + 1, ' 04:05:06'), k MOD 100, REPEAT('n', 40)"
)
"""The values of the row with the number `k`."""
_SUMS: Final = {
    "rows": "count(*)",
    "id": "sum(id)",
    "big": "sum(big % 1000003)",
    "price": "sum(price)",
    "ratio": "round(sum(ratio) / 1000)",
    "name": "sum(crc32(name))",
    "day": "sum(day(at))",
    "flag": "sum(flag)",
    "note": "sum(crc32(note))",
}
"""Sums over all columns, as both MariaDB and Spark compute them."""


def run(*, rows: int = 1_500_000, small_rows: int = 150_000, rounds: int = 3) -> dict[str, object]:
    """Return one result in the form that all benchmarks share."""
    if library.native is None:
        raise RuntimeError(f"there is nothing to measure: {library.description()}")
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name, MariaDb(Path(name, "db")) as server:
        figures = _measured(server, Path(name), rows, small_rows, rounds)
    yardstick = {name: figure for name, figure in figures.items() if "file" in name}
    ours = {name: figure for name, figure in figures.items() if "file" not in name}
    return {
        "bench": "spark-typed",
        "settings": {"rows": rows, "small_rows": small_rows, "rounds": rounds},
        "figures": ours,
        "yardstick": yardstick,
        "ratio": {
            name: round(figures[name] / figures["file"], 2)
            for name in ("stream", "captured", "small_stream", "small_captured")
        },
    }


def _measured(server: MariaDb, folder: Path, rows: int, small_rows: int, rounds: int) -> dict[str, float]:
    from ..spark import session
    from .spark_typed_source import BatchesSource

    server.execute("CREATE DATABASE bench", "CREATE TABLE bench.idle (id INT AUTO_INCREMENT PRIMARY KEY)")
    others = children(os.getpid())
    config = {"spark.local.dir": str(folder / "local"), "spark.driver.memory": "2g"}
    spark = session("bench", "local[1]", config)
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(BatchesSource)
    (jvm,) = children(os.getpid()) - others
    try:
        large = _Case(spark, jvm, server, folder, "large", rows, 1_000).figures(rounds, with_file=True)
        small = _Case(spark, jvm, server, folder, "small", small_rows, 1).figures(rounds, with_file=False)
    finally:
        spark.stop()
    return large | {f"small_{name}": figure for name, figure in small.items()}


class _Taken(NamedTuple):
    spark: SparkTimes
    serving: float = 0.0
    intake: float = 0.0


class _Case:
    """Queries of one table, whose rows are in transactions of one size."""

    def __init__(
        self, spark: SparkSession, jvm: int, server: MariaDb, folder: Path, name: str, rows: int, size: int
    ) -> None:
        self._spark = spark
        self._jvm = jvm
        self._server = server
        self._folder = folder / name
        self._folder.mkdir()
        self._table = f"bench.{name}"
        self._rows = rows
        self._part_rows = rows // _PART
        self._count = 0
        self._before, starts = _write(server, self._table, rows, self._part_rows, size)
        self._starts = {rows: starts[0], self._part_rows: starts[1]}
        self._types: StructType | None = None

    def figures(self, rounds: int, *, with_file: bool) -> dict[str, float]:
        ways: dict[str, Callable[[int, bool], _Taken]] = {"stream": self._stream, "captured": self._captured}
        if with_file:
            ways["file"] = self._file
            for rows in self._starts:
                self._types = self._write_file(rows)
        by_figure: dict[str, list[float]] = {}
        intakes = []
        for number in range(rounds + 1):  # in turn, so that drift of the machine affects all
            for name, way in ways.items():
                more, less = way(self._rows, not number), way(self._part_rows, False)
                if number:  # the first round is a warm-up
                    intakes += [one.intake for one in (more, less) if one.intake]
                    for figure, seconds in _differences(name, more, less).items():
                        by_figure.setdefault(figure, []).append(seconds)
        count = self._rows - self._part_rows
        figures = {name: count / max(0.01, statistics.median(taken)) for name, taken in by_figure.items()}
        figures["capture_intake"] = self._rows / statistics.median(intakes)
        return {name: round(figure) for name, figure in figures.items()}

    # --- the ways, of some rows, with a comparison of the rows or without

    def _stream(self, rows: int, compares: bool) -> _Taken:
        return _Taken(self._query(self._frame(rows), rows, compares))

    def _captured(self, rows: int, compares: bool) -> _Taken:
        """Read from a capture of its own, as each query frees what it has read."""
        folder = self._folder / f"capture-{self._count}"
        with serving(_serve, str(folder), self._server.url(), self._before) as capture:
            address, pid = str(capture["address"]), int(capture["pid"])
            _until(lambda: client.status(address).held.rows == self._rows + 1)
            before = tree_seconds(pid)
            times = self._query(self._frame(rows, capture=address), rows, compares)
            if client.status(address).answered != 1:
                raise RuntimeError("the capture didn't answer")
            return _Taken(times, tree_seconds(pid) - before, before)

    def _file(self, rows: int, compares: bool) -> _Taken:
        reader = self._spark.readStream.format("bench-batches").option("path", str(self._path(rows)))
        assert self._types is not None
        return _Taken(self._query(reader.schema(self._types).load(), rows, compares))

    def _frame(self, rows: int, **more: str) -> DataFrame:
        return self._spark.readStream.format("tidemill").options(**self._options(rows), **more).load()

    def _options(self, rows: int) -> dict[str, str]:
        position = self._starts[rows]
        return {"source": self._server.url(), "table": self._table, "startingPosition": position}

    def _path(self, rows: int) -> Path:
        return self._folder / f"{rows}.arrow"

    def _write_file(self, rows: int) -> StructType:
        from .spark_typed_source import write_batches

        return write_batches(self._path(rows), {**self._options(rows), "maxBytesPerBatch": "0"})

    def _query(self, frame: DataFrame, rows: int, compares: bool) -> SparkTimes:
        self._count += 1
        compared: list[dict[str, object]] = []
        if compares:
            writer = frame.writeStream.foreachBatch(lambda batch, _: compared.append(_sums(batch)))
        else:
            writer = frame.writeStream.format("noop")
        writer = writer.option("checkpointLocation", str(self._folder / f"query-{self._count}"))
        begun = spark_times(self._jvm)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        taken = spark_times(self._jvm).since(begun)
        if compares:
            self._compare(compared)
        elif (count := sum(progress.numInputRows for progress in query.recentProgress)) != rows:
            raise RuntimeError(f"{count} rows came of {rows}")
        return taken

    def _compare(self, sums_read: list[dict[str, Any]]) -> None:
        (row,) = self._server.execute(f"SELECT {', '.join(_SUMS.values())} FROM {self._table}")
        wanted = [float(value) for value in row]
        sums = [sum(float(one[name]) for one in sums_read) for name in _SUMS]
        if sums != wanted:
            raise RuntimeError(f"the rows aren't the table's: their sums are {sums}, not {wanted}")


def _sums(batch: DataFrame) -> dict[str, object]:
    sums: dict[str, object] = (
        batch.select("after.*")
        .selectExpr(*[f"{text} AS `{name}`" for name, text in _SUMS.items()])
        .collect()[0]
        .asDict()
    )
    return sums


def _differences(name: str, more: _Taken, less: _Taken) -> dict[str, float]:
    """Return the seconds of the rows that only the larger query has read."""
    spark = more.spark.since(less.spark)
    figures = {name: sum(spark), f"{name}_tasks": spark.tasks, f"{name}_jvm": spark.jvm}
    if name != "file":
        figures[f"{name}_planning"] = spark.others
    if more.serving:
        figures["captured_with_serving"] = sum(spark) + more.serving - less.serving
    return figures


def _write(server: MariaDb, table: str, rows: int, part: int, size: int) -> tuple[str, list[str]]:
    """Write a row of another table and then `rows` in transactions of `size`; return the positions before
    all, after that row, and before the last `part` rows.

    Each of the three begins a second of the log, as a query that starts within one can't use a capture.
    """
    starts = []
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("USE bench")
        cursor.execute(f"CREATE TABLE {table} ({COLUMNS})")
        cursor.execute("SELECT UNIX_TIMESTAMP()")
        second = int(cursor.fetchone()[0])
        before = log_end(cursor)
        cursor.execute("INSERT INTO bench.idle VALUES ()")
        for first, end in ((0, rows - part), (rows - part, rows)):
            starts.append(log_end(cursor))
            second += 10
            cursor.execute(f"SET timestamp = {second}")
            cursor.execute(
                f"BEGIN NOT ATOMIC FOR part IN 0 .. {(end - first) // size - 1} DO"
                f" INSERT INTO {table} SELECT {_VALUES} FROM"
                f" (SELECT {first} + {size} * part + seq AS k FROM seq_0_to_{size - 1}) AS numbers;"
                " END FOR; END"
            )
        return before, starts


def _serve(pipe: Connection, folder: str, url: str, position: str) -> None:
    source = {"url": url, "tables": ["bench.*"], "snapshot": False, "position": position}
    options = feed_options({"data_dir": folder, "source": source})
    kept = CaptureOptions(listen="127.0.0.1:0", memory_bytes=2 << 30)
    with opened(options, kept) as capture:
        serve_until_ended(pipe, {"address": f"127.0.0.1:{capture.port}", "pid": os.getpid()})


def _until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + _WAIT_SECONDS
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"the capture hadn't all rows after {_WAIT_SECONDS:.0f} s")
        time.sleep(0.05)
