"""The texts of values of one column; in Python a line each, most kinds by one call of C code for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import Any, Final, NamedTuple, assert_never

import msgspec

from ...codec.native.row_texts import Output, ValueWriter, output_number
from ...codec.text import datetime_text, time_text
from ...events import Column, Table
from .columns import Texts, Values, Writer
from .encoder import refuse
from .json_text import html_json_lines, json_lines
from .numbers import EnumIndex, SetMask, plain_double, plain_single, vector_text


class Lines(NamedTuple):
    """Writes texts that contain neither newlines nor quotes; NULL is null."""

    write: Callable[[Values], bytes]
    output: Output = "OTHER"
    """Kind of value that native code writes."""
    scale: int = 0
    members: Mapping[Any, int] | None = None

    def __call__(self, values: Values) -> bytes:
        return self.write(values)


_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")
_SECONDS: Final = len("2026-03-01T04:05:06")
_MICROSECONDS: Final = len("2026-03-01T04:05:06.000007")


def value_lines(encoding: str, table: Table, column: Column, zone: tzinfo) -> Lines | None:
    """Return the lines of a column; None for one of text or bytes.

    Raises NotEncodable for a kind that has no text.
    """
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "bit" | "year":
            return integers
        case "date":
            return dates
        case "float":
            return each(plain_single)
        case "double":
            return doubles(plain_double)
        case "decimal":
            return decimals(column.scale)
        case "datetime":
            return moments(column.scale)
        case "timestamp":
            return moments(column.scale) if str(zone) == "UTC" else zoned(column.scale, zone)
        case "time":
            return each(lambda value: time_text(value, column.scale))._replace(
                output="DURATION", scale=column.scale
            )
        case "enum":
            return looked_up(EnumIndex(column.members))
        case "set":
            return looked_up(SetMask(column.members))
        case "vector":
            return each(vector_text)
        case "geometry":
            refuse(encoding, table, column.name, "it has no form for a geometry")
        case (
            "char" | "varchar" | "text" | "binary" | "varbinary" | "blob" | "json" | "uuid" | "inet4"
            | "inet6"
        ):  # fmt: skip
            pass
        case _:
            assert_never(column.kind)
    return None


def split(lines: Lines) -> Writer:
    return wrapped(lines, b"", b"")


def wrapped(lines: Lines, before: bytes, after: bytes, null: bytes = b"null") -> Writer:
    """Return a writer of lines between these bytes; NULL is `null`."""
    around = before + b"null" + after

    def write(values: Values) -> Texts:
        text_lines = lines.write(values)
        if around != b"null":
            text_lines = before + text_lines.replace(b"\n", after + b"\n" + before) + after
        texts = text_lines.split(b"\n")
        if around == null or around not in text_lines:
            return texts
        return [null if text == around else text for text in texts]

    if lines.output == "OTHER":
        return write
    output = output_number(lines.output)
    return ValueWriter(output, lines.scale, False, False, lines.members, before, after, null, write)


def numbers(output: Output, scale: int, write: Callable[[Values], Texts]) -> Writer:
    """Return a writer of values as numbers, where native code does what `write` does."""
    return ValueWriter(output_number(output), scale, False, True, None, b"", b"", b"null", write)


_TEXT: Final = output_number("TEXT")
JSON_STRINGS: Final = ValueWriter(_TEXT, 0, False, False, None, b'"', b'"', b"null", json_lines)
"""Writes texts, and bytes as base64."""
HTML_STRINGS: Final = ValueWriter(_TEXT, 0, True, False, None, b'"', b'"', b"null", html_json_lines)
"""The same, such that HTML may contain them."""


def _plain(values: Values) -> bytes:
    return _ENCODER.encode_lines(values)[:-1].replace(b'"', b"")


integers: Final = Lines(_plain, "INT")
dates: Final = Lines(_plain, "DATE")


def each(text: Callable[[Any], str]) -> Lines:
    """Return lines for which a function is called for each value but NULL."""
    return Lines(
        lambda values: "\n".join(["null" if value is None else text(value) for value in values]).encode()
    )


def looked_up(numbers: Mapping[str, int]) -> Lines:
    def lines(values: Values) -> bytes:
        return _plain([None if value is None else numbers[value] for value in values])

    return Lines(lines, "INT", members=numbers)


def doubles(exponent: Callable[[float], str]) -> Lines:
    """Return lines of doubles; the function writes those that repr() would write with an exponent."""

    def lines(values: Values) -> bytes:
        text_lines = _ENCODER.encode_lines(values)[:-1]
        if b"e" in text_lines:
            pairs = zip(text_lines.split(b"\n"), values, strict=True)
            text_lines = b"\n".join(
                [exponent(value).encode() if b"e" in text else text for text, value in pairs]
            )
        return (text_lines + b"\n").replace(b".0\n", b"\n")[:-1]

    return Lines(lines, "DOUBLE")


def doubles_within(low: float, high: float, whole: bytes, other: Callable[[float], str]) -> Lines:
    """Return lines of doubles; the function writes those outside of these limits, whatever their sign.

    `whole` is written after whole numbers.
    """

    def lines(values: Values) -> bytes:
        text_lines = _ENCODER.encode_lines(values).replace(b".0\n", whole + b"\n")[:-1]
        if None not in values and low <= min(values) and max(values) < high:
            return text_lines
        pairs = zip(text_lines.split(b"\n"), values, strict=True)
        return b"\n".join(
            [
                text if not value or low <= value < high or -high < value <= -low else other(value).encode()
                for text, value in pairs
            ]
        )

    return Lines(lines)


def decimals(scale: int) -> Lines:
    """Return lines of decimals with as many digits after the point."""
    form = f"{{:.{scale}f}}".format
    start, end = -scale - 1, -scale

    def lines(values: Values) -> bytes:
        text_lines = _ENCODER.encode_lines(values)[:-1]
        if b"E" in text_lines or (not scale and b"." in text_lines):
            return each(form).write(values)
        texts = text_lines.split(b"\n")
        if not scale or {text[start:end] for text in texts} == {b"."}:
            return text_lines
        pairs = zip(texts, values, strict=True)
        return b"\n".join(
            [
                text if value is None or text[start:end] == b"." else form(value).encode()
                for text, value in pairs
            ]
        )

    return Lines(lines, "DECIMAL", scale)


def moments(scale: int) -> Lines:
    """Return lines of datetimes, or of timestamps in UTC."""
    end, zeros = _SECONDS + 1 + scale, b".000000"[: scale + 1]

    def lines(values: Values) -> bytes:
        text_lines = _plain(values)
        if b" " in text_lines or (b"." in text_lines and not scale):  # zero dates are texts already
            return each(lambda value: datetime_text(value, scale)).write(values)
        text_lines = text_lines.replace(b"T", b" ").replace(b"Z", b"")
        if not scale:
            return text_lines
        return b"\n".join(
            [
                text[:end] if len(text) == _MICROSECONDS else text + zeros if len(text) == _SECONDS else text
                for text in text_lines.split(b"\n")
            ]
        )

    return Lines(lines, "DATETIME", scale)


def zoned(scale: int, zone: tzinfo) -> Lines:
    """Return lines of timestamps in a time zone; a zero timestamp is the same in all."""

    def text(value: datetime | str) -> str:
        return value if isinstance(value, str) else datetime_text(value.astimezone(zone), scale)

    return each(text)
