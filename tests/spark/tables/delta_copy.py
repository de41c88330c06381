"""A Delta table that follows a table of MariaDB, run by a Python with a PySpark that Delta Lake is made for.

    python delta_copy.py URL TABLE DIRECTORY POSITION JARS

loads the table as batch 0, follows its changes from the binlog's position POSITION, a few rows a batch, and
prints the copy's rows and the number of Delta's versions as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import tidemill.spark
from tidemill.spark.tables import TypedTables, by_table, merge_into

KEY = ["a", "b"]


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
    spark.sql(f"CREATE TABLE {target} ({columns}) USING delta")
    merge_into(there, target, key=KEY)

    def write(tables: TypedTables, number: int) -> None:
        for frame in tables.values():
            for _ in range(2):  # the second time as when Spark repeats a batch
                merge_into(frame, target, key=KEY)

    stream: DataFrame = (
        spark.readStream.format("tidemill")
        .option("source", url)
        .option("tables", table)
        .option("values", "none")
        .option("startingPosition", position)
        .option("maxRowsPerBatch", 5)
        .load()
    )
    writer = stream.writeStream.foreachBatch(by_table(write)).option("checkpointLocation", f"{directory}/at")
    writer.trigger(availableNow=True).start().awaitTermination()
    rows = [[str(value) for value in row] for row in spark.table(target).collect()]
    versions = spark.sql(f"DESCRIBE HISTORY {target}").count()
    print(json.dumps({"rows": sorted(rows), "versions": versions}))


if __name__ == "__main__":
    main(*sys.argv[1:])
