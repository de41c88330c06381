"""Default values as MySQL's information_schema prints them.

Constants come without quotes and expressions with an extra layer of escapes; MariaDB prints SQL for both.
"""

from __future__ import annotations

import re
from typing import Final

from ...events import Column

_NOW: Final = re.compile(r"CURRENT_TIMESTAMP(\(\d\))?", re.IGNORECASE)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_SPELLED: Final = frozenset({
    "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit", "year",
    "binary", "varbinary",
})  # fmt: skip
"""Kinds whose constants are printed as SQL: 5, 1.50, b'101', 0x6162."""


def default_sql(column: Column, default: str | None, extra: str) -> str | None:
    """Return the DEFAULT clause of COLUMN_DEFAULT and EXTRA as SQL text."""
    if default is None:
        return None
    if "DEFAULT_GENERATED" in extra:
        return default if _NOW.fullmatch(default) else f"({_ESCAPED.sub(_plain, default)})"
    if column.kind in _SPELLED:
        return default
    return "'" + default.replace("\\", "\\\\").replace("'", "''") + "'"


def _plain(match: re.Match[str]) -> str:
    return match[1]
