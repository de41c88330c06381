"""csv: a line for each row, as TiCDC writes them to storage.

Source: TiCDC's documentation of its storage sink, and lines that TiCDC wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, Final, assert_never

from ...events import ChangeDetails, Column, CreateTable, Ddl, Op, RowChange, Table, Ts
from ...events.per_table import PerTable
from .columns import Fields, Parts, Texts, Values, Writer, joined
from .compression import compressor
from .definition import Definition, Describe, definition_of
from .encoder import Message, Milliseconds, NotEncodable, afters, befores, by_transaction, in_order, refuse
from .json_text import base64_text
from .numbers import go_number, single_text
from .options import CsvOptions
from .oversize import check_sizes
from .value_lines import Lines, doubles_within, each, integers, split, value_lines, wrapped

NAME: Final = "csv"


class CsvEncoder:
    """Writes rows only: a file's columns are described beside it, not in it."""

    name = NAME

    def __init__(
        self,
        options: CsvOptions,
        now: Milliseconds,  # noqa: ARG002
        describe: Describe = definition_of,
    ) -> None:
        self._options: Final = options
        self._compress: Final = compressor(options.large_message_handle_compression)
        self._tables: Final = PerTable(lambda table: _TableForm(describe(table), options))

    def rows(self, changes: Sequence[RowChange], last: bool = True) -> list[Message]:  # noqa: ARG002
        def encode(table: Table, op: Op, group: list[RowChange]) -> list[Message]:
            form = self._tables[table]
            messages = list(map(Message, repeat(form.header), self._compress(form.lines(op, group))))
            check_sizes(NAME, self._options, group, messages)
            return messages

        return in_order(changes, encode)

    def header(self, table: Table) -> bytes:
        """Return the line of a table's columns; empty without `output_field_header`."""
        return self._tables[table].header or b""

    def ddl(self, ddl: Ddl) -> list[Message]:
        match ddl.actions:
            case [CreateTable(), *_] | [ChangeDetails()]:
                return []  # rows look the same
        raise NotEncodable(NAME, ddl.full_name, "", f"it has no message for {ddl.query}")

    def watermark(self, ts: Ts) -> list[Message]:  # noqa: ARG002
        return []


class _TableForm:
    """The names and generated code of one table."""

    def __init__(self, definition: Definition, options: CsvOptions) -> None:
        table = definition.table
        self._table: Final = table
        self._options: Final = options
        self._quote: Final = quoting(options)
        self._end: Final = options.terminator.encode()
        self.header: Final = self._header() if options.output_field_header else None
        self._columns: Final = Fields(
            [(place, b"", self._writer(column)) for place, column in enumerate(table.columns)],
            options.delimiter.encode(),
        )

    def _header(self) -> bytes:
        names = ["operation", "table", "schema"]
        if self._options.include_commit_ts:
            names.append("commit-ts")
        if self._options.output_old_value:
            names.append("is-update")
        columns = [column.name for column in self._table.columns]
        line = self._options.delimiter.join([*(f"ticdc-meta${name}" for name in names), *columns])
        return (line + self._options.terminator).encode()

    def lines(self, op: Op, changes: list[RowChange]) -> list[bytes]:
        old, new = self._options.output_old_value, op == "update"
        parts: Parts = []
        if op == "delete" or (new and old):
            parts += (*self._head("D", new, changes), *self._columns.of(befores(changes)), self._end)
        if op != "delete":
            name = "I" if old or not new else "U"
            parts += (*self._head(name, new, changes), *self._columns.of(afters(changes)), self._end)
        return joined(len(changes), parts)

    def _head(self, op: str, is_update: bool, changes: list[RowChange]) -> Parts:
        options = self._options
        names = [self._quote(op), self._quote(self._table.name), self._quote(self._table.schema)]
        start = "".join([name + options.delimiter for name in names]).encode()
        after = ("true" if is_update else "false") + options.delimiter if options.output_old_value else ""
        if not options.include_commit_ts:
            return [start + after.encode()]
        end = options.delimiter + after
        return [start, by_transaction(changes, lambda change: f"{change.commit_ts}{end}".encode())]

    def _writer(self, column: Column) -> Writer:
        null, options = self._options.null.encode(), self._options
        quoted = self._quote if options.quote else lambda text: _bare_null(text, self._table, options)
        if (numbers := _numbers(column)) is not None:
            return wrapped(numbers, b"", b"", null)
        if (text := _text(column, options)) is not None:
            if options.quote and text is str:
                return _quoted(options.quote, quoted, null)
            return lambda values: [
                null if value is None else quoted(text(value)).encode() for value in values
            ]
        lines = value_lines(NAME, self._table, column, options.zone)
        assert lines is not None
        if options.quote in ('"', "'"):  # which are in none of these texts
            mark = options.quote.encode()
            return wrapped(lines, mark, mark, null)
        texts = split(lines)
        return lambda values: [
            null if text == b"null" else quoted(text.decode()).encode() for text in texts(values)
        ]


def _quoted(quote: str, quoted: Callable[[str], str], null: bytes) -> Writer:
    """Return a writer of text between quotes, which `quoted` escapes inside of it."""

    def write(values: Values) -> Texts:
        if quote in "".join(filter(None, values)):
            return [null if value is None else quoted(value).encode() for value in values]
        return [null if value is None else f"{quote}{value}{quote}".encode() for value in values]

    return write


def quoting(options: CsvOptions) -> Callable[[str], str]:
    quote = options.quote
    if quote:
        return lambda text: quote + text.replace(quote, quote + quote) + quote
    escapes = {"\r": "\\r", "\n": "\\n", "\\": "\\\\"}
    escapes |= {character: "\\" + character for character in options.delimiter}
    escaped = str.maketrans(escapes)
    return lambda text: text.translate(escaped)


def _bare_null(text: str, table: Table, options: CsvOptions) -> str:
    """Return text without quotes; refuse one that readers would take for NULL."""
    quoted = quoting(options)(text)
    if quoted == options.null and options.refuse_inexact:
        refuse(NAME, table, "", f"without quotes, the text {text!r} equals null = {options.null!r}")
    return quoted


def _numbers(column: Column) -> Lines | None:
    """Return the lines of a column whose values are never quoted; None for other columns."""
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "bit" | "year":
            return integers
        case "float":
            return each(lambda value: go_number(single_text(value)))
        case "double":
            return doubles_within(1e-4, 1e6, b"", lambda value: go_number(repr(value)))
        case (
            "decimal" | "char" | "varchar" | "text" | "binary" | "varbinary" | "blob" | "date" | "time"
            | "datetime" | "timestamp" | "enum" | "set" | "json" | "uuid" | "inet4" | "inet6" | "geometry"
            | "vector"
        ):  # fmt: skip
            return None
        case _:
            assert_never(column.kind)


def _text(column: Column, options: CsvOptions) -> Callable[[Any], str] | None:
    """Return a function for the text of a value that isn't NULL; None for a kind with a text of its own."""
    match column.kind:
        case "binary" | "varbinary" | "blob":
            return bytes.hex if options.binary_encoding_method == "hex" else base64_text
        case "enum":
            return lambda value: value if value in column.members else ""
        case "char" | "varchar" | "text" | "json" | "set" | "uuid" | "inet4" | "inet6":
            return str
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "float" | "double"
            | "bit" | "date" | "time" | "datetime" | "timestamp" | "year" | "geometry" | "vector"
        ):  # fmt: skip
            return None
        case _:
            assert_never(column.kind)
