"""Passes over many items at once: by the native module, or by Python where that isn't in use."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from ..events import Op, RowChange, Rows, Run, Table, Transaction, Ts
from .native import library

if library.native is not None:
    library.native.use_items(Transaction, Rows, Run, RowChange)

ALL: Final = sys.maxsize
"""As many rows as there are."""


class Whole(NamedTuple):
    """The items that a sequence begins with which are whole transactions of the log, in commit order."""

    number: int
    rows: int
    empty: int
    """Number of them without rows."""
    ts: Ts
    """Commit ts of the last one, or that which was asked for."""


Counted: TypeAlias = tuple[Table, Op, int]
"""Number of neighbouring changes of the same table and operation."""


def whole(items: Iterable[object], ts: Ts = 0, room: int = ALL) -> Whole:
    """Return what `items` begins with: transactions from `ts` on, each at or after the one before, that came
    in one piece and aren't part of a snapshot; no further ts once they have `room` rows.

    Raises SourceError if rows can't be counted without being decoded, and can't be decoded.
    """
    if library.in_use:
        return Whole(*library.native.whole_items(items, ts, room))
    number = rows = empty = 0
    for item in items:
        if type(item) is not Transaction or not item.last or item.chunk is not None:
            break
        if item.commit_ts != ts and (item.commit_ts < ts or rows >= room):
            break
        size = len(item.rows)
        ts = item.commit_ts
        number += 1
        rows += size
        empty += size == 0
    return Whole(number, rows, empty, ts)


def counted(transactions: Iterable[object]) -> list[Counted]:
    """Return the numbers of changes of transactions, in order. Raises TypeError for other items, and as
    `whole` does."""
    if library.in_use:
        return library.native.counted_items(transactions)
    groups: list[Counted] = []
    part: RowChange | Run | None = None
    number = 0
    for item in transactions:
        if not isinstance(item, Transaction):
            raise TypeError(f"a transaction is expected, not {item!r}")
        rows = item.rows
        parts: Sequence[RowChange | Run] = rows.runs if type(rows) is Rows else rows
        for following in parts:
            if part is None or following.table is not part.table or following.op != part.op:
                if part is not None:
                    groups.append((part.table, part.op, number))
                part, number = following, 0
            # The number of an item's rows is known in most cases, that of a run's is found by each call.
            number += len(rows) if len(parts) == 1 else _size(following)
    if part is not None:
        groups.append((part.table, part.op, number))
    return groups


def _size(part: RowChange | Run) -> int:
    return len(part) if isinstance(part, Run) else 1
