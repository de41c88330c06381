"""Rows as they were at a position before a view of them."""

from __future__ import annotations

from contextlib import closing
from typing import Final

from ...codec.mysql.position import Position
from ...errors import Retryable, SourceError
from ...events import Ddl, OrderedKey, Table, key_table
from ...snapshot.overlay import KeyOf, Overlay, ordered_keys
from ..offsets.mysql import MysqlOffsets
from ..offsets.offset import Limit, Offset
from ..read.options import ReadOptions
from ..read.parts import WHOLE

MAX_KEYS: Final = 1_000_000
"""Maximum number of keys that may change while a table is read."""


def undo(options: ReadOptions, table: Table, at: Offset, view: Position) -> Overlay[OrderedKey]:
    """Return the rows of changed keys as of `at`, from the changes of `table` between `at` and `view`, a
    position up to which a view may have them.

    Raises SourceError if it was altered, Retryable and Fatal.
    """
    found = Overlay(lambda of: _key_of(table, of))
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
                found.undo(item.rows)
            if len(found) > MAX_KEYS:
                raise SourceError(
                    f"more than {MAX_KEYS:,} rows of {table.full_name} changed while it was read: load them "
                    "by a backfill, or read at a quieter time"
                )
    return found


def _key_of(planned: Table, table: Table) -> KeyOf[OrderedKey]:
    """Return the function from a row of the log to the planned table's key; the log may lack the key."""
    names = [column.name for column in table.columns]
    places = [names.index(planned.columns[index].name) for index in planned.key]
    order = ordered_keys(key_table(planned))
    return lambda row: order(tuple([row[place] for place in places]))
