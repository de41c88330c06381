"""A stream's task: reads from captures if there are any, otherwise from the source."""

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
from .schema_changes import EVOLVE, before_start, held_by, since_start


def batches(
    options: ReadOptions, output: Output, partition: TaskPartition, captures: Captures | None
) -> Generator[pa.RecordBatch]:
    """Yield the partition's changes, the same from both. Raises Retryable and Fatal."""
    part, start, end = partition.part, partition.start, partition.end
    assert start is not None
    if captures is None or part.is_range:  # captures don't know key ranges
        items = bounded.change_items(options, part, start, end)
    else:
        captures = replace(captures, lease=partition.lease)
        if output.is_raw:  # captures send the envelope
            wanted = replace(options, values=output.values)
            with closing(task.changes(wanted, part, start, end, captures)) as found:
                yield from map(output.selected, found)
            return
        items = task.change_items(options, part, start, end, captures)
    check = None
    if output.table is not None:
        if options.schema_changes == EVOLVE:
            check = held_by(output.table)
        else:
            check = (before_start if partition.is_from_before else since_start)(output.table)
    with closing(items):
        yield from output.batches(Pick(part, options.operations), items, check)
