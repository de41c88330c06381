"""Cutting a batch into stretches that one statement, or one prepared one, can apply."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from ...events import RowChange, Table

Op: TypeAlias = Literal["insert", "update", "move", "delete"]
"""A move is an update that changes the key: its row may be in the way of its neighbours."""


class Run(Struct, gc=False):
    """Consecutive changes of one table by one operation, no key twice (inserts aside: the target
    finds those). A move is alone in its run."""

    table: Table
    op: Op
    changes: list[RowChange]


def cut_runs(changes: Iterable[RowChange], max_rows: int) -> list[Run]:
    """The runs to apply, in order. A table's changes keep their order; those of different tables
    may swap, which nobody sees, as all of it becomes visible at once."""
    queues: dict[str, list[Run]] = {}
    keys: dict[str, set[object]] = {}
    inserts: Run | None = None  # the run at hand, if another insert may join it
    for change in changes:
        table = change.table
        # The hot path, 0.15 µs.
        if (
            inserts is not None
            and table is inserts.table
            and change.op == "insert"
            and len(inserts.changes) < max_rows
        ):
            inserts.changes.append(change)
            continue
        queue = queues.setdefault(table.full_name, [])
        seen = keys.setdefault(table.full_name, set())
        key, op = _identify(change)
        run = queue[-1] if queue else None
        if (
            run is None
            or run.table is not table
            or run.op != op
            or op == "move"
            or len(run.changes) >= max_rows
            or (key is not None and key in seen)
        ):
            run = Run(table, op, [])
            queue.append(run)
            seen.clear()
        if key is not None:
            seen.add(key)
        run.changes.append(change)
        inserts = run if op == "insert" else None
    return [run for queue in queues.values() for run in queue]


def _identify(change: RowChange) -> tuple[object, Op]:
    """The key of the row that is there before, for what must not come twice in a run; and the op."""
    if change.op == "insert":
        return None, "insert"
    assert change.before is not None
    index = change.table.key
    key = tuple([change.before[i] for i in index]) if index else None
    if change.op == "delete":
        return key, "delete"
    assert change.after is not None
    if index and key != tuple([change.after[i] for i in index]):
        return key, "move"
    return key, "update"
