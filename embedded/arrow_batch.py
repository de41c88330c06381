"""Changes of one table as Arrow columns."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ..events import Table, Ts

InvalidDates: TypeAlias = Literal["fail", "null"]


class ArrowBatch(Struct, frozen=True, eq=False):
    """Changes of one version of a table, of one or more transactions, in commit order.

    Batches come in groups, one for each table that the group's transactions change. After a batch with `last`
    everything up to its commit ts has come: only then may a transaction be regarded as whole, and only such a
    batch counts for `ack`.
    """

    table: Table
    data: Any
    """A pyarrow.RecordBatch of commit_ts, commit_time, start_ts, sequence, op, before, after; the latter two
    are structs of the table's columns, null where a change has no such row. Without rows, it only ends a
    transaction whose rows came before."""
    commit_ts: Ts
    """That of the group's last transaction, as is start_ts."""
    start_ts: Ts
    source: str
    last: bool
    """True if it ends its group, and with it whole transactions. False while batches of other tables, or
    further rows of a transaction that is larger than a batch, follow."""
