"""Changes of a column's definition that no server can disagree about: every value stays the same."""

from __future__ import annotations

from typing import Final

from ..events import (
    WITH_CHARSET,
    Column,
    not_a_member,
)

_INTEGER_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_TEMPORAL: Final = {"time", "datetime", "timestamp"}
_UNICODE: Final = {"utf8mb4", "utf16", "utf16le", "utf32"}
_PLANE_0: Final = {"utf8", "utf8mb3", "ucs2"}
"""Character sets with the characters up to U+FFFF; TiDB says utf8."""
_SMALL: Final = {"ascii", "latin1"}


def keeps_values(before: Column, after: Column) -> bool:
    """Return True if every value but NULL is the same value, as events.Column describes it, after the change.

    False if that is unknown.
    """
    if before.kind in _INTEGER_BITS and after.kind in _INTEGER_BITS:
        return _holds_integers(before, after)
    if before.kind in WITH_CHARSET and not _holds_characters(before.charset, after.charset):
        return False
    match before.kind, after.kind:
        case ("varchar", "varchar") | ("varbinary", "varbinary") | ("char", "char") | ("bit", "bit"):
            return before.length <= after.length
        case ("text", "text") | ("blob", "blob"):
            # A prefix of bytes has room for fewer characters if each takes more of them.
            return before.length <= after.length and before.charset == after.charset
        case ("varchar", "text"):
            return 4 * before.length < 1 << 8 * after.length
        case ("varbinary", "blob"):
            return before.length < 1 << 8 * after.length
        case ("decimal", "decimal"):
            return (
                before.scale <= after.scale
                and before.length - before.scale <= after.length - after.scale
                and before.unsigned >= after.unsigned
            )
        case ("enum", "enum") | ("set", "set"):
            return after.members[: len(before.members)] == before.members and (
                not_a_member(before.members) == not_a_member(after.members)
            )
        case (kind, other) if kind == other and kind in _TEMPORAL:
            return before.scale <= after.scale
        case ("float", "float") | ("double", "double"):
            digits = after.length, after.scale
            return digits in ((0, 0), (before.length, before.scale)) and before.unsigned >= after.unsigned
        case ("geometry", "geometry"):
            return after.subtype in ("", before.subtype)
        case (kind, other):
            return kind == other and before.length == after.length and before.unsigned == after.unsigned
    return False


def keeps_text(before: Column, after: Column) -> bool:
    """Return True if every value but NULL is also written in the same way, with the same number of digits."""
    return keeps_values(before, after) and (
        before.scale == after.scale or before.kind not in {"decimal", *_TEMPORAL}
    )


def _holds_integers(before: Column, after: Column) -> bool:
    bits, more = _INTEGER_BITS[before.kind], _INTEGER_BITS[after.kind]
    if before.unsigned == after.unsigned:
        return bits <= more
    return before.unsigned and bits < more


def _holds_characters(before: str | None, after: str | None) -> bool:
    """Return True if the second character set has every character of the first."""
    if before == after:
        return True
    known = {*_UNICODE, *_PLANE_0, *_SMALL}
    if before not in known or after not in known:
        return False
    return (
        after in _UNICODE
        or (after in _PLANE_0 and before not in _UNICODE)
        or (before, after) == ("ascii", "latin1")
    )


def described(column: Column) -> str:
    """Return a column's type for people."""
    size = ",".join(map(str, filter(None, (column.length, column.scale))))
    details = [
        f"({size})" if size else "",
        " unsigned" if column.unsigned else "",
        f" {column.charset or ''}",
    ]
    return f"{column.kind}{''.join(details)}".rstrip()
