"""Batches of the archive are the same from a run's bytes as from its rows."""

from __future__ import annotations

import pytest

from tidemill.codec.images import read_images
from tidemill.events import runs_of
from tidemill.sink.files.parquet_columns import ChangeColumns

from ...codec.runs import runs_of_rows
from ...codec.vectors import load


@pytest.mark.parametrize("op", [23, 24, 25])
def test_bytes_and_rows_make_the_same_batch(op):
    for vector in load():
        runs = [run for run in runs_of_rows(vector, op) if read_images([run]) is not None]
        if not runs:
            continue
        columns = ChangeColumns(runs[0].table)
        numbers = range(0, 2 * len(runs), 2)
        from_bytes = columns.batch([(7, 6, n, False, run) for n, run in zip(numbers, runs, strict=True)])
        from_rows = columns.batch(
            [
                (7, 6, n, False, decoded)
                for n, run in zip(numbers, runs, strict=True)
                for decoded in runs_of(run.changes())
            ]
        )
        from_bytes.validate(full=True)
        assert from_bytes.equals(from_rows) or repr(from_bytes.to_pylist()) == repr(from_rows.to_pylist())
        assert from_bytes.schema == from_rows.schema
