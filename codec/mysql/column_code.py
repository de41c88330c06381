"""Code generation for reading one column of a row image.

Variables of column number i end in i, its value is in `v<i>`; `data` is the event and `p` the offset in it.
The code contains nothing of a table except numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from struct import calcsize
from typing import Final, NamedTuple

from ...events import Kind, not_a_member
from .charset import text_decoder
from .field import COMPRESSED, Field, Type
from .json import json_text
from .json_diff import changed_json
from .values import (
    EPOCH,
    old_datetime,
    old_time,
    packed_time,
    printed_date,
    printed_datetime,
    printed_inet4,
    printed_inet6,
    printed_uuid,
    set_printer,
    uncompressed,
)


class FormatItem(NamedTuple):
    """Bytes that one item of a struct format reads."""

    order: str
    """"<" low byte first, ">" high byte first."""
    letter: str
    variable: str


class ColumnRead(NamedTuple):
    """How to read a column: a struct's parts, then code that makes the value of their variables."""

    parts: list[FormatItem]
    lines: list[str]
    counted: bool = False
    """True if the parts are only a length; the code takes as many bytes from `p` on and advances it."""


NAMES: Final[dict[str, object]] = {
    "date": date,
    "datetime": datetime,
    "timedelta": timedelta,
    "Decimal": Decimal,
    "times": Context(prec=65).multiply,
    "EPOCH": EPOCH,
    "old_datetime": old_datetime,
    "old_time": old_time,
    "packed_time": packed_time,
    "printed_date": printed_date,
    "printed_datetime": printed_datetime,
    "uncompressed": uncompressed,
    "json_text": json_text,
    "changed_json": changed_json,
}
"""Names that the code calls."""

PADDED: Final[frozenset[Kind]] = frozenset({"binary", "uuid", "inet4", "inet6"})
"""Kinds that are stored without their trailing zeros."""

PRINTERS: Final[dict[Kind, Callable[[bytes], str]]] = {
    "uuid": printed_uuid,
    "inet4": printed_inet4,
    "inet6": printed_inet6,
    "json": json_text,
}
"""Functions that print a stored value of these kinds; json only in MySQL's binary format."""

_INTEGERS: Final[dict[int, str]] = {
    Type.TINY: "bB",
    Type.SHORT: "hH",
    Type.LONG: "iI",
    Type.LONGLONG: "qQ",
}
"""Struct letters, signed and unsigned."""

_UINT_LETTERS: Final = {
    "<": {1: "B", 2: "H", 3: "HB", 4: "I", 8: "Q"},
    ">": {1: "B", 2: "H", 3: "BH", 4: "I", 5: "BI", 6: "HI", 7: "BHI", 8: "Q"},
}

_WORD_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes of a decimal word of 0 to 9 digits."""

_FRACTION_MICROS: Final = (1, 10_000, 100, 1)
"""Microseconds per unit of a second's fraction stored in 0 to 3 bytes; a byte holds two digits."""


def read_column(i: int, field: Field, names: dict[str, object]) -> ColumnRead:
    """Return the code for column number `i`; names it calls besides NAMES are added to `names`."""
    column = field.column
    match field.type:
        case Type.TINY | Type.SHORT | Type.LONG | Type.LONGLONG:
            return ColumnRead([FormatItem("<", _INTEGERS[field.type][column.unsigned], f"v{i}")], [])
        case Type.INT24:
            low, high = FormatItem("<", "H", f"a{i}"), FormatItem("<", "bB"[column.unsigned], f"b{i}")
            return ColumnRead([low, high], [f"v{i} = a{i} + (b{i} << 16)"])
        case Type.FLOAT:
            return ColumnRead([FormatItem("<", "f", f"v{i}")], [])
        case Type.DOUBLE:
            return ColumnRead([FormatItem("<", "d", f"v{i}")], [])
        case Type.NEWDECIMAL:
            return _decimal(i, column.length, column.scale, names)
        case Type.BIT:
            parts, number = _uint(">", (column.length + 7) // 8, f"a{i}")
            return ColumnRead(parts, [f"v{i} = {number}"])
        case Type.YEAR:
            return ColumnRead([FormatItem("<", "B", f"a{i}")], [f"v{i} = a{i} and 1900 + a{i}"])
        case Type.DATE | Type.NEWDATE:
            return _date(i)
        case Type.TIME2:
            return _time(i, column.scale)
        case Type.DATETIME2:
            return _datetime(i, column.scale)
        case Type.TIMESTAMP2:
            return _timestamp(i, ">", column.scale)
        case Type.TIME:
            low, high = FormatItem("<", "H", f"a{i}"), FormatItem("<", "b", f"b{i}")
            return ColumnRead([low, high], [f"v{i} = old_time(a{i} + (b{i} << 16))"])
        case Type.DATETIME:
            return ColumnRead([FormatItem("<", "Q", f"a{i}")], [f"v{i} = old_datetime(a{i})"])
        case Type.TIMESTAMP:
            return _timestamp(i, "<", 0)
        case Type.ENUM:
            names[f"members{i}"] = (not_a_member(column.members), *column.members)
            parts, number = _uint("<", field.size, f"a{i}")
            return ColumnRead(parts, [f"v{i} = members{i}[{number}]"])
        case Type.SET:
            names[f"printed{i}"] = set_printer(column.members)
            parts, number = _uint("<", field.size, f"a{i}")
            return ColumnRead(parts, [f"v{i} = printed{i}({number})"])
        case Type.STRING | Type.VARCHAR | Type.VAR_STRING | Type.VARCHAR_COMPRESSED:
            return _counted(i, field, 1 if field.size < 256 else 2, names)
        case Type.BLOB | Type.BLOB_COMPRESSED | Type.JSON | Type.GEOMETRY | Type.VECTOR:
            return _counted(i, field, field.size, names)
    raise ValueError(f"no code for type {field.type}")


def _uint(order: str, size: int, name: str) -> tuple[list[FormatItem], str]:
    """Return the parts of an unsigned integer of `size` bytes, and the expression that combines them."""
    parts = [FormatItem(order, letter, f"{name}_{k}") for k, letter in enumerate(_UINT_LETTERS[order][size])]
    terms = []
    shift = 0
    for part in parts if order == "<" else reversed(parts):
        terms.append(f"{part.variable} << {shift}" if shift else part.variable)
        shift += 8 * calcsize(f"<{part.letter}")
    return parts, " | ".join(terms)


def value_reader(field: Field) -> Callable[[bytes], object]:
    """Return a function of the stored bytes of a column that has a length; it raises one of UNREADABLE."""
    names = dict(NAMES)
    reader: Callable[[bytes], object] = eval(f"lambda data: {_value(0, field, 'data', names)}", names)
    return reader


def _counted(i: int, field: Field, length_bytes: int, names: dict[str, object]) -> ColumnRead:
    """Read text or bytes after their length."""
    parts, number = _uint("<", length_bytes, f"n{i}")
    value = _value(i, field, f"data[p:(p := p + ({number}))]", names)
    return ColumnRead(parts, [f"v{i} = {value}"], counted=True)


def _value(i: int, field: Field, stored: str, names: dict[str, object]) -> str:
    """Return the expression of a value, given that of its stored bytes."""
    column = field.column
    if field.type in COMPRESSED:
        stored = f"uncompressed({stored})"
    if column.kind in PADDED:  # stored without its trailing zeros
        stored += f".ljust({field.size}, b'\\0')"
    if column.kind in PRINTERS and (column.kind != "json" or field.type == Type.JSON):
        names[f"printed{i}"] = PRINTERS[column.kind]
        return f"printed{i}({stored})"
    if column.charset in ("utf8mb4", "utf8mb3") or (column.charset is None and column.kind == "json"):
        return f"{stored}.decode()"
    if column.charset is not None:
        names[f"decode{i}"] = text_decoder(column.charset)
        return f"decode{i}({stored})"
    return stored


def read_json_before_changes(i: int, field: Field) -> ColumnRead:
    """Return the code for a JSON document of MySQL that keeps its bytes in `r<i>`."""
    parts, number = _uint("<", field.size, f"n{i}")
    return ColumnRead(
        parts, [f"r{i} = data[p:(p := p + ({number}))]", f"v{i} = json_text(r{i})"], counted=True
    )


def read_changes_of_json(i: int, field: Field, bit: int) -> ColumnRead:
    """Return the code for a document that, if that bit of `partial` is set, is a list of changes of the one
    in `r<i>` and `v<i>`."""
    parts, number = _uint("<", field.size, f"n{i}")
    changed = f"changed_json(None if v{i} is None else r{i}, d{i})"
    value = f"v{i} = {changed} if partial & {bit} else json_text(d{i})"
    return ColumnRead(parts, [f"d{i} = data[p:(p := p + ({number}))]", value], counted=True)


def _decimal(i: int, digits: int, scale: int, names: dict[str, object]) -> ColumnRead:
    """Read a decimal: words of nine digits on both sides of the point, with the shorter words first and last.
    The first bit is the sign, set for positive numbers; a negative number has all bits inverted.

    Inverted, a word w is M - w with M all ones. So the number is the sum of word * weight over the stored
    words, minus one constant per sign.
    """
    whole = digits - scale
    words = [d for d in (whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9) if d]
    parts: list[FormatItem] = []
    terms = []
    ones = 0  # the sum if all bits were ones
    for k, word_digits in enumerate(words):
        size, weight = _WORD_BYTES[word_digits], 10 ** sum(words[k + 1 :])
        word, number = _uint(">", size, f"a{i}_{k}")
        parts += word
        terms.append(f"({number}) * {weight}" if weight > 1 else f"({number})")
        ones += ((1 << 8 * size) - 1) * weight
    positive = (1 << 8 * _WORD_BYTES[words[0]] - 1) * 10 ** sum(words[1:])
    sign_bit = 1 << 8 * calcsize(f"<{parts[0].letter}") - 1
    first = parts[0].variable
    number = f"{' + '.join(terms)} - ({positive} if {first} & {sign_bit} else {ones - positive})"
    if len(words) > 1 and len(_UINT_LETTERS[">"][_WORD_BYTES[words[0]]]) == 1:
        # Of most numbers the first word is a positive zero; arithmetic beyond 30 bits takes 100 ns.
        number = f"{' + '.join(terms[1:])} if {first} == {sign_bit} else {number}"
    if not scale:
        return ColumnRead(parts, [f"v{i} = Decimal({number})"])
    names[f"unit{i}"] = Decimal(1).scaleb(-scale)
    return ColumnRead(parts, [f"v{i} = times({number}, unit{i})"])


def _date(i: int) -> ColumnRead:
    """Read a DATE: 15 bits of year, 4 of month, 5 of day, the low byte first."""
    fields = f"b{i} << 7 | a{i} >> 9, a{i} >> 5 & 15, a{i} & 31"
    return ColumnRead(
        [FormatItem("<", "H", f"a{i}"), FormatItem("<", "B", f"b{i}")],
        [
            "try:",
            f"    v{i} = date({fields})",
            "except ValueError:",
            f"    v{i} = printed_date({fields})",
        ],
    )


def _time(i: int, scale: int) -> ColumnRead:
    """Read a TIME: one number, offset by half its range; the fraction is in its lowest bits."""
    fraction_bytes = (scale + 1) // 2
    parts, number = _uint(">", 3 + fraction_bytes, f"a{i}")
    half = 1 << 8 * (3 + fraction_bytes) - 1
    unit = _FRACTION_MICROS[fraction_bytes]
    return ColumnRead(parts, [f"v{i} = packed_time(({number}) - {half}, {8 * fraction_bytes}, {unit})"])


def _datetime(i: int, scale: int) -> ColumnRead:
    """Read a DATETIME: a set bit, 17 bits of year * 13 + month, 5 of day, 5 of hour, 6 of minute, 6 of
    second."""
    parts, micros = _fraction(i, scale)
    fields = f"m{i} // 13, m{i} % 13, b{i} >> 17 & 31, b{i} >> 12 & 31, b{i} >> 6 & 63, b{i} & 63, {micros}"
    return ColumnRead(
        [FormatItem(">", "B", f"a{i}"), FormatItem(">", "I", f"b{i}"), *parts],
        [
            f"m{i} = (a{i} << 10 | b{i} >> 22) - {1 << 17}",
            "try:",
            f"    v{i} = datetime({fields})",
            "except ValueError:",
            f"    v{i} = printed_datetime({fields}, {scale})",
        ],
    )


def _timestamp(i: int, order: str, scale: int) -> ColumnRead:
    """Read a TIMESTAMP: seconds since 1970; 0 stands for the zero date."""
    parts, micros = _fraction(i, scale)
    zero = printed_datetime(0, 0, 0, 0, 0, 0, 0, scale)
    return ColumnRead(
        [FormatItem(order, "I", f"a{i}"), *parts],
        [f"v{i} = EPOCH + timedelta(0, a{i}, {micros}) if a{i} else {zero!r}"],
    )


def _fraction(i: int, scale: int) -> tuple[list[FormatItem], str]:
    """Return the parts of a second's fraction, and its microseconds."""
    if not scale:
        return [], "0"
    fraction_bytes = (scale + 1) // 2
    parts, number = _uint(">", fraction_bytes, f"u{i}")
    return parts, f"({number}) * {_FRACTION_MICROS[fraction_bytes]}"
