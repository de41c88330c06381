"""Conversions that a server of the source's kind repeats exactly."""

from __future__ import annotations

from typing import Final

from ...events import Column

_NUMBERS: Final = {"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double"}
_FLOATS: Final = {"float", "double"}


def unknown_to_mariadb(before: Column, after: Column) -> str:
    """Return what a conversion between two MariaDB servers depends on beyond the columns, the statement's
    clock and its sql_mode; empty if on nothing.

    A Column doesn't have the digits of FLOAT(m,d), to which its values are rounded and by which they are
    printed, nor ZEROFILL; and the offset of a time zone is known for one moment only.
    """
    if before.kind == after.kind:
        return ""
    if "timestamp" in (before.kind, after.kind):
        return "the time zone of its session"
    if after.kind in _FLOATS:
        return "the number of digits of the new type"
    if before.kind in _FLOATS or (before.unsigned and before.kind in _NUMBERS):
        return "" if after.kind in _NUMBERS else "the number of digits that the source prints"
    return ""
