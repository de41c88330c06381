"""A capture's answer into Spark's `noop` sink, in rows per second.

* `read`: by two tasks; `one_core`: by the single task of a session with one core. The yardstick is a data
  source that only yields the same Arrow batches, from a file in memory. `json`: with the images as JSON,
  which tidemill's tasks create, and the yardstick's file contains.
* `fixed_seconds`: a micro-batch with a single row of a MariaDB; `fixed_capture_seconds`: through a capture.
* `first_query_seconds`, `query_seconds`: a whole query with the trigger availableNow and a row, the first one
  of the session and later ones.
* `jdbc`: a table of a MariaDB by two tasks, against Spark's JDBC reader; `jdbc_one`: by one task. `jdbc_row`:
  queries per second of one row by its key; `python_row`: the same, against a data source in Python that has
  only this row and doesn't acknowledge at once, which is what Spark takes for each. Left out if `build/jdbc`
  has no driver (`tests/services/jdbc`).
* `tikv`: a table of an emulated TiKV, in a process of its own, by two tasks; `tikv_one`: by one task. The
  yardstick is a file of the same batches.
* The gain of the second core: `cores` is `read` over `one_core`, where the capture, on the same machine, does
  a large part of the work; `json_cores` is `json` over `json_one_core`, where the tasks do nearly all of it.
"""

from __future__ import annotations

import tempfile
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from .flight import served
from .in_turn import median_pairs, seconds_of
from .turns import serving

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Seconds: TypeAlias = dict[str, float]


def run(
    *,
    rows: int = 600_000,
    rounds: int = 5,
    batches: int = 20,
    jdbc_rows: int = 400_000,
    tikv_rows: int = 300_000,
) -> dict[str, object]:
    """Return one result in the form that all benchmarks share; a ratio above 1 is better than the
    yardstick."""
    from ..spark import session
    from . import spark_source, spark_tikv
    from .spark_batches import fixed_seconds
    from .spark_jdbc import driver, jdbc_seconds

    with (
        tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name,
        served("memory", rows) as address,
        serving(spark_tikv.serve, tikv_rows) as server,
    ):
        folder = Path(name)
        for kind in ("none", "json"):
            spark_source.write_file(str(folder / kind), address, rows, json=kind == "json")
        config = {
            "spark.local.dir": str(folder / "local"),
            "spark.driver.memory": "2g",
            "spark.jars": driver(),
        }
        spark = session("bench", "local[1]", config)
        spark.sparkContext.setLogLevel("ERROR")
        try:
            one = _in_turn(_frames(spark, folder, address, rows, 1, ("none", "json")), rows, rounds)
        finally:
            spark.stop()
        spark = session("bench", "local[2]", config)
        spark.sparkContext.setLogLevel("ERROR")
        try:
            two = _in_turn(_frames(spark, folder, address, rows, 2, ("none", "json")), rows, rounds)
            tikv = _in_turn(spark_tikv.frames(spark, folder, server), tikv_rows, rounds)
            fixed = fixed_seconds(spark, folder, batches)
            tables = jdbc_seconds(spark, folder, jdbc_rows, rounds) if driver() else {}
        finally:
            spark.stop()
    seconds = {
        "read": two["none"],
        "one_core": one["none"],
        "json": two["json"],
        "json_one_core": one["json"],
    }
    figures: dict[str, float] = {name: round(rows / ours) for name, (ours, _) in seconds.items()}
    yardstick: dict[str, float] = {name: round(rows / theirs) for name, (_, theirs) in seconds.items()}
    amounts = {name: jdbc_rows if not name.endswith("_row") else 1 for name in tables}
    amounts |= dict.fromkeys(tikv, tikv_rows)
    tables |= tikv
    figures |= {name: round(amounts[name] / ours, 2) for name, (ours, _) in tables.items()}
    yardstick |= {name: round(amounts[name] / theirs, 2) for name, (_, theirs) in tables.items()}
    ratio = {name: round(theirs / ours, 2) for name, (ours, theirs) in (seconds | tables).items()}
    return {
        "bench": "spark",
        "settings": {
            "rows": rows,
            "rounds": rounds,
            "batches": batches,
            "jdbc_rows": jdbc_rows,
            "tikv_rows": tikv_rows,
        },
        "figures": {**figures, **{name: round(taken, 3) for name, taken in fixed.items()}},
        "yardstick": yardstick,
        "ratio": {
            **ratio,
            "cores": round(figures["read"] / figures["one_core"], 2),
            "json_cores": round(figures["json"] / figures["json_one_core"], 2),
        },
    }


def _frames(
    spark: SparkSession, folder: Path, address: str, rows: int, tasks: int, kinds: tuple[str, ...]
) -> dict[str, tuple[DataFrame, DataFrame]]:
    """Return the frames of tidemill and of the yardstick, of each kind."""
    from .spark_source import CaptureSource, FileSource

    for source in (CaptureSource, FileSource):
        spark.dataSource.register(source)
    ours = spark.read.format("bench-capture").options(address=address, rows=rows, tasks=tasks)
    theirs = spark.read.format("bench-file").options(tasks=tasks)
    return {
        kind: (ours.options(values=kind).load(), theirs.options(path=str(folder / kind)).load())
        for kind in kinds
    }


def _in_turn(
    frames: dict[str, tuple[DataFrame, DataFrame]], rows: int, rounds: int
) -> dict[str, tuple[float, float]]:
    """Return the median seconds of both, after a warm-up."""
    from .spark_jdbc import write

    for frame in chain.from_iterable(frames.values()):
        if (count := frame.count()) != rows:
            raise RuntimeError(f"{count} rows came of {rows}")
    pairs = {
        kind: (partial(seconds_of, partial(write, ours)), partial(seconds_of, partial(write, theirs)))
        for kind, (ours, theirs) in frames.items()
    }
    return median_pairs(pairs, rounds, warm_ups=1)
