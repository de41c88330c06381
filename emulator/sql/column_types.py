"""Column types in SQL, to the corresponding parts of a ColumnInfo."""

from __future__ import annotations

from typing import Any, Final

from ...codec.tidb.column_type import ColumnFlag, Type
from .tokens import Tokens

_ZEROFILL: Final = 64

_INTEGERS: Final[dict[str, tuple[Type, int, int]]] = {
    "tinyint": (Type.TINY, 4, 3),
    "bool": (Type.TINY, 1, 1),
    "boolean": (Type.TINY, 1, 1),
    "smallint": (Type.SHORT, 6, 5),
    "mediumint": (Type.INT24, 9, 8),
    "int": (Type.LONG, 11, 10),
    "integer": (Type.LONG, 11, 10),
    "bigint": (Type.LONGLONG, 20, 20),
}
"""Type, display width, and display width if unsigned."""

_TEXTS: Final[dict[str, tuple[Type, int]]] = {
    "tinytext": (Type.TINY_BLOB, 255),
    "text": (Type.BLOB, 65535),
    "mediumtext": (Type.MEDIUM_BLOB, 16777215),
    "longtext": (Type.LONG_BLOB, 4294967295),
    "tinyblob": (Type.TINY_BLOB, 255),
    "blob": (Type.BLOB, 65535),
    "mediumblob": (Type.MEDIUM_BLOB, 16777215),
    "longblob": (Type.LONG_BLOB, 4294967295),
    "json": (Type.JSON, 4294967295),
}

_CLOCKS: Final[dict[str, tuple[Type, int]]] = {
    "datetime": (Type.DATETIME, 19),
    "timestamp": (Type.TIMESTAMP, 19),
    "time": (Type.TIME, 10),
}

_STRINGS: Final = {
    "char": Type.STRING,
    "varchar": Type.VARCHAR,
    "binary": Type.STRING,
    "varbinary": Type.VARCHAR,
}

_BYTES: Final = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "json")


def parse_type(tokens: Tokens) -> dict[str, Any]:
    """Parse a type into type, flags, length, decimal and elements; `textual` is True if it has a charset.
    Raises ValueError."""
    word = tokens.take().lower()
    details: dict[str, object] = {"flags": 0, "textual": word not in _BYTES, "decimal": 0}
    if word in _INTEGERS:
        type_, shown, unsigned_shown = _INTEGERS[word]
        numbers, flags = _numbers(tokens), _sign(tokens)
        length = numbers[0] if numbers else unsigned_shown if flags & ColumnFlag.UNSIGNED else shown
        return details | {"type": type_, "length": length, "flags": flags, "textual": False}
    if word in ("float", "double", "real", "decimal", "numeric"):
        return details | _fraction(tokens, word) | {"textual": False}
    if word in _TEXTS:
        type_, length = _TEXTS[word]
        return details | {"type": type_, "length": length, "flags": 0 if details["textual"] else 128}
    if word in _CLOCKS:
        type_, length = _CLOCKS[word]
        scale = (_numbers(tokens) or [0])[0]
        length += scale + 1 if scale else 0
        return details | {"type": type_, "length": length, "decimal": scale, "flags": 128, "textual": False}
    if word in _STRINGS:
        length = (_numbers(tokens) or [1])[0]
        return details | {"type": _STRINGS[word], "length": length, "flags": 0 if details["textual"] else 128}
    return details | _other(tokens, word)


def _other(tokens: Tokens, word: str) -> dict[str, object]:
    match word:
        case "date":
            return {"type": Type.DATE, "length": 10, "flags": 128, "textual": False}
        case "year":
            _numbers(tokens)
            return {"type": Type.YEAR, "length": 4, "flags": 32 | _ZEROFILL, "textual": False}
        case "bit":
            return {"type": Type.BIT, "length": (_numbers(tokens) or [1])[0], "flags": 32, "textual": False}
        case "enum" | "set":
            members = _members(tokens)
            sizes = [len(member.encode()) for member in members]
            length = max(sizes) if word == "enum" else sum(sizes) + len(members) - 1
            type_ = Type.ENUM if word == "enum" else Type.SET
            return {"type": type_, "length": length, "elements": members}
    raise ValueError(f"the emulator doesn't know the type {word}: {tokens.statement}")


def _fraction(tokens: Tokens, word: str) -> dict[str, object]:
    numbers = _numbers(tokens)
    if word in ("decimal", "numeric"):
        precision, scale = [*numbers, *(10, 0)[len(numbers) :]][:2]
        return {
            "type": Type.NEWDECIMAL,
            "length": precision,
            "decimal": scale,
            "flags": _sign(tokens),
        }
    length, scale = numbers if len(numbers) == 2 else (12 if word == "float" else 22, -1)
    type_ = Type.FLOAT if word == "float" else Type.DOUBLE
    return {"type": type_, "length": length, "decimal": scale, "flags": _sign(tokens)}


def _numbers(tokens: Tokens) -> list[int]:
    numbers: list[int] = []
    if tokens.has("("):
        numbers.append(tokens.number())
        while tokens.has(","):
            numbers.append(tokens.number())
        tokens.expect(")")
    return numbers


def _members(tokens: Tokens) -> tuple[str, ...]:
    tokens.expect("(")
    members = [str(tokens.take())]
    while tokens.has(","):
        members.append(str(tokens.take()))
    tokens.expect(")")
    return tuple(members)


def _sign(tokens: Tokens) -> int:
    flags = 0
    while True:
        if tokens.has("unsigned"):
            flags |= ColumnFlag.UNSIGNED
        elif tokens.has("zerofill"):
            flags |= ColumnFlag.UNSIGNED | _ZEROFILL
        elif not tokens.has("signed"):
            return flags
