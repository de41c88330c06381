"""Run by a Python of its own, with Delta Lake: prints the rows of a table as JSON, and joins its files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main(table: str, jars: str) -> None:
    paths = ",".join(str(path) for path in Path(jars).glob("*.jar"))
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", paths)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .getOrCreate()
    )
    rows = spark.read.format("delta").load(table).collect()
    spark.sql(f"DELETE FROM delta.`{table}` WHERE 1 = 0")
    spark.sql(f"OPTIMIZE delta.`{table}`").collect()
    print(json.dumps([list(row) for row in rows]))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
