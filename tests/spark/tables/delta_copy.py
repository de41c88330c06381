"""A Delta table that follows a table of MariaDB, run by a Python with a PySpark that Delta Lake is made for.

    python delta_copy.py URL TABLE DIRECTORY POSITION JARS

loads the table as batch 0, prints "loaded" and waits for a line. Then it follows the changes from the
binlog's position POSITION, a few rows a batch. Each batch is merged twice, the first time up to a
statement that drops a column. It prints the copy's rows and the refusals of an older batch as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import tidemill.spark
from tidemill.errors import CheckpointError
from tidemill.spark.tables import TableChanges, TypedTables, by_table, catalog, merge_into

execute = catalog.CopyTable.execute


def interrupted(target: catalog.CopyTable, statement: str) -> None:
    execute(target, statement)
    if "DROP COLUMN" in statement:
        raise InterruptedError


def main(url: str, table: str, directory: str, position: str, jars: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", ",".join(str(jar) for jar in Path(jars).glob("*.jar")))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.warehouse.dir", f"{directory}/warehouse")
        .config("spark.sql.shuffle.partitions", 1)
        .config("spark.databricks.delta.snapshotPartitions", 1)
        .config("spark.ui.enabled", False)
        .getOrCreate()
    )
    tidemill.spark.register(spark)
    target = f"delta.`{directory}/copy`"
    there = spark.read.format("tidemill").option("source", url).option("table", table).load()
    columns = ", ".join(
        f"`{one.name}` {one.dataType.simpleString()}" for one in there.schema["after"].dataType
    )
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"  # columns can be dropped
    spark.sql(f"CREATE TABLE {target} ({columns}) USING delta {mapped}")
    merge_into(there, target, batch=0)
    print("loaded", flush=True)
    sys.stdin.readline()
    older: list[TableChanges] = []
    refusals: list[str] = []

    def write(tables: TypedTables, number: int) -> None:
        for changes in tables.changes.values():
            catalog.CopyTable.execute = interrupted  # type: ignore[method-assign]
            with suppress(InterruptedError):
                merge_into(changes, target, batch=number + 1)
            catalog.CopyTable.execute = execute  # type: ignore[method-assign]
            merge_into(changes, target, batch=number + 1)
            older.append(changes)
            try:
                merge_into(older[0], target, batch=1)
            except CheckpointError as error:
                refusals.append(str(error))

    stream: DataFrame = (
        spark.readStream.format("tidemill")
        .option("source", url)
        .option("tables", table)
        .option("values", "none")
        .option("startingPosition", position)
        .option("maxRowsPerBatch", 10)
        .load()
    )
    writer = stream.writeStream.foreachBatch(by_table(write)).option("checkpointLocation", f"{directory}/at")
    writer.trigger(availableNow=True).start().awaitTermination()
    rows = [[str(value) for value in row] for row in spark.table(target).collect()]
    print(json.dumps({"rows": sorted(rows), "refusals": refusals}))


if __name__ == "__main__":
    main(*sys.argv[1:])
