"""Envelope batches of one table as batches with its columns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ...codec.ddl_bytes import decode_ddl
from ..change import Layouts
from ..change_groups import change_groups, in_order
from ..envelope import to_batch
from .typed import TypedEncoder


class TypedBatches:
    """Converts batches of `encoder`'s table, in which all rows of the envelope are wanted.

    The result is what `encoder` makes of the same changes.
    """

    def __init__(self, encoder: TypedEncoder) -> None:
        self._encoder = encoder
        self._layouts = Layouts()

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
