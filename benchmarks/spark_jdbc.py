"""A MariaDB table into Spark: tidemill's `spark.read` against Spark's own JDBC reader.

Both read the same table by the same number of tasks into the `noop` sink, in turn; JDBC with the driver of
MariaDB, divided by the primary key, and with a fetch size, without which the driver holds all rows in memory.
`build/jdbc` has the driver (`tests/services/jdbc`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from ..testing.mariadb import MariaDb
from ..testing.private_server import PASSWORD
from .in_turn import median_pairs, seconds_of
from .mysql import fill

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOME: Final = Path(os.environ.get("TIDEMILL_JDBC") or Path(__file__).parents[1] / "build/jdbc")
_TABLE: Final = "bench.one"
_FETCH_ROWS: Final = 10_000

Measured: TypeAlias = Callable[[], object]


def driver() -> str:
    """Return the path of the driver's jar; empty if it isn't here."""
    return ",".join(map(str, sorted(HOME.glob("mariadb-java-client-*.jar"))))


def jdbc_seconds(spark: SparkSession, folder: Path, rows: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the median seconds of tidemill and of JDBC: of a whole table by one task (`jdbc_one`) and two
    (`jdbc`), and of one row by its key (`jdbc_row`); and for the latter instead of JDBC's those of a data
    source in Python that has only this row (`python_row`)."""
    from .spark_source import RowSource

    spark.dataSource.register(RowSource)
    with MariaDb(folder / "mariadb-jdbc") as server:
        fill(server, "one", rows)
        pairs: dict[str, tuple[Measured, Measured]] = {
            "jdbc": (lambda: write(_ours(spark, server, 2)), lambda: write(_jdbc(spark, server, rows, 2))),
            "jdbc_one": (
                lambda: write(_ours(spark, server, 1)),
                lambda: write(_jdbc(spark, server, rows, 1)),
            ),
            "jdbc_row": (
                lambda: _one(_ours(spark, server, 1).where("after.id = 5")),
                lambda: _one(_jdbc(spark, server, rows, 1).where("id = 5")),
            ),
            "python_row": (
                lambda: _one(_ours(spark, server, 1).where("after.id = 5")),
                lambda: _one(spark.read.format("bench-row").load().where("id = 5")),
            ),
        }
        for frame in (_ours(spark, server, 2), _jdbc(spark, server, rows, 2)):
            if (count := frame.count()) != rows:
                raise RuntimeError(f"{count} rows came of {rows}")
        timed = {
            name: (partial(seconds_of, ours), partial(seconds_of, theirs))
            for name, (ours, theirs) in pairs.items()
        }
        return median_pairs(timed, rounds, warm_ups=1)


def _ours(spark: SparkSession, server: MariaDb, tasks: int) -> DataFrame:
    options = {"source": server.url(), "table": _TABLE, "partitions": str(tasks), "filterPushdown": "true"}
    return spark.read.format("tidemill").options(**options).load()


def jdbc(spark: SparkSession, server: MariaDb, table: str, rows: int, tasks: int) -> DataFrame:
    """Return a table, with a column `id` from 1 to `rows`, by Spark's JDBC reader."""
    options = {
        # Of this scheme Spark knows how names are quoted.
        "url": f"jdbc:mysql://{server.host}:{server.port}/bench?permitMysqlScheme=true",
        "driver": "org.mariadb.jdbc.Driver",
        "dbtable": table,
        "user": "root",
        "password": PASSWORD,
        "fetchsize": str(_FETCH_ROWS),
    }
    if tasks > 1:
        bounds = {"partitionColumn": "id", "lowerBound": "1", "upperBound": str(rows + 1)}
        options |= {**bounds, "numPartitions": str(tasks)}
    return spark.read.format("jdbc").options(**options).load()


def _jdbc(spark: SparkSession, server: MariaDb, rows: int, tasks: int) -> DataFrame:
    return jdbc(spark, server, _TABLE, rows, tasks)


def write(frame: DataFrame) -> None:
    """Read all rows, into a sink that ignores them."""
    frame.write.format("noop").mode("overwrite").save()


def _one(frame: DataFrame) -> None:
    if len(frame.collect()) != 1:
        raise RuntimeError("a row with the id 5 was expected")
