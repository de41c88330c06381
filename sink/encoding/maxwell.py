"""maxwell: one JSON object per row, as Maxwell writes them.

Source: Maxwell's documentation of its data format.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo
from operator import attrgetter
from typing import Any, Final, assert_never
from uuid import UUID

import msgspec

from ...events import (
    ChangeDetails,
    Column,
    CreateTable,
    Ddl,
    DropTable,
    Op,
    RowChange,
    Table,
    TruncateTable,
    Ts,
    physical_ms,
)
from ...events.per_table import PerTable
from .columns import Fields, Parts, Texts, Values, Writer, columns_of, joined
from .compression import compressor
from .definition import Describe, definition_of, type_name
from .encoder import Message, Milliseconds, NotEncodable, afters, befores, by_transaction, in_order, refuse
from .json_text import json_bytes, json_lines
from .numbers import json_number, single_text
from .options import MaxwellOptions
from .oversize import check_sizes
from .value_lines import JSON_STRINGS, decimals, doubles, each, integers, split, value_lines, wrapped

NAME: Final = "maxwell"

_transaction: Final = attrgetter("commit_ts", "start_ts")


class MaxwellEncoder:
    """Writes keys and values. `xid` is the commit ts: a source's own number isn't part of a change."""

    name = NAME

    def __init__(
        self,
        options: MaxwellOptions,
        now: Milliseconds,  # noqa: ARG002
        describe: Describe = definition_of,  # noqa: ARG002
    ) -> None:
        self._options: Final = options
        self._compress: Final = compressor(options.large_message_handle_compression)
        self._tables: Final = PerTable(lambda table: _TableForm(table, options))
        self._ts = self._offset = 0  # of the last row: a transaction may come in parts

    def rows(self, changes: Sequence[RowChange], last: bool = True) -> list[Message]:
        rows = in_order(changes, lambda table, op, group: self._tables[table].rows(op, group))
        keys, values = [], []
        for change, following, (key, start, end) in zip(changes, [*changes[1:], None], rows, strict=True):
            ts = change.commit_ts
            if ts != self._ts:
                self._ts, self._offset = ts, 0
            middle = b""
            if self._options.output_commit_info:
                is_last = last if following is None else _transaction(change) != _transaction(following)
                middle = b',"commit":true' if is_last else b',"xoffset":%d' % self._offset
            if key is None:  # spreads rows over partitions; the same when they are read again
                key = self._tables[change.table].key_of(UUID(int=ts << 64 | self._offset))
            keys.append(key)
            values.append(start + middle + end)
            self._offset += 1
        messages = list(map(Message, keys, self._compress(values)))
        check_sizes(NAME, self._options, changes, messages)
        return messages

    def ddl(self, ddl: Ddl) -> list[Message]:
        kind = "table-alter"
        table: Table | None = None
        match ddl.actions:
            case [CreateTable(table), *_]:
                kind = "table-create"
            case [DropTable()]:
                kind = "table-drop"
            case [TruncateTable()]:
                raise NotEncodable(NAME, ddl.full_name, "", "it has no message for TRUNCATE")
            case [*_, ChangeDetails(table=known)] if known.columns:
                table = known
        if not self._options.output_ddl or not ddl.query:
            return []
        message: dict[str, object] = {"type": kind, "database": ddl.schema, "table": ddl.table}
        if table is not None:
            message["def"] = _definition(table)
        message |= {"ts": physical_ms(ddl.commit_ts), "sql": ddl.query}
        key = json_bytes({"database": ddl.schema, "table": ddl.table})
        [value] = self._compress([json_bytes(message)])
        return [Message(key, value, 0)]

    def watermark(self, ts: Ts) -> list[Message]:  # noqa: ARG002
        return []


class _TableForm:
    """The form of one table's rows."""

    def __init__(self, table: Table, options: MaxwellOptions) -> None:
        self._table: Final = table
        self._options: Final = options
        writers = [_writer(table, column, options.zone) for column in table.columns]
        names = [column.name for column in table.columns]
        self._columns: Final = Fields(
            [(place, json_bytes(name) + b":", writers[place]) for place, name in enumerate(names)], b","
        )
        self._primary: Final = Fields([(place, b"", writers[place]) for place in table.key], b",")
        self._primary_names: Final = json_bytes([names[place] for place in table.key])
        if options.kafka_key_format == "array":
            forms = [b"{%b:" % json_bytes(names[place]) for place in table.key]
            self._key_start, self._key_end = json_bytes([table.schema, table.name])[:-1] + b",[", b"]]"
        else:
            forms = [json_bytes(f"pk.{names[place].lower()}") + b":" for place in table.key]
            path = json_bytes({"database": table.schema, "table": table.name})
            self._key_start, self._key_end = path[:-1] + b",", b"}"
        after = b"}" if options.kafka_key_format == "array" else b""
        keyed = [(place, form, writers[place]) for place, form in zip(table.key, forms, strict=True)]
        self._key: Final = Fields(keyed, b",", after)

    def key_of(self, identity: UUID) -> bytes:
        """Return the key of a row of a table that has none."""
        return json_bytes({"database": self._table.schema, "table": self._table.name, "_uuid": str(identity)})

    def rows(self, op: Op, changes: list[RowChange]) -> list[tuple[bytes | None, bytes, bytes]]:
        """Return each message's key, and its value before and after what says where in the transaction it is.

        A table without a key has none, except as arrays.
        """
        count = len(changes)
        rows = befores(changes) if op == "delete" else afters(changes)
        keys: list[bytes] | list[None] = [None] * count
        if self._table.key or self._options.kafka_key_format == "array":
            keys = joined(count, [self._key_start, *self._key.of(rows), self._key_end])
        starts = by_transaction(changes, lambda change: self._start(op, change.commit_ts))
        ends: Parts = []
        if self._options.output_primary_keys:
            ends += (b',"primary_key":[', *self._primary.of(rows), b"]")
        if self._options.output_primary_key_columns:
            ends += (b',"primary_key_columns":', self._primary_names)
        data = self._columns.of(rows)
        if op == "update" or not self._options.output_nulls:
            columns = columns_of(rows)
            texts = self._columns.texts(columns)
            data = self._columns.parts(texts)
            if not self._options.output_nulls:
                data = [self._columns.some(texts, [map(_is_value, values) for values in columns])]
        ends += (b',"data":{', *data)
        if op == "update":
            ends += (b'},"old":{', self._changed(columns_of(befores(changes)), columns, texts))
        heads = [starts] * count if isinstance(starts, bytes) else starts
        return list(zip(keys, heads, joined(count, [*ends, b"}}"]), strict=True))

    def _start(self, op: Op, ts: Ts) -> bytes:
        value = {"database": self._table.schema, "table": self._table.name, "type": op, "ts": _seconds(ts)}
        if self._options.output_commit_info:
            value["xid"] = ts
        return json_bytes(value)[:-1]

    def _changed(
        self, before: Sequence[Values], after: Sequence[Values], after_texts: Sequence[Texts]
    ) -> list[bytes]:
        """Return the columns before updates that changed; NULL isn't the document null."""
        texts = self._columns.texts(before)
        differ = [
            [
                old != new or (was is None) is not (becomes is None)
                for old, new, was, becomes in zip(*column, strict=True)
            ]
            for column in zip(texts, after_texts, before, after, strict=True)
        ]
        return self._columns.some(texts, differ)


def _seconds(ts: Ts) -> int:
    return physical_ms(ts) // 1000


def _is_value(value: object) -> bool:
    return value is not None


def _writer(table: Table, column: Column, zone: tzinfo) -> Writer:
    match column.kind:
        case "float":
            return split(each(lambda value: json_number(single_text(value))))
        case "double":
            return split(doubles(lambda value: json_number(repr(value))))
        case "decimal":
            return split(decimals(column.scale))
        case "json":
            return _encoded(_compact)
        case "enum":
            return _encoded(lambda value: value if value in column.members else "")
        case "set":
            return _encoded(_members)
        case "vector":
            refuse(NAME, table, column.name, "it has no form for a vector")
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "bit" | "char" | "varchar" | "text"
            | "binary" | "varbinary" | "blob" | "date" | "time" | "datetime" | "timestamp" | "year"
            | "uuid" | "inet4" | "inet6" | "geometry"
        ):  # fmt: skip
            pass
        case _:
            assert_never(column.kind)
    lines = value_lines(NAME, table, column, zone)
    if lines is None:
        return JSON_STRINGS
    return split(lines) if lines is integers else wrapped(lines, b'"', b'"')


def _encoded(form: Callable[[Any], Any]) -> Writer:
    return lambda values: json_lines([None if value is None else form(value) for value in values])


def _compact(text: str) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.format(text.encode(), indent=-1))


def _members(text: str) -> list[str]:
    return text.split(",") if text else []


def _definition(table: Table) -> dict[str, object]:
    return {
        "database": table.schema,
        "charset": table.charset,
        "table": table.name,
        "columns": [_column(column) for column in table.columns],
        "primary-key": [table.columns[place].name for place in table.key],
    }


def _column(column: Column) -> dict[str, object]:
    fields: dict[str, object] = {"type": type_name(column), "name": column.name}
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            fields["signed"] = not column.unsigned
        case "time" | "datetime" | "timestamp" if column.scale:
            fields["column-length"] = column.scale
        case "enum" | "set":
            fields["enum-values"] = list(column.members)
        case "char" | "varchar" | "text":
            fields["charset"] = column.charset
        case (
            "decimal" | "float" | "double" | "bit" | "binary" | "varbinary" | "blob" | "date" | "time"
            | "datetime" | "timestamp" | "year" | "json" | "uuid" | "inet4" | "inet6" | "geometry"
            | "vector"
        ):  # fmt: skip
            pass
        case _:
            assert_never(column.kind)
    return fields
