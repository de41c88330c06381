"""Schema changes as rows of files, and back (docs/reference/parquet.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pyarrow as pa

from ...codec.mysql.column_defaults import needs_clock
from ...errors import InvariantViolated, SinkError
from ...events import (
    Action,
    AddColumn,
    ChangeColumn,
    ChangeDetails,
    ChangeKey,
    Column,
    CreateTable,
    Ddl,
    DropColumn,
    DropTable,
    RenameTables,
    Table,
    TruncateTable,
    physical_ms,
)
from .parquet_columns import HEAD

_OPERATIONS: Final[dict[type[Action], str]] = {
    CreateTable: "create",
    DropTable: "drop",
    TruncateTable: "truncate",
    RenameTables: "rename",
}

DDL: Final = pa.schema(
    [
        *HEAD[:4],
        pa.field("schema", pa.string(), nullable=False),
        pa.field("table", pa.string(), nullable=False),
        pa.field("query", pa.large_string(), nullable=False),
        pa.field("actions", pa.large_string(), nullable=False),
    ]
)
_UNKNOWN: Final = "(an expression that isn't in the history)"


def ddl_batch(ddl: Ddl) -> pa.RecordBatch:
    """Return the batch of a schema change, with its actions as JSON in `actions`."""
    actions = msgspec.json.encode([_described(ddl, action) for action in ddl.actions]).decode()
    row = [ddl.commit_ts, ddl.start_ts, 0, operation(ddl)]
    values = [*row, ddl.schema, ddl.table, ddl.query, actions]
    arrays = [pa.array([value], field.type) for value, field in zip(values, DDL, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=DDL)


def operation(ddl: Ddl) -> str:
    """Return the word for a schema change: create, drop, truncate, rename or alter."""
    return _OPERATIONS.get(type(ddl.actions[0]), "alter") if ddl.actions else "alter"


def _described(ddl: Ddl, action: Action) -> dict[str, object]:
    match action:
        case CreateTable(table, replaces):
            return {"create": table, "replaces": True} if replaces else {"create": table}
        case DropTable():
            return {"drop_table": True}
        case TruncateTable():
            return {"truncate": True}
        case RenameTables(pairs):
            return {"rename": [{"from": old, "to": new} for old, new in pairs]}
        case AddColumn(column, after, unless_exists, expression):
            clock = [ddl.epoch_seconds, ddl.utc_offset_seconds] if needs_clock(column) else None
            more = {"unless_exists": unless_exists, "expression": expression, "clock": clock}
            return {"add": column, "after": after, **_given(more)}
        case DropColumn(name, if_exists):
            return {"drop": name, **_given({"if_exists": if_exists})}
        case ChangeColumn(name, column, before, after, if_exists):
            more = {"if_exists": if_exists}
            return {"change": name, "column": column, "before": before, "after": after, **_given(more)}
        case ChangeKey(columns):
            return {"key": columns}
        case ChangeDetails():
            raise InvariantViolated("ChangeDetails came to a sink that doesn't copy definitions")


def _given(more: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in more.items() if value}


def ddl_of(row: Mapping[str, Any], source: str) -> Ddl:
    """Return the schema change of a row of `ddl`. Raises SinkError if it can't be understood."""
    try:
        described = msgspec.json.decode(row["actions"])
        actions = tuple(_action(one) for one in described)
    except (KeyError, msgspec.DecodeError, msgspec.ValidationError) as error:
        name = f"{row['schema']}.{row['table']}"
        raise SinkError(
            f"ddl: the change of {name} at {row['commit_ts']} can't be read: {error!r}"
        ) from error
    clocks = [one["clock"] for one in described if "clock" in one]
    epoch_seconds, offset = clocks[0] if clocks else (physical_ms(row["commit_ts"]) / 1000, 0)
    return Ddl(
        row["commit_ts"],
        row["start_ts"],
        source,
        row["schema"],
        row["table"],
        row["query"],
        actions,
        epoch_seconds=epoch_seconds,
        utc_offset_seconds=offset,
    )


def _action(one: Mapping[str, Any]) -> Action:
    match one:
        case {"create": table}:
            return CreateTable(msgspec.convert(table, Table), one.get("replaces", False))
        case {"drop_table": True}:
            return DropTable()
        case {"truncate": True}:
            return TruncateTable()
        case {"rename": pairs}:
            return RenameTables(tuple(_pair(pair) for pair in pairs))
        case {"add": column}:
            added = msgspec.convert(column, Column)
            expression = one.get("expression", "")
            if not expression and (added.generated or (needs_clock(added) and "clock" not in one)):
                expression = _UNKNOWN  # a history of an earlier version
            return AddColumn(added, one["after"], one.get("unless_exists", False), expression)
        case {"drop": name}:
            return DropColumn(name, one.get("if_exists", False))
        case {"change": name, "column": column}:
            before = one["before"] and msgspec.convert(one["before"], Column)
            changed = msgspec.convert(column, Column)
            return ChangeColumn(name, changed, before, one["after"], one.get("if_exists", False))
        case {"key": columns}:
            return ChangeKey(tuple(columns))
    raise KeyError(f"no action {', '.join(one)}")


def _pair(pair: Mapping[str, Any]) -> tuple[tuple[str, str], tuple[str, str]]:
    (old, new) = (tuple(pair[end]) for end in ("from", "to"))
    return (old[0], old[1]), (new[0], new[1])
