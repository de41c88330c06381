"""A stream of all that there is into Parquet files, in a process of its own.

Takes JSON: `master`, `config` of Spark, `options` of the source, `directory`, and `until`, a path: the
stream goes on until there is such a file. Prints the numbers of rows of
the batches.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import tidemill.spark


def main() -> None:
    given = json.loads(sys.argv[1])
    directory = Path(given["directory"])
    config = {"spark.sql.streaming.numRecentProgressUpdates": "10000", **given["config"]}
    spark = tidemill.spark.session("backlog", given["master"], config)
    try:
        frame = spark.readStream.format("tidemill").options(**given["options"]).load()
        writer = frame.writeStream.format("parquet").option("path", str(directory / "rows"))
        writer = writer.option("checkpointLocation", str(directory / "checkpoint"))
        if "until" in given:
            query = writer.start()
            while not Path(given["until"]).exists():
                query.awaitTermination(0.1)  # raises its error
            query.processAllAvailable()
            query.stop()
        else:
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
        sys.stdout.write(
            "\n" + json.dumps({"batches": [one.numInputRows for one in query.recentProgress]}) + "\n"
        )
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
