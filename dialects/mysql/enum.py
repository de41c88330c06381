"""Invalid values of ENUM columns (index 0), which only a session without strict mode stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...events import Row, Table


class InvalidMembers:
    """Counts such values in some columns of a table's rows."""

    def __init__(self, table: Table, index: Iterable[int] | None = None) -> None:
        """`index` are the numbers of the columns; None: all."""
        numbers = range(len(table.columns)) if index is None else index
        self._members = [
            (i, frozenset((None, *table.columns[i].members)))
            for i in numbers
            if table.columns[i].kind == "enum"
        ]

    def count(self, rows: Iterable[Row]) -> Sequence[int]:
        """Return the number of invalid values in each row; empty if no row has one."""
        if not self._members:
            return ()
        counts = [sum(row[i] not in members for i, members in self._members) for row in rows]
        return counts if any(counts) else ()
