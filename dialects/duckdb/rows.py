"""Changes of the rows of one DuckDB table, by statements that join it with Arrow columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pyarrow as pa

from ...events import (
    FLOATS,
    Row,
    RowChange,
    Table,
)
from ..database import MISSING, Comparison, StatementRejected
from ..groups import ChangeGroup
from .session import STAGED, DuckDbSession
from .tables import quoted
from .types import Encoder


class RowWriter:
    """Writes the rows of one table, at one version of its schema.

    Staged columns are a0, a1, … after a change, and b0, b1, … before it.
    """

    def __init__(
        self, session: DuckDbSession, table: Table, qualified: str, *, whole: bool, dates_as_text: bool
    ) -> None:
        """With `whole`, updates and deletes compare the whole row."""
        self._session = session
        self._table = table
        self._whole = whole
        self._qualified = qualified
        self._names = [quoted(column.name) for column in table.columns]
        self._encoder = Encoder(table.columns, dates_as_text=dates_as_text)
        self._every = range(len(table.columns))
        self._rest = [i for i in self._every if i not in table.key] or list(self._every)
        values = ",".join(f"a{i}" for i in self._every)
        self._insert = f"INSERT INTO {qualified} ({','.join(self._names)}) SELECT {values} FROM {STAGED}"
        self._whole_row = " AND ".join(map(self._same, self._every))
        self._key = " AND ".join(f"t.{self._names[i]}=r.b{i}" for i in table.key)
        # Equality finds a float only up to the sign of zero.
        has_floats = any(column.kind in FLOATS for column in table.columns)
        self._identity: Callable[[Row], object] = repr if has_floats else tuple

    # --- exact changes

    def apply(self, group: ChangeGroup) -> None:
        """Make one row change for each change. Raises StatementRejected."""
        if group.op == "insert":
            self._add([change.after or () for change in group.changes])
        elif not self._table.key:
            gone, added = self._net(group)
            if self._take(gone) != sum(count for _, count in gone):
                raise StatementRejected(MISSING)
            self._add(added)
        else:
            count = self._session.change(self.statement(group), data=self._staged(group))
            if count != len(group.changes):
                raise StatementRejected(MISSING)

    def statement(self, group: ChangeGroup) -> str:
        if group.op == "insert":
            return self._insert
        if not self._table.key:
            return self._taking()
        where = f"{self._key} AND {self._whole_row}" if self._whole else self._key
        if group.op == "delete":
            return f"DELETE FROM {self._qualified} AS t USING {STAGED} AS r WHERE {where}"
        changed = ",".join(f"{self._names[i]}=r.a{i}" for i in self._changed(group))
        return f"UPDATE {self._qualified} AS t SET {changed} FROM {STAGED} AS r WHERE {where}"

    def _changed(self, group: ChangeGroup) -> Sequence[int]:
        return self._every if group.op == "move" else self._rest

    def _staged(self, group: ChangeGroup) -> pa.Table:
        named = self._before(group.changes, self._every if self._whole else self._table.key)
        if group.op != "delete":
            named |= self._after([change.after or () for change in group.changes], self._changed(group))
        return pa.table(named)

    # --- whatever the rows are

    def apply_safely(self, group: ChangeGroup) -> None:
        """Make the rows those after the changes."""
        if not self._table.key:
            gone, added = self._net(group)
            self._take(gone)
            self._add(added)
            return
        last: dict[Row, Row | None] = {}
        for change in group.changes:
            for row in filter(None, (change.before, change.after)):
                last[self._key_of(row)] = None
            if change.after is not None:
                last[self._key_of(change.after)] = change.after
        arrays = self._encoder.arrays([self._padded(key) for key in last], self._table.key)
        keys = pa.table({f"b{i}": array for i, array in zip(self._table.key, arrays, strict=True)})
        self._session.change(
            f"DELETE FROM {self._qualified} AS t USING {STAGED} AS r WHERE {self._key}", data=keys
        )
        self._add([row for row in last.values() if row is not None])

    def _key_of(self, row: Row) -> Row:
        return tuple([row[i] for i in self._table.key])

    def _padded(self, key: Row) -> Row:
        """Return a row with this key, and with nothing else."""
        row: list[object] = [None] * len(self._every)
        for i, value in zip(self._table.key, key, strict=True):
            row[i] = value
        return tuple(row)

    # --- rows without a key

    def _net(self, group: ChangeGroup) -> tuple[list[tuple[Row, int]], list[Row]]:
        """Return the rows that go, with their numbers, and those that come: the sum of the changes."""
        rows: dict[object, Row] = {}
        sums: Counter[object] = Counter()
        for change in group.changes:
            for row, more in ((change.before, -1), (change.after, 1)):
                if row is not None:
                    identity = self._identity(row)
                    rows[identity] = row
                    sums[identity] += more
        gone = [(rows[identity], -count) for identity, count in sums.items() if count < 0]
        return gone, [rows[identity] for identity, count in sums.items() for _ in range(count)]

    def _taking(self) -> str:
        pairs = f"{self._qualified} AS t JOIN {STAGED} AS r ON {self._whole_row}"
        nth = "row_number() OVER (PARTITION BY r.number)"
        ids = (
            f"SELECT id FROM (SELECT t.rowid AS id, r.wanted, {nth} AS nth FROM {pairs}) WHERE nth <= wanted"
        )
        return f"DELETE FROM {self._qualified} WHERE rowid IN ({ids})"

    def _take(self, gone: Sequence[tuple[Row, int]]) -> int:
        """Delete as many of each row as are wanted; return their number."""
        if not gone:
            return 0
        arrays = self._encoder.arrays([row for row, _ in gone], self._every)
        named = {f"b{i}": array for i, array in enumerate(arrays)}
        named |= {"number": pa.array(range(len(gone))), "wanted": pa.array([count for _, count in gone])}
        return self._session.change(self._taking(), data=pa.table(named))

    # --- parts

    def _add(self, rows: Sequence[Row]) -> None:
        if rows:
            self._session.change(self._insert, data=pa.table(self._after(rows, self._every)))

    def _after(self, rows: Sequence[Row], index: Sequence[int]) -> dict[str, pa.Array]:
        arrays = self._encoder.arrays(rows, index)
        return {f"a{i}": array for i, array in zip(index, arrays, strict=True)}

    def _before(self, changes: Sequence[RowChange], index: Sequence[int]) -> dict[str, pa.Array]:
        arrays = self._encoder.arrays([change.before or () for change in changes], index)
        return {f"b{i}": array for i, array in zip(index, arrays, strict=True)}

    def _same(self, i: int) -> str:
        """Return a condition that is true only for the same value, NULL included."""
        here, staged = f"t.{self._names[i]}", f"r.b{i}"
        match self._table.columns[i].kind:
            case "json":  # a document is its text
                here = f"{here}::VARCHAR"
            case "float" | "double":
                signs = f"signbit({here}) IS NOT DISTINCT FROM signbit({staged})"
                return f"{here} IS NOT DISTINCT FROM {staged} AND {signs}"
        return f"{here} IS NOT DISTINCT FROM {staged}"

    def compare(self, change: RowChange) -> list[Comparison] | None:
        """Compare the row here that has the key of `change` before it; None if there is none."""
        parts = [f"{self._shown(i)}, ({self._same(i)})" for i in self._every]
        rows = self._session.rows(
            f"SELECT {','.join(parts)} FROM {self._qualified} AS t JOIN {STAGED} AS r ON {self._key}",
            data=pa.table(self._before([change], self._every)),
        )
        if not rows:
            return None
        return [Comparison(*pair) for pair in zip(rows[0][::2], rows[0][1::2], strict=True)]

    def _shown(self, i: int) -> str:
        name = f"t.{self._names[i]}"
        # The driver needs another package for values with a time zone.
        return f"{name}::VARCHAR" if self._table.columns[i].kind == "timestamp" else name
