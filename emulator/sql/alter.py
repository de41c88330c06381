"""Clauses of ALTER TABLE, and their effect on a TableInfo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...codec.tidb.action import Action
from ...codec.tidb.column_type import ColumnFlag, Type, kind_of
from ...codec.tidb.table_info import ColumnInfo, IndexInfo, TableInfo
from ...events import Ts, physical_ms
from .columns import parse_column, with_default
from .partition import parse_definitions
from .table import find_column, index_columns, parse_parts
from .tokens import Tokens

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOW: Final = "CURRENT_TIMESTAMP"
_WIDTH: Final = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
_ZERO: Final = {"date": "0000-00-00", "datetime": "0000-00-00 00:00:00", "timestamp": "0000-00-00 00:00:00"}
_NUMBERS: Final = (*_WIDTH, "decimal", "float", "double", "year", "bit")


class AlterResult(Struct, frozen=True):
    action: Action
    info: TableInfo
    database: str = ""
    """The target database of a rename; "" for the same one."""
    rewritten: tuple[ColumnInfo, ColumnInfo] | None = None
    """A column for which the rows are written again, and the one that replaces it."""


def parse_clause(tokens: Tokens, info: TableInfo, new_id: Callable[[], int]) -> list[AlterResult]:
    """Parse the next clause; ADD COLUMN (a, b) has several results. Raises ValueError for an unknown one."""
    if tokens.has("add"):
        return _add(tokens, info, new_id)
    if tokens.has("drop"):
        return [_drop(tokens, info)]
    if tokens.has("truncate", "partition"):
        return [_truncate_partition(tokens, info, new_id)]
    if tokens.has("modify"):
        tokens.has("column")
        name = str(tokens.next)
        return [_change(tokens, info, name)]
    if tokens.has("change"):
        tokens.has("column")
        return [_change(tokens, info, tokens.name())]
    if tokens.has("rename"):
        return [_rename(tokens, info)]
    if tokens.has("alter"):
        return [_set_default(tokens, info)]
    if tokens.has("cache"):
        return [AlterResult(Action.ALTER_CACHE_TABLE, info)]
    if tokens.has("nocache"):
        return [AlterResult(Action.ALTER_NO_CACHE_TABLE, info)]
    raise tokens.unexpected("ADD, DROP, MODIFY, CHANGE, ALTER, RENAME, TRUNCATE PARTITION, CACHE or NOCACHE")


def _add(tokens: Tokens, info: TableInfo, new_id: Callable[[], int]) -> list[AlterResult]:
    if tokens.has("partition"):
        partition = info.partition
        if partition is None:
            raise ValueError(f"{info.name} has no partitions")
        definitions = (*partition.definitions, *parse_definitions(tokens, new_id))
        made = replace(info, partition=replace(partition, definitions=definitions))
        return [AlterResult(Action.ADD_TABLE_PARTITION, made)]
    if tokens.has("primary", "key"):
        return [_add_key(tokens, info)]
    unique = tokens.has("unique")
    if tokens.has("index") or tokens.has("key") or unique:
        name = tokens.name() if tokens.next != "(" else ""
        return [add_index(info, name, parse_parts(tokens), unique=unique)]
    tokens.has("column")
    if not tokens.has("("):
        return [_add_column(tokens, info)]
    done = [_add_column(tokens, info)]
    while tokens.has(","):
        done.append(_add_column(tokens, done[-1].info))
    tokens.expect(")")
    return done


def add_index(info: TableInfo, name: str, parts: list[tuple[str, int]], *, unique: bool) -> AlterResult:
    number = info.max_index_id + 1
    index = IndexInfo(
        id=number, name=name or parts[0][0], columns=index_columns(info.columns, parts), unique=unique
    )
    return AlterResult(Action.ADD_INDEX, replace(info, indexes=(*info.indexes, index), max_index_id=number))


def drop_index(info: TableInfo, name: str) -> AlterResult:
    left = tuple(index for index in info.indexes if index.name.lower() != name.lower())
    if len(left) == len(info.indexes):
        raise ValueError(f"{info.name} has no index {name}")
    return AlterResult(Action.DROP_INDEX, replace(info, indexes=left))


def _add_column(tokens: Tokens, info: TableInfo) -> AlterResult:
    column, _ = parse_column(tokens, info.charset, info.collation)
    if any(other.name.lower() == column.name.lower() for other in info.columns):
        raise ValueError(f"{info.name} already has a column {column.name}")
    number = info.max_column_id + 1
    default, bits = _origin_default(column)
    column = replace(column, id=number, origin_default=default, origin_default_bit=bits)
    columns = _placed(tokens, list(info.columns), column, len(info.columns))
    return AlterResult(Action.ADD_COLUMN, replace(_with_columns(info, columns), max_column_id=number))


def _origin_default(column: ColumnInfo) -> tuple[str | None, bytes | None]:
    """Return the value in existing rows: the default, or for NOT NULL without a default a zero value."""
    if column.generated or (column.default is None and not column.flags & ColumnFlag.NOT_NULL):
        return None, None
    if column.default is not None:
        return column.default, column.default_bit
    kind = kind_of(column)
    if kind == "enum":
        return column.elements[0], None
    return _ZERO.get(kind, "0" if kind in _NUMBERS else "00:00:00" if kind == "time" else ""), None


def with_moment(info: TableInfo, ts: Ts) -> TableInfo:
    """Set the time `ts` for rows older than a column with DEFAULT CURRENT_TIMESTAMP; the zone is UTC."""
    moment = _EPOCH + timedelta(milliseconds=physical_ms(ts))
    columns = tuple(
        replace(column, origin_default=f"{moment:%Y-%m-%d %H:%M:%S}")
        if column.origin_default == _NOW
        else column
        for column in info.columns
    )
    return replace(info, columns=columns)


def _placed(tokens: Tokens, others: list[ColumnInfo], column: ColumnInfo, place: int) -> list[ColumnInfo]:
    """Return the columns with FIRST or AFTER applied."""
    if tokens.has("first"):
        place = 0
    elif tokens.has("after"):
        place = others.index(find_column(others, tokens.name())) + 1
    return [*others[:place], column, *others[place:]]


def _with_columns(
    info: TableInfo, columns: Sequence[ColumnInfo], replaced: ColumnInfo | None = None
) -> TableInfo:
    """Set the columns, with new offsets, in the indexes too; the one with a new id replaces `replaced`."""
    moved = tuple(replace(column, offset=offset) for offset, column in enumerate(columns))
    offsets = {column.id: column.offset for column in moved}
    if replaced is not None:
        known = {column.id for column in info.columns}
        offsets[replaced.id] = next(column.offset for column in moved if column.id not in known)
    indexes = []
    for index in info.indexes:
        parts = [(part, offsets.get(info.columns[part.offset].id)) for part in index.columns]
        kept = tuple(
            replace(part, offset=offset, name=moved[offset].name)
            for part, offset in parts
            if offset is not None
        )
        if kept:
            indexes.append(replace(index, columns=kept))
    return replace(info, columns=moved, indexes=tuple(indexes))


def _drop(tokens: Tokens, info: TableInfo) -> AlterResult:
    if tokens.has("index") or tokens.has("key"):
        return drop_index(info, tokens.name())
    if tokens.has("partition"):
        name = tokens.name().lower()
        partition = info.partition
        if partition is None or name not in {d.name.lower() for d in partition.definitions}:
            raise ValueError(f"{info.name} has no partition {name}")
        left = tuple(d for d in partition.definitions if d.name.lower() != name)
        return AlterResult(
            Action.DROP_TABLE_PARTITION, replace(info, partition=replace(partition, definitions=left))
        )
    if tokens.has("primary", "key"):
        return _drop_key(info)
    tokens.has("column")
    column = find_column(info.columns, tokens.name())
    if column.flags & ColumnFlag.PRI_KEY:
        raise ValueError(f"column {column.name} of {info.name} is part of the key")
    columns = [other for other in info.columns if other is not column]
    return AlterResult(Action.DROP_COLUMN, _with_columns(info, columns))


def _truncate_partition(tokens: Tokens, info: TableInfo, new_id: Callable[[], int]) -> AlterResult:
    name = tokens.name().lower()
    partition = info.partition
    if partition is None or name not in {d.name.lower() for d in partition.definitions}:
        raise ValueError(f"{info.name} has no partition {name}")
    definitions = tuple(
        replace(d, id=new_id()) if d.name.lower() == name else d for d in partition.definitions
    )
    made = replace(info, partition=replace(partition, definitions=definitions))
    return AlterResult(Action.TRUNCATE_TABLE_PARTITION, made)


def _change(tokens: Tokens, info: TableInfo, name: str) -> AlterResult:
    old = find_column(info.columns, name)
    column, _ = parse_column(tokens, info.charset, info.collation)
    if _keeps_rows(old, column):
        origin, number = (old.origin_default, old.origin_default_bit), old.id
    elif _is_key(old):
        raise ValueError(
            f"column {old.name} of {info.name} is part of the key, and its rows would be rewritten"
        )
    else:
        origin, number = _origin_default(column), info.max_column_id + 1
    flags = column.flags | old.flags & (ColumnFlag.PRI_KEY | ColumnFlag.NOT_NULL if _is_key(old) else 0)
    column = replace(column, id=number, flags=flags, origin_default=origin[0], origin_default_bit=origin[1])
    others = [other for other in info.columns if other is not old]
    columns = _placed(tokens, others, column, old.offset)
    if number == old.id:
        return AlterResult(Action.MODIFY_COLUMN, _with_columns(info, columns))
    made = replace(_with_columns(info, columns, old), max_column_id=number)
    return AlterResult(Action.MODIFY_COLUMN, made, rewritten=(old, column))


def _set_default(tokens: Tokens, info: TableInfo) -> AlterResult:
    """Parse ALTER COLUMN c SET DEFAULT x, or DROP DEFAULT."""
    tokens.has("column")
    old = find_column(info.columns, tokens.name())
    if tokens.has("drop", "default"):
        column = replace(old, default=None, default_bit=None)
    else:
        tokens.expect("set")
        column = with_default(tokens, old)
    columns = [column if other is old else other for other in info.columns]
    return AlterResult(Action.SET_DEFAULT_VALUE, _with_columns(info, columns))


def _add_key(tokens: Tokens, info: TableInfo) -> AlterResult:
    """Parse ADD PRIMARY KEY (a, b) NONCLUSTERED, of a table that has none."""
    if any(column.flags & ColumnFlag.PRI_KEY for column in info.columns):
        raise ValueError(f"{info.name} has a primary key already")
    parts = parse_parts(tokens)
    tokens.has("nonclustered")
    names = {name.lower() for name, _ in parts}
    flags = ColumnFlag.PRI_KEY | ColumnFlag.NOT_NULL
    columns = tuple(
        replace(column, flags=column.flags | flags) if column.name.lower() in names else column
        for column in info.columns
    )
    number = info.max_index_id + 1
    index = IndexInfo(
        id=number, name="PRIMARY", columns=index_columns(columns, parts), unique=True, primary=True
    )
    made = replace(info, columns=columns, indexes=(*info.indexes, index), max_index_id=number)
    return AlterResult(Action.ADD_PRIMARY_KEY, made)


def _drop_key(info: TableInfo) -> AlterResult:
    if info.pk_is_handle or info.is_common_handle or not any(index.primary for index in info.indexes):
        raise ValueError(f"{info.name} has no primary key that isn't clustered")
    columns = tuple(replace(column, flags=column.flags & ~ColumnFlag.PRI_KEY) for column in info.columns)
    indexes = tuple(index for index in info.indexes if not index.primary)
    return AlterResult(Action.DROP_PRIMARY_KEY, replace(info, columns=columns, indexes=indexes))


def _is_key(column: ColumnInfo) -> bool:
    return bool(column.flags & ColumnFlag.PRI_KEY)


def _keeps_rows(old: ColumnInfo, new: ColumnInfo) -> bool:
    """True if the stored values stay valid."""
    before, after = kind_of(old), kind_of(new)
    if (old.flags ^ new.flags) & ColumnFlag.UNSIGNED:
        return False
    if before in _WIDTH and after in _WIDTH:
        return _WIDTH[after] >= _WIDTH[before]
    if before != after:
        return {before, after} <= {"char", "varchar", "text"} and before != "text" and after != "char"
    if old.type == Type.NEWDECIMAL or before in ("datetime", "timestamp", "time", "bit"):
        return (old.length, old.decimal) == (new.length, new.decimal)
    if before in ("enum", "set"):
        return new.elements[: len(old.elements)] == old.elements
    return new.length >= old.length


def _rename(tokens: Tokens, info: TableInfo) -> AlterResult:
    if tokens.has("column"):
        old = find_column(info.columns, tokens.name())
        tokens.expect("to")
        renamed = replace(old, name=tokens.name())
        columns = [renamed if column is old else column for column in info.columns]
        return AlterResult(Action.MODIFY_COLUMN, _with_columns(info, columns))
    if not tokens.has("to"):
        tokens.has("as")
    database, name = "", tokens.name()
    if tokens.has("."):
        database, name = name, tokens.name()
    return AlterResult(Action.RENAME_TABLE, replace(info, name=name), database)
