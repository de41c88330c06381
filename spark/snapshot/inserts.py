"""Batches of a snapshot's rows."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from ...codec.arrow_arrays import int64_array, repeated
from ...events import Ts

_PART_BITS: Final = 40
"""Bits of `sequence` for the rows of one part."""


class Inserts:
    """Makes batches of the rows of one part: inserts at the snapshot's ts, each with a number of its own."""

    def __init__(self, schema: pa.Schema, part: int, ts: Ts) -> None:
        """`schema` is that of typed changes."""
        self._schema = schema
        self._ts = ts
        self._sequence = part << _PART_BITS

    def batch(self, after: pa.Array) -> pa.RecordBatch:
        """Return the batch of these rows."""
        count = len(after)
        ts = repeated([self._ts], [count], pa.int64())
        op = repeated(["insert"], [count], pa.string())
        numbers = int64_array(np.arange(self._sequence, self._sequence + count))
        self._sequence += count
        columns = [ts, ts, numbers, op, pa.nulls(count, after.type), after]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)
