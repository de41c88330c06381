"""The rows of an envelope batch as runs, of one layout and operation each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..codec.row_bytes import RowBytes
from ..events import Op, RowChange, Run
from .change import NO_LAYOUT, RowCodecs


class ChangeGroup(NamedTuple):
    places: Any
    """Numbers of its rows in the batch, in a numpy array, ascending."""
    layout: bytes
    run: Run
    """The rows, without their timestamps."""


def change_groups(layouts: RowCodecs, batch: pa.RecordBatch) -> list[ChangeGroup]:
    """Group the rows, without schema changes. Raises SinkError for a layout that isn't tidemill's."""
    layout_codes = batch.column("layout").dictionary_encode()
    op_codes = batch.column("op").dictionary_encode()
    ops = op_codes.dictionary.to_pylist()
    codes = layout_codes.indices.to_numpy() * len(ops) + op_codes.indices.to_numpy()
    changes = batch.column("change").cast(pa.binary())
    groups = []
    for code in np.unique(codes):
        layout, op = layout_codes.dictionary[code // len(ops)].as_py(), ops[code % len(ops)]
        if layout == NO_LAYOUT:
            continue
        places = np.flatnonzero(codes == code)
        its = changes if len(places) == len(changes) else changes.take(pa.array(places))
        groups.append(ChangeGroup(places, layout, _run(layouts, layout, op, its)))
    return groups


def _run(layouts: RowCodecs, layout: bytes, op: Op, changes: pa.Array) -> Run:
    code = layouts.read(layout)
    if not isinstance(code, RowBytes):
        return code.run(changes, op, 0, 0)
    rows = []
    for change in changes.to_pylist():
        before, after, _ = code.decode(change)
        rows.append(RowChange(0, 0, code.table, op, before, after))
    return Run(0, 0, code.table, op, rows)


def in_order(groups: Sequence[ChangeGroup], arrays: Sequence[pa.Array], count: int) -> pa.Array:
    """Return `count` rows of which each group's array, of at least one group, has those at its places; null
    where no group has a row."""
    if len(groups) == 1 and len(groups[0].places) == count:
        return arrays[0]
    source_of = np.full(count, -1)
    source_of[np.concatenate([group.places for group in groups])] = np.arange(sum(map(len, arrays)))
    return pa.concat_arrays(arrays).take(pa.array(source_of, mask=source_of < 0))
