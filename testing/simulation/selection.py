"""The part of the source that a target has: what a feed's options select."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from ...events import Row
from .truth import State, TableState
from .writers import SCHEMA

LEFT_OUT: Final = f"{SCHEMA}.other"
FILTERED: Final = f"{SCHEMA}.item"
LEAST: Final = 500
"""Rows with `n` from here on aren't in the target."""


class Selection(Struct, frozen=True):
    is_filtered: bool = False
    leaves_out: bool = False

    @property
    def tables(self) -> list[str]:
        """Patterns of the feed."""
        return [f"{SCHEMA}.*", *[f"!{LEFT_OUT}"] * self.leaves_out]

    @property
    def filters(self) -> list[dict[str, Any]]:
        return [{"tables": [FILTERED], "where": f"n >= {LEAST}"}] * self.is_filtered

    def of(self, state: State) -> State:
        """Return the tables and rows of the source that are selected."""
        return {
            name: _kept(table) if self.is_filtered and name == FILTERED else table
            for name, table in state.items()
            if not (self.leaves_out and name == LEFT_OUT)
        }


def _kept(table: TableState) -> TableState:
    at = table.columns.index("n")
    return TableState(table.columns, {key: row for key, row in table.rows.items() if not _is_true(row[at])})


def _is_true(value: Row | int | None) -> bool:
    """Return what SQL makes of the condition: it isn't true for NULL."""
    return isinstance(value, int) and value >= LEAST
