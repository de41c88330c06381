"""The images as JSON, made where they are asked for: a capture keeps the exact bytes only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import pyarrow as pa

from ...events import Row
from ..change import NO_LAYOUT, Images, Layouts
from ..envelope import row_text

_BEFORE: Final = 6
_AFTER: Final = 7
_CHANGE: Final = 10
_LAYOUT: Final = 11
_MAX_TABLES: Final = 1000

_Code: TypeAlias = tuple[Callable[[bytes], Images], Callable[[Row | None], str | None]]
"""From a change to its images, and from an image to its text."""


class Texts:
    """Fills the columns `before` and `after` of envelope batches. For one thread."""

    def __init__(self) -> None:
        self._layouts = Layouts()
        self._codes: dict[bytes, _Code] = {}

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Raises SinkError for a layout that tidemill didn't write."""
        before: list[str | None] = []
        after: list[str | None] = []
        layouts = batch.column(_LAYOUT).dictionary_encode()
        codes = [self._code(layout) for layout in layouts.dictionary.to_pylist()]
        changes = batch.column(_CHANGE).to_pylist()
        for change, number in zip(changes, layouts.indices.to_pylist(), strict=True):
            decode, text = codes[number]
            old, new, _ = decode(change)
            before.append(text(old))
            after.append(text(new))
        columns = batch.columns
        columns[_BEFORE], columns[_AFTER] = pa.array(before, pa.string()), pa.array(after, pa.string())
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _code(self, layout: bytes) -> _Code:
        if layout == NO_LAYOUT:
            return _no_images, _no_text
        found = self._codes.get(layout)
        if found is None:
            if len(self._codes) >= _MAX_TABLES:
                self._codes.clear()
            rows = self._layouts.read(layout)
            found = self._codes[layout] = rows.decode, row_text(rows.table)
        return found


def _no_images(_change: bytes) -> Images:
    return None, None, None


def _no_text(_row: Row | None) -> None:
    return None
