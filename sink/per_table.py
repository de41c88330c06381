"""What a sink keeps ready for each table it writes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from ..events import Table

_MOST: Final = 1000
"""Tables; what is needed of one that comes back later is made again."""

T = TypeVar("T")


class PerTable(dict[Table, T]):
    """Made when a table is first asked for. A table whose definition changes is another one."""

    def __init__(self, make: Callable[[Table], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, table: Table) -> T:
        made = self._make(table)
        if len(self) >= _MOST:
            self.clear()
        self[table] = made
        return made
