"""Groups of changes that one statement, plain or prepared, can apply."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from ..events import RowChange, Run, Table

Op: TypeAlias = Literal["insert", "update", "move", "delete"]
"""Operation of a change; a move is an update that changes the key, whose row may collide with others."""


LINKED: Final = ""
"""In place of a table's name: all linked tables."""


class ChangeGroup(Struct, gc=False):
    """Consecutive changes of one table by one operation, without duplicate keys.

    Duplicate inserts are left to the target to reject. A move is alone in its group.
    """

    table: Table
    op: Op
    changes: list[RowChange]


def _alone(table: Table) -> bool:  # noqa: ARG001
    return False


def cut_groups(
    runs: Iterable[Run], max_rows: int, is_linked: Callable[[Table], bool] = _alone
) -> list[ChangeGroup]:
    """Return the groups to apply, in order.

    Changes of a table keep their order, as do those of linked tables among each other. Changes of others may
    swap, as all become visible at once.
    """
    queues: dict[str, tuple[list[ChangeGroup], set[object]]] = {}
    queue: list[ChangeGroup] = []
    seen: set[object] = set()
    table: Table | None = None
    for run in runs:
        if run.table is not table:  # mostly the next run is of the same table
            table = run.table
            queue, seen = queues.setdefault(LINKED if is_linked(table) else table.full_name, ([], set()))
        if run.op == "insert":
            _add_inserts(queue, run, max_rows)
        else:
            _add(queue, run, seen, max_rows)
    return [group for queue, _ in queues.values() for group in queue]


def _add_inserts(queue: list[ChangeGroup], run: Run, max_rows: int) -> None:
    changes, table, first = run.changes(), run.table, 0
    if queue and queue[-1].op == "insert" and queue[-1].table is table:
        group = queue[-1].changes
        first = max(0, max_rows - len(group))
        group += changes[:first]
        if first >= len(changes):
            return
    starts = range(first, len(changes), max_rows)
    queue += [ChangeGroup(table, "insert", changes[start : start + max_rows]) for start in starts]


def _add(queue: list[ChangeGroup], run: Run, seen: set[object], max_rows: int) -> None:
    """Add updates or deletes; `seen` contains the keys of the table's last group."""
    table = run.table
    for change in run.changes():
        key, op = _identify(change)
        group = queue[-1] if queue else None
        if (
            group is None
            or group.table is not table
            or group.op != op
            or op == "move"
            or len(group.changes) >= max_rows
            or (key is not None and key in seen)
        ):
            group = ChangeGroup(table, op, [])
            queue.append(group)
            seen.clear()
        if key is not None:
            seen.add(key)
        group.changes.append(change)


def _identify(change: RowChange) -> tuple[object, Op]:
    """Return the key of the row before the change, which must be unique in a group, and the operation."""
    assert change.before is not None
    index = change.table.key
    key = tuple([change.before[i] for i in index]) if index else None
    if change.op == "delete":
        return key, "delete"
    assert change.after is not None
    if index and key != tuple([change.after[i] for i in index]):
        return key, "move"
    return key, "update"
