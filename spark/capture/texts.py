"""Row images as JSON, made by the client: a capture buffers only the exact bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from ...codec.images import read_images
from ...events import Row
from ..change import RowCodecs
from ..change_groups import ChangeGroup, change_groups, in_order
from ..envelope import row_text
from ..json_text import json_texts

_BEFORE: Final = 6
_AFTER: Final = 7
_MAX_TABLES: Final = 1000


class Texts:
    """Fills the columns `before` and `after` of envelope batches. For one thread."""

    def __init__(self) -> None:
        self._layouts = RowCodecs()
        self._texts: dict[bytes, Callable[[Row | None], str | None]] = {}

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with both columns filled. Raises SinkError for a layout that isn't tidemill's."""
        groups = change_groups(self._layouts, batch)
        if not groups:  # schema changes have no images
            return batch
        images = zip(*map(self._of_group, groups), strict=True)
        columns = batch.columns
        columns[_BEFORE], columns[_AFTER] = (in_order(groups, arrays, batch.num_rows) for arrays in images)
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _of_group(self, group: ChangeGroup) -> tuple[pa.Array, pa.Array]:
        run, count = group.run, len(group.places)
        images = read_images([run])
        if images is not None:
            before, after = (json_texts(run.table, image, count) for image in images)
            return before, after
        text, changes = self._text(group), run.changes()
        befores, afters = [text(one.before) for one in changes], [text(one.after) for one in changes]
        return pa.array(befores, pa.string()), pa.array(afters, pa.string())

    def _text(self, group: ChangeGroup) -> Callable[[Row | None], str | None]:
        text = self._texts.get(group.layout)
        if text is None:
            if len(self._texts) >= _MAX_TABLES:
                self._texts.clear()
            text = self._texts[group.layout] = row_text(group.run.table)
        return text
