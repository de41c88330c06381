"""Code generation for reading the rows of format 1 of one table.

A row has its columns in the table's order and lacks some of them. The function expects each column's id and
flag at the end of the last column. A row that doesn't end with the last column is left to the plain decoder:
one with columns that the table no longer has, with another order or kind of datum, or a damaged one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct as Packing
from typing import Final

from ...events import Row
from ..decimal import decimal_end
from .cell_code import NAMES, Cell, cell_code, handle_code
from .columns import Columns
from .field import UNREADABLE, Field
from .json import json_end
from .number import decode_uvarint, encode_varint
from .old_row import EMPTY, FIRST_BYTES
from .row_code import RowsReader
from .storage import BYTES, DECIMAL, FLOAT, JSON
from .time import MAX_SCALE, unit_micros

_ID_FLAG: Final = b"\x08"

_NINE_BITS: Final = {
    "m": "(b6 & 127) >> 4 | (b7 & 127) << 3 | b8 << 10",
    "d": "b5 >> 6 & 1 | (b6 & 15) << 1",
    "h": "b5 >> 1 & 31",
    "t": "b4 >> 2 & 31 | (b5 & 1) << 5",
    "s": "b3 >> 3 & 15 | (b4 & 3) << 4",
    "u": "b0 & 127 | (b1 & 127) << 7 | (b2 & 127) << 14 | (b3 & 7) << 21",
}
"""Expressions for year * 13 + month, day, hour, minute, second and microseconds from the nine bytes of a date
and time other than the zero date; small integers are faster than the packed number."""


def compile_old_rows(columns: Columns, plain: Callable[[bytes, bytes], Row]) -> RowsReader:
    """Compile a function that reads rows of format 1, with `plain` for other rows, which raises one of
    UNREADABLE."""
    names = {**NAMES, "FIRST_BYTES": FIRST_BYTES, "UNREADABLE": UNREADABLE, "plain": plain}
    names |= {"key_values": columns.key_values, "uvarint": _uvarint, "NINE": Packing("<9B").unpack_from}
    names |= {"EMPTY": EMPTY, "decimal_end": decimal_end, "json_end": json_end}
    places = {field.column.id: i for i, field in enumerate(columns.stored)}
    lines = [
        "def function(rows, take):",
        "    for key, data in rows:",
        "        try:",
        "            p = 1 if data == EMPTY else 0",
        "            size = len(data)",
        *(["            handle = key_values(key)"] if columns.common_handle else []),
        *(
            f"            {line}"
            for i, field in enumerate(columns.stored)
            for line in _column(columns, i, field, names)
        ),
        f"            row = ({''.join(f'v{places[field.column.id]}, ' for field in columns.visible)})",
        "        except UNREADABLE:",
        "            p = -1",
        "        if p != size or not size:",
        "            if not data or data[0] not in FIRST_BYTES:",
        "                return key, data",
        "            row = plain(key, data)",
        "        take(row)",
        "    return None",
    ]
    exec(compile("\n".join(lines), "<old rows>", "exec"), names)
    reader: RowsReader = names["function"]
    return reader


def _uvarint(data: bytes, p: int) -> tuple[int, int]:
    """Return the number at `p` and its end: up to four bytes without a loop, as most numbers are short."""
    a = data[p]
    if a < 128:
        return a, p + 1
    b = data[p + 1]
    if b < 128:
        return a & 127 | b << 7, p + 2
    c = data[p + 2]
    if c < 128:
        return a & 127 | (b & 127) << 7 | c << 14, p + 3
    d = data[p + 3]
    if d < 128:
        return a & 127 | (b & 127) << 7 | (c & 127) << 14 | d << 21, p + 4
    return decode_uvarint(data, p)


def _column(columns: Columns, i: int, field: Field, names: dict[str, object]) -> Iterator[str]:
    """Read column number `i`: its datum, NULL, or the value in a row without it."""
    id_ = _ID_FLAG + encode_varint(field.column.id)
    names[f"read{i}"] = field.read
    yield f"c = data[p:p + {len(id_) + 1}]"
    yield f"if c == {id_ + bytes((field.storage.row_flag,))!r}:"
    yield f"    p += {len(id_) + 1}"
    yield from (f"    {line}" for line in _datum(i, field, names))
    yield f"elif c == {id_ + bytes(1)!r}:"
    yield f"    p += {len(id_) + 1}"
    yield f"    v{i} = None"
    yield "else:"
    yield from (f"    {line}" for line in _absent(columns, i, field, names))


def _absent(columns: Columns, i: int, field: Field, names: dict[str, object]) -> Iterator[str]:
    id_ = field.column.id
    if id_ == columns.handle:
        yield from handle_code(i, field)
    elif id_ in columns.required:
        yield "raise ValueError"
    elif id_ in columns.common_handle and id_ not in columns.prefixes:
        yield f"v{i} = read{i}(handle[{id_}])"
    else:
        try:
            names[f"default{i}"] = field.default()
        except UNREADABLE:
            yield "raise ValueError"
        else:
            yield f"v{i} = default{i}"


def _datum(i: int, field: Field, names: dict[str, object]) -> Iterator[str]:
    """Read the datum at `p` after its flag."""
    match field.storage:
        case s if s is BYTES:
            yield "n, p = uvarint(data, p)"
            yield "if n & 1:"
            yield "    raise ValueError"
            yield "q = p + (n >> 1)"
        case s if s is FLOAT:
            yield "q = p + 8"
        case s if s is DECIMAL:
            yield from _decimal_end(field)
        case s if s is JSON:
            yield "q = json_end(data, p)"
        case _:
            yield from _number(i, field)
            return
    yield from cell_code(Cell(i, field, "p", "q"), names)
    yield "p = q"


def _decimal_end(field: Field) -> Iterator[str]:
    """Compute the end of a decimal with the column's precision and scale without a call."""
    precision, scale = field.column.length, field.scale
    head = bytes((precision, scale))
    yield f"q = p + {decimal_end(head, 0)} if data[p:p + 2] == {head!r} else decimal_end(data, p)"


def _number(i: int, field: Field) -> Iterator[str]:
    match field.kind:
        case "date" | "datetime" | "timestamp":
            yield from _moment(i, field)
            return
    yield "n = data[p]"
    yield "p += 1"
    yield "if n > 127:"
    yield "    n, p = uvarint(data, p - 1)"
    match field.kind:
        case "enum" | "set":
            yield f"v{i} = read{i}(n)"
        case "time":
            yield f"v{i} = read{i}(n >> 1 ^ -(n & 1))"
        case _:
            yield f"v{i} = {'n' if field.storage.row_flag.name == 'UVARINT' else 'n >> 1 ^ -(n & 1)'}"


def _moment(i: int, field: Field) -> Iterator[str]:
    micros = "u" if field.scale == MAX_SCALE else f"u - u % {unit_micros(field.scale)}"
    parts = "m // 13, m % 13, d" if field.kind == "date" else f"m // 13, m % 13, d, h, t, s, {micros}"
    made = "date" if field.kind == "date" else "datetime"
    yield "b8 = 255"
    yield "if p + 9 <= size:"
    yield "    b0, b1, b2, b3, b4, b5, b6, b7, b8 = NINE(data, p)"
    yield "if b8 < 128 <= b0 & b1 & b2 & b3 & b4 & b5 & b6 & b7:"
    for name, bits in _NINE_BITS.items():
        if name in "md" or field.kind != "date":
            yield f"    {name} = {bits}"
    yield "    try:"
    yield f"        v{i} = {made}({parts}{', UTC' if field.kind == 'timestamp' else ''})"
    yield "    except ValueError:"
    yield f"        v{i} = read{i}(uvarint(data, p)[0])"
    yield "    p += 9"
    yield "else:"
    yield "    n, p = uvarint(data, p)"
    yield f"    v{i} = read{i}(n)"
