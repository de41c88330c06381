"""The memory of a load into a copy: bounded by `file_bytes`, whatever the number of rows."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tidemill.store.map import Map

ROWS = 100_000
FILE_BYTES = 4 << 20
SLACK_BYTES = 32 << 20
"""Difference of two equal loads: buffers of the index, and what allocators keep."""
PROGRAM = """
import sys
from resource import RUSAGE_SELF, getrusage
from tidemill.benchmarks.lake_rows import TABLE, created, new_rows
from tidemill.events import Batch, Checkpoint, Chunk, TableProgress
from tidemill.sink import open_sink
from tidemill.sink.sink import closing
from tidemill.testing.changes import MemoryStore

url, rows, file_bytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
options = {"mode": "copy", "file_bytes": file_bytes, "flush_seconds": 3600.0, "journal_seconds": 3600.0}
sink = open_sink("copy", url, feed="test", store=MemoryStore(), options=options)
sink.open()
with closing(sink):
    def write(item):
        sink.write(Batch([item], Checkpoint(item.commit_ts, "", None, "src")))
    write(created(TABLE))
    sink.flush()
    chunk = Chunk(TABLE.full_name, TableProgress())
    for first in range(0, rows, 5_000):
        write(new_rows(TABLE, range(first, first + 5_000), chunk))
        sink.progress()
    sink.flush()
print(getrusage(RUSAGE_SELF).ru_maxrss << 10)
"""


def peak(url: str, rows: int, file_bytes: int) -> int:
    """Return the most bytes that a process had in memory which loaded these rows."""
    command = [sys.executable, "-c", PROGRAM, url, str(rows), str(file_bytes)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("scheme", ["delta", "iceberg+sql"])
def test_more_rows_take_no_more_memory(tmp_path, scheme):
    few, many = (peak(f"{scheme}://{tmp_path}/{n}", n * ROWS, FILE_BYTES) for n in (1, 4))
    assert many - few < SLACK_BYTES


def test_larger_files_take_their_size_and_no_objects_for_their_rows(tmp_path):
    small, large = (peak(f"delta://{tmp_path}/{n}", 4 * ROWS, n * FILE_BYTES) for n in (1, 8))
    assert large - small < 2 * 7 * FILE_BYTES + SLACK_BYTES


def test_the_memory_of_a_map_does_not_depend_on_its_keys(tmp_path):
    pairs = Map(tmp_path / "map")
    for first in range(0, 200_000, 20_000):
        keys = [key.to_bytes(8, "big") for key in range(first, first + 20_000)]
        pairs.put(keys, [bytes(12)] * len(keys))
    pairs._db.flush(wait=True)
    own = pairs._db.property_int_value("rocksdb.estimate-table-readers-mem")
    pairs.close()
    assert own < 20_000  # filters and indexes have 250,000
