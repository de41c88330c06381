"""The joined definition of shards that differ: every row of every shard fits into it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..errors import SinkError
from ..events import (
    FLOATS,
    Action,
    AddColumn,
    ChangeColumn,
    Column,
    DropColumn,
    Table,
)
from .difference import described

INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
"""From narrow to wide."""
_SIZED = ("char", "varchar", "text", "blob", "varbinary")


class Conflict(SinkError):
    """Shards have definitions that can't be joined, until one of them undoes a change."""


def joined(before: Table | None, shards: Sequence[tuple[str, Table]]) -> Table:
    """Return the join of the shards' definitions, which are routed; `before` is the present one.

    It has every column that a shard has, in the order of `before`; of each, the widest type, and NULL if one
    allows it. What doesn't concern values changes with the last shard. Raises Conflict that names both.
    """
    shared: dict[str, tuple[str, Column]] = {}
    for name, table in shards:
        for column in table.columns:
            low = column.name.lower()
            have = shared.get(low)
            shared[low] = (name, column) if have is None else (have[0], _wider(have, (name, column)))
    old = {column.name.lower(): column for column in before.columns} if before is not None else {}
    order = [name for name in old if name in shared] + [name for name in shared if name not in old]
    columns = tuple(_settled(old.get(name), shared[name][1], name, shards) for name in order)
    first = shards[0][1]
    keys = {tuple(table.columns[i].name.lower() for i in table.key) for _, table in shards}
    if len(keys) > 1:
        raise Conflict(f"{first.full_name}: its shards have different keys: {sorted(keys)}")
    names = [column.name.lower() for column in columns]
    return replace(first, columns=columns, key=tuple(names.index(name) for name in keys.pop()))


def _settled(old: Column | None, new: Column, name: str, shards: Sequence[tuple[str, Table]]) -> Column:
    """Return a joined column; its default stays until all shards that have the column agree."""
    theirs = [column for _, table in shards for column in table.columns if column.name.lower() == name]
    if old is None:
        return new
    if len(theirs) < len(shards):  # rows of the shards without it have values of the old type
        new = _wider(("the merged table", old), ("its shards", new))
    if len({(column.default, column.on_update) for column in theirs}) == 1:
        return new
    return replace(new, default=old.default, on_update=old.on_update)


def _shown_alike(one: Column, two: Column) -> tuple[Column, Column]:
    """Return the columns without attributes of their types in which they differ, and which some values of
    both may not have: display widths, the digits of FLOAT(M,D), and types of geometries."""
    if one.kind not in (*INTEGERS, "float", "double", "decimal", "geometry"):
        return one, two
    less: dict[str, object] = {}
    if (one.width, one.zerofill) != (two.width, two.zerofill):
        less |= {"width": 0, "zerofill": False}
    if one.kind in FLOATS and (one.length, one.scale) != (two.length, two.scale):
        less |= {"length": 0, "scale": 0}
    if one.subtype != two.subtype:
        less["subtype"] = ""
    return (replace(one, **less), replace(two, **less)) if less else (one, two)


def _wider(one: tuple[str, Column], two: tuple[str, Column]) -> Column:
    a, b = _shown_alike(one[1], two[1])
    nullable = a.nullable or b.nullable
    same = replace(a, default=None, on_update=None, nullable=True, name="", length=0)
    if a.kind in INTEGERS and b.kind in INTEGERS and a.unsigned == b.unsigned:
        wide = max(a, b, key=lambda column: INTEGERS.index(column.kind))
        return replace(wide, nullable=nullable, default=a.default)
    alike = same == replace(b, default=None, on_update=None, nullable=True, name="", length=0)
    if alike and (a.length == b.length or a.kind in _SIZED):
        return replace(max(a, b, key=lambda column: column.length), nullable=nullable, default=a.default)
    raise Conflict(
        f"column {a.name} is {described(a)} in {one[0]} and {described(b)} in {two[0]}, and no type holds "
        "the values of both: undo the change in one of them"
    )


def between(old: Table, new: Table) -> tuple[Action, ...]:
    """Return the changes of columns from one joined definition to the next."""
    have = {column.name.lower(): column for column in old.columns}
    wanted = {column.name.lower(): column for column in new.columns}
    actions: list[Action] = [DropColumn(column.name) for low, column in have.items() if low not in wanted]
    for low, column in wanted.items():
        if low not in have:
            actions.append(AddColumn(column))
        elif have[low] != column:
            actions.append(ChangeColumn(have[low].name, column, have[low]))
    return tuple(actions)
