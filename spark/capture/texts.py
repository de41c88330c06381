"""Row images as JSON, made by the client: a capture buffers only the exact bytes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ...codec.images import read_images
from ...codec.row_bytes import RowBytes
from ...events import Row
from ..change import NO_LAYOUT, EventBytes, Layouts
from ..envelope import row_text
from ..json_text import json_texts

_OP: Final = 5
_BEFORE: Final = 6
_AFTER: Final = 7
_CHANGE: Final = 10
_LAYOUT: Final = 11
_MAX_TABLES: Final = 1000


class Texts:
    """Fills the columns `before` and `after` of envelope batches. For one thread."""

    def __init__(self) -> None:
        self._layouts = Layouts()
        self._texts: dict[bytes, Callable[[Row | None], str | None]] = {}

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with both columns filled. Raises SinkError for a layout that isn't tidemill's."""
        layouts = batch.column(_LAYOUT).dictionary_encode()
        numbers = layouts.indices.to_numpy()
        found: list[tuple[Any, pa.Array, pa.Array]] = []
        for number, layout in enumerate(layouts.dictionary.to_pylist()):
            places = np.flatnonzero(numbers == number)
            its = batch if len(places) == batch.num_rows else batch.take(pa.array(places))
            found.append((places, *self._of_layout(layout, its)))
        columns = batch.columns
        if len(found) == 1:
            _, columns[_BEFORE], columns[_AFTER] = found[0]
        elif found:
            every, befores, afters = zip(*found, strict=True)
            back = pa.array(np.argsort(np.concatenate(every), kind="stable"))
            columns[_BEFORE] = pa.concat_arrays(befores).take(back)
            columns[_AFTER] = pa.concat_arrays(afters).take(back)
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _of_layout(self, layout: bytes, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        changes = batch.column(_CHANGE).to_pylist()
        code = None if layout == NO_LAYOUT else self._layouts.read(layout)
        if isinstance(code, EventBytes):
            ops = batch.column(_OP).to_pylist()
            stretches = groupby(zip(ops, changes, strict=True), lambda pair: pair[0])
            runs = [code.run([change for _, change in pairs], op, 0, 0) for op, pairs in stretches]
            images = read_images(runs)
            if images is not None:
                before, after = (json_texts(code.table, image, len(changes)) for image in images)
                return before, after
            text = row_text(code.table)
            rows = [(row.before, row.after) for run in runs for row in run.changes()]
        elif code is None:
            return pa.nulls(len(changes), pa.string()), pa.nulls(len(changes), pa.string())
        else:
            text = self._text(code)
            rows = [code.decode(change)[:2] for change in changes]
        befores, afters = ([text(row) for row in side] for side in zip(*rows, strict=True))
        return pa.array(befores, pa.string()), pa.array(afters, pa.string())

    def _text(self, code: RowBytes) -> Callable[[Row | None], str | None]:
        found = self._texts.get(code.layout)
        if found is None:
            if len(self._texts) >= _MAX_TABLES:
                self._texts.clear()
            found = self._texts[code.layout] = row_text(code.table)
        return found
