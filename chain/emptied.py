"""The transaction that stands in the place of a dropped item."""

from __future__ import annotations

from ..events import Item, Transaction


def emptied(item: Item) -> Transaction:
    """Return a transaction without rows that advances the checkpoint as the item does."""
    return Transaction(item.commit_ts, item.start_ts, item.source, [], item.position, item.last)
