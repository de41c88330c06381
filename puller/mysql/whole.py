"""Whole transactions, read natively."""

from __future__ import annotations

from typing import NamedTuple

from ...codec.native import library
from .cursor import LogCursor
from .table_ids import TableIds
from .transactions import Transactions


class Whole(NamedTuple):
    """Transactions that were read."""

    end: int
    """Index of the event after them."""
    transactions: int
    row_events: int
    epoch_seconds: int
    """Time of the last one, in Unix seconds."""


def read_whole(
    payloads: list[bytes], first: int, cursor: LogCursor, tables: TableIds, out: Transactions
) -> Whole | None:
    """Read transactions from the one on that begins at index `first`; None if it isn't a regular one.

    A regular one has rows of tables whose layouts are known, no statement, and a GTID of the latest one's
    origin. Others, and whatever is damaged, are left to the decoder. Nobody may wait for a position.
    """
    if not library.in_use or not out.takes_whole or not out.clock.is_plain:
        return None
    ahead = cursor.ahead
    if ahead is None:
        return None
    end, transactions, row_events, last, offset, number, epoch_seconds, has_rows = (
        library.native.binlog_transactions(
            out.block,
            payloads,
            first,
            tables.layouts,
            ahead.are_checked,
            out.clock.last,
            ahead.offset,
            ahead.file,
            ahead.origin,
            ahead.number,
            ahead.before,
            ahead.after,
        )
    )
    if not transactions:
        return None
    cursor.advance(offset, number)
    out.put(last, has_rows)
    return Whole(end, transactions, row_events, epoch_seconds)
