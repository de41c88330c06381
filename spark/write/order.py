"""Decoding of a partition's rows to items in commit order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from ...errors import SinkError
from ...events import AddColumn, CreateTable, Ddl, DropColumn, Item, Transaction
from ...sink.table_load import creates_for_snapshot
from ..envelope import Decoder

ORDER: Final = ("commit_ts", "start_ts", "sequence")
_QUOTED_CHARACTERS: Final = 1000
"""Maximum number of characters of a statement that an error quotes."""


class Ordered:
    """Decodes a partition's batches, which Spark has sorted, and marks the end of each transaction."""

    def __init__(self, position: str) -> None:
        """`position` replaces the source's position in every item."""
        self._position = position
        self._decoder = Decoder()
        self._last = (-1, -1, -1)
        self._withheld: list[Item] = []
        self.loads: bool | None = None
        """True for the rows of a snapshot; None before the first row."""

    def items(self, batches: Iterable[pa.RecordBatch]) -> Iterator[list[Item]]:
        """Yield lists of items, in commit order.

        Items of one commit ts are in one list, unless a transaction is split: after each list is either a
        place to resume from or an open transaction. Raises SinkError for rows out of order, and for a
        snapshot mixed with changes.
        """
        for batch in batches:
            if batch.num_rows:
                self._check_order(batch)
                if items := self._released(self._decoder.decode(batch)):
                    yield items
        if self._withheld:
            yield self._with_ends([*self._withheld, None])

    def _check_order(self, batch: pa.RecordBatch) -> None:
        columns = [batch.column(name) for name in ORDER]
        for name, column in zip(ORDER, columns, strict=True):
            if column.null_count:
                raise SinkError(f"the column {name} has nulls: keep it as it was read, it is the rows' order")
        first = tuple([column[0].as_py() for column in columns])
        if first > self._last and _rises(columns):
            self._last = tuple([column[-1].as_py() for column in columns])
            return
        raise SinkError(
            f"the rows of a partition don't come in order, each of them once (at commit_ts {first[0]}): sort "
            'them before they are written, df.repartition("schema", "table")'
            '.sortWithinPartitions("commit_ts", "start_ts", "sequence")'
        )

    def _released(self, fresh: list[Item]) -> list[Item]:
        """Return the items up to the last one after which a transaction continues or a commit ts begins.

        The other items are withheld until more arrive.
        """
        for item in fresh:
            self._check_kind(item)
        items = [*self._withheld, *fresh]
        end = len(items) - 1
        while end and not (_continues(items[end - 1], items[end]) or _is_before(items[end - 1], items[end])):
            end -= 1
        self._withheld = items[end:]
        return self._with_ends(items[: end + 1])

    def _with_ends(self, items: Sequence[Item | None]) -> list[Item]:
        """Return all items but the last, which only shows if the transaction before it continues."""
        return [self._with_end(item, not _continues(item, then)) for item, then in pairwise(items) if item]

    def _with_end(self, item: Item, last: bool) -> Item:
        return replace(item, position=self._position if last else "", last=last)

    def _check_kind(self, item: Item) -> None:
        if isinstance(item, Ddl) and not item.refusal:
            _check_followed(item)
        loads = item.chunk is not None if isinstance(item, Transaction) else creates_for_snapshot(item)
        if self.loads is None:
            self.loads = loads
        elif loads != self.loads:
            raise SinkError("the rows of a snapshot and changes are mixed: write one after the other")


def _check_followed(ddl: Ddl) -> None:
    """Raise SinkError for a schema change that tasks, each with a part of the tables, can't apply once."""
    plain = all(
        isinstance(action, (AddColumn, DropColumn))
        or (isinstance(action, CreateTable) and not action.replaces)
        for action in ddl.actions
    )
    if ddl.reload or not plain:
        raise SinkError(
            f"{ddl.full_name}: Spark's tasks only create tables, add columns and drop columns; to go on, "
            'follow it with engine = "local", or give the query an empty target and load it again: '
            f"{ddl.query[:_QUOTED_CHARACTERS]}"
        )


def _continues(item: Item | None, then: Item | None) -> bool:
    """True if `then` is part of the same transaction."""
    return (
        isinstance(item, Transaction)
        and isinstance(then, Transaction)
        and (item.commit_ts, item.start_ts) == (then.commit_ts, then.start_ts)
    )


def _is_before(item: Item, then: Item) -> bool:
    return item.commit_ts < then.commit_ts


def _rises(columns: list[pa.Array]) -> bool:
    """True if the rows ascend strictly, by the first column, then the second, then the third."""
    rises = None
    for column in reversed(columns):
        before, after = column[:-1], column[1:]
        further = pc.greater(after, before)
        rises = further if rises is None else pc.or_(further, pc.and_(pc.equal(after, before), rises))
    return bool(pc.all(rises, min_count=0).as_py())
