"""Constants of DEFAULT clauses as values."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final, assert_never

from ...events import Column

_ESCAPE: Final = re.compile(r"\\(.)|''", re.DOTALL)
_ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def constant(column: Column) -> Any:
    """Return a column's default as `events.Column` says for its kind; None without a constant default."""
    text = column.default
    if text is None or text.upper() == "NULL":
        return None
    try:
        return _value(column, text)
    except (ValueError, InvalidOperation):
        return None


def spelled(column: Column) -> str:
    """Return a constant as the definition spells it, without quotes."""
    text = column.default or ""
    return text[1:-1].replace("''", "'").replace("\\\\", "\\") if text.startswith("'") else text


def _value(column: Column, text: str) -> object:
    if text[:2] in ("b'", "x'") and text[-1] == "'":
        number = int(text[2:-1] or "0", 2 if text[0] == "b" else 16)
        if column.kind == "bit":
            return number
        return bytes.fromhex(text[2:-1]) if text[0] == "x" else None
    bare = _unquoted(text)
    match column.kind:
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" | "bit":
            return int(text if bare is None else bare)
        case "float" | "double":
            return float(text if bare is None else bare)
        case "decimal":
            return Decimal(text if bare is None else bare)
        case (
            "char" | "varchar" | "text" | "binary" | "varbinary" | "blob" | "date" | "time" | "datetime"
            | "timestamp" | "enum" | "set" | "json" | "uuid" | "inet4" | "inet6" | "geometry" | "vector"
        ):  # fmt: skip
            pass
        case _:
            assert_never(column.kind)
    if bare is None:
        return None  # an expression
    match column.kind:
        case "date":
            return date.fromisoformat(bare)
        case "datetime":
            return datetime.fromisoformat(_padded(bare))
        case "timestamp":
            return datetime.fromisoformat(_padded(bare)).replace(tzinfo=UTC)
        case "char" | "varchar" | "text" | "enum" | "set" | "json" | "uuid" | "inet4" | "inet6":
            return bare
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "float" | "double"
            | "bit" | "binary" | "varbinary" | "blob" | "time" | "year" | "geometry" | "vector"
        ):  # fmt: skip
            return None
        case _:
            assert_never(column.kind)


def _unquoted(text: str) -> str | None:
    if len(text) < 2 or text[0] != "'" or text[-1] != "'":
        return None
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]) if match[1] else "'", text[1:-1])


def _padded(text: str) -> str:
    """Return a moment with a fraction of six digits, as fromisoformat() wants it."""
    whole, point, fraction = text.partition(".")
    return f"{whole}{point}{fraction.ljust(6, '0')}" if point else text
