"""Lines of JSON, one per row (docs/reference/ndjson.md describes a line)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, assert_never

import msgspec

from ...codec.row_code import compile_rows
from ...events import (
    Column,
    CreateTable,
    Ddl,
    DropTable,
    Item,
    RenameTables,
    Row,
    Table,
    TableName,
    TruncateTable,
    Ts,
    physical_ms,
)
from ...events.per_table import PerTable
from .lines import RowNumbers

Values: TypeAlias = Callable[[Iterable[Row]], list[dict[str, Any]]]

_SAFE_BITS: Final = 53
"""Largest integer that is safe in JSON: many readers parse numbers as doubles."""


class NdjsonLines:
    """Forms lines of row changes and statements. Not thread-safe."""

    has_definitions = False

    def __init__(self, *, names_source: bool = False) -> None:
        """With `names_source`, lines begin with the name of their source."""
        self._names_source = names_source
        self._numbers = RowNumbers()
        self._encoder = msgspec.json.Encoder()
        self._values = PerTable(json_rows)

    def start(self) -> None:
        self._numbers.start()

    def of(self, item: Item) -> bytes:
        return self._encoder.encode_lines(list(self._lines(item)))

    def watermark(self, ts: Ts) -> bytes:  # noqa: ARG002
        return b""

    def _lines(self, item: Item) -> Iterator[dict[str, object]]:
        moment = datetime.fromtimestamp(physical_ms(item.commit_ts) / 1000, UTC)
        head: dict[str, object] = {"source": item.source} if self._names_source else {}
        head |= {"ts": str(item.commit_ts), "time": moment.isoformat(timespec="milliseconds")}
        if isinstance(item, Ddl):
            yield head | _definition(item)
            return
        if item.chunk is not None:
            head["snapshot"] = True
        table: Table | None = None
        for number, change in enumerate(item.rows, self._numbers.first(item)):
            if table is not change.table:
                table = change.table
                values = self._values[table]
            line = head | {"n": number, "op": change.op, "schema": table.schema, "table": table.name}
            if change.before is not None:
                line["before"] = values([change.before])[0]
            if change.after is not None:
                line["after"] = values([change.after])[0]
            yield line


def json_rows(table: Table) -> Values:
    """Return a function that converts the table's rows to JSON objects."""
    parts = [f"{c.name!r}: {_json_expression(c, f'c{i}')}" for i, c in enumerate(table.columns)]
    return compile_rows(len(table.columns), f"{{{', '.join(parts)}}}", {})


def _json_expression(column: Column, var: str) -> str:
    """Return a Python expression for a value that JSON represents exactly; `var` may be None."""
    match column.kind:
        case "bigint":
            expression = f"str({var})"
        case "bit" if column.length > _SAFE_BITS:
            expression = f"str({var})"
        case "decimal":
            expression = f"f'{{{var}:.{column.scale}f}}'"
        case "date":
            expression = f"str({var})"
        case "datetime" | "timestamp":
            expression = f"datetime_text({var}, {column.scale})"
        case "time":
            expression = f"time_text({var}, {column.scale})"
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "float" | "double" | "bit" | "char" | "varchar"
            | "text" | "binary" | "varbinary" | "blob" | "year" | "enum" | "set" | "json" | "uuid"
            | "inet4" | "inet6" | "geometry" | "vector"
        ):  # fmt: skip
            return var
        case _:
            assert_never(column.kind)
    return f"None if {var} is None else {expression}"


def _definition(ddl: Ddl) -> dict[str, object]:
    """Return the statement as JSON; for a new table, its columns."""
    where = {"schema": ddl.schema, "table": ddl.table}
    statement = {"query": ddl.query} if ddl.query else {}
    match ddl.actions:
        case [CreateTable(table, replaces)]:
            return {
                "op": "create",
                **where,
                **statement,
                **({"replaces": True} if replaces else {}),
                "columns": [{"name": column.name, "kind": column.kind} for column in table.columns],
                "key": [table.columns[index].name for index in table.key],
            }
        case [DropTable()]:
            return {"op": "drop", **where, **statement}
        case [TruncateTable()]:
            return {"op": "truncate", **where, **statement}
        case [RenameTables(pairs)]:
            renames = [{"from": _named(old), "to": _named(new)} for old, new in pairs]
            return {"op": "rename", **where, **statement, "renames": renames}
    return {"op": "alter", **where, "query": ddl.query}


def _named(table: TableName) -> dict[str, str]:
    return {"schema": table[0], "table": table[1]}
