"""Rows as they were at a position before a view of them."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

from ...errors import Retryable, SourceError
from ...events import Ddl, Row, RowChange, Table
from ...puller.mysql.position import Position
from ..offsets.mysql import MysqlOffsets
from ..offsets.offset import Limit, Offset
from ..read.options import ReadOptions
from ..read.parts import WHOLE

MAX_KEYS: Final = 1_000_000
"""Maximum number of keys that may change while a table is read."""

Key = tuple[Any, ...]


class Undo:
    """The rows of a table's changed keys as of a position; None for a key that didn't exist there."""

    def __init__(self, table: Table) -> None:
        self.rows: dict[Key, tuple[Table, Row] | None] = {}
        self._names = [table.columns[index].name for index in table.key]

    def add(self, change: RowChange) -> None:
        """Note a change. The first one of a key tells what was there before."""
        names = [column.name for column in change.table.columns]
        places = [names.index(name) for name in self._names]
        for image, was in ((change.before, change.before), (change.after, None)):
            if image is not None:
                key = tuple([image[place] for place in places])
                self.rows.setdefault(key, None if was is None else (change.table, was))


def undo(options: ReadOptions, table: Table, at: Offset, view: Position) -> Undo:
    """Read the changes of `table` between `at` and `view`, a position up to which a view may have them.

    Raises SourceError if it was altered, Retryable and Fatal.
    """
    found = Undo(table)
    if view.rank == Position.parse(at.position).rank:
        return found
    if view.rank < Position.parse(at.position).rank:
        raise Retryable(f"the view's position {view} is before {at.position}: another server answered")
    from ..read.bounded import change_items  # brings the engine

    with closing(MysqlOffsets(options)) as offsets:
        offsets.check(at)
        end = offsets.following(at, Offset(at.ts, str(view), at.source), Limit())
    with closing(change_items(options, WHOLE, at, end)) as batches:
        for items in batches:
            for item in items:
                if isinstance(item, Ddl):
                    raise SourceError(
                        f"{table.full_name} was altered while it was read: {item.query[:200]}; load() again"
                    )
                for row in item.rows:
                    found.add(row)
            if len(found.rows) > MAX_KEYS:
                raise SourceError(
                    f"more than {MAX_KEYS:,} rows of {table.full_name} changed while it was read: load them "
                    "by a backfill, or read at a quieter time"
                )
    return found
