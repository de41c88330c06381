"""The changes of a database into partitioned Parquet files, each exactly once, with Structured Streaming.

    python spark_stream.py mysql://user:password@host:3306 'shop.*' /var/lake/shop [--now]

After a stop or kill, a new start continues where it was. With --now it ends at the source's current end.
"""

import sys

from pyspark.sql import SparkSession

import tidemill.spark


def main(*arguments: str) -> None:
    spark = tidemill.spark.session("changes to Parquet")
    follow(spark, *arguments)
    spark.stop()


def follow(spark: SparkSession, source: str, tables: str, directory: str, *flags: str) -> None:
    changes = (
        spark.readStream.format("tidemill")
        .option("source", source)
        .option("tables", tables)
        .option("startingTs", "earliest")
        .option("maxRowsPerBatch", 1000)
        .load()
    )
    stream = (
        changes.drop("change", "layout")
        .writeStream.format("parquet")
        .partitionBy("schema", "table")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .option("path", f"{directory}/changes")
    )
    ends = "--now" in flags
    timed = stream.trigger(availableNow=True) if ends else stream.trigger(processingTime="0 seconds")
    timed.start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
