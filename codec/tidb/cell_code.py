"""Generated code that reads one column's cell of a row of format 2.

The cell of column number i is `data[a:b]`, its value goes to `v<i>`. Nothing of a table but numbers gets into
the code.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from struct import Struct as Packing
from struct import calcsize
from typing import Any, Final

from .column_type import is_unsigned
from .decimal import MAX_DIGITS, word_bytes, words
from .field import Field
from .time import decode_date, decode_datetime, decode_timestamp


def _unpackers(letters: str) -> dict[int, Any]:
    """What unpacks a number, low byte first, by the number's bytes; other sizes raise KeyError."""
    return {calcsize(f"<{letter}"): Packing(f"<{letter}").unpack_from for letter in letters}


NAMES: Final[dict[str, Any]] = {
    "INT": _unpackers("bhiq"),
    "UINT": _unpackers("BHIQ"),
    "DOUBLE": Packing(">d").unpack_from,
    "BITS": Packing(">Q").unpack_from,
    "UTC": UTC,
    "date": date,
    "datetime": datetime,
    "timedelta": timedelta,
    "Decimal": Decimal,
    "scaled": Context(prec=MAX_DIGITS).scaleb,
    "decode_date": decode_date,
    "decode_datetime": decode_datetime,
    "decode_timestamp": decode_timestamp,
}
"""What the code calls."""

_CLOCK: Final = "n >> 36 & 31, n >> 30 & 63, n >> 24 & 63, n & 16777215"


def cell_code(i: int, field: Field, a: str, b: str, names: dict[str, Any]) -> Iterator[str]:
    """The lines that read a cell; what they call besides NAMES is added to `names`."""
    match field.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year":
            kind = "UINT" if is_unsigned(field.column) and field.kind != "year" else "INT"
            yield f"v{i}, = {kind}[{b} - {a}](data, {a})"
        case "bit":
            yield f"v{i}, = UINT[{b} - {a}](data, {a})"
        case "float" | "double":
            yield from _float(i, a, b)
        case "char" | "varchar" | "text":
            yield from _ordered(a, b)
            yield f"v{i} = data[{a}:{b}].decode()"
        case "binary" | "varbinary" | "blob":
            yield from _ordered(a, b)
            yield f"v{i} = data[{a}:{b}]"
        case "date" | "datetime" | "timestamp":
            yield from _moment(i, field, a, b)
        case "time":
            yield f"n, = INT[{b} - {a}](data, {a})"
            yield "if n % 1000:"
            yield "    raise ValueError"
            yield f"v{i} = timedelta(0, 0, n // 1000)"
        case "enum" | "set":
            names[f"read{i}"] = field.read
            yield f"n, = UINT[{b} - {a}](data, {a})"
            yield f"v{i} = read{i}(n)"
        case "decimal":
            yield from _decimal(i, field, a, b, names)
        case _:
            names[f"read{i}"] = field.read
            yield from _ordered(a, b)
            yield f"v{i} = read{i}(data[{a}:{b}])"


def _ordered(a: str, b: str) -> Iterator[str]:
    yield f"if {b} < {a}:"
    yield "    raise ValueError"


def _float(i: int, a: str, b: str) -> Iterator[str]:
    """A positive number has its sign bit set, a negative one all bits inverted."""
    yield f"if {b} - {a} != 8:"
    yield "    raise ValueError"
    yield f"v{i}, = DOUBLE(data, {a})"
    yield f"if data[{a}] >= 128:"
    yield f"    v{i} = -v{i}"
    yield "else:"
    yield f"    v{i}, = DOUBLE((~BITS(data, {a})[0] & {(1 << 64) - 1}).to_bytes(8, 'big'))"


def _moment(i: int, field: Field, a: str, b: str) -> Iterator[str]:
    match field.kind:
        case "date":
            value, other = "date(m // 13, m % 13, n >> 41 & 31)", "decode_date(n)"
        case "datetime":
            value = f"datetime(m // 13, m % 13, n >> 41 & 31, {_CLOCK})"
            other = f"decode_datetime(n, {field.scale})"
        case _:
            value = f"datetime(m // 13, m % 13, n >> 41 & 31, {_CLOCK}, UTC)"
            other = f"decode_timestamp(n, {field.scale})"
    yield f"n, = UINT[{b} - {a}](data, {a})"
    yield "m = n >> 46"
    yield "try:"
    yield f"    v{i} = {value}"
    yield "except ValueError:"
    yield f"    v{i} = {other}"


def _decimal(i: int, field: Field, a: str, b: str, names: dict[str, Any]) -> Iterator[str]:
    """The words at once, for a decimal as the column declares it.

    Inverted, a word w is M - w with M all ones. So the number is the sum of word * weight over the words
    as they stand, minus one constant for each sign.
    """
    precision, scale = field.column.length, field.scale
    names[f"read{i}"] = field.read
    sizes = words(precision, scale)
    letters, terms, ones, variables = ["BB"], [], 0, ["p", "s"]
    for k, digits in enumerate(sizes):
        size, weight = word_bytes(digits), 10 ** sum(sizes[k + 1 :])
        letters.append("HB" if size == 3 else " BH I"[size])
        parts = [f"w{k}", f"x{k}"] if size == 3 else [f"w{k}"]
        variables += parts
        terms.append(f"(w{k} << 8 | x{k}) * {weight}" if size == 3 else f"w{k} * {weight}")
        ones += ((1 << 8 * size) - 1) * weight
    packing = Packing(">" + "".join(letters))
    names[f"words{i}"] = packing.unpack_from
    first = 8 * (2 if word_bytes(sizes[0]) == 3 else word_bytes(sizes[0]))
    positive = (1 << 8 * word_bytes(sizes[0]) - 1) * 10 ** sum(sizes[1:])
    yield f"if data[{a}:{a} + 2] == {bytes((precision, scale))!r} and {b} - {a} == {packing.size}:"
    yield f"    {', '.join(variables)} = words{i}(data, {a})"
    yield f"    n = {' + '.join(terms)} - ({positive} if w0 & {1 << first - 1} else {ones - positive})"
    yield f"    v{i} = {f'scaled(n, {-scale})' if scale else 'Decimal(n)'}"
    yield "else:"
    yield f"    v{i} = read{i}(data[{a}:{b}])"
