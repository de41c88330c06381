"""Generated columns whose values the server doesn't log when rows change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ...config import Finding
from ...dialects.mysql.client import version_numbers
from ...events import Table

_SINCE: Final = (11, 8, 9)
"""First MariaDB that logs updates and deletes without generated columns; of later series it isn't known."""


def unlogged_columns(version: str, tables: Iterable[Table]) -> Iterator[Finding]:
    """Yield a finding about tables with generated columns of a MariaDB that doesn't log them, or may not."""
    numbers = version_numbers(version)
    if numbers < _SINCE:
        return
    columns = {
        table.full_name: f"{table.full_name} ({', '.join(generated)})"
        for table in tables
        if (generated := [column.name for column in table.columns if column.generated])
    }
    if not columns:
        return
    whose = f"generated columns of {', '.join(columns.values())}"
    option = "source.generated_columns = 'leave_out'"
    if numbers[:2] == _SINCE[:2]:
        yield Finding(
            "error",
            f"the server logs updates and deletes without the {whose}: set {option} to copy the tables "
            "without such columns, or leave the tables out",
            tables=(*columns,),
        )
    else:
        yield Finding(
            "warning",
            f"the server may log updates and deletes without the {whose}, as MariaDB 11.8.9 does: the feed "
            f"stops at the first of them; {option} copies the tables without such columns",
            tables=(*columns,),
        )
