"""Changes between two offsets, and snapshots, read by stateless tasks."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing

import pyarrow as pa

from ...events import Checkpoint, Item, Transaction
from ...sink.table_load import creates_for_snapshot
from ..envelope import EnvelopeEncoder
from ..offsets.offset import Offset
from .options import ReadOptions
from .parts import Part
from .pick import Pick
from .scratch import scratch
from .task import follow


def changes(options: ReadOptions, part: Part, start: Offset, end: Offset) -> Generator[pa.RecordBatch]:
    """Yield the changes of the part's tables in (start, end], in commit order, as envelope batches.

    The result depends only on the arguments and the source. Closing the iterator stops its feed. Raises
    Retryable and Fatal.
    """
    encoder = EnvelopeEncoder(Pick(part, options.operations), json=options.values == "json")
    with closing(change_items(options, part, start, end)) as changes_read:
        for items in changes_read:
            batch = encoder.encode(items)
            if batch.num_rows:
                yield batch


def change_items(options: ReadOptions, part: Part, start: Offset, end: Offset) -> Generator[list[Item]]:
    """Yield the same changes as items, possibly with rows of other parts among them."""
    if start.position == end.position:
        return
    with scratch(options.scratch_dir) as directory:
        feed = options.feed(directory, part, end.position, snapshot=False)
        with closing(follow(feed, start.checkpoint, options.source_timeout)) as batches:
            for batch in batches:
                # The feed ends with the first transaction at or after the position.
                yield [item for item in batch if item.commit_ts <= end.ts]


def snapshot_items(options: ReadOptions, part: Part, at: Offset) -> Generator[list[Item]]:
    """Yield the rows of the part's tables: for TiKV as of `at.ts`, for MariaDB as of now."""
    by_ts = options.reading.by_ts
    start = Checkpoint(0, at.position, {}, at.source) if by_ts else None
    until = at.position if by_ts else "now"
    one_view = {} if by_ts else {"snapshot_workers": 0}
    with scratch(options.scratch_dir) as directory:
        feed = options.feed(directory, part, until, **one_view)
        with closing(follow(feed, start, options.source_timeout)) as batches:
            for batch in batches:
                yield [item for item in batch if _is_loaded(item)]


def _is_loaded(item: Item) -> bool:
    """True for rows of a snapshot, and for the creation of a table before its rows."""
    return item.chunk is not None if isinstance(item, Transaction) else creates_for_snapshot(item)
