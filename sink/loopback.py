"""The stage that leaves out transactions that came from the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..chain import Element, Mark, Stage, StageContext, emptied, narrowed
from ..dialects.options import MARKS
from ..errors import SinkError
from ..events import Ddl, Run, Transaction, Ts

_CHANNEL: Final = "channel_id"


class LoopbackStage(Stage):
    """Replaces transactions with a mark of a channel by ones without rows; no mark itself is ever applied."""

    name = "loopback"

    def __init__(self, channel: int) -> None:
        self._channel: Final = channel
        self._open: tuple[Ts, Ts] | None = None
        self._omits = False
        """True if the open transaction is left out."""

    def open(self, context: StageContext) -> None:  # noqa: ARG002
        self._open = None

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        elements = [self._kept(element) for element in batch]
        return [element for element in elements if element is not None]

    def _kept(self, item: Element) -> Element | None:
        if isinstance(item, Mark):
            return item
        if isinstance(item, Ddl):
            return emptied(item) if _is_mark(item.full_name) else item
        if item.chunk is not None:
            return None if _is_mark(item.chunk.table) else item
        return self._transaction(item)

    def _transaction(self, item: Transaction) -> Transaction:
        stamp = item.commit_ts, item.start_ts
        began = self._open != stamp
        omits = not began and self._omits
        marks = [run for run in item.runs if _is_mark(run.table.full_name)]
        if not omits and any(self._is_ours(run) for run in marks):
            if not began:
                raise SinkError(
                    f"transaction {item.commit_ts} has the mark of channel {self._channel} "
                    "after rows that were applied already: let its writer change the mark first"
                )
            omits = True
        self._open, self._omits = (None, False) if item.last else (stamp, omits)
        if omits:
            return emptied(item)
        return item if not marks else narrowed(item, lambda run: not _is_mark(run.table.full_name))

    def _is_ours(self, run: Run) -> bool:
        channel_column = next(
            (i for i, column in enumerate(run.table.columns) if column.name.lower() == _CHANNEL), None
        )
        if channel_column is None:
            raise SinkError(f"{MARKS} has no column {_CHANNEL}: it isn't TiDB-Binlog's table of marks")
        images: list[Any] = [row for change in run.changes() for row in (change.before, change.after) if row]
        return any(row[channel_column] == self._channel for row in images)


def _is_mark(name: str) -> bool:
    return name.lower() == MARKS
