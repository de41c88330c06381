"""Some of the changes only, as `bounded.changes` would give them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ...events import Ts

Has: TypeAlias = Callable[[str, str], bool]
"""Of schema and table."""
_SEQUENCE: Final = 2
_SCHEMA: Final = 3
_TABLE: Final = 4
_OP: Final = 5
_POSITION: Final = 8
_SEPARATOR: Final = "\0"


class Narrow:
    """Numbers the rows that are `counted` anew, if given, and leaves out those that aren't `kept`, or are of
    other operations. The last row left of a transaction gets its position: while one is open that row is held
    back, as it may turn out to be the last.
    """

    def __init__(self, counted: Has | None, kept: Has, operations: Collection[str]) -> None:
        self._counted = counted
        self._kept = kept
        self._operations = pa.array(operations, pa.string())
        self._at: tuple[Ts, Ts] = (0, 0)
        self._sequence = 0  # of the next counted row of that transaction
        self._held: pa.RecordBatch | None = None

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are left, maybe none; `batch` follows the one before."""
        positions = batch.column(_POSITION).to_pylist()
        ends = {stamp: end for stamp, end in zip(_stamps(batch), positions, strict=True) if end}
        if self._counted is not None:
            batch = self._numbered(batch.filter(_mask(batch, self._counted)))
        is_kept = pc.and_(_mask(batch, self._kept), pc.is_in(batch.column(_OP), self._operations))
        rows = batch.filter(is_kept)
        if self._held is not None:
            rows, self._held = pa.concat_batches([self._held, rows]), None
        return self._ended(rows, ends) if rows.num_rows else rows

    def _numbered(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        sequences: list[int] = []
        for stamp in _stamps(rows):
            if stamp != self._at:
                self._at, self._sequence = stamp, 0
            sequences.append(self._sequence)
            self._sequence += 1
        return _with(rows, _SEQUENCE, pa.array(sequences, pa.int64()))

    def _ended(self, rows: pa.RecordBatch, ends: dict[tuple[Ts, Ts], str]) -> pa.RecordBatch:
        stamps = _stamps(rows)
        following = [*stamps[1:], None]
        pairs = zip(stamps, following, strict=True)
        positions = [ends.get(stamp) if after != stamp else None for stamp, after in pairs]
        rows = _with(rows, _POSITION, pa.array(positions, pa.string()))
        if positions[-1] is None:
            self._held = rows.slice(rows.num_rows - 1)
            return rows.slice(0, rows.num_rows - 1)
        return rows


def _mask(batch: pa.RecordBatch, has: Has) -> pa.Array:
    names = pc.binary_join_element_wise(batch.column(_SCHEMA), batch.column(_TABLE), _SEPARATOR)
    coded = names.dictionary_encode()
    wanted = [has(*name.split(_SEPARATOR)) for name in coded.dictionary.to_pylist()]
    return pa.array(wanted, pa.bool_()).take(coded.indices)


def _with(rows: pa.RecordBatch, number: int, column: pa.Array) -> pa.RecordBatch:
    columns: list[Any] = rows.columns
    columns[number] = column
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _stamps(batch: pa.RecordBatch) -> list[tuple[Ts, Ts]]:
    """Commit and start ts of each row."""
    return list(zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True))
