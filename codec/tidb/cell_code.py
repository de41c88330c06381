"""Code generation for reading one column's cell of a row of format 2.

The cell of column number i is `data[a:b]`, its value goes to `v<i>`. The code contains nothing of a table
except numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from struct import Struct as Packing
from struct import calcsize
from typing import Any, Final, NamedTuple, assert_never

from ..decimal import MAX_DIGITS, word_bytes, words
from .column_type import is_unsigned
from .field import Field
from .time import MAX_SCALE, unit_micros


def _unpackers(letters: str) -> dict[int, object]:
    """Return the functions that unpack a number, low byte first, by its size; other sizes raise KeyError."""
    return {calcsize(f"<{letter}"): Packing(f"<{letter}").unpack_from for letter in letters}


NAMES: Final[dict[str, Any]] = {
    "INT": _unpackers("bhiq"),
    "UINT": _unpackers("BHIQ"),
    "DOUBLE": Packing(">d").unpack_from,
    "BITS": Packing(">Q").unpack_from,
    "KEY": Packing(">9x2sQ").unpack,
    "PARTS": Packing("<HBBHH").unpack_from,
    "UTC": UTC,
    "date": date,
    "datetime": datetime,
    "timedelta": timedelta,
    "Decimal": Decimal,
    "times": Context(prec=MAX_DIGITS).multiply,
}
"""Names that the code calls."""

_CLOCK: Final = "d >> 9 & 31, d >> 4 & 31, (d & 15) << 2 | s >> 6, s & 63"
"""Expressions for day, hour, minute and second from the numbers of PARTS."""

_WORD_LETTERS: Final = ("", "B", "H", "HB", "I")
"""Struct format of a decimal's word by its size."""


class Cell(NamedTuple):
    """Column number i, whose cell is `data[a:b]`."""

    i: int
    field: Field
    a: str
    b: str

    @property
    def size(self) -> str:
        return self.b if self.a == "0" else f"{self.b} - {self.a}"


def cell_code(cell: Cell, names: dict[str, object]) -> Iterator[str]:
    """Yield the lines that read a cell; names they call besides NAMES are added to `names`."""
    i, field, a, b = cell
    names[f"read{i}"] = field.read
    match field.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year":
            kind = "UINT" if is_unsigned(field.column) and field.kind != "year" else "INT"
            yield f"v{i}, = {kind}[{cell.size}](data, {a})"
        case "bit":
            yield f"v{i}, = UINT[{cell.size}](data, {a})"
        case "float" | "double":
            yield from _float(cell)
        case "char" | "varchar" | "text":
            yield from _ordered(cell)
            yield f"v{i} = data[{a}:{b}].decode()"
        case "binary" | "varbinary" | "blob":
            yield from _ordered(cell)
            yield f"v{i} = data[{a}:{b}]"
        case "date" | "datetime" | "timestamp":
            yield from _moment(cell)
        case "time":
            yield f"n, = INT[{cell.size}](data, {a})"
            yield f"if n % {1000 * unit_micros(field.scale)}:"
            yield f"    v{i} = read{i}(n)"
            yield "else:"
            yield f"    v{i} = timedelta(0, 0, n // 1000)"
        case "enum" | "set":
            yield f"n, = UINT[{cell.size}](data, {a})"
            yield f"v{i} = read{i}(n)"
        case "decimal":
            yield from _decimal(cell, names)
        case "json" | "uuid" | "inet4" | "inet6" | "geometry" | "vector":
            yield from _ordered(cell)
            yield f"v{i} = read{i}(data[{a}:{b}])"
        case _:
            assert_never(field.kind)


def handle_code(i: int, field: Field) -> Iterator[str]:
    """Yield the lines that read column number `i` from an integer handle: eight bytes with the sign bit
    flipped, after the `_r` of a key of 19 bytes."""
    yield "mark, n = KEY(key)"
    yield "if mark != b'_r':"
    yield "    raise ValueError('the key is not that of a row')"
    yield f"v{i} = n {'^' if is_unsigned(field.column) else '-'} {1 << 63}"


def _ordered(cell: Cell) -> Iterator[str]:
    yield f"if {cell.b} < {cell.a}:"
    yield "    raise ValueError"


def _float(cell: Cell) -> Iterator[str]:
    """Read a float: a positive number and 0 have the sign bit set, a negative one has all bits inverted."""
    i, a = cell.i, cell.a
    yield f"if {cell.size} != 8:"
    yield "    raise ValueError"
    yield f"v{i}, = DOUBLE(data, {a})"
    yield f"if v{i} <= 0.0:"
    yield f"    v{i} = -v{i}"
    yield "else:"
    yield f"    v{i}, = DOUBLE((~BITS(data, {a})[0] & {(1 << 64) - 1}).to_bytes(8, 'big'))"


def _moment(cell: Cell) -> Iterator[str]:
    """Read a date and time: all except the zero date take eight bytes; their parts are small integers, which
    are faster."""
    i, field, a, _ = cell
    micros = f"u - u % {unit_micros(field.scale)}" if field.scale < MAX_SCALE else "u"
    yield f"if {cell.size} == 8:"
    yield f"    u, h, s, d, m = PARTS(data, {a})"
    yield "    m = m << 2 | d >> 14"
    if field.kind != "date":
        yield "    u |= h << 16"
    yield "    try:"
    match field.kind:
        case "date":
            yield f"        v{i} = date(m // 13, m % 13, d >> 9 & 31)"
        case "datetime":
            yield f"        v{i} = datetime(m // 13, m % 13, {_CLOCK}, {micros})"
        case _:
            yield f"        v{i} = datetime(m // 13, m % 13, {_CLOCK}, {micros}, UTC)"
    yield "    except ValueError:"
    yield f"        v{i} = read{i}(UINT[8](data, {a})[0])"
    yield "else:"
    yield f"    v{i} = read{i}(UINT[{cell.size}](data, {a})[0])"


def _decimal(cell: Cell, names: dict[str, object]) -> Iterator[str]:
    """Read all words at once, for a decimal with the column's precision and scale.

    The first word is read as a signed number, which is negative for a non-negative decimal. For those the
    sign bit is removed, which mostly leaves 0. Inverted, a word w is M - w with M all ones: for a negative
    decimal that is one constant to subtract from the sum of word * weight over the stored words.
    """
    i, field, a, b = cell
    precision, scale = field.column.length, field.scale
    sizes = words(precision, scale)
    letters, variables, terms, ones = [">H"], ["h"], [], 0
    for k, digits in enumerate(sizes):
        size, weight = word_bytes(digits), 10 ** sum(sizes[k + 1 :])
        letter = _WORD_LETTERS[size]
        letters.append(letter if k else letter[0].lower() + letter[1:])
        variables += [f"w{k}", f"x{k}"] if size == 3 else [f"w{k}"]
        word = f"(w{k} << 8 | x{k})" if size == 3 else f"w{k}"
        terms.append(f"{word} * {weight}" if weight > 1 else word)
        ones += ((1 << 8 * size) - 1) * weight
    half, weight = 1 << 8 * word_bytes(sizes[0]) - 1, 10 ** sum(sizes[1:])
    sign = half >> 8 if word_bytes(sizes[0]) == 3 else half
    packing = Packing("".join(letters))
    names |= {f"words{i}": packing.unpack_from, f"unit{i}": Decimal(1).scaleb(-scale)}
    yield f"if {cell.size} == {packing.size}:"
    yield f"    {', '.join(variables)} = words{i}(data, {a})"
    yield "else:"
    yield "    h = 0"
    yield f"if h == {precision << 8 | scale}:"
    yield "    if w0 < 0:"
    yield f"        w0 += {sign}"
    yield f"        n = {' + '.join(terms)}"
    yield "    else:"
    yield f"        n = {' + '.join(terms)} - {ones - half * weight}"
    yield f"    v{i} = {f'times(n, unit{i})' if scale else 'Decimal(n)'}"
    yield "else:"
    yield f"    v{i} = read{i}(data[{a}:{b}])"
