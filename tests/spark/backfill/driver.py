"""A backfill in a process of its own, to be killed: url, tables, directory, rows of a chunk."""

from __future__ import annotations

import sys

import tidemill.spark
from tidemill.spark.backfill.backfill import backfill
from tidemill.spark.backfill.options import BackfillOptions


def main() -> None:
    url, tables, directory, rows = sys.argv[1:]
    spark = tidemill.spark.session("backfill", "local[2]", {"spark.driver.memory": "512m"})
    backfill(spark, {"source": url, "tables": tables}, directory, BackfillOptions(chunk_rows=int(rows)))


if __name__ == "__main__":
    main()
