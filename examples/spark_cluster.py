"""The changes of a database into Parquet files, each exactly once, by the workers of a Spark cluster.

    python spark_cluster.py spark://host:7077 mysql://user:password@host 'shop.*' /shared/shop [partitions]

It ends at the source's present end; the next run continues there. Workers need tidemill and the directory,
which is shared. commit_ts, start_ts and sequence are the order of the changes.
"""

import sys

import tidemill.spark


def main(master: str, source: str, tables: str, directory: str, partitions: str = "2") -> None:
    config = {
        "spark.cores.max": partitions,  # one for each partition
        "spark.scheduler.minRegisteredResourcesRatio": "1",  # all of them, before the first batch
    }
    spark = tidemill.spark.session("changes to Parquet", master, config)
    changes = (
        spark.readStream.format("tidemill")
        .option("source", source)
        .option("tables", tables)
        .option("startingTs", "earliest")
        .option("partitions", partitions)
        .load()
    )
    files = (
        changes.drop("change", "layout")
        .writeStream.format("parquet")
        .partitionBy("schema", "table")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .option("path", f"{directory}/changes")
        .trigger(availableNow=True)
    )
    tidemill.spark.supervise(files.start)  # again after an error that passes
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
