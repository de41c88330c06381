"""Conversions that a server of the source's kind repeats exactly."""

from __future__ import annotations

from typing import Final

from ...events import (
    FLOATS,
    Column,
)

_NUMBERS: Final = {"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double"}


def unknown_to_mariadb(before: Column, after: Column) -> str:
    """Return what a conversion between two MariaDB servers depends on beyond the columns, the statement's
    clock and its sql_mode; empty if on nothing.

    By its algorithm, an ALTER TABLE rounds the rows to the digits of a FLOAT(m,d) or leaves them as they are;
    versions print such values and those of ZEROFILL in their own ways; and the offset of a time zone is known
    for one moment only.
    """
    if before.kind == after.kind:
        digits = (0, 0), (before.length, before.scale)
        if before.kind in FLOATS and (after.length, after.scale) not in digits:
            return "the algorithm, which rounds rows to the digits or doesn't"
        return ""
    if "timestamp" in (before.kind, after.kind):
        return "the time zone of its session"
    if after.kind in FLOATS:
        return "the number of digits of the new type"
    if before.kind in FLOATS or (before.unsigned and before.kind in _NUMBERS):
        return "" if after.kind in _NUMBERS else "the number of digits that the source prints"
    return ""
