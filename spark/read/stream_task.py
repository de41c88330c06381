"""What a task of a stream reads: by way of captures if there are any, or from the source."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from ..capture import task
from ..capture.captures import Captures
from . import bounded
from .options import ReadOptions
from .output import Output
from .partition import TaskPartition
from .pick import Pick
from .schema_changes import before_start, since_start


def batches(
    options: ReadOptions, output: Output, partition: TaskPartition, captures: Captures | None
) -> Generator[pa.RecordBatch]:
    """The partition's changes, the same either way. Raises Retryable and Fatal."""
    part, start, end = partition.part, partition.start, partition.end
    assert start is not None
    if captures is None or part.is_range:  # of which a capture knows nothing
        items = bounded.change_items(options, part, start, end)
    else:
        captures = replace(captures, lease=partition.lease)
        if output.is_raw:  # the envelope comes ready
            wanted = replace(options, values=output.values)
            with closing(task.changes(wanted, part, start, end, captures)) as found:
                yield from map(output.selected, found)
            return
        items = task.change_items(options, part, start, end, captures)
    check = None
    if output.table is not None:
        check = (before_start if partition.is_from_before else since_start)(output.table)
    with closing(items):
        yield from output.batches(Pick(part, options.operations), items, check)
