"""Statements that repair rows of a MySQL target, for a session without backslash escapes."""

from __future__ import annotations

from collections.abc import Callable

from ...events import (
    FLOATS,
    Row,
    Table,
)
from ..read import Settled
from .text import compile_set, compile_values, compile_where, name


class Repair:
    """`qualified` returns a table's name, quoted."""

    def __init__(self, qualified: Callable[[Table], str]) -> None:
        self._qualified = qualified

    def statements(self, table: Table, difference: Settled, *, native_json: bool) -> list[str]:
        """Return the statements for one difference. An extra row is deleted only if it is exactly that row,
        as another spelling of its key may be the same key here."""
        into = self._qualified(table)
        if not table.key:
            more = difference.source - difference.target
            if more > 0:
                return [self._insert(table, difference.key)] * more
            return [
                f"DELETE FROM {into} WHERE {self.where(table, difference.key, native_json=native_json)} "
                f"LIMIT {-more}"
            ]
        if difference.target is None:
            return [self._insert(table, difference.source)]
        if difference.source is None:
            return [
                f"DELETE FROM {into} WHERE {self.where(table, difference.target, native_json=native_json)}"
            ]
        changed = [
            i
            for i, (ours, theirs) in enumerate(zip(difference.source, difference.target, strict=True))
            if ours != theirs
        ]
        (values,) = compile_set(table, changed)([_written(table, difference.source)])
        (where,) = compile_where(table)([_written(table, difference.target)])
        return [f"UPDATE {into} SET {values} WHERE {where}"]

    def where(self, table: Table, row: Row, *, native_json: bool) -> str:
        """Return the condition that a row is exactly this one."""
        render = compile_where(table, whole=True, native_json=native_json)
        return render([_written(table, row)])[0]

    def _insert(self, table: Table, row: Row) -> str:
        names = ",".join(name(column.name) for column in table.columns)
        (values,) = compile_values(table)([_written(table, row)])
        return f"INSERT INTO {self._qualified(table)} ({names}) VALUES {values}"


def _written(table: Table, row: Row) -> Row:
    """Return a stored row with numbers only."""
    return tuple(
        [
            -0.0 if value == "-0.0" and column.kind in FLOATS else value
            for column, value in zip(table.columns, row, strict=True)
        ]
    )
