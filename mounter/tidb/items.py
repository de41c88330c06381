"""Parts of transactions, in commit order, as items."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final, TypeAlias

from msgspec.structs import replace

from ...events import Ddl, Item, RowChange, Transaction, Ts

Part: TypeAlias = tuple[Ts, Ts, Sequence[RowChange] | Ddl]
"""Commit ts, start ts, and rows of a transaction or a schema change."""


class Items:
    """Makes items of parts. Only the last item of a transaction has `last` set and a position.

    Not thread-safe: it keeps the state of the open transaction.
    """

    def __init__(self, source: str) -> None:
        """`source` is the name in every item."""
        self._source: Final = source
        self._open: tuple[Ts, Ts] | None = None
        """Commit and start ts of the last item, if more of that transaction may follow."""

    def of(self, parts: list[Part], continues: bool) -> list[Item]:
        """Return the items of parts of transactions; the last transaction may continue."""
        items: list[Item] = []
        following = [part[:2] for part in parts[1:]]
        for (commit_ts, start_ts, what), after in zip_longest(parts, following):
            transaction = commit_ts, start_ts
            self._end_other(transaction, items)
            last = after != transaction if after is not None else not continues
            position = str(commit_ts) if last else ""
            if isinstance(what, Ddl):
                items.append(replace(what, position=position, last=last))
            else:
                items.append(Transaction(commit_ts, start_ts, self._source, what, position, last))
            self._open = None if last else transaction
        if not continues:
            self._end_other(None, items)
        return items

    def _end_other(self, transaction: tuple[Ts, Ts] | None, items: list[Item]) -> None:
        """End the open transaction unless it is this one."""
        if self._open is not None and self._open != transaction:
            commit_ts, start_ts = self._open
            items.append(Transaction(commit_ts, start_ts, self._source, [], str(commit_ts)))
            self._open = None
