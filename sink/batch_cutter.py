"""Batches, cut from the items that wait for a sink."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from ..chain import Barrier, Element, Keep, Lag, Mark, emptied
from ..codec.item_passes import whole
from ..errors import NotReproducible, SinkError
from ..events import (
    Batch,
    ChangeDetails,
    Checkpoint,
    Ddl,
    Item,
    RenameTables,
    Transaction,
    Ts,
    computed_columns,
)
from .reached import Reached
from .resume_filter import without_tables
from .sink import Sink
from .table_load import tables_of

log = logging.getLogger("tidemill.sink")


class BatchCutter:
    """Waiting items of one sink, and the checkpoint after those that were cut into batches."""

    def __init__(self, sink: Sink, start: Checkpoint, max_rows: int, *, can_reload: bool) -> None:
        """`can_reload` is True if the source can load single tables again."""
        self.waiting: deque[Element] = deque()
        """Items and marks of stages in order; barriers are left to the caller."""
        self.reloads: dict[str, str] = {}
        """Tables to be loaded again by full name, with the reason; their changes are left out."""
        self.rows = 0
        """Number of rows of the last batch."""
        self._sink = sink
        self._max_rows = max_rows
        self._can_reload = can_reload
        self._reached = Reached(start)
        self._marked = False  # True if the tables differ from those in the last batch's checkpoint

    def cut(self) -> Batch | None:
        """Return the next batch; None if nothing waits, or a barrier is first."""
        items = self._cut_items()
        checkpoint = self._checkpoint_after(items)
        if not items and not (self._marked and checkpoint is not None):
            return None
        self._marked = False
        return Batch(items, checkpoint)

    def replaced(self, batch: Batch, error: NotReproducible) -> Batch:
        """Return a batch without rows for the last one cut, whose Ddl makes its tables be loaded again."""
        (ddl,) = batch.items
        assert isinstance(ddl, Ddl)
        tables = tables_of(ddl)
        self._reload(tables, f"{error}: {ddl.query}")
        self._reached.load_again(ddl)
        return Batch([emptied(ddl)], self._checkpoint_after([ddl]))

    def _checkpoint_after(self, items: Sequence[Item]) -> Checkpoint | None:
        """Return the checkpoint after a batch; None if more of its last ts follows, which a restart there
        would leave out."""
        checkpoint = self._reached.checkpoint
        return None if items and _next_is_at(self.waiting, items[-1].commit_ts) else checkpoint

    def _cut_items(self) -> list[Item]:
        """Take items for one batch: up to a barrier, a Ddl or `max_rows`."""
        waiting, reached = self.waiting, self._reached
        items, rows = ([], 0) if self.reloads else self._take_plain()
        self.rows = rows
        if items and rows >= self._max_rows and not _next_is_at(waiting, items[-1].commit_ts):
            return items
        while waiting:
            item = waiting[0]
            if not isinstance(item, Transaction):
                if isinstance(item, Barrier) or (items and isinstance(item, Ddl)):
                    break
                if isinstance(item, Mark):
                    if items and (_is_ddl_next(waiting) or (isinstance(item, Lag) and item.at is None)):
                        break  # a Ddl's batch has its marks, and the last changes of a lagging table its lag
                    waiting.popleft()
                    self._note_mark(item)
                    continue
                settled = self._settled(item)
                waiting.popleft()
                reached.add(settled)
                items.append(emptied(item) if isinstance(settled, Ddl) and settled.reload else settled)
                break
            waiting.popleft()
            if not (item.last or item.rows or item.chunk):
                continue  # a dropped part, as that of a DDL: it must not open a transaction after other rows
            if self.reloads:
                item = without_tables(item, self.reloads)
            reached.add(item)
            items.append(item)
            if item.chunk is not None and not item.chunk.table:
                self._load_the_rest()
            rows += len(item.rows)
            self.rows = rows
            if rows >= self._max_rows and not (item.last and _next_is_at(waiting, item.commit_ts)):
                break
        return items

    def _take_plain(self) -> tuple[list[Item], int]:
        """Take whole transactions from the front, up to the first element that needs more than to be added
        to the checkpoint: a tenth of the time of taking each. Return them and the number of their rows."""
        waiting, ts = self.waiting, self._reached.plain_ts
        if ts is None:
            return [], 0
        first = whole(waiting, ts, self._max_rows)
        taken: list[Any]
        if first.number == len(waiting):
            taken = [*waiting]
            waiting.clear()
        else:
            taken = [waiting.popleft() for _ in range(first.number)]
        if taken:
            self._reached.add(taken[-1])
        return taken, first.rows

    def _note_mark(self, mark: Mark) -> None:
        if isinstance(mark, Lag):
            self._reached.mark(mark)
        elif isinstance(mark, Keep):
            self._reached.keep(mark)
        self._marked = True

    def _load_the_rest(self) -> None:
        """At the end of a snapshot, note the tables that it didn't have, as they were renamed meanwhile."""
        checkpoint = self._reached.checkpoint
        left = (
            [name for name, have in (checkpoint.loading or {}).items() if have.stale]
            if checkpoint is not None
            else []
        )
        if left:
            self._reload(left, f"tables {', '.join(left)}: they changed their names while tables were loaded")

    def _settled(self, ddl: Ddl) -> Item:
        """Return a transaction without rows for a Ddl without effect on the target.

        Raises SinkError if it is refused.
        """
        traits = self._sink.traits
        if not (traits.copies_definitions or traits.tells_definitions):
            actions = tuple(action for action in ddl.actions if not isinstance(action, ChangeDetails))
            if ddl.actions and not actions:
                return emptied(ddl)
            ddl = replace(ddl, actions=actions)
        if traits.computes_columns and computed_columns(ddl.actions):
            ddl = replace(ddl, reload="")
        if any(name in self.reloads for name in tables_of(ddl)):
            if ddl.actions and isinstance(ddl.actions[0], RenameTables):
                ddl = replace(ddl, reload=f"tables {', '.join(tables_of(ddl))}: one is loaded again")
            else:
                return emptied(ddl)
        if not (ddl.refusal or ddl.reload):
            return ddl
        if ddl.if_exists and not self._sink.has_table(ddl.schema, ddl.table):
            return emptied(ddl)
        if ddl.refusal:
            raise SinkError(ddl.refusal, ddl.full_name if ddl.table else "")
        self._reload(tables_of(ddl), ddl.reload)
        return ddl

    def _reload(self, tables: Iterable[str], reason: str) -> None:
        if not self._can_reload:
            raise SinkError(
                f"{reason}; this source can't load a single table again: to go on, give every sink of the "
                "feed an empty target, and a new snapshot is taken"
            )
        log.warning("sink %s: %s", self._sink.name, reason)
        self.reloads |= dict.fromkeys(tables, reason)


def _is_ddl_next(waiting: deque[Element]) -> bool:
    """Return True if a Ddl follows the marks that the queue begins with."""
    return isinstance(next((one for one in waiting if not isinstance(one, Mark)), None), Ddl)


def _next_is_at(waiting: deque[Element], commit_ts: Ts) -> bool:
    """Return True if the next item has the same ts: no checkpoint may come between the two."""
    following = next((one for one in waiting if not isinstance(one, Lag | Keep)), None)
    return isinstance(following, (Transaction, Ddl)) and following.commit_ts == commit_ts
