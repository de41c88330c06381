"""Changes grouped into transactions: rows, or runs of raw changes by table and operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress, count, islice
from operator import ne, or_
from typing import Final

from ...codec.tidb.changes import ChangesDecoder
from ...codec.tidb.run import KvBlock, KvRun
from ...events import PUT, KvChange, Op, RowChange, Rows, Run
from .history import TableAt
from .items import Parts


class RowReader(ChangesDecoder):
    """Decodes the changes of one table as of a ts."""

    def __init__(self, table: TableAt) -> None:
        """Raises SourceError for a column of an unknown type."""
        super().__init__(table.schema, table.info)


TABLE_BYTES: Final = 9
"""Length of the part of a key that names the table."""


def by_transaction(changes: Sequence[RowChange | None]) -> Parts:
    """Return the parts of transactions of decoded rows; those that are None are left out.

    Neighbours are compared column by column: half of the time of a loop for transactions of one row.
    """
    rows = [change for change in changes if change is not None]
    if not rows:
        return Parts()
    first, last = rows[0], rows[-1]
    if first.commit_ts == last.commit_ts and first.start_ts == last.start_ts:  # they are in this order
        return Parts([first.commit_ts], [first.start_ts], [rows])
    commits, starts = [row.commit_ts for row in rows], [row.start_ts for row in rows]
    is_next = map(or_, map(ne, commits, islice(commits, 1, None)), map(ne, starts, islice(starts, 1, None)))
    begins = [0, *compress(count(1), is_next)]
    if len(begins) == len(rows):
        return Parts(commits, starts, [*zip(rows, strict=True)])
    ends = [*begins[1:], len(rows)]
    return Parts(
        [commits[at] for at in begins],
        [starts[at] for at in begins],
        [rows[at:end] for at, end in zip(begins, ends, strict=True)],
    )


def raw_parts(changes: Iterable[KvChange], reader_of: Callable[[bytes, KvChange], RowReader | None]) -> Parts:
    """Return the parts of transactions of the changes between two schema changes.

    `reader_of` returns the reader of a table, by its part of the key; None for a table that isn't followed.
    The changes of a table are one block. All in one function: calls took half of its time for transactions of
    one row.
    """
    blocks: dict[bytes, KvBlock | None] = {}
    parts = Parts()
    runs: list[Run] = []
    run: KvRun | None = None
    last_ts = last_start_ts = 0
    for change in changes:
        table = change.key[:TABLE_BYTES]
        if table not in blocks:
            reader = reader_of(table, change)
            blocks[table] = None if reader is None else KvBlock(reader, [])
        block, has_before = blocks[table], change.old_value
        if block is None:
            continue
        op: Op = "delete"
        if change.op == PUT:
            op = "update" if has_before else "insert"
            if has_before and block.decoder.is_fill(change):
                continue
        elif not has_before:  # inserted and deleted in the same transaction
            continue
        block.changes.append(change)
        stop, commit_ts, start_ts = len(block.changes), change.commit_ts, change.start_ts
        is_same = commit_ts == last_ts and start_ts == last_start_ts and run is not None
        if is_same and run.block is block and run.op == op:  # type: ignore[union-attr]
            run.stop = stop  # type: ignore[union-attr]
            continue
        run = KvRun(commit_ts, start_ts, block.decoder.table, op, None, block, stop - 1, stop)
        if is_same:
            runs.append(run)
        else:
            last_ts, last_start_ts, runs = commit_ts, start_ts, [run]
            parts.add(commit_ts, start_ts, Rows(runs))
    return parts
