"""Rows as JSON objects, in the form of docs/reference/ndjson.md, converted from the columns of a run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final, assert_never

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..codec.arrow_arrays import repeated
from ..codec.image import Image
from ..codec.native import library
from ..codec.native.json_texts import Field
from ..codec.native.json_texts import json_texts as native_texts
from ..events import Column, Table
from ..sink.arrow_text import as_text_by_python

_SAFE_BITS: Final = 53
_MOST_PLAIN_DIGITS: Final = 6
"""Maximum decimal places of a decimal that Arrow never prints with an exponent."""
_NUMBERS: Final = {"tinyint", "smallint", "mediumint", "int", "year", "float", "double"}
_to_json = msgspec.json.Encoder().encode


def json_texts(table: Table, image: Image, count: int) -> pa.Array:
    """Return an object for each of `count` changes; null for a change without this image."""
    if image.columns is None:
        return pa.nulls(count, pa.string())
    if library.in_use:
        pairs = zip(table.columns, image.columns, strict=True)
        fields = [Field(_name(column), _is_quoted(column), column.scale, values) for column, values in pairs]
        try:
            return native_texts(fields, count, image.absent)
        except (OverflowError, ValueError):  # what only Python can write, or names as an error
            pass
    joined = _joined(table.columns, image.columns, count)
    if image.absent is not None:
        joined = pc.if_else(image.absent, pa.scalar(None, pa.string()), joined)
    return joined


def _joined(columns: Sequence[Column], arrays: Sequence[pa.Array], count: int) -> pa.Array:
    if not columns:
        return repeated(["{}"], [count], pa.string())
    pieces: list[object] = []
    before = "{"
    for column, values in zip(columns, arrays, strict=True):
        texts, is_quoted = _texts(column, values)
        quote = '"' if is_quoted else ""
        before += _name(column)
        if texts.null_count:
            texts = pc.binary_join_element_wise(quote, texts, quote, "") if quote else texts
            texts, quote = pc.fill_null(texts, "null"), ""
        pieces += [before + quote, texts]
        before = f"{quote},"
    return pc.binary_join_element_wise(*pieces, f"{before[:-1]}}}", "")


def _name(column: Column) -> str:
    return f"{_to_json(column.name).decode()}:"


def _is_quoted(column: Column) -> bool:
    """True if the column's values are strings."""
    if column.kind == "bit":
        return column.length > _SAFE_BITS
    return column.kind not in _NUMBERS


def _texts(column: Column, values: pa.Array) -> tuple[pa.Array, bool]:
    """Return the JSON of each value, and True if it has to be quoted."""
    match column.kind:
        case "date" | "time" | "datetime" | "timestamp":
            return as_text_by_python(values, column.scale).cast(pa.string()), True
        case "float" | "double":
            texts = _to_json(values.to_pylist()).decode()[1:-1]
            return pa.array(texts.split(",") if len(values) else [], pa.string()), False
        case "decimal" if column.scale > _MOST_PLAIN_DIGITS:
            return _each(values, lambda value: f"{value:.{column.scale}f}"), True
        case "decimal" | "bigint":
            return values.cast(pa.string()), True
        case "bit":
            return values.cast(pa.string()), _is_quoted(column)
        case "binary" | "varbinary" | "blob" | "geometry" | "vector":
            return _each(values, lambda value: b64encode(value).decode()), True
        case "tinyint" | "smallint" | "mediumint" | "int" | "year":
            return values.cast(pa.string()), False
        case "char" | "varchar" | "text" | "enum" | "set" | "json" | "uuid" | "inet4" | "inet6":
            pass
        case _:
            assert_never(column.kind)
    if _is_plain(values):
        return values.cast(pa.string()), True
    return _each(values, lambda value: _to_json(value).decode()), False


def _each(values: pa.Array, text: Any) -> pa.Array:
    return pa.array([None if value is None else text(value) for value in values.to_pylist()], pa.string())


def _is_plain(values: pa.Array) -> bool:
    """True if no character of the text has to be escaped."""
    data: Sequence[pa.Buffer | None] = values.buffers()
    if data[2] is None:
        return True
    content = np.frombuffer(data[2], np.uint8)
    return not ((content < 32) | (content == 34) | (content == 92)).any()
