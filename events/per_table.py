"""Cache of objects that a sink prepares for each table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from . import Table

_MOST: Final = 1000
"""Maximum number of tables; objects of a table that comes back later are made again."""

T = TypeVar("T")


class PerTable(dict[Table, T]):
    """Makes an object at a table's first access. A changed definition counts as another table."""

    def __init__(self, make: Callable[[Table], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, table: Table) -> T:
        made = self._make(table)
        if len(self) >= _MOST:
            self.clear()
        self[table] = made
        return made
