"""open-protocol: several rows in a message, each with its type and flags.

Source: the documentation of TiCDC's open protocol, and messages that TiCDC wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo
from operator import ne
from typing import Any, Final, TypeAlias, assert_never

from ...events import (
    WITH_MEMBERS,
    Ddl,
    Op,
    RowChange,
    Table,
    Ts,
)
from ...events.per_table import PerTable
from .claims import Claim, ClaimStore
from .columns import Fields, Writer, columns_of, joined
from .compression import Compress, compressor
from .definition import Definition, Describe, definition_of
from .encoder import Message, Milliseconds, afters, befores, by_transaction, in_order, refuse
from .json_text import json_bytes, json_lines
from .numbers import json_number, single_text
from .open_types import flags, type_byte
from .options import OpenOptions
from .oversize import RECORD_BYTES, LargeRows
from .statement_kind import named, statement_kind
from .value_lines import JSON_STRINGS, doubles, each, integers, split, value_lines, wrapped

NAME: Final = "open-protocol"

_VERSION: Final = (1).to_bytes(8)
_LENGTHS: Final = 24
"""Bytes of the version and of the two lengths of a row."""
_Part: TypeAlias = tuple[bytes, bytes]
"""Key and value of a row."""


class OpenProtocolEncoder:
    """Writes rows in batches. Schema changes and watermarks are messages of their own."""

    name = NAME

    def __init__(
        self,
        options: OpenOptions,
        now: Milliseconds,  # noqa: ARG002
        describe: Describe = definition_of,
        claims: ClaimStore | None = None,
    ) -> None:
        self._options: Final = options
        compress = self._compress = compressor(options.large_message_handle_compression)
        large = LargeRows(NAME, options, claims)
        self._tables: Final = PerTable(lambda table: _TableForm(describe(table), options, compress, large))

    def rows(self, changes: Sequence[RowChange], last: bool = True) -> list[Message]:  # noqa: ARG002
        parts = in_order(changes, lambda table, op, group: self._tables[table].parts(op, group))
        messages: list[Message] = []
        batch: list[_Part] = []
        size, limit = 0, self._options.max_message_bytes
        for part in parts:
            length = _length(part) + RECORD_BYTES
            if len(batch) == self._options.max_batch_size or (batch and limit and size + length > limit):
                messages.append(_message(batch, len(batch)))
                batch, size = [], 0
            batch.append(part)
            size += length
        if batch:
            messages.append(_message(batch, len(batch)))
        return messages

    def ddl(self, ddl: Ddl) -> list[Message]:
        if not ddl.query:
            return []  # a table as its snapshot found it: no statement ran
        schema, table = named(ddl)
        key = json_bytes({"ts": ddl.commit_ts, "scm": schema, "tbl": table, "t": 2})
        value = json_bytes({"q": ddl.query, "t": statement_kind(ddl).number})
        return [_message([(key, one) for one in self._compress([value])], 0)]

    def watermark(self, ts: Ts) -> list[Message]:
        return [_message([(json_bytes({"ts": ts, "t": 3}), b"")], 0)]


def _length(part: _Part) -> int:
    return len(part[0]) + len(part[1]) + _LENGTHS


def _message(parts: Iterable[_Part], rows: int) -> Message:
    keys: list[bytes] = [_VERSION]
    values: list[bytes] = []
    for key, value in parts:
        keys += (len(key).to_bytes(8), key)
        values += (len(value).to_bytes(8), value)
    return Message(b"".join(keys), b"".join(values), rows)


class _TableForm:
    """The form of one table's rows."""

    def __init__(
        self, definition: Definition, options: OpenOptions, compress: Compress, large: LargeRows
    ) -> None:
        self._table: Final = definition.table
        self._options: Final = options
        self._compress: Final = compress
        self._large: Final = large
        self._handle: Final = tuple(sorted(definition.handle_key))
        whole = tuple(range(len(self._table.columns)))
        self._columns: Final = _fields(definition, options.zone, whole)
        self._keys: Final = _fields(definition, options.zone, self._handle)

    def parts(self, op: Op, changes: list[RowChange]) -> list[_Part]:
        columns = self._columns
        if op == "delete" and self._options.delete_only_output_handle_key_columns:
            if not self._handle:
                refuse(NAME, self._table, "", "delete-only-output-handle-key-columns needs a key")
            columns = self._keys
        keys = by_transaction(changes, lambda change: self._key(change, {}))
        every = [keys] * len(changes) if isinstance(keys, bytes) else keys
        values = self._compress(self._values(op, changes, columns))
        pairs = list(zip(every, values, strict=True))

        def short(place: int, location: str) -> _Part:
            mark: dict[str, object] = {"ohk": False, "ccl": location} if location else {"ohk": True}
            (value,) = self._compress(self._values(op, [changes[place]], self._keys))
            return self._key(changes[place], mark), value

        def claim(place: int) -> Claim:
            key, value = pairs[place]
            whole = _message([(key, value)], 1)
            return Claim(changes[place].commit_ts, whole.key, whole.value or b"", key + value)

        self._large.replace(self._table, pairs, _length, short, claim, has_key=bool(self._handle))
        return pairs

    def _key(self, change: RowChange, more: dict[str, object]) -> bytes:
        table = self._table
        return json_bytes({"ts": change.commit_ts, "scm": table.schema, "tbl": table.name, "t": 1} | more)

    def _values(self, op: Op, changes: list[RowChange], columns: Fields) -> list[bytes]:
        count = len(changes)
        if op == "delete":
            return joined(count, [b'{"d":{', *columns.of(befores(changes)), b"}}"])
        start = [b'{"u":{', *columns.of(afters(changes))]
        if op == "insert" or not self._options.output_old_value:
            return joined(count, [*start, b"}}"])
        old = columns.of(befores(changes))
        if self._options.only_output_updated_columns:
            before, after = [columns.texts(columns_of(rows)) for rows in (befores(changes), afters(changes))]
            old = [columns.some(before, [map(ne, *both) for both in zip(before, after, strict=True)])]
        return joined(count, [*start, b'},"p":{', *old, b"}}"])


def _fields(definition: Definition, zone: tzinfo, places: Iterable[int]) -> Fields:
    table = definition.table
    fields = []
    for place in places:
        column = table.columns[place]
        kind = type_byte(column)
        if kind is None:
            refuse(NAME, table, column.name, f"it has no type {column.kind}")
        handle = b'"h":true,' if place in definition.handle_key else b""
        start = b'%b:{"t":%d,%b"f":%d,"v":' % (
            json_bytes(column.name),
            kind,
            handle,
            flags(definition, place),
        )
        fields.append((place, start, _writer(table, place, zone)))
    return Fields(fields, between=b",", after=b"}")


def _writer(table: Table, place: int, zone: tzinfo) -> Writer:
    column = table.columns[place]
    match column.kind:
        case "float":
            return split(each(lambda value: json_number(single_text(value))))
        case "double":
            return split(doubles(lambda value: json_number(repr(value))))
        case "text":
            return _encoded(str.encode)
        case "binary" | "varbinary":
            return _encoded(quoted_bytes)
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "bit" | "char"
            | "varchar" | "blob" | "date" | "time" | "datetime" | "timestamp" | "year" | "enum" | "set"
            | "json" | "uuid" | "inet4" | "inet6" | "geometry" | "vector"
        ):  # fmt: skip
            pass
        case _:
            assert_never(column.kind)
    lines = value_lines(NAME, table, column, zone)
    if lines is None:
        return JSON_STRINGS
    is_number = column.kind in WITH_MEMBERS or lines is integers
    return split(lines) if is_number else wrapped(lines, b'"', b'"')


def _encoded(form: Callable[[Any], Any]) -> Writer:
    return lambda values: json_lines([None if value is None else form(value) for value in values])


_SHORT: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip
_PLAIN: Final = re.compile(rb"[ !#-\[\]-~]*")
_ESCAPED: Final = range(0xDC80, 0xDD00)
"""Code points that stand for bytes that aren't UTF-8."""


def quoted_bytes(value: bytes) -> str:
    """Return printable UTF-8 as it is, and other bytes and characters as escapes."""
    if _PLAIN.fullmatch(value):
        return value.decode()
    return "".join(map(_character, value.decode("utf-8", "surrogateescape")))


def _character(one: str) -> str:
    if one in _SHORT:
        return _SHORT[one]
    if one.isprintable():
        return one
    code = ord(one)
    if code in _ESCAPED:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
