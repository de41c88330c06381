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
from .schema_changes import EVOLVE, Check, before_start, held_by, since_start


def batches(
    options: ReadOptions, output: Output, partition: TaskPartition, captures: Captures | None
) -> Generator[pa.RecordBatch]:
    """Yield the partition's changes, the same from both. Raises Retryable and Fatal."""
    part, start, end = partition.part, partition.start, partition.end
    assert start is not None
    check = _check(options, output, partition)
    if captures is None or part.is_range:  # captures don't know key ranges
        with closing(bounded.change_items(options, part, start, end)) as items:
            yield from output.batches(Pick(part, options.operations), items, check)
        return
    captures = replace(captures, lease=partition.lease)
    wanted = replace(options, values=output.values if output.is_raw else "none")
    with closing(task.changes(wanted, part, start, end, captures)) as envelopes:
        yield from output.from_envelope(envelopes, check)


def _check(options: ReadOptions, output: Output, partition: TaskPartition) -> Check | None:
    """Return the check of each layout of the table, for typed columns."""
    if output.table is None:
        return None
    if options.schema_changes == EVOLVE:
        return held_by(output.table)
    return (before_start if partition.is_from_before else since_start)(output.table)
