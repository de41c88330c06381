"""The tables that the rows events of a binlog are of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...codec.mysql.table_map import names_of

UNWANTED: Final = 0
_NO_TABLES: Final = (b"\xff" * 6, b"\xff\xff\xff\xff\0\0")
"""Table ids in an event that only marks the end of a statement."""


class TableIds(dict[bytes, int]):
    """Layout numbers by table id, as the latest Table_map events assigned them; UNWANTED for a table that
    isn't followed."""

    def __init__(self, follows: Callable[[str, str], bool], layout_number: Callable[[bytes], int]) -> None:
        super().__init__(dict.fromkeys(_NO_TABLES, UNWANTED))
        self._follows = follows
        self._layout_number = layout_number
        self.layouts: Final[dict[bytes, int]] = {}
        """Layout numbers by the payloads of Table_map events so far."""

    def assign(self, table_id: bytes, table_map: bytes) -> None:
        """Assign an id to the table that the payload of a Table_map event describes."""
        layout = self.layouts.get(table_map)
        if layout is None:
            layout = self.layouts[table_map] = self._layout_of(table_map)
        self[table_id] = layout

    def forget(self) -> None:
        """Forget the ids: another file assigns its own."""
        self.clear()
        self.update(dict.fromkeys(_NO_TABLES, UNWANTED))

    def _layout_of(self, table_map: bytes) -> int:
        return self._layout_number(table_map) if self._follows(*names_of(table_map)) else UNWANTED
