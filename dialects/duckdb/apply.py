"""Changes of rows in DuckDB, which come as Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence

from ...events import RowChange, Table
from ...events.per_table import PerTable
from ...failpoint import reach
from ..database import Comparison, check_columns
from ..groups import ChangeGroup
from ..keys import Key, KeyPart, TableKeys
from .define import DuckDbDefiner
from .rows import RowWriter
from .session import DuckDbSession
from .tables import Tables


class DuckDbApplier:
    max_rows = 50_000

    def __init__(
        self, session: DuckDbSession, tables: Tables, definer: DuckDbDefiner, *, whole: bool
    ) -> None:
        """With `whole`, updates and deletes compare the whole row."""
        self._session = session
        self._tables = tables
        self._definer = definer
        self._whole = whole
        self._rows = PerTable(self._prepare)

    def forget(self) -> None:
        """Look at the tables again when they come next."""
        self._rows.clear()

    def apply(self, groups: Sequence[ChangeGroup]) -> None:
        for group in groups:
            self._rows[group.table].apply(group)
            reach("sink.mid_batch")

    def apply_safely(self, groups: Sequence[ChangeGroup]) -> None:
        for group in groups:
            self._rows[group.table].apply_safely(group)

    def statement(self, group: ChangeGroup, *, safely: bool) -> str:  # noqa: ARG002
        (change,) = group.changes
        return f"{self._rows[group.table].statement(group)} with {change.before!r}, {change.after!r}"

    def compare(self, change: RowChange) -> list[Comparison] | None:
        return self._rows[change.table].compare(change)

    def _prepare(self, table: Table) -> RowWriter:
        check_columns(self._definer, table)
        qualified = self._tables.qualified(self._tables.place_of((table.schema, table.name)))
        texts = self._tables.dates_as_text
        return RowWriter(self._session, table, qualified, whole=self._whole, dates_as_text=texts)

    def keys_of(self, table: Table) -> TableKeys:
        """Return the primary key; changes that your own unique indexes prevent are rejected."""
        name = self._definer.name_of(table.schema, table.name)
        parts = tuple([KeyPart(index) for index in table.key])
        return TableKeys(name, (Key(f"{name} {parts}", parts),) if parts else ())

    def is_linked(self, table: Table) -> bool:  # noqa: ARG002
        return False  # foreign keys of your own aren't looked for: a row that one prevents is rejected
