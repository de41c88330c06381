"""Printing of JSON as by TiDB, and parsing.

Parsing loses what the text doesn't contain: a date, a duration and opaque bytes become strings, and a float
without a fraction becomes an integer.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Final

from .json import DATE, Duration, Json, Moment, Opaque, Uint64
from .time import decode_duration, pack, printed_date, printed_datetime, printed_duration

_ESCAPED: Final = re.compile('["\\\\\x00-\x1f\u2028\u2029\ud800-\udfff]')
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SCALE: Final = 6
"""Fractional digits of seconds: all, whatever the column had."""

_SMALL: Final = 1e-6
_LARGE: Final = 1e21
"""Bounds outside of which a float is printed with an exponent."""


def print_json(value: Json) -> str:
    """Print a value on one line, with a space after each comma and colon. Nesting has no limit."""
    texts: list[str] = []
    pending = [_pieces(value)]
    while pending:
        for piece in pending[-1]:
            if isinstance(piece, str):
                texts.append(piece)
            else:
                pending.append(_pieces(piece[0]))
                break
        else:
            pending.pop()
    return "".join(texts)


def _pieces(value: Json) -> Iterator[str | tuple[Json]]:
    """Yield a value's text, in which a 1-tuple stands for the text of a container inside it."""
    match value:
        case list():
            yield "["
            for k, element in enumerate(value):
                if k:
                    yield ", "
                yield (element,) if isinstance(element, (list, dict)) else _scalar(element)
            yield "]"
        case dict():
            yield "{"
            for k, (key, element) in enumerate(value.items()):
                yield f"{', ' if k else ''}{_quoted(key)}: "
                yield (element,) if isinstance(element, (list, dict)) else _scalar(element)
            yield "}"
        case _:
            yield _scalar(value)


def _scalar(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return int.__repr__(value)
        case float():
            return print_float(value)
        case str():
            return _quoted(value)
        case Opaque():
            return f'"base64:type{value.type}:{b64encode(value.data).decode()}"'
        case Moment():
            return f'"{_printed(value)}"'
        case Duration():
            return f'"{printed_duration(decode_duration(value.nanoseconds, _SCALE), _SCALE)}"'
    raise TypeError(f"JSON has no value {value!r}")


def _quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character >= "\ud800":  # a byte that isn't UTF-8
        return "\\ufffd"
    return _SHORT.get(character) or f"\\u{ord(character):04x}"


def _printed(moment: Moment) -> str:
    core = moment.core
    year, month, day = core >> 50, core >> 46 & 15, core >> 41 & 31
    hour, minute, second, micros = core >> 36 & 31, core >> 30 & 63, core >> 24 & 63, core >> 4 & 0xFFFFF
    packed = pack((year, month, day, hour, minute, second, micros))
    return printed_date(packed) if moment.type == DATE else printed_datetime(packed, _SCALE)


def print_float(x: float) -> str:
    """Print the fewest digits that give the same number, as Go does: 0.1, -0, 1e-7, 1e+100."""
    mantissa, _, exponent = repr(x).partition("e")
    if not exponent:
        return mantissa.removesuffix(".0")
    if _SMALL <= abs(x) < _LARGE:
        return _plain(mantissa, int(exponent))
    return f"{mantissa}e{int(exponent):+}"


def _plain(mantissa: str, power: int) -> str:
    """Return a number without the exponent that Python prints from 1e16 on and below 1e-4."""
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.removeprefix("-").partition(".")
    if power < 0:
        return f"{sign}0.{(whole + fraction).rjust(len(fraction) - power, '0')}"
    return sign + (whole + fraction).ljust(power + 1, "0")


def parse_json(text: str) -> Json:
    """Parse a text. Raises ValueError if it isn't JSON, or is nested too deep for Python."""
    try:
        return json.loads(text, parse_int=_int, parse_constant=_constant)
    except RecursionError as error:
        raise ValueError("this JSON is nested too deep") from error


def _int(digits: str) -> int | float:
    if digits == "-0":
        return -0.0
    number = int(digits)
    if -1 << 63 <= number < 1 << 63:
        return number
    return Uint64(number) if 0 < number < 1 << 64 else float(digits)


def _constant(name: str) -> object:
    raise ValueError(f"{name} isn't JSON")
