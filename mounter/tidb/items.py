"""Parts of transactions, in commit order, as items."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final, TypeAlias

from msgspec.structs import replace

from ...events import CREATED, Chunk, Ddl, Item, RowChange, Transaction, Ts

Part: TypeAlias = tuple[Ts, Ts, Sequence[RowChange] | Ddl | Chunk]
"""Commit ts, start ts, and rows of a transaction, a schema change, or the chunk of the rows after it."""


class Items:
    """Makes items of parts. Only the last item of a transaction has `last` set and a position.

    Not thread-safe: it keeps the state of the open transaction.
    """

    def __init__(self, source: str) -> None:
        """`source` is the name in every item."""
        self._source: Final = source
        self._open: tuple[Ts, Ts] | None = None
        """Commit and start ts of the last item, if more of that transaction may follow."""
        self._chunk: Chunk | None = None
        """The chunk that the rows of the open transaction are part of."""

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
                if isinstance(what, Chunk):
                    self._chunk, what = what, []
                chunk = None if self._chunk is None else self._progress(last=last)
                items.append(Transaction(commit_ts, start_ts, self._source, what, position, last, chunk))
            self._open = None if last else transaction
        if not continues:
            self._end_other(None, items)
        return items

    def _progress(self, *, last: bool) -> Chunk | None:
        """Return the chunk for a part of its transaction; only the last one has its progress, and ends it."""
        chunk = self._chunk
        if chunk is not None and not last:
            return replace(chunk, loaded=CREATED)
        self._chunk = None
        return chunk

    def _end_other(self, transaction: tuple[Ts, Ts] | None, items: list[Item]) -> None:
        """End the open transaction unless it is this one."""
        if self._open is not None and self._open != transaction:
            commit_ts, start_ts = self._open
            chunk = self._progress(last=True)
            items.append(Transaction(commit_ts, start_ts, self._source, [], str(commit_ts), chunk=chunk))
            self._open = None
