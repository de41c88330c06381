"""Generated code that reads one column of a row image.

Variables of column number i end in i, its value is in `v<i>`; `data` and `p` are the event and the place
in it. Nothing of a table but numbers gets into the code.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from struct import calcsize
from typing import Any, Final, NamedTuple

from ...events import not_a_member
from .charset import text_decoder
from .field import Field, Type
from .values import EPOCH, old_datetime, old_time, packed_time, printed_date, printed_datetime, set_printer


class Part(NamedTuple):
    """Bytes that one item of a struct format reads."""

    order: str
    """"<" low byte first, ">" high byte first."""
    letter: str
    variable: str


class Read(NamedTuple):
    """How to read a column: a struct's parts, then code that makes the value of their variables."""

    parts: list[Part]
    lines: list[str]
    counted: bool = False
    """The parts are only a length; the code takes that many bytes from `p` on and moves it."""


NAMES: Final[dict[str, Any]] = {
    "date": date,
    "datetime": datetime,
    "timedelta": timedelta,
    "Decimal": Decimal,
    "scaled": Context(prec=65).scaleb,
    "EPOCH": EPOCH,
    "old_datetime": old_datetime,
    "old_time": old_time,
    "packed_time": packed_time,
    "printed_date": printed_date,
    "printed_datetime": printed_datetime,
}
"""What the code calls."""

_INTEGERS: Final[dict[int, str]] = {
    Type.TINY: "bB",
    Type.SHORT: "hH",
    Type.LONG: "iI",
    Type.LONGLONG: "qQ",
}
"""Signed and unsigned letter."""

_UINT_LETTERS: Final = {
    "<": {1: "B", 2: "H", 3: "HB", 4: "I", 8: "Q"},
    ">": {1: "B", 2: "H", 3: "BH", 4: "I", 5: "BI", 6: "HI", 7: "BHI", 8: "Q"},
}

_WORD_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes that a decimal takes for 0 to 9 digits."""

_FRACTION_MICROS: Final = (1, 10_000, 100, 1)
"""Microseconds in one of a second's fraction that takes 0 to 3 bytes; a byte holds two digits."""


def read_column(i: int, field: Field, names: dict[str, Any]) -> Read:
    """The code for column number `i`; what it calls besides NAMES is added to `names`."""
    column = field.column
    match field.type:
        case Type.TINY | Type.SHORT | Type.LONG | Type.LONGLONG:
            return Read([Part("<", _INTEGERS[field.type][column.unsigned], f"v{i}")], [])
        case Type.INT24:
            low, high = Part("<", "H", f"a{i}"), Part("<", "bB"[column.unsigned], f"b{i}")
            return Read([low, high], [f"v{i} = a{i} + (b{i} << 16)"])
        case Type.FLOAT:
            return Read([Part("<", "f", f"v{i}")], [])
        case Type.DOUBLE:
            return Read([Part("<", "d", f"v{i}")], [])
        case Type.NEWDECIMAL:
            return _decimal(i, column.length, column.scale)
        case Type.BIT:
            parts, number = _uint(">", (column.length + 7) // 8, f"a{i}")
            return Read(parts, [f"v{i} = {number}"])
        case Type.YEAR:
            return Read([Part("<", "B", f"a{i}")], [f"v{i} = a{i} and 1900 + a{i}"])
        case Type.DATE | Type.NEWDATE:
            return _date(i)
        case Type.TIME2:
            return _time(i, column.scale)
        case Type.DATETIME2:
            return _datetime(i, column.scale)
        case Type.TIMESTAMP2:
            return _timestamp(i, ">", column.scale)
        case Type.TIME:
            low, high = Part("<", "H", f"a{i}"), Part("<", "b", f"b{i}")
            return Read([low, high], [f"v{i} = old_time(a{i} + (b{i} << 16))"])
        case Type.DATETIME:
            return Read([Part("<", "Q", f"a{i}")], [f"v{i} = old_datetime(a{i})"])
        case Type.TIMESTAMP:
            return _timestamp(i, "<", 0)
        case Type.ENUM:
            names[f"members{i}"] = (not_a_member(column.members), *column.members)
            parts, number = _uint("<", field.size, f"a{i}")
            return Read(parts, [f"v{i} = members{i}[{number}]"])
        case Type.SET:
            names[f"printed{i}"] = set_printer(column.members)
            parts, number = _uint("<", field.size, f"a{i}")
            return Read(parts, [f"v{i} = printed{i}({number})"])
        case Type.STRING | Type.VARCHAR | Type.VAR_STRING:
            return _counted(i, field, 1 if field.size < 256 else 2, names)
        case Type.BLOB:
            return _counted(i, field, field.size, names)
    raise ValueError(f"no code for type {field.type}")


def _uint(order: str, size: int, name: str) -> tuple[list[Part], str]:
    """The parts of an unsigned integer of `size` bytes, and the expression that puts them together."""
    parts = [Part(order, letter, f"{name}_{k}") for k, letter in enumerate(_UINT_LETTERS[order][size])]
    terms = []
    shift = 0
    for part in parts if order == "<" else reversed(parts):
        terms.append(f"{part.variable} << {shift}" if shift else part.variable)
        shift += 8 * calcsize(f"<{part.letter}")
    return parts, " | ".join(terms)


def _counted(i: int, field: Field, length_bytes: int, names: dict[str, Any]) -> Read:
    """Text or bytes after their length."""
    column = field.column
    parts, number = _uint("<", length_bytes, f"n{i}")
    piece = f"data[p:(p := p + ({number}))]"
    if column.kind == "binary":  # without its zeros at the end
        piece += f".ljust({field.size}, b'\\0')"
    elif column.charset in ("utf8mb4", "utf8mb3"):
        piece += ".decode()"
    elif column.charset is not None:
        names[f"decode{i}"] = text_decoder(column.charset)
        piece = f"decode{i}({piece})"
    return Read(parts, [f"v{i} = {piece}"], counted=True)


def _decimal(i: int, digits: int, scale: int) -> Read:
    """Words of nine digits to both sides of the point, shorter ones first and last; the first bit is the
    sign, set for positive numbers, and a negative number has all bits inverted.

    Inverted, a word w is M - w with M all ones. So the number is the sum of word * weight over the words
    as they stand, minus one constant for each sign.
    """
    whole = digits - scale
    words = [d for d in (whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9) if d]
    parts: list[Part] = []
    terms = []
    ones = 0  # the sum if all bits were ones
    for k, word_digits in enumerate(words):
        size, weight = _WORD_BYTES[word_digits], 10 ** sum(words[k + 1 :])
        word, number = _uint(">", size, f"a{i}_{k}")
        parts += word
        terms.append(f"({number}) * {weight}")
        ones += ((1 << 8 * size) - 1) * weight
    positive = (1 << 8 * _WORD_BYTES[words[0]] - 1) * 10 ** sum(words[1:])
    sign_bit = 1 << 8 * calcsize(f"<{parts[0].letter}") - 1
    number = f"{' + '.join(terms)} - ({positive} if {parts[0].variable} & {sign_bit} else {ones - positive})"
    return Read(parts, [f"v{i} = scaled({number}, {-scale})" if scale else f"v{i} = Decimal({number})"])


def _date(i: int) -> Read:
    """15 bits of year, 4 of month, 5 of day, the low byte first."""
    fields = f"b{i} << 7 | a{i} >> 9, a{i} >> 5 & 15, a{i} & 31"
    return Read(
        [Part("<", "H", f"a{i}"), Part("<", "B", f"b{i}")],
        [
            "try:",
            f"    v{i} = date({fields})",
            "except ValueError:",
            f"    v{i} = printed_date({fields})",
        ],
    )


def _time(i: int, scale: int) -> Read:
    """One number, moved up by half its range; the fraction's bits are its lowest."""
    fraction_bytes = (scale + 1) // 2
    parts, number = _uint(">", 3 + fraction_bytes, f"a{i}")
    half = 1 << 8 * (3 + fraction_bytes) - 1
    unit = _FRACTION_MICROS[fraction_bytes]
    return Read(parts, [f"v{i} = packed_time(({number}) - {half}, {8 * fraction_bytes}, {unit})"])


def _datetime(i: int, scale: int) -> Read:
    """A set bit, 17 bits of year * 13 + month, 5 of day, 5 of hour, 6 of minute, 6 of second."""
    parts, micros = _fraction(i, scale)
    fields = f"m{i} // 13, m{i} % 13, b{i} >> 17 & 31, b{i} >> 12 & 31, b{i} >> 6 & 63, b{i} & 63, {micros}"
    return Read(
        [Part(">", "B", f"a{i}"), Part(">", "I", f"b{i}"), *parts],
        [
            f"m{i} = (a{i} << 10 | b{i} >> 22) - {1 << 17}",
            "try:",
            f"    v{i} = datetime({fields})",
            "except ValueError:",
            f"    v{i} = printed_datetime({fields}, {scale})",
        ],
    )


def _timestamp(i: int, order: str, scale: int) -> Read:
    """Seconds since 1970; 0 stands for the zero date."""
    parts, micros = _fraction(i, scale)
    zero = printed_datetime(0, 0, 0, 0, 0, 0, 0, scale)
    return Read(
        [Part(order, "I", f"a{i}"), *parts],
        [f"v{i} = EPOCH + timedelta(0, a{i}, {micros}) if a{i} else {zero!r}"],
    )


def _fraction(i: int, scale: int) -> tuple[list[Part], str]:
    """The parts of a second's fraction, and its microseconds."""
    if not scale:
        return [], "0"
    fraction_bytes = (scale + 1) // 2
    parts, number = _uint(">", fraction_bytes, f"u{i}")
    return parts, f"({number}) * {_FRACTION_MICROS[fraction_bytes]}"
