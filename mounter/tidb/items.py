"""Parts of transactions, in commit order, as items."""

from __future__ import annotations

from collections.abc import Sequence
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
        if parts:
            self._end_other(parts[0][:2], items)
            end = parts[-1][:2] if continues else (0, 0)
            self._open = end if continues else None
            add, source = items.append, self._source
            for (commit_ts, start_ts, what), following in zip(parts, [*parts[1:], end], strict=True):
                last = commit_ts != following[0] or start_ts != following[1]
                position = str(commit_ts) if last else ""
                if isinstance(what, Ddl):
                    add(replace(what, position=position, last=last))
                else:
                    add(Transaction(commit_ts, start_ts, source, what, position, last))
        elif not continues:
            self._end_other(None, items)
        return items

    def _end_other(self, transaction: tuple[Ts, Ts] | None, items: list[Item]) -> None:
        """End the open transaction unless it is this one."""
        if self._open is not None and self._open != transaction:
            commit_ts, start_ts = self._open
            items.append(Transaction(commit_ts, start_ts, self._source, [], str(commit_ts)))
            self._open = None
