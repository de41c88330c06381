"""A program that reads Arrow batches: URL, patterns with commas, data directory, file, number.

It appends each batch's changes to the file, a line of JSON each, and acknowledges the batches that end
transactions. After that number of batches it kills itself, before it acknowledges the last of them; with 0 it
reads to the present end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import tidemill


def main(url: str, tables: str, directory: str, file: str, batches: int) -> None:
    with (
        Path(file).open("a", encoding="utf-8") as lines,
        tidemill.open(url, tables.split(","), data_dir=directory, until="now", arrow=True) as feed,
    ):
        for number, batch in enumerate(feed.arrow_batches(), 1):
            for row in batch.data.to_pylist():
                image = row["after"] or row["before"]
                place = row["commit_ts"], row["start_ts"], row["sequence"]
                line = [*place, batch.table.name, row["op"], list(image.values())]
                lines.write(json.dumps(line, default=str) + "\n")
            lines.flush()
            if number == batches:
                os.kill(os.getpid(), signal.SIGKILL)
            feed.ack(batch)


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]))
