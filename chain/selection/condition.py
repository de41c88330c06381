"""Conditions of filters of rows."""

from __future__ import annotations

from typing import Protocol

from ...events import Row, Table
from .where import Test, Truth, Where


class Condition(Protocol):
    """A condition on rows: a target has none for which it is true."""

    text: str
    """Stored in the checkpoint: the rows of a target were chosen by it."""
    label: str
    """Its name in an error."""

    columns: frozenset[str]
    """Names, in lower case, of the columns whose values decide."""

    def test(self, table: Table) -> Test:
        """Return the function from a row of the table to its truth.

        Raises SinkError if it can't be evaluated for this table.
        """


class Chosen(Where):
    """A condition that is true unless an expression is: the target has the rows for which that is true."""

    def __init__(self, text: str, where: str) -> None:
        super().__init__(text, where)
        self.label = f"rows.where = {text!r}"

    def test(self, table: Table) -> Test:
        is_true = super().test(table)

        def test(row: Row) -> Truth:
            return is_true(row) is not True

        return test
