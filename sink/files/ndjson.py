"""A sink that writes one line of JSON per row (docs/ndjson.md describes a line)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import msgspec

from ...errors import InvariantViolated, SinkError
from ...events import (
    Batch,
    Checkpoint,
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
    physical_ms,
)
from ...failpoint import reach
from ...store.disk import sync
from ..per_table import PerTable
from ..row_code import compile_rows
from ..sink import CheckpointStore

Values: TypeAlias = Callable[[Iterable[Row]], list[dict[str, Any]]]

_SAFE_BITS: Final = 53
"""Largest integer that is safe in JSON: many readers parse numbers as doubles."""


class FileSink:
    """Appends to one file, exactly once: the checkpoint contains the file's length, to which it is truncated
    after a crash."""

    reads_rows = True

    def __init__(self, name: str, path: Path, store: CheckpointStore) -> None:
        self.name = name
        self.target = f"file:{path.absolute().resolve()}"
        self._path = path
        self._new_path = path.with_name(path.name + ".new")
        self._store = store
        self._file: BinaryIO | None = None
        self._durable: Checkpoint | None = None
        self._reached: Checkpoint | None = None
        self._ts, self._next_row = 0, 0  # of the transaction written last: numbers continue over its parts
        self._encoder = msgspec.json.Encoder()
        self._values = PerTable(json_rows)

    def open(self) -> Checkpoint | None:
        stored = self._store.load()
        self._durable, length = stored or (None, 0)
        self._reached, self._ts = None, 0
        try:
            if stored is None:
                self._begin()
            else:
                self._go_on(length)
        except OSError as error:
            raise SinkError(f"can't open {self._path}: {error.strerror}") from error
        return self._durable

    def _begin(self) -> None:
        """Start in a file of another name: then an existing file without a checkpoint is never ours."""
        if self._path.exists() and self._path.stat().st_size:
            raise SinkError(f"{self._path} holds something already: remove it, or name another file")
        self._file = self._new_path.open("wb")

    def _go_on(self, length: int) -> None:
        if self._new_path.exists():  # a crash came between the first checkpoint and the rename
            self._new_path.replace(self._path)
        there = self._path.stat().st_size if self._path.exists() else 0
        if there < length:
            raise SinkError(
                f"{self._path} has {there} bytes, its checkpoint says {length}: put back the whole file, "
                "or remove it and its checkpoint to begin again"
            )
        self._file = self._path.open("ab")
        self._file.seek(self._file.truncate(length))  # a checkpoint without rows needs the length

    def write(self, batch: Batch) -> None:
        if self._file is None:
            raise InvariantViolated(f"{self.target} is written while it is closed")
        try:
            for item in batch.items:
                self._file.write(self._encoder.encode_lines(list(self._lines(item))))
                reach("sink.mid_batch")
        except OSError as error:
            self._fail(error)
        self._reached = batch.checkpoint

    def flush(self) -> Checkpoint | None:
        file, reached = self._file, self._reached
        if file is None or reached is None or reached == self._durable:
            return self._durable
        try:
            file.flush()
            os.fsync(file.fileno())
            if self._durable is None:
                sync(self._path.parent)  # else the file might be missing after a power failure
            reach("sink.before_commit")
            self._store.save(reached, file.tell())
            if self._durable is None:
                self._new_path.replace(self._path)
        except OSError as error:
            self._fail(error)
        self._durable = reached
        reach("sink.committed")
        return reached

    def has_table(self, schema: str, table: str) -> bool:  # noqa: ARG002
        return True  # not known from a stream of changes

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # unflushed lines aren't in the checkpoint either
                file.close()

    def _fail(self, error: OSError) -> None:
        self.close()
        raise SinkError(f"can't write {self._path}: {error.strerror}") from error

    # --- lines

    def _lines(self, item: Item) -> Iterator[dict[str, Any]]:
        moment = datetime.fromtimestamp(physical_ms(item.commit_ts) / 1000, UTC)
        head: dict[str, Any] = {"ts": str(item.commit_ts), "time": moment.isoformat(timespec="milliseconds")}
        if isinstance(item, Ddl):
            yield head | _definition(item)
            return
        if item.chunk is not None:
            head["snapshot"] = True
        first = self._next_row if item.commit_ts == self._ts else 0
        self._ts, self._next_row = item.commit_ts, first + len(item.rows)
        table: Table | None = None
        for number, change in enumerate(item.rows, first):
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
        case _:  # the encoder writes bytes as base64
            return var
    return f"None if {var} is None else {expression}"


def _definition(ddl: Ddl) -> dict[str, Any]:
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
