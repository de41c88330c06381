"""The columns that a reader gives to Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ...codec.ddl_bytes import decode_ddl
from ...errors import ConfigError
from ...events import Item, Table, row_count
from ..change import RowCodecs
from ..change_groups import change_groups, in_order
from ..envelope import EnvelopeEncoder, to_batch
from .commit_time import COMMIT_TIME, commit_times
from .options import ReadOptions
from .pick import Pick
from .schema import full_type
from .schema_changes import EVOLVE, Check
from .typed import TypedEncoder

MIN_ROWS: Final = 4_000
"""Rows of a batch for Spark: below that, its fixed costs count."""


class Encodes(Protocol):
    def encode(self, items: Sequence[Item]) -> pa.RecordBatch: ...


class Output:
    """Encodes items as the raw envelope or as one table's columns: all, or those that `schema` names."""

    def __init__(self, options: ReadOptions, table: Table | None, schema: StructType) -> None:
        """Raises ConfigError if `schema` has unknown columns or other types."""
        self._options = options
        self.is_raw: Final = table is None
        self.table: Final = table
        self._names = schema.names
        full = full_type(table)
        _check(schema, full)
        self.schema: Final[pa.Schema] = to_arrow_schema(schema, timezone="UTC")
        has_images = "before" in self._names or "after" in self._names
        self.values: Final = options.values if has_images else "none"
        """Format of the envelope's images, as in the options; "none" if `schema` names none of them."""

    def batches(
        self, pick: Pick, changes: Iterable[Sequence[Item]], check: Check | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `changes` that `pick` selects, without empty batches.

        With typed columns, `check` is called with each layout of the table.
        """
        encoder = self._encoder(pick, check)
        for items in _joined(changes):
            batch = encoder.encode(items)
            if batch.num_rows:
                yield self.selected(batch)

    def from_envelope(
        self, envelopes: Iterable[pa.RecordBatch], check: Check | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of envelope batches, without empty batches; otherwise as `batches` does.

        With typed columns, the images of `envelopes` may be null.
        """
        typed = None if self.table is None else TypedBatches(self._typed_encoder(self.table, Pick(), check))
        for batch in envelopes:
            made = batch if typed is None else typed.convert(batch)
            if made.num_rows:
                yield self.selected(made)

    def _encoder(self, pick: Pick, check: Check | None) -> Encodes:
        if self.table is not None:
            return self._typed_encoder(self.table, pick, check)
        return EnvelopeEncoder(pick, json=self.values == "json")

    def _typed_encoder(self, table: Table, pick: Pick, check: Check | None) -> TypedEncoder:
        invalid_dates = self._options.invalid_dates
        widens = self._options.schema_changes == EVOLVE
        return TypedEncoder(table, pick, invalid_dates=invalid_dates, check=check, widens=widens)

    def selected(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with the columns of the schema."""
        columns = [
            commit_times(batch.column("commit_ts")) if name == COMMIT_TIME else batch.column(name)
            for name in self._names
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _joined(batches: Iterable[Sequence[Item]]) -> Iterator[Sequence[Item]]:
    """Yield the same items in batches that have at least MIN_ROWS rows, except for the last one."""
    waiting: list[Item] = []
    rows = 0
    for items in batches:
        waiting += items
        rows += row_count(items)
        if rows >= MIN_ROWS:
            yield waiting
            waiting, rows = [], 0
    if waiting:
        yield waiting


def _check(schema: StructType, full: StructType) -> None:
    known = {field.name: field.dataType for field in full}
    for field in schema:
        if field.name not in known:
            raise ConfigError(f"schema: there is no column {field.name}; there are {', '.join(known)}")
        if field.dataType != known[field.name]:
            raise ConfigError(
                f"schema: column {field.name} is {known[field.name].simpleString()}, not "
                f"{field.dataType.simpleString()}; leave the schema out, or name columns as they are"
            )


class TypedBatches:
    """Converts batches of `encoder`'s table, in which all rows of the envelope are wanted.

    The result is what `encoder` makes of the same changes.
    """

    def __init__(self, encoder: TypedEncoder) -> None:
        self._encoder = encoder
        self._layouts = RowCodecs()

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows, possibly none: schema changes are checked and left out.

        Raises SinkError for columns that aren't as they were read, and SourceError as the encoder does.
        """
        schema, encoder = self._encoder.schema, self._encoder
        is_ddl = pc.equal(batch.column("op"), "ddl")
        if pc.any(is_ddl).as_py():
            for change in batch.column("change").filter(is_ddl).to_pylist():
                encoder.check_visible(decode_ddl(change))
            batch = batch.filter(pc.invert(is_ddl))
        groups = change_groups(self._layouts, batch)
        if not groups:
            return to_batch([], schema)
        images = zip(*[encoder.images([group.run]) for group in groups], strict=True)
        before, after = (in_order(groups, arrays, batch.num_rows) for arrays in images)
        columns = [batch.column(field.name) for field in list(schema)[:4]]
        return pa.RecordBatch.from_arrays([*columns, before, after], schema=schema)
