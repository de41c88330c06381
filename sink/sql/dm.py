"""A SQL sink whose position is also in DM's checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ...dialects.database import difference
from ...dialects.mysql.mysql import MySqlDatabase
from ...events import Batch, Checkpoint, Ddl, Item, Table
from ..sink import SinkTraits
from .letters.writer import LetterWriter
from .mysql_dm import DmHome
from .sql import SqlSink

UNTIL_EXIT: Final = "until exit point"
"""After taking over from DM: until the position up to which it may have applied rows."""


class DmSink(SqlSink):
    """DM stores its checkpoint after the rows: after taking over from it, safe mode is on until its last rows
    have been applied again."""

    def __init__(
        self,
        name: str,
        target: MySqlDatabase,
        home: DmHome,
        letters: LetterWriter | None,
        now: Callable[[], float],
        **how: bool,
    ) -> None:
        """`how` are options of SqlSink."""
        super().__init__(name, target, None, letters, now, **how)
        self._home = home
        self._is_safe = False

    def open(self) -> Checkpoint | None:
        checkpoint = super().open()
        self._keep_safe(self._home.safety is not None)
        return checkpoint

    @property
    def traits(self) -> SinkTraits:
        return replace(super().traits, adopts_merged=True)

    def check_adopted(self, table: Table) -> str:
        try:
            have, wanted = self._database.tables.columns(table), self._database.tables.wanted_columns(table)
        except Exception as error:
            self._fail(error, f"looking for {table.full_name}")
        return "isn't there" if have is None else difference(have, wanted)

    def _keep_safe(self, is_wanted: bool) -> None:
        if is_wanted == self._is_safe:
            return
        change: Callable[[str], None] = self.safe_mode.enter if is_wanted else self.safe_mode.leave
        change(UNTIL_EXIT)
        self._is_safe = is_wanted

    def write(self, batch: Batch) -> None:
        self._keep_safe(self._home.safety is not None)
        for item in batch.items:
            self._home.touched.update(_origin_names(item))
        super().write(batch)


def _origin_names(item: Item) -> list[str]:
    """Return the origin names of the tables that an item changes."""
    return [item.origin_name] if isinstance(item, Ddl) else [run.origin_name for run in item.runs]
