"""Parts of transactions, in commit order, as items."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from ...events import CREATED, Chunk, Ddl, Item, RowChange, Transaction, Ts

Content: TypeAlias = Sequence[RowChange] | Ddl | Chunk


class Parts:
    """Parts of transactions in commit order, as columns: tuples would double the garbage collector's work."""

    __slots__ = ("are_whole", "commit_ts", "contents", "start_ts")

    def __init__(
        self, commit_ts: list[Ts], start_ts: list[Ts], contents: list[Any], *, are_whole: bool = False
    ) -> None:
        self.commit_ts = commit_ts
        self.start_ts = start_ts
        self.contents: list[Content] = contents
        """Rows of a transaction, a schema change, or the chunk of the rows after it."""
        self.are_whole = are_whole
        """True if each is all rows of one transaction that there are."""

    def add(self, commit_ts: Ts, start_ts: Ts, content: Content) -> None:
        self.are_whole = False
        self.commit_ts.append(commit_ts)
        self.start_ts.append(start_ts)
        self.contents.append(content)

    def extend(self, other: Parts) -> None:
        self.are_whole = False
        self.commit_ts += other.commit_ts
        self.start_ts += other.start_ts
        self.contents += other.contents


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

    def of(self, parts: Parts, continues: bool) -> list[Item]:
        """Return the items of parts of transactions; the last transaction may continue."""
        items: list[Item] = []
        commits, starts = parts.commit_ts, parts.start_ts
        if commits:
            self._end_other((commits[0], starts[0]), items)
            end = self._open = (commits[-1], starts[-1]) if continues else None
            if parts.are_whole and self._chunk is None and end is None:  # as nearly always
                columns: Any = commits, starts, repeat(self._source), parts.contents, map(str, commits)
                items += map(Transaction, *columns)
                return items
            next_commit, next_start = end or (0, 0)
            following = zip([*commits[1:], next_commit], [*starts[1:], next_start], strict=True)
            add, source = items.append, self._source
            for commit_ts, start_ts, content, after in zip(
                commits, starts, parts.contents, following, strict=True
            ):
                last = commit_ts != after[0] or start_ts != after[1]
                position = str(commit_ts) if last else ""
                if isinstance(content, Ddl):
                    add(replace(content, position=position, last=last))
                    continue
                if isinstance(content, Chunk):
                    self._chunk, content = content, ()
                chunk = None if self._chunk is None else self._progress(last=last)
                add(Transaction(commit_ts, start_ts, source, content, position, last, chunk))
        elif not continues:
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
