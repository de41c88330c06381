"""The images as JSON, made where they are asked for: a capture keeps the exact bytes only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from ...events import Row
from ..change import NO_LAYOUT, Layouts
from ..envelope import row_text

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
        before: list[str | None] = []
        after: list[str | None] = []
        changes, layouts = batch.column(_CHANGE).to_pylist(), batch.column(_LAYOUT).to_pylist()
        for change, layout in zip(changes, layouts, strict=True):
            if layout == NO_LAYOUT:
                before.append(None)
                after.append(None)
                continue
            text = self._texts.get(layout) or self._text(layout)
            old, new, _ = self._layouts.read(layout).decode(change)
            before.append(text(old))
            after.append(text(new))
        columns = batch.columns
        columns[_BEFORE], columns[_AFTER] = pa.array(before, pa.string()), pa.array(after, pa.string())
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _text(self, layout: bytes) -> Callable[[Row | None], str | None]:
        if len(self._texts) >= _MAX_TABLES:
            self._texts.clear()
        found = self._texts[layout] = row_text(self._layouts.read(layout).table)
        return found
