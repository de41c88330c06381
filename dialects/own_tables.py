"""Tables that a feed keeps for itself in a database."""

from __future__ import annotations

from typing import Protocol

from ..events import Row


class OwnTables(Protocol):
    """Tables of a feed beside its checkpoint, in the connection of a target."""

    home: str
    """Text before a table's name in statements: a quoted schema with a point, or nothing."""
    name_type: str
    """Type of a column for names that are compared to the byte and may be in a key."""
    text_type: str
    """Type of a column for texts of any length."""
    table_options: str
    """Text after a table's columns in CREATE TABLE."""
    for_update: str
    """Text after a SELECT that locks the rows it finds, and reads their last committed values."""
    unix_time: str
    """Expression of the server's time, in whole seconds since 1970."""

    @property
    def snapshot_ts(self) -> str:
        """Expression of the ts as of which the open transaction reads, and others can read later; NULL in a
        database that can't."""

    @property
    def max_row_bytes(self) -> int | None:
        """Maximum size of a row's texts, about; None for one that other limits come before."""

    def has(self, table: str) -> bool:
        """Return True if there is a table of that name."""

    def create(self, table: str, columns: str) -> None:
        """Create a table unless it is there, in an open transaction; other processes may do the same."""

    def query(self, statement: str, *values: str | int | None) -> list[Row]:
        """Run a statement, in which each ? stands for a value; return its rows."""
