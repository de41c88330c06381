"""The stage that leaves out transactions and schema changes that a sink isn't to get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..chain import Element, Mark, StageContext, emptied
from ..dialects.options import MARKS
from ..errors import SinkError
from ..events import Checkpoint, Ddl, Rows, Run, Transaction, Ts, Wait

_CHANNEL: Final = "channel_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class OmissionOptions:
    """Transactions and schema changes that a sink isn't to get."""

    sync_ddl: bool = True
    """With False, schema changes aren't applied to the target; tables are still created for a snapshot."""
    ignore_txn_commit_ts: tuple[int, ...] = ()
    """Commit timestamps of transactions and schema changes that are left out."""
    loopback_channel: int = 0
    """Number above 0, the same for both directions between two clusters: transactions with a mark of this
    channel came from the target, and are left out; those that are applied get the mark."""

    @property
    def omits(self) -> bool:
        return self != OmissionOptions()


class OmissionStage:
    """Replaces what is left out by transactions without rows; marks themselves are never applied."""

    name = "omissions"

    def __init__(self, options: OmissionOptions) -> None:
        self._options = options
        self._ignored = frozenset(options.ignore_txn_commit_ts)
        self._open: tuple[Ts, Ts] | None = None
        self._omits = False
        """True if the open transaction is left out."""

    def open(self, context: StageContext) -> None:  # noqa: ARG002
        self._open = None

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        found = [self._kept(element) for element in batch]
        return [element for element in found if element is not None]

    def _kept(self, item: Element) -> Element | None:
        if isinstance(item, Mark):
            return item
        if isinstance(item, Ddl):
            is_omitted = item.commit_ts in self._ignored or (item.query and not self._options.sync_ddl)
            return emptied(item) if is_omitted or self._is_mark(item.full_name) else item
        if item.chunk is not None:
            return None if self._is_mark(item.chunk.table) else item
        return self._transaction(item)

    def _transaction(self, item: Transaction) -> Transaction:
        stamp = item.commit_ts, item.start_ts
        began = self._open != stamp
        omits = item.commit_ts in self._ignored or (not began and self._omits)
        runs = item.runs if self._options.loopback_channel else []
        marks = [run for run in runs if self._is_mark(run.table.full_name)]
        if not omits and any(self._is_ours(run) for run in marks):
            if not began:
                raise SinkError(
                    f"transaction {item.commit_ts} has the mark of channel {self._options.loopback_channel} "
                    "after rows that were applied already: let its writer change the mark first"
                )
            omits = True
        self._open, self._omits = (None, False) if item.last else (stamp, omits)
        if omits:
            return emptied(item)
        if not marks:
            return item
        rows = Rows([run for run in runs if not self._is_mark(run.table.full_name)])
        return Transaction(item.commit_ts, item.start_ts, item.source, rows, item.position, item.last)

    def _is_mark(self, name: str) -> bool:
        return self._options.loopback_channel > 0 and name.lower() == MARKS

    def _is_ours(self, run: Run) -> bool:
        at = next((i for i, column in enumerate(run.table.columns) if column.name.lower() == _CHANNEL), None)
        if at is None:
            raise SinkError(f"{MARKS} has no column {_CHANNEL}: it isn't TiDB-Binlog's table of marks")
        channel = self._options.loopback_channel
        images: list[Any] = [row for change in run.changes() for row in (change.before, change.after) if row]
        return any(row[at] == channel for row in images)

    def durable(self, checkpoint: Checkpoint) -> Sequence[Element]:  # noqa: ARG002
        return ()

    def waits(self) -> Sequence[Wait]:
        return ()

    def close(self) -> None:
        self._open = None
