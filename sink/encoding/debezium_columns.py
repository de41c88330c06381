"""Columns in Debezium's JSON: their schemas, and writers of their values."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, NamedTuple, assert_never

from ...codec.native.row_texts import Output
from ...events import Column, Kind, Table
from .columns import Texts, Values, Writer
from .debezium_types import connect_type, conversion
from .definition import Definition, bare_type
from .encoder import NotEncodable
from .json_text import json_lines
from .numbers import json_number, single_text
from .options import DebeziumOptions
from .sql_default import constant
from .value_lines import (
    JSON_STRINGS,
    Lines,
    decimals,
    doubles,
    each,
    integers,
    moments,
    numbers,
    split,
    wrapped,
)

_EXACT: Final = 15
"""Number of digits up to which every decimal is the text of a double."""
_SMALL: Final = 6
"""Digits after the point up to which a double's text has no exponent."""


_NUMBERS: Final[dict[Kind, Output]] = {
    "bigint": "INT",
    "date": "DATE",
    "time": "DURATION",
    "datetime": "DATETIME",
}
"""Kinds that native code writes as numbers."""


class ColumnForm(NamedTuple):
    """Form of one column."""

    schema: dict[str, Any]
    write: Writer


def column_form(definition: Definition, column: Column, options: DebeziumOptions) -> ColumnForm:
    """Return the form of a column. Raises NotEncodable for a kind that has none."""
    kind, name, parameters = connect_type(definition.table, column, options)
    convert = conversion(definition.table, column, options)
    schema: dict[str, object] = {}
    if options.enable_tidb_extension:
        schema["tidb_type"] = bare_type(column).removesuffix(" zerofill")
    schema |= {"type": kind, "optional": column.nullable}
    if name:
        schema["name"] = name
        if column.kind != "vector":
            schema["version"] = 1
    if parameters:
        schema["parameters"] = parameters
    schema["field"] = column.name
    default = constant(column)
    if default is not None:
        with suppress(NotEncodable):  # rows have all columns: no reader needs the default
            schema["default"] = convert([default])[0] if convert else default
    return ColumnForm(schema, _writer(definition.table, column, options))


def _writer(table: Table, column: Column, options: DebeziumOptions) -> Writer:
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "year":
            return split(integers)
        case "bigint" if not column.unsigned:
            return split(integers)
        case "bigint" if options.bigint_unsigned_handling_mode == "string":
            return wrapped(integers, b'"', b'"')
        case "float":
            return split(each(lambda value: json_number(single_text(value))))
        case "double":
            return split(doubles(lambda value: json_number(repr(value))))
        case "decimal" if options.decimal_handling_mode == "string":
            return wrapped(decimals(column.scale), b'"', b'"')
        case "decimal" if 0 < column.length <= _EXACT and column.scale <= _SMALL:
            return _shortest(column.scale)
        case "binary" | "varbinary" | "blob":
            return JSON_STRINGS
        case (
            "bigint" | "decimal" | "bit" | "char" | "varchar" | "text" | "date" | "time" | "datetime"
            | "timestamp" | "enum" | "set" | "json" | "uuid" | "inet4" | "inet6" | "geometry" | "vector"
        ):  # fmt: skip
            pass
        case _:
            assert_never(column.kind)
    convert = conversion(table, column, options)
    if convert is None:
        return JSON_STRINGS

    def write(values: Values) -> Texts:
        return json_lines(convert(values))

    if column.kind == "timestamp":
        return _timestamps(column, write)
    output = _NUMBERS.get(column.kind)
    return write if output is None else numbers(output, column.scale, write)


def _shortest(scale: int) -> Writer:
    """Return a writer of decimals without zeros at their ends."""
    texts = split(decimals(scale))
    if not scale:
        return texts

    def write(values: Values) -> Texts:
        return [text if text == b"null" else text.rstrip(b"0").rstrip(b".") for text in texts(values)]

    return numbers("DECIMAL", scale, write)


def _timestamps(column: Column, other: Writer) -> Writer:
    """Return a writer of timestamps; `other` writes those of a column that has zero timestamps."""
    utc = moments(column.scale)
    lines = wrapped(Lines(lambda values: utc.write(values).replace(b" ", b"T")), b'"', b'Z"')

    def write(values: Values) -> Texts:
        return other(values) if str in set(map(type, values)) else lines(values)

    return write
