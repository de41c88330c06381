"""A backfill in a process of its own. Takes JSON: `master`, `source` and `directory`."""

from __future__ import annotations

import json
import sys

import tidemill.spark
from tidemill.spark.backfill.backfill import backfill


def main() -> None:
    given = json.loads(sys.argv[1])
    spark = tidemill.spark.session("backfill", given["master"], {"spark.driver.memory": "512m"})
    try:
        backfill(spark, given["source"], given["directory"])
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
