"""A filter of changes with the same result as `bounded.changes`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ...events import Ts

Has: TypeAlias = Callable[[str, str], bool]
"""Predicate of schema and table name."""
_SEQUENCE: Final = 2
_SCHEMA: Final = 3
_TABLE: Final = 4
_OP: Final = 5
_POSITION: Final = 8
_SEPARATOR: Final = "\0"


class Narrow:
    """Keeps only the rows that match `kept` and the operations.

    With `counted`, the rows that match it get new sequence numbers. The last row left of a transaction gets
    the transaction's position: while a transaction is open its latest row is withheld, as it may be the last.
    """

    def __init__(self, counted: Has | None, kept: Has, operations: Collection[str]) -> None:
        self._counted = counted
        self._kept = kept
        self._operations = pa.array(operations, pa.string())
        self._at: tuple[Ts, Ts] = (0, 0)
        self._sequence = 0  # number of the next counted row of that transaction
        self._withheld: pa.RecordBatch | None = None

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows left of the next batch, possibly none."""
        kept = pc.and_(_mask(batch, self._kept), pc.is_in(batch.column(_OP), self._operations))
        if self._counted is None:
            rows = batch.filter(kept)
        else:
            counted = _mask(batch, self._counted)
            rows = self._numbered(batch.filter(counted)).filter(kept.filter(counted))
        places = pc.indices_nonzero(kept).to_pylist()
        if self._withheld is not None:
            rows, places = pa.concat_batches([self._withheld, rows]), [-1, *places]
            self._withheld = None
        return self._ended(rows, places, batch.column(_POSITION))

    def _numbered(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        sequences: list[int] = []
        for stamp in _stamps(rows):
            if stamp != self._at:
                self._at, self._sequence = stamp, 0
            sequences.append(self._sequence)
            self._sequence += 1
        return _with(rows, _SEQUENCE, pa.array(sequences, pa.int64()))

    def _ended(self, rows: pa.RecordBatch, places: list[int], positions: pa.Array) -> pa.RecordBatch:
        """Set the positions of `rows`; `places` are their numbers in the batch, `positions` the batch's."""
        ends = pc.indices_nonzero(positions.is_valid())
        texts: list[str | None] = [None] * len(places)
        first = 0
        for end, text in zip(ends.to_pylist(), positions.take(ends).to_pylist(), strict=True):
            stop = bisect_right(places, end, first)
            if stop > first:
                texts[stop - 1] = text
            first = stop
        rows = _with(rows, _POSITION, pa.array(texts, pa.string()))
        if first < len(places):
            self._withheld = rows.slice(rows.num_rows - 1)
            rows = rows.slice(0, rows.num_rows - 1)
        return rows


def _mask(batch: pa.RecordBatch, has: Has) -> pa.Array:
    names = pc.binary_join_element_wise(batch.column(_SCHEMA), batch.column(_TABLE), _SEPARATOR)
    coded = names.dictionary_encode()
    wanted = [has(*name.split(_SEPARATOR)) for name in coded.dictionary.to_pylist()]
    return pa.array(wanted, pa.bool_()).take(coded.indices)


def _with(rows: pa.RecordBatch, number: int, column: pa.Array) -> pa.RecordBatch:
    columns: list[object] = rows.columns
    columns[number] = column
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _stamps(batch: pa.RecordBatch) -> list[tuple[Ts, Ts]]:
    """Return commit ts and start ts of each row."""
    return list(zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True))
