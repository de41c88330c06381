"""Remainders of an item: a transaction without rows, or with some of its runs."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ..events import Item, Rows, Run, Transaction


def emptied(item: Item) -> Transaction:
    """Return a transaction without rows that advances the checkpoint as the item does."""
    return Transaction(item.commit_ts, item.start_ts, item.source, [], item.position, item.last)


def narrowed(item: Transaction, has: Callable[[Run], bool]) -> Transaction:
    """Return the transaction with the runs for which `has` is true, of which none is decoded."""
    runs = item.runs
    left = [run for run in runs if has(run)]
    return item if len(left) == len(runs) else replace(item, rows=Rows(left))
